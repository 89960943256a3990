"""What all layers do with their records: put, add, get, delete, list, search, expire; over a transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, select, true

from memdb.errors import AlreadyExists
from memdb.layers.arguments import check_limit, check_query
from memdb.layers.record import UNREADABLE, Place, Record, made
from memdb.storage import fulltext
from memdb.storage.clock import to_text
from memdb.storage.fulltext import Within
from memdb.storage.quarantine import Damage
from memdb.storage.schema import record
from memdb.storage.statement import Statement, each, insert, json_field, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.query import parse

T = TypeVar("T")

BULK_ROWS = 500  # records of one statement: beyond it the JSON only grows
PURGED_A_WRITE = 64  # expired records that a write takes away on the side


_COLUMNS = [record.c[name] for name in Record._fields]
_WRITTEN = [column.name for column in record.c if column.name not in ("id", "seg_revision")]
_IDENTITY = ["user_id", "layer", "session_id", "key"]


def here() -> ColumnElement[bool]:
    """The records of one layer and scope: every statement carries it."""
    return and_(
        record.c.user_id == param("user_id"),
        record.c.layer == param("layer"),
        record.c.session_id == param("session_id"),
    )


def _alive() -> ColumnElement[bool]:
    return or_(record.c.expires_at.is_(None), record.c.expires_at > param("now"))


def _upsert(statement: Any) -> Any:
    """Make an insert replace what has the same identity: created_at is kept, the twins are of the new text."""
    changed = {name: statement.excluded[name] for name in _WRITTEN if name not in (*_IDENTITY, "created_at")}
    changed["seg_revision"] = record.c.seg_revision + 1
    return statement.on_conflict_do_update(index_elements=_IDENTITY, set_=changed)


def _insert_each() -> Any:
    """Insert many rows in one statement: 13 us a row, where row by row inside savepoints takes 42."""
    row = each("rows").c.value
    columns = [json_field(row, name).label(name) for name in _WRITTEN]
    return insert(record).from_select([*_WRITTEN, "seg_revision"], select(*columns, func.abs(1)).where(true()))


_INSERT = insert(record).values({**{name: param(name) for name in _WRITTEN}, "seg_revision": 1})
_PUT = Statement(_upsert(_INSERT))
_ADD = Statement(_INSERT.on_conflict_do_nothing(index_elements=_IDENTITY))
_PUT_EACH = Statement(_upsert(_insert_each()))
_ADD_EACH = Statement(_insert_each())
_GET = Statement(select(*_COLUMNS).where(here(), record.c.key == param("key"), _alive()))
_EXISTING = Statement(select(record.c.key).where(here(), record.c.key.in_(select(each("keys").c.value))))
_BY_IDS = Statement(
    select(*_COLUMNS).where(
        record.c.id.in_(select(each("ids").c.value)), (record.c.user_id.concat("")) == param("user_id"), _alive()
    )
)
_BY_ID = Statement(select(*_COLUMNS).where(record.c.id == bindparam("id")))
_DELETE = Statement(delete(record).where(here(), record.c.key == param("key"), _alive()))
_EXPIRED = and_(record.c.user_id == param("user_id"), record.c.expires_at <= param("now"))
_ANY_EXPIRED = Statement(select(record.c.id).where(_EXPIRED).limit(1))
_PURGE = Statement(
    delete(record).where(
        record.c.id.in_(select(record.c.id).where(_EXPIRED).order_by(record.c.expires_at).limit(PURGED_A_WRITE))
    )
)


def _list(*conditions: ColumnElement[bool]) -> Statement:
    oldest_first = [record.c.created_at, record.c.id]
    return Statement(
        select(*_COLUMNS).where(here(), _alive(), *conditions).order_by(*oldest_first).limit(param("limit"))
    )


_PREFIX = (record.c.key >= param("prefix"), record.c.key < param("beyond"))
_SINCE = record.c.created_at >= param("since")
# (asked by prefix, asked by time) -> the statement: each has its own plan.
_LISTS = {
    (False, False): _list(),
    (False, True): _list(_SINCE),
    (True, False): _list(*_PREFIX),
    (True, True): _list(*_PREFIX, _SINCE),
}


# -- writing ----------------------------------------------------------------------------------------------------------


def put(tx: Transaction, values: Mapping[str, Any]) -> None:
    """Insert a record or replace the one of the same identity, whose created_at is kept."""
    tx.put(_PUT, values)


def add(tx: Transaction, values: Mapping[str, Any], what: str) -> None:
    """Insert a new record.

    Raises:
        AlreadyExists: the key is taken.
    """
    if tx.put(_ADD, values) == 0:
        raise AlreadyExists(f"there is a {what} {values['key']!r} already; update it, or choose another id")


def put_many(tx: Transaction, rows: list[dict[str, Any]]) -> None:
    """Insert or replace many records; of rows with one identity the last stays."""
    for part in _parts(rows):
        tx.run(_PUT_EACH, rows=json.dumps(part, ensure_ascii=False))


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
            raise AlreadyExists(f"there is a {what} {taken!r} already; nothing was stored")
        tx.run(_ADD_EACH, rows=json.dumps(part, ensure_ascii=False))


def remove(tx: Transaction, place: Place, key: str) -> bool:
    """Delete a record; its tags, references, statistics and index entry go with it. Returns whether it was there."""
    return tx.run(_DELETE, **place.values(key=key, now=tx.now)) > 0


def purge_expired(tx: Transaction, place: Place) -> None:
    """Delete some of the user's expired records: a bounded share of the work with every write."""
    # Asked first: a DELETE with triggers opens a statement journal even when it finds nothing.
    if tx.one(_ANY_EXPIRED, user_id=place.user_id, now=tx.now) is not None:
        tx.run(_PURGE, user_id=place.user_id, now=tx.now)


