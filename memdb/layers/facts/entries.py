"""The history's statements: numbering, appending, and reading it a bounded page at a time, from either end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, func, literal_column, select

from memdb.errors import InvalidInput
from memdb.layers import reading, records
from memdb.layers.facts.entry import ENTRY, HistoryEntry, entry_of
from memdb.layers.message import KEY_DIGITS, MAX_POSITION
from memdb.layers.reading import here
from memdb.layers.record import Place, Record
from memdb.storage.schema import history as history_table
from memdb.storage.schema import record
from memdb.storage.statement import InsertRows, Statement, each, insert, param
from memdb.storage.transaction import Transaction

BEYOND = ":"  # a key above those of all numbers
PAGE = 500  # entries that are read at once, where a history is walked through
PAGE_CHARS = 4_000_000  # and how much of their text

_CONTENT = Record._fields.index("content")
_KEY = record.c.key
# Only what is a number counts: a shell may have left other keys (bytes, too, which are above all text). Each statement
# has one bound above, since of two SQLite would choose one and walk to it.
# Written out: a statement whose pattern is a parameter is compiled anew at each call (20 us in place of 4).
_DIGITS: ColumnElement[str] = literal_column(f"'{'[0-9]' * KEY_DIGITS}'")
_IS_NUMBER = _KEY.op("GLOB")(_DIGITS)
_LAST_KEY = Statement(select(_KEY).where(here(), _KEY < BEYOND, _IS_NUMBER).order_by(_KEY.desc()).limit(1))
_NEWEST = Statement(
    ENTRY.select(here(), param("before") > _KEY, _IS_NUMBER).order_by(_KEY.desc()).limit(param("limit"))
)
# SQLite measures the texts of a page before they are fetched: 500 entries may be 500 characters, or 8 GB.
_SIZE = select(_KEY, func.length(record.c.content))
_SIZES_BEFORE = Statement(_SIZE.where(here(), param("from") > _KEY, _IS_NUMBER).order_by(_KEY.desc()).limit(PAGE))
_SIZES_AFTER = Statement(
    _SIZE.where(here(), param("from") < _KEY, _KEY < BEYOND, _IS_NUMBER).order_by(_KEY).limit(PAGE)
)
_BETWEEN = Statement(ENTRY.select(here(), param("first") <= _KEY, param("last") >= _KEY, _IS_NUMBER).order_by(_KEY))

_OWN_ROWS = InsertRows(insert(history_table).values({column.name: param(column.name) for column in history_table.c}))
_ANY_CHUNK = Statement(
    select(history_table.c.record_id)
    .where(history_table.c.user_id == param("user_id"), history_table.c.chunk.in_(select(each("chunks").c.value)))
    .limit(1)
)


def last_key(tx: Transaction, place: Place) -> str:
    """Return the key of the last entry; "" when there is none."""
    return tx.value(_LAST_KEY, **place.values()) or ""


def append(tx: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    """Store entries under their numbers.

    Args:
        rows: their columns, as entry_row makes them, with the numbers that `next_number` led to.

    Raises:
        InvalidInput: a history has no number left.
    """
    if any(len(values["key"]) > KEY_DIGITS for values in rows):  # only a shell gets there
        raise InvalidInput(f"a history has an entry at its last number, {MAX_POSITION:,}; nothing can be appended")
    records.append(tx, list(rows), _OWN_ROWS)


def next_number(tx: Transaction, place: Place) -> int:
    """Return the number of the entry that is appended next."""
    return int(last_key(tx, place) or 0) + 1


def any_of_chunks(tx: Transaction, user_id: str, chunks: str) -> bool:
    """Return whether an entry tells of one of these chunks.

    Args:
        chunks: their names, as a JSON array.
    """
    return tx.one(_ANY_CHUNK, user_id=user_id, chunks=chunks) is not None


def newest(tx: Transaction, place: Place, limit: int | None, before: str = BEYOND) -> list[HistoryEntry]:
    """Return the newest entries before a key, oldest first; all of them when `limit` is None."""
    rows = tx.all(_NEWEST, **place.values(before=before, limit=-1 if limit is None else limit))
    return [*reading.shaped(tx, reversed(rows), entry_of, ENTRY)]


def backwards(tx: Transaction, place: Place, holds: Callable[[str], bool]) -> Iterator[HistoryEntry]:
    """Yield the entries whose text `holds`, newest first, fetched a bounded page at a time."""
    before = BEYOND
    while sizes := tx.all(_SIZES_BEFORE, **place.values(**{"from": before})):
        keys = _within_budget(sizes)
        rows = tx.all(_BETWEEN, **place.values(first=keys[-1], last=keys[0]))
        # Before the rest of it is read: most are passed over.
        held = (row for row in reversed(rows) if not isinstance(row[_CONTENT], str) or holds(row[_CONTENT]))
        yield from reading.shaped(tx, held, entry_of, ENTRY)
        before = keys[-1]


def page_after(tx: Transaction, place: Place, after: str) -> tuple[list[HistoryEntry], str]:
    """Return the entries that follow a key, oldest first, a bounded page of them.

    Returns:
        The entries, and the key of the last one; "" when none follows. What cannot be read is left out.
    """
    sizes = tx.all(_SIZES_AFTER, **place.values(**{"from": after}))
    if not sizes:
        return [], ""
    keys = _within_budget(sizes)
    rows = tx.all(_BETWEEN, **place.values(first=keys[0], last=keys[-1]))
    return [*reading.shaped(tx, rows, entry_of, ENTRY)], keys[-1]


def _within_budget(sizes: list[tuple[str, int | None]]) -> list[str]:
    """Return the keys of the first entries that are at most PAGE_CHARS together; one at least."""
    total = 0

    def fits(size: tuple[str, int | None]) -> bool:
        nonlocal total
        total += size[1] or 0
        return total <= PAGE_CHARS

    return [key for key, _ in takewhile(fits, sizes)] or [sizes[0][0]]
