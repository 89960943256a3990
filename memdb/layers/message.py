"""One message of a conversation: what a model API is sent, kept exactly, and the text that a search finds it by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, ConfigDict, model_validator

from memdb.errors import InvalidInput, SerializationError
from memdb.layers.arguments import check_whole
from memdb.layers.json_values import exact_json
from memdb.layers.models import Instant, Model, unchecked
from memdb.layers.reading import Columns
from memdb.layers.record import Place, Record, row
from memdb.storage.clock import from_text
from memdb.storage.schema import message as message_table
from memdb.text.chat import calls_as_text, day, searchable
from memdb.text.check import check_text, is_valid
from memdb.text.shown import shown
from memdb.text.tokens import TOKENS_PER_MESSAGE, TokenCounter

MAX_NAME_CHARS = 1_000
KEY_DIGITS = 12  # a position as a key, so that keys sort as positions do
MAX_POSITION = 10**KEY_DIGITS - 1
MESSAGE = Columns(message_table)

_SENT = ("role", "content", "tool_calls", "tool_call_id", "name")
_OURS = ("position", "tokens")


def _name(value: object) -> str:
    text = check_text(value, "it", max_chars=MAX_NAME_CHARS)
    if not text:
        raise InvalidInput("it must not be empty")
    return text


def _optional_name(value: object) -> str | None:
    return None if value is None else _name(value)


def _calls(value: object) -> object:
    if value is not None and not isinstance(value, list):
        raise InvalidInput(f"tool_calls must be a list, not {type(value).__name__}")
    return value


class Message(Model):
    """One message, in the shape that chat APIs use (agcore document, section 3.6; LightGrep document).

    Keys that are not named here are kept exactly, too: message.model_extra.

    Args:
        role: who speaks: "user", "assistant", "tool", "system" or any other name.
        content: a text, None, a list of parts or any other JSON, at most 16 MB; kept exactly. May be left out where
            there are tool calls.
        name: the speaker's or the tool's name.
        tool_calls: what an assistant calls, as the API gave it: a list of JSON values.
        tool_call_id: the call that a tool's message answers.
        created_at: when it was said, with a time zone; by default when it is added. A dict may call it `timestamp` and
            give ISO 8601 (without a zone it is UTC) or seconds since 1970.
        position: its number in the session, from 1; given by memdb.
        tokens: what it costs a model in cl100k_base, as TokenCounter.count_messages counts; given by memdb.
    """

    model_config = ConfigDict(extra="allow", revalidate_instances="always")

    role: Annotated[str, BeforeValidator(_name)]
    content: Any = None
    name: Annotated[str | None, BeforeValidator(_optional_name)] = None
    tool_calls: Annotated[list[Any] | None, BeforeValidator(_calls)] = None
    tool_call_id: Annotated[str | None, BeforeValidator(_optional_name)] = None
    created_at: Instant = None
    position: int | None = None
    tokens: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_a_chat_gives_it(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if not all(isinstance(name, str) and is_valid(name) for name in value):
            raise InvalidInput("one of its keys is no valid text; rename it")
        fields = {name: value[name] for name in value if name != "timestamp" and name not in _OURS}
        if fields.get("created_at") is None:
            fields["created_at"] = as_moment(value.get("timestamp"))
        if "content" not in fields and not fields.get("tool_calls"):
            raise InvalidInput("it has no content; give a text, None, or a list of parts")
        return fields

    @classmethod
    def trusted(cls, *, extra: dict[str, Any] | None = None, **fields: Any) -> Self:
        """Return a message of values that were validated when they were stored; every field must be given."""
        return unchecked(cls, fields, extra or {})

    def to_dict(self) -> dict[str, Any]:
        """Return what a chat API is sent: role and content, and tool_calls, tool_call_id and name where it has them."""
        fields = {name: getattr(self, name) for name in _SENT}
        return {name: value for name, value in fields.items() if value is not None or name in ("role", "content")}


class ScoredMessage(NamedTuple):
    """A message that a search found.

    Args:
        message: the message.
        score: its own BM25 score and what its neighbours lend it; higher is better, comparable within one answer only.
        session_id: the session it was said in.
        own: its own BM25 score; 0 when only its neighbours match.
        lent: what each neighbour adds, by its distance: {-1: 2.4} is the message just before.
    """

    message: Message
    score: float
    session_id: str
    own: float
    lent: dict[int, float]


def key_of(position: int) -> str:
    """Return the key of the message at a position."""
    return f"{position:0{KEY_DIGITS}}"


def key_at(position: object, name: str) -> str:
    """Return the key of the message at a position that a caller gives, which may be beyond all there are.

    Raises:
        InvalidInput: it is no whole number.
    """
    return key_of(min(max(0, check_whole(position, name)), MAX_POSITION))  # there is none at 0


def is_key(key: str) -> bool:
    """Whether a record's key is the key of a position: a shell may have left others."""
    return len(key) == KEY_DIGITS and key.isascii() and key.isdecimal()


