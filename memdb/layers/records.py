"""How all layers write their records: put, add, delete, expire; over a transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, delete, literal_column, select, update

from memdb.errors import AlreadyExists
from memdb.layers.reading import alive, here
from memdb.layers.record import Place
from memdb.storage.schema import record
from memdb.storage.statement import InsertRows, Statement, each, insert, param
from memdb.storage.transaction import Transaction

BULK_ROWS = 500  # records of one statement: beyond it the JSON only grows
BULK_CHARS = 4_000_000  # of their contents: SQLite holds what a statement inserts in memory once more
PURGED_A_WRITE = 64  # expired records that a write takes away on the side


_WRITTEN = [column.name for column in record.c if column.name not in ("id", "seg_revision")]
_IDENTITY = ["user_id", "layer", "session_id", "key"]


def _upsert(statement: Any) -> Any:
    """Make an insert replace what has the same identity: created_at is kept, the twins are of the new text."""
    changed = {name: statement.excluded[name] for name in _WRITTEN if name not in (*_IDENTITY, "created_at")}
    changed["seg_revision"] = record.c.seg_revision + literal_column("1")
    return statement.on_conflict_do_update(index_elements=_IDENTITY, set_=changed)


_INSERT = insert(record).values({**{name: param(name) for name in _WRITTEN}, "seg_revision": literal_column("1")})
_PUT = InsertRows(_upsert(_INSERT))
_ADD = InsertRows(_INSERT.on_conflict_do_nothing(index_elements=_IDENTITY))
_NUMBER = Statement(select(record.c.id).where(here(), record.c.key == param("key")))
_EXISTING = Statement(select(record.c.key).where(here(), record.c.key.in_(select(each("keys").c.value))))
_DELETE = Statement(delete(record).where(here(), record.c.key == param("key"), alive()))
_DELETE_EACH = Statement(delete(record).where(here(), record.c.key.in_(select(each("keys").c.value))))
_RENAME = Statement(update(record).where(here(), record.c.key == param("key")).values(key=param("new_key")))
_EXPIRED = and_(record.c.user_id == param("user_id"), record.c.expires_at <= param("now"))
_ANY_EXPIRED = Statement(select(record.c.id).where(_EXPIRED).limit(1))
_PURGE = Statement(
    delete(record).where(
        record.c.id.in_(select(record.c.id).where(_EXPIRED).order_by(record.c.expires_at).limit(PURGED_A_WRITE))
    )
)


def put(tx: Transaction, values: Mapping[str, Any]) -> None:
    """Insert a record or replace the one of the same identity, whose created_at is kept."""
    tx.insert(_PUT, values)


def add(tx: Transaction, values: Mapping[str, Any], what: str) -> None:
    """Insert a new record.

    Raises:
        AlreadyExists: the key is taken.
    """
    if tx.insert(_ADD, values) == 0:
        raise AlreadyExists(f"{what} {values['key']!r} exists already; update it, or choose another id")


def put_many(tx: Transaction, rows: list[dict[str, Any]]) -> None:
    """Insert or replace many records; of rows with one identity the last stays."""
    for part in _parts(rows):
        tx.insert_many(_PUT, part)


def add_many(tx: Transaction, place: Place, rows: list[dict[str, Any]], what: str) -> None:
    """Insert many new records.

    Raises:
        AlreadyExists: a key is taken, or given twice; nothing is stored.
    """
    counts = Counter(values["key"] for values in rows)
    if len(counts) < len(rows):
        twice = next(key for key, times in counts.items() if times > 1)
        raise AlreadyExists(f"{what} {twice!r} is given twice; nothing was stored")
    for part in _parts(rows):
        if taken := tx.value(_EXISTING, **place.values(keys=json.dumps([values["key"] for values in part]))):
            raise AlreadyExists(f"{what} {taken!r} exists already; nothing was stored")
        tx.insert_many(_ADD, part)


def append(tx: Transaction, rows: list[dict[str, Any]], own: InsertRows) -> None:
    """Insert records whose keys the layer itself has just made, with their rows in the layer's own table.

    Args:
        rows: the columns of both.
        own: inserts a row of the layer's table; `record_id` is given to it.
    """
    for part in _parts(rows):
        for values, number in zip(part, _add_new(tx, part), strict=True):
            values["record_id"] = number
        tx.insert_many(own, part)


def _add_new(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> Iterable[int]:
    """Insert records whose keys are not taken and return their numbers, in their order."""
    if len(rows) == 1:
        return (tx.insert_new(_ADD, rows[0]),)
    tx.insert_many(_ADD, rows)
    first, last = _number(tx, rows[0]), _number(tx, rows[-1])
    if last - first == len(rows) - 1:  # numbers only grow, so these are all
        return range(first, last + 1)
    return [_number(tx, values) for values in rows]  # a shell's own trigger made records between them


def _number(tx: Transaction, values: Mapping[str, Any]) -> int:
    found = tx.first(_NUMBER, values)
    assert found is not None
    return int(found[0])


def remove(tx: Transaction, place: Place, key: str) -> bool:
    """Delete a record; its tags, references, statistics and index entry go with it. Returns whether it was there."""
    return tx.run(_DELETE, **place.values(key=key, now=tx.now)) > 0


def remove_many(tx: Transaction, place: Place, keys: Iterable[str]) -> None:
    """Delete records, those that are there."""
    tx.run(_DELETE_EACH, **place.values(keys=json.dumps(list(keys))))


def rename(tx: Transaction, place: Place, key: str, new_key: str) -> None:
    """Give a record another key; what belongs to it stays with it."""
    tx.run(_RENAME, **place.values(key=key, new_key=new_key))


def purge_expired(tx: Transaction, place: Place) -> None:
    """Delete some of the user's expired records: a bounded share of the work with every write."""
    # Asked first: a DELETE with triggers opens a statement journal even when it finds nothing.
    values = {"user_id": place.user_id, "now": tx.now}
    if tx.first(_ANY_EXPIRED, values) is not None:
        tx.put(_PURGE, values)


def _parts(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    begin, chars = 0, 0
    for at, values in enumerate(rows):
        chars += len(values["content"])
        if at - begin == BULK_ROWS or (chars > BULK_CHARS and at > begin):
            yield rows[begin:at]
            begin, chars = at, len(values["content"])
    if begin < len(rows):
        yield rows[begin:]
