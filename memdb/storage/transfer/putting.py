"""Putting an export's records into their tables, a page at a time: found by identity, compared, stored together."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from memdb.storage.schema import record
from memdb.storage.segments import segments
from memdb.storage.transfer import rows
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.fields import Field
from memdb.storage.transfer.form import OWN, OWN_FIELDS, RECALL, RECORD
from memdb.storage.transfer.rows import Row, Stored

_TWINS = tuple(column.name for column in record.c if column.name.endswith("_seg"))
_IDENTITY = ("user_id", "layer", "session_id", "key")
_WRITTEN = ("user_id", *(field.name for field in RECORD), *_TWINS)
_PUT = f"INSERT INTO record ({', '.join(_WRITTEN)}, seg_revision) VALUES "
_PUT_ROW = f"({', '.join('?' * len(_WRITTEN))}, 1)"
_PUT_OVER = f""" ON CONFLICT ({", ".join(_IDENTITY)}) DO UPDATE
  SET {", ".join(f"{name} = excluded.{name}" for name in _WRITTEN if name not in _IDENTITY)},
      seg_revision = record.seg_revision + 1"""
_FIND = """
SELECT record.id FROM json_each(?) AS given CROSS JOIN record
    ON (record.user_id, record.layer, record.session_id, record.key)
     = (?, json_extract(given.value, '$[0]'), json_extract(given.value, '$[1]'), json_extract(given.value, '$[2]'))
"""
# Not a row that names a payload: a trigger would delete that with it, and the new row may name the same.
_EMPTIED = ("recall", *(name for name, fields in OWN_FIELDS.items() if not any(field.payload for field in fields)))


def insert_into(table: str, names: Iterable[str], *, or_replace: bool = False) -> str:
    """Return the INSERT of a row."""
    listed = list(names)
    verb = "INSERT OR REPLACE" if or_replace else "INSERT"
    return f"{verb} INTO {table} ({', '.join(listed)}) VALUES ({', '.join('?' * len(listed))})"


def put_fields(table: str, before: Sequence[str], fields: Sequence[Field], key: Sequence[str]) -> str:
    """Return the upsert of a row; a field that names a payload by its hash becomes its number.

    Args:
        before: columns that stand before the fields, user_id among them.
        key: the columns of the unique key.
    """
    names = [*before, *(field.column for field in fields)]
    whose = before.index("user_id") + 1
    values = [f"?{at}" for at in range(1, len(before) + 1)]
    for at, field in enumerate(fields, len(before) + 1):
        values.append(f"(SELECT id FROM blob WHERE (user_id, hash) = (?{whose}, ?{at}))" if field.payload else f"?{at}")
    over = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    return f"""INSERT INTO {table} ({", ".join(names)}) VALUES ({", ".join(values)})
      ON CONFLICT ({", ".join(key)}) DO UPDATE SET {over}"""


_ADD_RECALL = insert_into("recall", ("record_id", *(field.name for field in RECALL)))
_ADD_OWN = {
    name: put_fields(name, ("record_id", "user_id"), fields, ("record_id",)) for name, fields in OWN_FIELDS.items()
}
_CHUNK = [field.name for field in OWN_FIELDS["history"]].index("chunk")
_UNMIRROR = "DELETE FROM mirror WHERE user_id = ? AND last_key != ''"  # what a HISTORY.md holds is no longer known
_UNMARK = "UPDATE history SET chunk = NULL WHERE (user_id, chunk) = (?, ?)"
_REFER = insert_into("record_reference", ("source_id", "position", "user_id", "target_layer", "target_key"))
# When a record was stored, as how often it was recalled, is not what it says.
_USAGE = tuple(at for at, field in enumerate(RECORD) if field.name == "updated_at")


class Records:
    """The records of a user, inside a write transaction.

    Args:
        connection: reads text leniently.
        user_id: whose records.
        exact: whether a record says the same only when its times and statistics are the same, too.
    """

    def __init__(self, connection: sqlite3.Connection, user_id: str, *, exact: bool) -> None:
        self._connection = connection
        self._user_id = user_id
        self._exact = exact

    def there(self, entries: list[Entry]) -> dict[Row, tuple[int, bool]]:
        """Return of those that are in the file by identity the number, and whether they say the same."""
        given = {entry.identity: entry for entry in entries}
        ids = [found for (found,) in self._find(given)]
        there: dict[Row, tuple[int, bool]] = {}
        for found in rows.stored(self._connection, self._user_id, ids) if ids else ():
            identity = found.columns[:3]
            there[identity] = (found.id, self._says_the_same(found, given[identity]))
        return there

    def _find(self, identities: Iterable[Row]) -> list[Row]:
        listed = json.dumps(list(identities), ensure_ascii=False)
        return self._connection.execute(_FIND, (listed, self._user_id)).fetchall()

    def _says_the_same(self, found: Stored, entry: Entry) -> bool:
        if found.references != entry.references or _compared(found.own) != _compared(entry.own):
            return False
        if self._exact:
            return found.columns == entry.columns and found.recall == entry.recall
        return without(found.columns, _USAGE) == without(entry.columns, _USAGE)

    def put(self, entries: list[Entry], replaced: list[int]) -> None:
        """Store records that are new, or that take the place of those with the numbers `replaced`."""
        values: list[Any] = []
        for entry in entries:
            texts = [entry.column(name) for name in ("title", "summary", "content")]
            twins = segments(texts[0], entry.tags, texts[1], entry.keywords, texts[2])
            values += (self._user_id, *entry.columns, *(twins[name] for name in _TWINS))
        execute = self._connection.execute
        # One statement: FTS5 flushes its buffer at each (20 us a row, row by row 66; through json_each 31).
        execute(f"{_PUT}{', '.join([_PUT_ROW] * len(entries))}{_PUT_OVER if replaced else ''}", values)
        for record_id in replaced:
            for child in _EMPTIED:
                execute(f"DELETE FROM {child} WHERE record_id = ?", (record_id,))
            execute("DELETE FROM record_reference WHERE source_id = ?", (record_id,))
        if replaced and any(entry.identity[0] == "history" for entry in entries):
            execute(_UNMIRROR, (self._user_id,))
        self._put_children([entry for entry in entries if entry.references or entry.recall or entry.own])

    def _put_children(self, entries: list[Entry]) -> None:
        if not entries:
            return
        ids = [found for (found,) in self._find(entry.identity for entry in entries)]
        numbered = list(zip(ids, entries, strict=True))
        many, user_id = self._connection.executemany, self._user_id
        many(_ADD_RECALL, [(number, *entry.recall) for number, entry in numbered if entry.recall is not None])
        many(
            _REFER,
            [
                (number, position, user_id, *target)
                for number, entry in numbered
                for position, target in enumerate(entry.references)
            ],
        )
        if self._exact:  # what replaces takes the mark along that a chunk of messages is consolidated
            chunks = [(user_id, entry.own["history"][_CHUNK]) for entry in entries if "history" in entry.own]
            many(_UNMARK, chunks)
        for name, statement in _ADD_OWN.items():
            many(statement, [(number, user_id, *entry.own[name]) for number, entry in numbered if name in entry.own])


_UNCOMPARED = {own.table.name for own in OWN if not own.compared}


def _compared(own: dict[str, Row]) -> dict[str, Row]:
    return {name: columns for name, columns in own.items() if name not in _UNCOMPARED}


def without(columns: Row, places: Sequence[int]) -> Row:
    """Return columns but for those at some places."""
    return tuple(value for at, value in enumerate(columns) if at not in places)