def message_row(place: Place, position: int, now: str, message: Message) -> dict[str, Any]:
    """Return a message's columns of `record` and of `message`.

    Args:
        message: a valid one.
    """
    text, body = _stored_content(message.content)
    calls = None if message.tool_calls is None else exact_json(message.tool_calls, "Message.tool_calls")
    extra = exact_json(message.model_extra, "Message") if message.model_extra else None
    # The day it was said is searchable: people ask for what was said "in May".
    moment = message.created_at or from_text(now)
    return row(
        place,
        key_of(position),
        now,
        summary=calls_as_text(message.tool_calls),
        content=text,
        keywords=[*([message.name] if message.name else []), day(moment)],
        keywords_by_rule=False,
        created_at=message.created_at,
    ) | {
        "role": message.role,
        "name": message.name,
        "tokens": _tokens(message),
        "tool_call_id": message.tool_call_id,
        "tool_calls": calls,
        "body": body,
        "extra": extra,
    }


def check_message(message: Message) -> None:
    """Refuse what `message_row` would refuse: a value that JSON cannot say, or one that is too large.

    Raises:
        InvalidInput: see above.
    """
    _stored_content(message.content)
    exact_json(message.tool_calls, "Message.tool_calls")
    exact_json(message.model_extra, "Message")


def message_of(found: Record, *own: Any) -> Message:
    """Return a message of what was read: the shape of a row of the columns MESSAGE."""
    return made_of(found.key, found.created_at, found.content, *own)


def made_of(
    key: str,
    created_at: str,
    content: str,
    role: str | None,
    name: str | None,
    tokens: int | None,
    tool_call_id: str | None,
    tool_calls: str | None,
    body: str | None,
    extra: str | None,
) -> Message:
    """Return a message of the columns that it is made of: three of its record, then those of MESSAGE.

    Raises:
        SerializationError: its row in `message` is missing, its key is no position, or a JSON is not what it must be.
    """
    if not isinstance(role, str) or not is_key(key):
        raise SerializationError("the record has no row in `message`, or its key is no position")
    calls = None if tool_calls is None else json.loads(tool_calls)
    more = None if extra is None else json.loads(extra)
    if not (calls is None or isinstance(calls, list)) or not (more is None or isinstance(more, dict)):
        raise SerializationError("tool_calls is no list, or extra is no object")
    return Message.trusted(
        role=role,
        content=content if body is None else json.loads(body),
        name=name,
        tool_calls=calls,
        tool_call_id=tool_call_id,
        created_at=from_text(created_at),
        position=int(key),
        tokens=tokens if isinstance(tokens, int) else None,  # a shell has written it: no reason to hide the message
        extra=more,
    )


@cache
def _counter() -> TokenCounter:
    return TokenCounter()


def load_counter() -> None:
    """Read the table of tokens, which takes 0.2 s once a process."""
    _frame("user")


@lru_cache(maxsize=256)
def _frame(role: str) -> int:
    """Return what a message of a role costs besides what it says: roles come again and again."""
    return _counter().count_messages([{"role": role}])


def _tokens(message: Message) -> int:
    frame, content = _frame(message.role), message.content
    if type(content) is str and not (message.name or message.tool_calls or message.tool_call_id):  # nearly all
        return frame + _counter().count(content)
    said = {name: value for name, value in message.to_dict().items() if name != "role"}
    return frame + _counter().count_messages([said]) - TOKENS_PER_MESSAGE


def as_moment(value: object) -> datetime | None:
    """Return a `timestamp` as a time: ISO 8601 (UTC where it names no zone) or seconds since 1970; None stays None.

    Raises:
        InvalidInput: it is neither.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
    except (ValueError, OverflowError, OSError):
        value = "(a huge number)" if isinstance(value, int) and value.bit_length() > 1000 else str(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if value is None:
        return None
    raise InvalidInput(f"timestamp {shown(value)} is no time; give ISO 8601 such as 2026-11-30T09:00:00Z")


def _stored_content(content: Any) -> tuple[str, str | None]:
    """Return the searchable text of a content, and its JSON where that is not the very text."""
    if isinstance(content, str) and is_valid(content):
        return check_text(content, "Message.content"), None
    body = exact_json(content, "Message.content")
    return searchable(content), body
