"""Opening a file: what is asked of it, and the connections it gets. Runs on the connections' own threads."""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from memdb.errors import StorageError
from memdb.storage.clock import Clock
from memdb.storage.connection import COMMON_PRAGMAS, READER_PRAGMAS, SYNCHRONOUS, WRITER_PRAGMAS, connect
from memdb.storage.lock import FileLock
from memdb.storage.migrate import create_schema, prepare, set_wal
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.source import check_access, file_uri, identify

log = logging.getLogger("memdb")
library = logging.getLogger("memdb.sqlite")  # what is said of the library, not of the file

BUSY_TIMEOUT_S = 10.0
WAL_SAFE = ((3, 51, 3), (3, 50, 7), (3, 44, 6))  # first releases without the WAL-reset fault, by branch
_warned_of_old_sqlite = False


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is opened. See memdb.open."""

    durability: str = "full"
    read_only: bool = False
    create: bool = True
    migrate: bool = True
    readers: int = 4
    busy_timeout: float = BUSY_TIMEOUT_S


def open_writer(path: Path | None, options: Options, clock: Clock, lock: FileLock) -> sqlite3.Connection:
    """Return the writing connection of a file, which is made or migrated first when that is needed."""
    if path is not None:
        check_access(path, read_only=False, create=options.create)
        # Before the lock, so that nothing is left beside a file that is not ours.
        if identify(path, SCHEMA_VERSION, timeout=options.busy_timeout).version != SCHEMA_VERSION:
            with lock:
                prepare(path, clock, timeout=options.busy_timeout, migrate=options.migrate)
    synchronous = ("synchronous", SYNCHRONOUS[options.durability], "what a returned write survives")
    pragmas = (*COMMON_PRAGMAS, *WRITER_PRAGMAS, synchronous)
    connection = connect(file_uri(path, "rw"), pragmas, timeout=options.busy_timeout)
    if path is None:
        create_schema(connection)
    elif connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":  # a copy made by backup()
        with lock:
            set_wal(connection, path)
    lock.remember_file()
    return connection


def open_reader(uri: str, options: Options) -> sqlite3.Connection:
    """Return a connection that cannot write."""
    return connect(uri, (*COMMON_PRAGMAS, *READER_PRAGMAS), timeout=options.busy_timeout)


def check_readable(path: Path, options: Options) -> None:
    """Refuse a file that cannot be read as it is.

    Raises:
        MissingFile, NotAMemdbFile, SchemaTooNew, StorageError: what is wrong with it, and what to do.
    """
    check_access(path, read_only=True, create=False)
    state = identify(path, SCHEMA_VERSION, timeout=options.busy_timeout)
    if state.version != SCHEMA_VERSION:
        raise StorageError(
            f"{path} has schema {state.version}, this memdb needs {SCHEMA_VERSION}: open it once without read_only, or"
            " run `memdb migrate`"
        )


def warn_of_old_sqlite() -> None:
    """Say once in the log when the SQLite library still has the WAL-reset fault."""
    global _warned_of_old_sqlite
    version = sqlite3.sqlite_version_info
    safe = version >= WAL_SAFE[0] or any(version[:2] == first[:2] and version >= first for first in WAL_SAFE[1:])
    if not safe and not _warned_of_old_sqlite:
        _warned_of_old_sqlite = True
        library.warning(
            "SQLite %s can lose commits of two programs at once (fixed in 3.51.3, 3.50.7, 3.44.6). memdb's own"
            " processes are kept apart by its lock: let no other program write to the file while they do",
            sqlite3.sqlite_version,
        )
