"""A conversation's configuration, and the window that keeps only its newest messages (agcore document, 3.3 and 4.4).

A message goes when it stands before the window, oldest first. Calls and their results go together or stay together
(memdb.layers.history.groups), the newest group stays whatever its size, and once a session's cursor is used, what the
consolidator has not passed stays (decisions, "window eviction with a cursor"). What cannot be read stands in no group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, ValidationInfo, field_validator, model_validator
from sqlalchemy import ColumnElement, LargeBinary, Select, case, cast, delete, exists, func, select

from memdb.errors import InvalidInput, SerializationError
from memdb.layers import cursor
from memdb.layers.arguments import check_whole
from memdb.layers.history import groups, is_answer, is_users
from memdb.layers.message import Message, is_key, key_of
from memdb.layers.models import Model
from memdb.layers.reading import held, here
from memdb.layers.record import UNREADABLE, Place
from memdb.storage.schema import message, record, session
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.check import check_choice

BEYOND = ":"  # a key above those of all positions


def _at_least(least: int) -> BeforeValidator:
    def check(value: object) -> object:
        if value is not None and check_whole(value, "it") < least:
            raise InvalidInput(f"it must be {least} or more, not {value}")
        return value

    return BeforeValidator(check)


Count = Annotated[int, _at_least(1)]
Reserve = Annotated[int, _at_least(0)]


class MemoryStrategy(StrEnum):
    """What a conversation keeps (agcore document, section 3.3)."""

    SLIDING_WINDOW = "sliding_window"
    FULL = "full"


class CompactConfig(Model):
    """When old tool results are left out of the history; see memdb.layers.compaction (agcore document, section 3.3).

    Args:
        context_window: how many tokens the model takes, 1 or more.
        reserved_tokens: how many of them are kept for its answer and for what is sent besides; below context_window.
        keep_recent: how many of the newest tool results always stay whole, 1 or more.
    """

    model_config = ConfigDict(frozen=True)

    context_window: Count
    reserved_tokens: Reserve
    keep_recent: Count

    @field_validator("reserved_tokens")
    @classmethod
    def _leaves_room(cls, value: int, info: ValidationInfo) -> int:
        window = info.data.get("context_window")
        if window is not None and value >= window:
            raise InvalidInput(f"{value} of {window} tokens leave no room for the history")
        return value


class ConversationMemoryConfig(Model):
    """How a conversation is kept and read (agcore document, sections 3.3 and 3.6).

    Args:
        strategy: FULL keeps every message and applies no limit, though limits may be given. SLIDING_WINDOW deletes the
            oldest messages beyond max_turns and max_items, of which it needs one at least; a system message at the
            beginning goes like any other. By default SLIDING_WINDOW where a limit is given, else FULL. Text is taken,
            too.
        max_turns: how many turns stay. A turn is a user's message with all that follows it up to the next one.
        max_items: how many messages stay, tool results and a system's messages counted like all others.
        compact: when old tool results are left out of the history, under either strategy; None for never.
    """

    model_config = ConfigDict(frozen=True)

    strategy: Annotated[MemoryStrategy, BeforeValidator(lambda value: check_choice(value, "it", MemoryStrategy))] = (
        MemoryStrategy.FULL
    )
    max_turns: Count | None = None
    max_items: Count | None = None
    compact: CompactConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_the_limits_say(cls, given: Any) -> Any:
        limited = isinstance(given, dict) and any(given.get(name) is not None for name in ("max_turns", "max_items"))
        if limited and "strategy" not in given:
            return {**given, "strategy": MemoryStrategy.SLIDING_WINDOW}
        return given

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.slides and self.max_turns is None and self.max_items is None:
            raise InvalidInput("max_turns or max_items must be given with the strategy sliding_window")
        return self

    @property
    def slides(self) -> bool:
        """Whether messages are deleted."""
        return self.strategy is MemoryStrategy.SLIDING_WINDOW


_KEY = record.c.key
# Other keys, which only a shell leaves: they are no messages, so they do not count.
_STRAY = Statement(select(func.count()).select_from(record).where(here(), param("key") <= _KEY))
_OLDEST = Statement(select(_KEY).where(here()).order_by(_KEY).limit(1).offset(param("before")))
_EVICT = Statement(delete(record).where(here(), param("key") >= _KEY))

# The cursor, and whether all that it has passed is gone.
_FIRST_ID = select(record.c.id).where(here()).order_by(_KEY).limit(1).scalar_subquery()
_CURSOR = Statement(
    select(session.c.consolidated_id, session.c.consolidated_id < _FIRST_ID).where(
        session.c.user_id == param("user_id"), session.c.session_id == param("session_id")
    )
)

# As bytes: a text that is no UTF-8 must not fail the statement. A content without such parts (images) is not read.
_PARTS = '"tool_'
_FORM: list[ColumnElement[Any]] = [
    cast(message.c[name], LargeBinary) for name in ("role", "tool_call_id", "tool_calls")
]
_FORM.append(case((func.instr(message.c.body, _PARTS) > 0, cast(message.c.body, LargeBinary))))


def _read(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Select of messages what tells calls, results and turns apart."""
    rows = select(_KEY, *_FORM).select_from(record.join(message, message.c.record_id == record.c.id))
    return rows.where(here(), *conditions).limit(param("limit"))


