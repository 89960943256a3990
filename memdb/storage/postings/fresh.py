"""What was written since postings were read: an index in memory, of the same columns and names as the file's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from memdb.storage.schema import TEXT_COLUMNS, TOKENIZER
from memdb.storage.transaction import Transaction

_COLUMNS = (*TEXT_COLUMNS, "scope")
# As bytes: a shell may have written text that is no UTF-8.
_TEXTS = f"""
SELECT record_text.id, {", ".join(f"CAST(record_text.{column} AS BLOB)" for column in _COLUMNS)}
  FROM json_each(:ids) AS wanted CROSS JOIN record_text ON record_text.id = wanted.value
"""
_PUT = f"INSERT INTO record_search (rowid, {', '.join(_COLUMNS)}) VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})"


class FreshIndex:
    """An index of records that were written lately. One thread at a time uses it."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute(
            f"CREATE VIRTUAL TABLE record_search USING fts5({', '.join(_COLUMNS)}, tokenize='{TOKENIZER}')"
        )
        self._connection.execute("CREATE VIRTUAL TABLE record_instance USING fts5vocab(record_search, instance)")
        self._ids: set[int] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def take(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Index records as they are now, and forget those that are gone."""
        rows = tx.rows(_TEXTS, {"ids": json.dumps(ids)})
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "DELETE FROM record_search WHERE rowid = ?", ((number,) for number in self._ids.intersection(ids))
        )
        self._connection.executemany(_PUT, rows)
        self._connection.execute("COMMIT")
        self._ids.difference_update(ids)
        self._ids.update(row[0] for row in rows)

    def rows(self, sql: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement as on the file's index."""
        return self._connection.execute(sql, params).fetchall()

    def clear(self) -> None:
        """Forget all."""
        if self._ids:
            self._connection.execute("DELETE FROM record_search")
            self._ids.clear()
