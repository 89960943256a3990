"""How all layers read their records: get, list, search; over a transaction.

A layer without a table of its own reads the columns RECORD; one that has a table beside `record` reads Columns(its
table), and its `shape` is given that table's values after the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, func, or_, select

from memdb.layers.arguments import check_limit, check_query
from memdb.layers.record import UNREADABLE, Place, Record, made
from memdb.storage import fulltext
from memdb.storage.clock import to_text
from memdb.storage.quarantine import Damage
from memdb.storage.schema import record, scope
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Row, Transaction
from memdb.storage.within import Within
from memdb.text.query import parse

T = TypeVar("T")


def here() -> ColumnElement[bool]:
    """The records of one layer and scope: every statement carries it."""
    return and_(
        record.c.user_id == param("user_id"),
        record.c.layer == param("layer"),
        record.c.session_id == param("session_id"),
    )


def alive() -> ColumnElement[bool]:
    """The records that have not expired."""
    return or_(record.c.expires_at.is_(None), record.c.expires_at > param("now"))


class Columns:
    """What a layer reads of a record.

    Args:
        own: the layer's own table, keyed by record_id; None when it has none. Its record_id and user_id are not read.
    """

    def __init__(self, own: Table | None = None) -> None:
        self._own = own
        self._read = [record.c[name] for name in Record._fields]
        if own is not None:
            self._read += [column for column in own.c if column.name not in ("record_id", "user_id")]
        self.names = tuple(column.name for column in self._read[len(Record._fields) :])

    def select(self, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
        """Select these columns of the records that meet the conditions; a missing row of the own table reads NULL."""
        rows = select(*self._read)
        if self._own is not None:
            rows = rows.select_from(record.outerjoin(self._own, self._own.c.record_id == record.c.id))
        return rows.where(*conditions)

    @cached_property
    def by_key(self) -> Statement:
        """One record of a place, by its key."""
        return Statement(self.select(here(), record.c.key == param("key"), alive()))

    @cached_property
    def by_id(self) -> Statement:
        """One record of anybody, by its number."""
        return Statement(self.select(record.c.id == bindparam("id")))

    @cached_property
    def by_ids(self) -> Statement:
        """Records of a user, by their numbers (concat: or SQLite would walk the user's whole index instead)."""
        numbers = select(each("ids").c.value)
        return Statement(
            self.select(record.c.id.in_(numbers), (record.c.user_id.concat("")) == param("user_id"), alive())
        )


RECORD = Columns()


def _list(*conditions: ColumnElement[bool]) -> Statement:
    oldest_first = [record.c.created_at, record.c.id]
    return Statement(RECORD.select(here(), alive(), *conditions).order_by(*oldest_first).limit(param("limit")))


_PREFIX = (record.c.key >= param("prefix"), record.c.key < param("beyond"))
_SINCE = record.c.created_at >= param("since")
# (asked by prefix, asked by time) -> the statement: each has its own plan.
_LISTS = {
    (False, False): _list(),
    (False, True): _list(_SINCE),
    (True, False): _list(*_PREFIX),
    (True, True): _list(*_PREFIX, _SINCE),
}


_HELD = Statement(
    select(scope.c.records).where(
        scope.c.user_id == param("user_id"), scope.c.layer == param("layer"), scope.c.session_id == param("session_id")
    )
)
_COUNT = Statement(select(func.count()).select_from(record).where(here()))
_NUMBERS = Statement(select(record.c.key, record.c.id).where(here(), record.c.key.in_(select(each("keys").c.value))))


def get(tx: Transaction, place: Place, key: str, shape: Callable[..., T], columns: Columns = RECORD) -> T | None:
    """Return the record with a key as `shape` makes it, or None."""
    found = tx.first(columns.by_key, place.values(key=key, now=tx.now))
    if found is None:
        return None
    try:
        return made(found, shape, columns.names, lenient=tx.lenient)
    except UNREADABLE as error:
        _set_aside(tx, found[0], error, shape, columns)
        return None


def numbers(tx: Transaction, place: Place, keys: Iterable[str]) -> dict[str, int]:
    """Return the numbers of those records of a place that there are, by their keys."""
    return dict(tx.all(_NUMBERS, **place.values(keys=json.dumps(list(keys)))))


def held(tx: Transaction, place: Place) -> int:
    """Return how many records a place holds, by the count that triggers keep: a look-up, whatever the number."""
    kept = tx.value(_HELD, **place.values())
    return kept if isinstance(kept, int) else counted(tx, place)


def counted(tx: Transaction, place: Place) -> int:
    """Return how many records a place holds, counted one by one."""
    return int(tx.value(_COUNT, **place.values()))


def in_order(tx: Transaction, user_id: str, ids: Iterable[int]) -> list[Row]:
    """Return a user's rows with these record ids, in the order of the ids."""
    order = {number: at for at, number in enumerate(ids)}
    return sorted(by_ids(tx, user_id, order), key=lambda row: order[row[0]])


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


def search(tx: Transaction, within: Within, query: str, limit: int, shape: Callable[..., T]) -> list[tuple[T, float]]:
    """Return the records that match a query best, as `shape` makes them, with their BM25 scores; ties by id."""
    scores = dict(fulltext.search(tx, parse(check_query(query)), within, check_limit(limit)))
    return ranked(tx, within.user_id, scores, shape)


def ranked(
    tx: Transaction, user_id: str, scores: dict[int, float], shape: Callable[..., T], columns: Columns = RECORD
) -> list[tuple[T, float]]:
    """Return records as `shape` makes them, with their scores: best first, ties by id."""
    rows = sorted(by_ids(tx, user_id, scores, columns), key=lambda row: (-scores[row[0]], row[0]))
    return [(made, scores[found]) for found, made in _numbered(tx, rows, shape, columns)]


def by_ids(tx: Transaction, user_id: str, ids: Iterable[int], columns: Columns = RECORD) -> list[Row]:
    """Return a user's rows with these record ids, in no order."""
    return tx.all(columns.by_ids, ids=json.dumps(list(ids)), user_id=user_id, now=tx.now)


def shaped(tx: Transaction, rows: Iterable[Row], shape: Callable[..., T], columns: Columns = RECORD) -> Iterator[T]:
    """Yield rows as `shape` makes them. A row that cannot be read is left out and marked for the quarantine.

    Args:
        rows: with the columns `columns`.
        shape: makes a value of a Record and, where the layer has a table of its own, of that table's values.
    """
    return (value for _, value in _numbered(tx, rows, shape, columns))


def _numbered(
    tx: Transaction, rows: Iterable[Row], shape: Callable[..., T], columns: Columns
) -> Iterator[tuple[int, T]]:
    for found in rows:
        try:
            value = made(found, shape, columns.names, lenient=tx.lenient)
        except UNREADABLE as error:
            _set_aside(tx, found[0], error, shape, columns)
            continue
        yield found[0], value


def _set_aside(tx: Transaction, record_id: int, error: Exception, shape: Callable[..., Any], columns: Columns) -> None:
    persists = partial(_still_damaged, record_id=record_id, shape=shape, columns=columns)
    tx.damaged[record_id] = Damage(f"{type(error).__name__}: {error}", persists)


def _still_damaged(tx: Transaction, record_id: int, shape: Callable[..., Any], columns: Columns) -> bool:
    """Return whether a row still cannot be read: somebody may have mended it since."""
    found = tx.one(columns.by_id, id=record_id)
    try:
        return found is not None and made(found, shape, columns.names, lenient=True) is None
    except UNREADABLE:
        return True


def _beyond(prefix: str) -> str | bytes:
    """Return the least value above all texts that begin with `prefix`, as SQLite compares (by code point)."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return b"\xff"  # any BLOB is above any text
    after = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= after < 0xE000 else after)
