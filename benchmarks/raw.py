"""The other side of writes: the standard library's sqlite3 and a table that holds like rows."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.figures import Times
from memdb.storage.schema import TOKENIZER

Row = tuple[str, str, str, str, str, str, str, str]

# As durable and with as large a cache as memdb's writer; everything else is SQLite's default.
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16384")
_SCHEMA = f"""
CREATE TABLE item (
  id INTEGER PRIMARY KEY, user_id TEXT, layer TEXT, session_id TEXT, key TEXT,
  content TEXT, metadata TEXT, created_at TEXT, updated_at TEXT,
  UNIQUE (user_id, layer, session_id, key)
);
CREATE VIRTUAL TABLE item_search USING fts5(content, content='item', content_rowid='id', tokenize='{TOKENIZER}');
CREATE TRIGGER item_ai AFTER INSERT ON item BEGIN
  INSERT INTO item_search (rowid, content) VALUES (new.id, new.content);
END;
"""
_INSERT = """
INSERT INTO item (user_id, layer, session_id, key, content, metadata, created_at, updated_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


class RawFile:
    """A file of such rows, written with plain sqlite3 on the caller's thread."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.executescript(_SCHEMA)

    def autocommit(self, rows: Iterable[Row]) -> Times:
        """Insert each row in a transaction of its own; return the time of each."""
        times = Times()
        execute = self._connection.execute
        for row in rows:
            start = time.perf_counter()
            execute(_INSERT, row)
            times.add(time.perf_counter() - start)
        return times

    def in_transactions(self, rows: list[Row], size: int) -> Times:
        """Insert rows one by one in transactions of `size` rows; return the time a row of them all."""
        execute = self._connection.execute
        start = time.perf_counter()
        for at in range(0, len(rows), size):
            execute("BEGIN IMMEDIATE")
            for row in rows[at : at + size]:
                execute(_INSERT, row)
            execute("COMMIT")
        times = Times()
        times.add(time.perf_counter() - start, len(rows))
        return times

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
