"""The newest messages of a session that fit: read backwards, never further than a budget may need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import select

from memdb.layers import cursor, reading
from memdb.layers.conversation import LAYER
from memdb.layers.history import legal
from memdb.layers.message import MESSAGE, Message, key_of, message_of
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.layers.stored_messages import IS_POSITION
from memdb.layers.window import BEYOND
from memdb.scope import Scope
from memdb.storage.schema import message, record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.tokens import TOKENS_PER_MESSAGE

PAGE = 256  # messages whose sizes are read at once

_KEY = record.c.key
_FROM = record.outerjoin(message, message.c.record_id == record.c.id)
_WITHIN = (here(), IS_POSITION, param("after") < _KEY, param("before") > _KEY)
_SIZES = Statement(
    select(_KEY, message.c.tokens).select_from(_FROM).where(*_WITHIN).order_by(_KEY.desc()).limit(param("limit"))
)
_FIRST = Statement(select(_KEY).where(*_WITHIN).order_by(_KEY).limit(1))
_LAST = Statement(select(_KEY).where(*_WITHIN).order_by(_KEY.desc()).limit(1))
_MESSAGES = Statement(MESSAGE.select(here(), param("first") <= _KEY, param("before") > _KEY).order_by(_KEY))
_LAST_MESSAGE = Statement(MESSAGE.select(here(), IS_POSITION, param("after") < _KEY).order_by(_KEY.desc()).limit(1))


class History(NamedTuple):
    """What was read of a session's history.

    Args:
        messages: those that a model API may be sent, oldest first.
        sizes: what all that were read cost by the kept counts, by their positions.
        oldest: the position of the first message, read or not; None when there is none.
        newest: the position of the last.
        whole: whether nothing older was left unread.
    """

    messages: list[Message]
    sizes: dict[int, int]
    oldest: int | None
    newest: int
    whole: bool


NO_HISTORY = History([], {}, None, 0, True)


def read_last(tx: Transaction, scope: Scope) -> Message | None:
    """Return the last message of a session that is not consolidated; None where there is none."""
    place = Place.of(LAYER, scope, by_session=True)
    rows = tx.all(_LAST_MESSAGE, **place.values(after=cursor.consolidated_key(tx, place)))
    return next(reading.shaped(tx, rows, message_of, MESSAGE), None)


def read_history(tx: Transaction, scope: Scope, most: int, asked: Message | None = None) -> History:
    """Return the newest messages after the cursor that together cost at most `most` tokens, by the kept counts.

    Args:
        most: tokens of cl100k_base; the contents of messages beyond it are not read.
        asked: the message of the user that ends the session: only those before it; None for all.
    """
    before = None if asked is None else asked.position
    place = Place.of(LAYER, scope, by_session=True)
    span = {"after": cursor.consolidated_key(tx, place), "before": BEYOND if before is None else key_of(before)}
    ends = [tx.value(statement, **place.values(**span)) for statement in (_FIRST, _LAST)]
    if ends[0] is None or ends[1] is None:
        return NO_HISTORY
    sizes, whole = _sizes(tx, place, span, most)
    messages: list[Message] = []
    if sizes:
        rows = tx.all(_MESSAGES, **place.values(first=key_of(min(sizes)), before=span["before"]))
        messages = list(reading.shaped(tx, rows, message_of, MESSAGE))
    return History(_legal(messages, asked), sizes, int(ends[0]), int(ends[1]), whole)


def _sizes(tx: Transaction, place: Place, span: dict[str, str], most: int) -> tuple[dict[int, int], bool]:
    """Return what the newest messages cost that fit into `most` tokens, and whether those are all."""
    sizes: dict[int, int] = {}
    total = 0
    while True:
        rows = tx.all(_SIZES, **place.values(**span, limit=PAGE))
        for key, tokens in rows:
            size = tokens if isinstance(tokens, int) and tokens > 0 else TOKENS_PER_MESSAGE
            total += size
            if total > most:
                return sizes, False
            sizes[int(key)] = size
        if len(rows) < PAGE:
            return sizes, True
        span = {**span, "before": rows[-1][0]}


def newest_within(
    messages: Sequence[Message], room: int, size: Callable[[Message], int], asked: Message | None = None
) -> list[Message]:
    """Return the newest messages that cost at most `room` tokens, oldest first: a call stays with its results.

    Args:
        messages: those that a model API may be sent.
        size: what a message costs.
        asked: the message of the user that follows them; None where none does.
    """
    first = len(messages)
    while first and (room := room - size(messages[first - 1])) >= 0:
        first -= 1
    return _legal(messages[first:], asked)  # without the results whose call had no room


def _legal(messages: Sequence[Message], asked: Message | None) -> list[Message]:
    """Return those that may be sent when `asked` follows: it may be the first message of a user."""
    if asked is None:
        return legal(messages)
    return [message for message in legal([*messages, asked]) if message is not asked]
