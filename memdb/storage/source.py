"""What lies at a path before memdb touches it: nothing, an empty file, a memdb file, or something to leave alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memdb.errors import Corrupt, InvalidInput, MemdbError, MissingFile, NotAMemdbFile, SchemaTooNew, StorageError
from memdb.storage.connection import connect, translated
from memdb.text.check import path_text
from memdb.text.shown import shown

APPLICATION_ID = 0x6D656D64  # "memd", in the file's header at offset 68
MEMORY = ":memory:"
LEAST_FILE_BYTES = 512  # one page of the smallest kind


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file is. `version` is its user_version; 0 stands for a file with nothing in it yet."""

    version: int
    has_data: bool = False


def database_path(path: str | os.PathLike[str]) -> Path | None:
    """Return the absolute path of a database file, or None for ":memory:".

    Raises:
        InvalidInput: the path is empty or names a folder.
        MissingFile: its folder does not exist.
    """
    if isinstance(path, str) and path == MEMORY:
        return None
    text = path_text(path)
    if not text:
        raise InvalidInput(f"the database path must be a file path or {MEMORY!r}, not {shown(path)}")
    absolute = Path(text).absolute()
    with _told(absolute):
        if absolute.is_dir():
            raise InvalidInput(f"{absolute} is a folder; name a file in it, such as {absolute / 'agent.db'}")
        if not absolute.parent.is_dir():
            raise MissingFile(f"cannot open {absolute}: the folder {absolute.parent} does not exist; make it first")
    return absolute


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal in the block into a sentence."""
    try:
        yield
    except MemdbError:
        raise
    except OSError as error:
        raise StorageError(f"cannot open {path}: {error.strerror}") from error


def file_uri(path: Path | None, mode: str) -> str:
    """Return the SQLite URI of a file ("rw", "rwc", "ro" or "immutable"), or of a private in-memory database."""
    if path is None:
        return "file::memory:"
    return f"file:{quote(os.fsencode(path))}?" + ("mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}")


def check_access(path: Path, *, read_only: bool, create: bool) -> None:
    """Refuse a path that cannot be opened as asked, before anything is made.

    Raises:
        MissingFile: there is no file and none is to be made.
        StorageError: the file or its folder may not be read or written.
    """
    with _told(path):
        there = path.exists()
    if not there:
        if read_only or not create:
            raise MissingFile(f"there is no file {path}; open it without read_only or create=False, or check the path")
        if not os.access(path.parent, os.W_OK):
            raise StorageError(f"cannot make {path}: the folder {path.parent} cannot be written")
        return
    if not path.is_file():
        raise NotAMemdbFile(f"{path} is not a regular file")
    if not os.access(path, os.R_OK):
        raise StorageError(f"cannot read {path}: permission denied")
    if not read_only and not os.access(path, os.W_OK):
        raise StorageError(f"cannot write {path}: permission denied; open it with read_only=True to look into it")
    if not read_only and not os.access(path.parent, os.W_OK):
        raise StorageError(
            f"cannot write beside {path}, as its log must be; open it with read_only=True to look into it"
        )


def read_mode(path: Path) -> str:
    """Return how to open a file for reading only: "immutable" where no log can be made beside a cleanly closed file."""
    unwritable = not os.access(path.parent, os.W_OK)
    return "immutable" if unwritable and not Path(f"{path}-wal").exists() else "ro"


def identify(path: Path | None, known_version: int, *, timeout: float) -> FileState:
    """Return what a file is, without changing a byte of it.

    Args:
        path: an existing or missing file; None for an in-memory database.
        known_version: the newest user_version that this code knows.
        timeout: how long to wait for another process, in seconds.

    Raises:
        NotAMemdbFile: it is not SQLite, or belongs to another program.
        SchemaTooNew: a newer memdb wrote it.
    """
    if path is None or not path.exists() or not (size := path.stat().st_size):
        return FileState(0)
    if size < LEAST_FILE_BYTES:  # SQLite takes such a file for an empty one, and would write over it
        raise NotAMemdbFile(f"{path} is not a SQLite file; it was not changed: give another path")
    # By SQLite alone, never by open(): when a process closes any descriptor of a file, POSIX drops all its locks on it,
    # and another handle's acknowledged writes would go into a log that somebody else unlinks.
    try:
        with translated():
            return _look(path, read_mode(path), known_version, timeout)
    except NotAMemdbFile as error:
        if error.__cause__ is None:
            raise
        raise NotAMemdbFile(f"{path} is not a SQLite file; it was not changed: give another path") from error.__cause__
    except StorageError as error:
        if getattr(error.__cause__, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK" or read_mode(path) != "ro":
            raise
    with translated():  # a kill left a journal to be played back: ours may be, a stranger's is not touched
        _look(path, "immutable", known_version, timeout)
        return _look(path, "rw", known_version, timeout)


def _look(path: Path, mode: str, known_version: int, timeout: float) -> FileState:
    connection = connect(file_uri(path, mode), (), timeout=timeout)
    try:
        connection.execute("BEGIN")
        return _inspect(connection, path, known_version)
    except UnicodeDecodeError as error:  # SQLite quotes the damaged schema, and the driver cannot read its message
        raise Corrupt(f"{path} is damaged: its schema cannot be read; restore a backup") from error
    finally:
        connection.close()


def _inspect(connection: sqlite3.Connection, path: Path, known_version: int) -> FileState:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID:
        if tables or application or version:
            raise NotAMemdbFile(f"{path} is a SQLite file of another program; it was not changed: give another path")
        return FileState(0)
    if version < 1:
        raise Corrupt(f"{path} is marked as memdb's but has no schema version; restore a backup")
    if version > known_version:
        raise SchemaTooNew(
            f"{path} has schema {version}, this memdb knows {known_version}; it was not changed: install a newer memdb"
        )
    has_data = bool(connection.execute("SELECT EXISTS (SELECT 1 FROM record)").fetchone()[0])
    return FileState(version, has_data)
