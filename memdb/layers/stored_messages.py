"""How messages are appended to sessions and read back, oldest first; over a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, literal_column, select

from memdb.errors import InvalidInput, SerializationError
from memdb.layers import reading, records
from memdb.layers.message import (
    KEY_DIGITS,
    MAX_POSITION,
    MESSAGE,
    Message,
    made_of,
    message_of,
    message_row,
)
from memdb.layers.reading import here
from memdb.layers.record import UNREADABLE, Place
from memdb.layers.window import BEYOND, ConversationMemoryConfig, evict
from memdb.storage.schema import message as message_table
from memdb.storage.schema import record
from memdb.storage.statement import InsertRows, Statement, insert, param
from memdb.storage.transaction import Row, Transaction

_KEY = record.c.key
# Only what is a position counts: a shell may have left other keys (bytes, too, which are above all text). Written out:
# a statement whose pattern is a parameter is compiled anew each time it is bound (20 us in place of 4).
_POSITIONS: ColumnElement[str] = literal_column(f"'{'[0-9]' * KEY_DIGITS}'")
IS_POSITION = and_(literal_column(f"'{BEYOND}'") > _KEY, _KEY.op("GLOB")(_POSITIONS))
LAST_KEY = Statement(select(_KEY).where(here(), IS_POSITION).order_by(_KEY.desc()).limit(1))

_BETWEEN = (here(), param("after") < _KEY, param("before") > _KEY)
_NEWEST = Statement(MESSAGE.select(*_BETWEEN).order_by(_KEY.desc()).limit(param("limit")))
# What a message is made of and no more: half the time of all columns of a record.
_MADE_OF = Statement(
    select(_KEY, record.c.created_at, record.c.content, *(message_table.c[name] for name in MESSAGE.names))
    .select_from(record.outerjoin(message_table, message_table.c.record_id == record.c.id))
    .where(*_BETWEEN)
    .order_by(_KEY.desc())
    .limit(param("limit"))
)

_OWN_ROWS = InsertRows(insert(message_table).values({column.name: param(column.name) for column in message_table.c}))


def append(
    tx: Transaction,
    given: Iterable[tuple[Place, Message | Mapping[str, Any]]],
    configs: Sequence[ConversationMemoryConfig | None],
) -> list[int]:
    """Append messages to sessions, in the order given, and return their positions.

    Args:
        given: the sessions and what is appended to them.
        configs: for each the configuration under which it is appended; None for none.

    Raises:
        InvalidInput: a message is not what it must be.
    """
    ends: dict[Place, int] = {}
    rows = []
    for place, message in given:
        last = ends.get(place)
        if last is None:
            last = int(tx.value(LAST_KEY, **place.values()) or 0)
        if last >= MAX_POSITION:  # only a shell gets there
            raise InvalidInput(f"the session {place.session_id!r} has a message at its last position; begin another")
        ends[place] = last + 1
        rows.append(message_row(place, last + 1, tx.now, Message.model_validate(message)))
    records.append(tx, rows, _OWN_ROWS)
    if any(configs):
        evict(tx, configs, rows)
    return [int(values["key"]) for values in rows]


def newest(tx: Transaction, place: Place, after: str, before: str, limit: int) -> list[Message]:
    """Return the newest messages between two keys, oldest first, without those that cannot be read.

    Args:
        after: a key; "" for the beginning.
        before: a key; BEYOND for the end.
        limit: how many at most; -1 for all.
    """
    values = place.values(after=after, before=before, limit=limit)
    if not tx.lenient:
        rows = tx.all(_MADE_OF, **values)
        rows.reverse()
        try:
            return [_made(found) for found in rows]
        except UNREADABLE:
            pass  # once more, in the way that tells which
    return [*reading.shaped(tx, reversed(tx.all(_NEWEST, **values)), message_of, MESSAGE)]


def _made(found: Row) -> Message:
    """Return a message of a row of _MADE_OF.

    Raises:
        Any of UNREADABLE: the row cannot be read.
    """
    if bytes in map(type, found):
        raise SerializationError("a column holds bytes instead of text")
    return made_of(*found)
