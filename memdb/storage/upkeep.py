"""Work on a file as a whole: a copy of it, what it holds, forgetting a user."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from memdb.errors import AlreadyExists, Busy, InvalidInput, NotAMemdbFile, StorageError
from memdb.storage.schema import REBUILD, SCHEMA_VERSION
from memdb.storage.source import database_path, identify
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import varints
from memdb.storage.whole_file import sync_folder


@dataclass(frozen=True, slots=True)
class LayerStats:
    """How much one user holds in one layer.

    Args:
        user_id: whose.
        layer: the layer's name in the file.
        records: how many records.
        bytes: their contents in UTF-8 bytes.
    """

    user_id: str
    layer: str
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a file holds.

    Args:
        layers: a row a user and layer, by user, then layer. What checkpoints and tool results hold is counted as the
            layer "payload", once a user.
        file_bytes: the size of the database, without its log.
        free_bytes: how much of that is free for reuse.
        quarantined: rows that could not be read and were set aside.
    """

    layers: list[LayerStats]
    file_bytes: int
    free_bytes: int
    quarantined: int

    @property
    def records(self) -> int:
        """How many records the file holds."""
        return sum(row.records for row in self.layers if row.layer != "payload")

    @property
    def users(self) -> list[str]:
        """Whose records the file holds, sorted."""
        return sorted({row.user_id for row in self.layers})


# Each 'optimize' puts all that there is on a level above the last, and an index of over 2,000 levels FTS5 calls
# malformed (SQLite 3.40.1): one that has so many is made anew instead, which takes them away.
MOST_LEVELS = 1_000

_LAYERS = """
SELECT user_id, layer, records, bytes FROM scope
 WHERE layer != '' AND session_id = '' AND records > 0 ORDER BY user_id, layer
"""
_PAGES = """
SELECT page_count * page_size, freelist_count * page_size
  FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_FORGET = (
    "DELETE FROM relation WHERE user_id = ?",
    "DELETE FROM record WHERE user_id = ?",
    "DELETE FROM checkpoint WHERE user_id = ?",
    "DELETE FROM state WHERE user_id = ?",
    "DELETE FROM working_memory WHERE user_id = ?",
    "DELETE FROM version WHERE user_id = ?",  # what its record took with it is gone already
    "DELETE FROM memory_config WHERE user_id = ?",
    "DELETE FROM consolidation WHERE user_id = ?",
    "DELETE FROM mirror WHERE user_id = ?",
    "DELETE FROM aging WHERE user_id = ?",
    "DELETE FROM blob WHERE user_id = ?",  # what nothing refers to is gone already
    "DELETE FROM embedding_model WHERE user_id = ?",
    "DELETE FROM eviction WHERE user_id = ?",
    "DELETE FROM session WHERE user_id = ?",
    "DELETE FROM scope WHERE user_id = ?",
    "DELETE FROM quarantine WHERE user_id = ?",
)


def stats(tx: Transaction) -> Stats:
    """Return what the file holds, from the counters that the triggers keep: no work that grows with the file."""
    layers = [LayerStats(*row) for row in tx.rows(_LAYERS)]
    size, free = tx.rows(_PAGES)[0]
    return Stats(layers, size, free, tx.rows("SELECT count(*) FROM quarantine")[0][0])


def forget(tx: Transaction, user_id: str) -> dict[str, int]:
    """Delete every row of a user, in every layer, index, statistic and the quarantine; return the counts by layer."""
    counts = {row.layer: row.records for row in stats(tx).layers if row.user_id == user_id}
    aside = tx.rows("SELECT count(*) FROM quarantine WHERE user_id = ?", (user_id,))[0][0]
    for statement in _FORGET:
        tx.rows(statement, (user_id,))
    return counts | ({"quarantine": aside} if aside else {})


def overwrite_forgotten(connection: sqlite3.Connection) -> None:
    """Remove deleted text from where SQLite still keeps it: FTS5's old segments, free pages, the log."""
    if _levels(connection) < MOST_LEVELS:
        connection.execute("INSERT INTO record_search (record_search) VALUES ('optimize')")
    else:
        _rebuild(connection)
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise Busy(
            "the records are deleted, but a reader still holds the log and with it their text; forget again later"
        )


def _levels(connection: sqlite3.Connection) -> int:
    """Return how many levels the full-text index has: a varint after four bytes of the list of its segments."""
    [[block]] = connection.execute("SELECT block FROM record_search_data WHERE id = 10").fetchall()
    return next(iter(varints(block[4:])), 0)


def _rebuild(connection: sqlite3.Connection) -> None:
    """Make the full-text index anew, whole or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in REBUILD:
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def copy_to(connection: sqlite3.Connection, source: Path | None, target: str | os.PathLike[str]) -> None:
    """Write a copy of the database, whole or not at all, while others go on writing.

    VACUUM INTO reads one snapshot (the step-wise backup API starts anew at every write of another process), to a file
    beside the target that is synced and then takes its name.

    Args:
        connection: a connection of its own.
        source: the database's own path, which cannot be the target.
        target: the copy's path. An older copy there is replaced.

    Raises:
        InvalidInput: the target is the database itself or a folder.
        AlreadyExists: a file is there that is no memdb file.
    """
    path = _backup_target(source, target)
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}.unfinished")
    try:
        connection.execute("VACUUM INTO ?", (str(unfinished),))
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        sync_folder(path.parent)
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()


def _backup_target(source: Path | None, target: str | os.PathLike[str]) -> Path:
    path = database_path(target)
    if path is None:
        raise InvalidInput("the backup must be a file path, not ':memory:'")
    if source is not None and path.resolve() == source.resolve():
        raise InvalidInput(f"{path} is the database itself; give the backup another path")
    if not os.access(path.parent, os.W_OK):
        raise StorageError(f"cannot write {path}: the folder {path.parent} cannot be written")
    if path.exists():
        try:
            identify(path, SCHEMA_VERSION, timeout=1.0)
        except NotAMemdbFile:
            raise AlreadyExists(f"{path} is there already and is no memdb file; give the backup another path") from None
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size:  # an empty one is left by a handle that only looked
            raise AlreadyExists(f"{path} is in use (there is a {log.name}); give the backup another path")
    return path