_AFTER = Statement(_read(param("key") < _KEY, _KEY < BEYOND).order_by(_KEY))
_BEFORE = Statement(_read(param("key") > _KEY).order_by(_KEY.desc()))
# What a user's message must not hold to be the user's own (history.is_users), the cheapest test first: 20 turns of an
# agent may have megabytes of results. Not JSON, if a shell has been there: it is nobody's.
_PART = func.json_each(message.c.body).table_valued("value", "type")
_RESULT = exists(
    select(_PART.c.value).where(_PART.c.type == "object", func.json_extract(_PART.c.value, "$.type") == "tool_result")
)
_FIRST_RESULT = '[{"type":"tool_result"'
_OWN = case(
    (message.c.body.is_(None), 1),
    (func.substr(message.c.body, 1, len(_FIRST_RESULT)) == _FIRST_RESULT, 0),
    (func.instr(message.c.body, '"tool_result"') == 0, 1),
    (func.json_valid(message.c.body) == 0, 0),
    (func.json_type(message.c.body) != "array", 1),
    else_=~_RESULT,
)
_TURNS = Statement(
    select(_KEY)
    .select_from(record.join(message, message.c.record_id == record.c.id))
    .where(here(), _KEY < BEYOND, message.c.role == "user", message.c.tool_call_id.is_(None), _OWN == 1)
    .order_by(_KEY.desc())
    .limit(2)
    .offset(param("after"))
)
_NOTHING: dict[str, Any] = dict.fromkeys(Message.model_fields)