# -- reading ----------------------------------------------------------------------------------------------------------


def get(tx: Transaction, place: Place, key: str, shape: Callable[[Record], T]) -> T | None:
    """Return the record with a key as `shape` makes it, or None."""
    found = tx.one(_GET, **place.values(key=key, now=tx.now))
    return None if found is None else next(shaped(tx, [found], shape), None)


def listed(
    tx: Transaction, place: Place, *, prefix: str | None = None, since: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the rows of a place, oldest first, ties by id.

    Args:
        prefix: only keys that begin with exactly this.
        since: only what was created then or later.
        limit: how many at most; None for all.
    """
    values = place.values(now=tx.now, limit=-1 if limit is None else limit)
    if prefix:
        values |= {"prefix": prefix, "beyond": _beyond(prefix)}
    if since is not None:
        values["since"] = to_text(since)
    return tx.all(_LISTS[bool(prefix), since is not None], **values)


def search(
    tx: Transaction, within: Within, query: str, limit: int, shape: Callable[[Record], T]
) -> list[tuple[T, float]]:
    """Return the records that match a query best, as `shape` makes them, with their BM25 scores; ties by id."""
    hits = fulltext.search(tx, parse(check_query(query)), within, check_limit(limit))
    scores = dict(hits)
    rows = by_ids(tx, within.user_id, scores)
    return [
        (made, scores[found])
        for found, made in _shaped(tx, sorted(rows, key=lambda row: (-scores[row[0]], row[0])), shape)
    ]


def by_ids(tx: Transaction, user_id: str, ids: Iterable[int]) -> list[Row]:
    """Return a user's rows with these record ids, in no order."""
    return tx.all(_BY_IDS, ids=json.dumps(list(ids)), user_id=user_id, now=tx.now)


def shaped(tx: Transaction, rows: Iterable[Row], shape: Callable[[Record], T]) -> Iterator[T]:
    """Yield rows as `shape` makes them. A row that cannot be read is left out and marked for the quarantine."""
    return (value for _, value in _shaped(tx, rows, shape))


def _shaped(tx: Transaction, rows: Iterable[Row], shape: Callable[[Record], T]) -> Iterator[tuple[int, T]]:
    for found in rows:
        try:
            value = made(found, shape, lenient=tx.lenient)
        except UNREADABLE as error:
            reason = f"{type(error).__name__}: {error}"
            tx.damaged[found[0]] = Damage(reason, partial(_still_damaged, record_id=found[0], shape=shape))
            continue
        yield found[0], value


def _still_damaged(tx: Transaction, record_id: int, shape: Callable[[Record], Any]) -> bool:
    """Return whether a row still cannot be read: somebody may have mended it since."""
    found = tx.one(_BY_ID, id=record_id)
    try:
        return found is not None and made(found, shape, lenient=True) is None
    except UNREADABLE:
        return True


def _parts(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for at in range(0, len(rows), BULK_ROWS):
        yield rows[at : at + BULK_ROWS]


def _beyond(prefix: str) -> str | bytes:
    """Return the least value above all texts that begin with `prefix`, as SQLite compares (by code point)."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return b"\xff"  # any BLOB is above any text
    after = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= after < 0xE000 else after)