def evict(
    tx: Transaction, configs: Iterable[ConversationMemoryConfig | None], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Delete what stands before the windows of the sessions to which messages were just added.

    Args:
        configs: for each row the configuration under which it was added; None for none.
        rows: the messages' columns, as message_row makes them.
    """
    began_a_turn: dict[tuple[Place, ConversationMemoryConfig], bool] = {}
    for config, row in zip(configs, rows, strict=True):
        if config is not None and config.slides:
            at = Place(row["layer"], row["user_id"], row["session_id"]), config
            began_a_turn[at] = began_a_turn.get(at, False) or (config.max_turns is not None and _is_own(row))
    for (place, config), began in began_a_turn.items():
        _slide(tx, place, config, began_a_turn=began)


def _slide(tx: Transaction, place: Place, config: ConversationMemoryConfig, *, began_a_turn: bool) -> None:
    """Delete what stands before a session's window; turns are only counted when one began, since none did otherwise."""
    over = 0 if config.max_items is None else _over(tx, place, config.max_items)
    turns = config.max_turns if began_a_turn and config.max_turns is not None else 0
    if over <= 0 and (not turns or _over(tx, place, turns) <= 0):  # there are no more turns than messages
        return
    bound = _bound(tx, place)
    if not bound:
        return
    last: str = tx.value(_OLDEST, **place.values(before=over - 1)) or "" if over > 0 else ""
    if turns:
        last = max(last, _last_before_turns(tx, place, turns))
    if last and (whole := _whole(tx, place, min(last, bound), bound)):
        tx.run(_EVICT, **place.values(key=whole))


def _over(tx: Transaction, place: Place, most: int) -> int:
    """Return how many messages a session holds beyond `most`: its size is kept by trigger, so this costs a look-up."""
    over: int = held(tx, place) - most
    return over - tx.value(_STRAY, **place.values(key=BEYOND)) if over > 0 else 0


def _bound(tx: Transaction, place: Place) -> str:
    """Return the last key that may go; "" when none may."""
    record_id, passed_are_gone = tx.one(_CURSOR, **place.values()) or (0, None)
    if not record_id:
        return BEYOND
    return "" if passed_are_gone else cursor.consolidated_key(tx, place)


def _last_before_turns(tx: Transaction, place: Place, turns: int) -> str:
    """Return the last key before a session's newest turns; "" when it has no more than those."""
    starts = tx.all(_TURNS, **place.values(after=turns - 1))  # of the oldest turn that stays, and of the one before it
    return tx.value(_BEFORE, **place.values(key=starts[0][0], limit=1)) or "" if len(starts) == 2 else ""


def _whole(tx: Transaction, place: Place, last: str, bound: str) -> str:
    """Return the key up to which messages go if those up to `last` should: no group is parted, the newest stays.

    A group that `last` lies in goes whole, or stays whole where its end is the session's or lies beyond the bound.
    """
    after = _walk(tx, _AFTER, place, last, 4)
    following = next(after, None)
    if following is None:  # what stands after it cannot be read
        return ""
    if not is_answer(following[1]):
        return last
    run = [following[1]]  # the results that stand together there, and what stands before them
    for _, found in _walk(tx, _BEFORE, place, following[0], 16):
        run.append(found)
        if not is_answer(found):
            break
    run.reverse()
    newest = True
    for _, found in after:
        if not is_answer(found):
            newest = False
            break
        run.append(found)
    for group in groups(run):
        first, end = group[0].position or 0, key_of(group[-1].position or 0)
        if key_of(first) <= last < end:
            return key_of(first - 1) if newest or end > bound else end
    return last


def _walk(tx: Transaction, statement: Statement, place: Place, key: str, limit: int) -> Iterator[tuple[str, Message]]:
    """Yield the keys and forms of the messages on one side of a key, without those that cannot be read."""
    while True:
        rows = tx.all(statement, **place.values(key=key, limit=limit))
        for found in rows:
            try:
                yield found[0], _form(*found)
            except UNREADABLE:
                continue
        if len(rows) < limit:
            return
        key, limit = rows[-1][0], limit * 4


def _form(key: str, role: bytes, call_id: bytes | None, calls: bytes | None, body: bytes | None) -> Message:
    """Return a message as far as it tells calls, results and turns apart."""
    if not is_key(key):
        raise SerializationError("its key is no position")
    asked = None if calls is None else json.loads(calls)
    if not (asked is None or isinstance(asked, list)):
        raise SerializationError("tool_calls is no list")
    return Message.trusted(
        **_NOTHING
        | {"role": role.decode(), "content": None if body is None else json.loads(body), "position": int(key)}
        | {"tool_call_id": None if call_id is None else call_id.decode(), "tool_calls": asked}
    )


def _is_own(row: Mapping[str, Any]) -> bool:
    """Whether a message that was just added is a user's own."""
    if row["role"] != "user" or row["tool_call_id"] is not None:
        return False
    body = row["body"]
    return body is None or _PARTS not in body or is_users(_form(row["key"], b"user", None, None, body))
