"""Messages of a chat in JSONL, and putting them after those that a session holds already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.layers.layer import Inside
    from memdb.layers.message import Message
    from memdb.memory import Memory

SESSION_KEYS = ("session", "session_id")  # what a row calls its session
_OURS = ("group", "_type", *SESSION_KEYS)  # keys of a row that are no part of its message


def is_message(value: Mapping[str, Any]) -> bool:
    """Whether a row of JSONL is a message of a chat."""
    return isinstance(value.get("role"), str)


def is_session(value: Mapping[str, Any]) -> bool:
    """Whether a row of JSONL begins a session, as memory.conversation.export_jsonl writes it."""
    return value.get("_type") == "metadata" and isinstance(value.get("key"), str) and "role" not in value


def session_of(value: Mapping[str, Any]) -> str | None:
    """Return the session that a row names, None when it names none."""
    return next((value[name] for name in SESSION_KEYS if isinstance(value.get(name), str) and value[name]), None)


def message_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of a row."""
    return {name: value[name] for name in value if name not in _OURS}


def put_after(memory: Memory[Inside], at: int, messages: list[Message]) -> int:
    """Append messages of a source to a session, but for those that it holds already: part of a unit.

    So a chat that has grown can be read again, and a reading that was interrupted can be repeated.

    Args:
        at: how many messages of the source were put before these.
        messages: the next ones.

    Returns:
        How many were appended.

    Raises:
        InvalidInput: the session holds other messages than the source.
    """
    talk = memory.conversation
    held = [
        stored for stored in talk.messages(len(messages), before=at + len(messages) + 1) if (stored.position or 0) > at
    ]
    for stored in held:  # by position: one of them may have been lost
        if _said(stored) != _said(messages[(stored.position or 0) - at - 1]):
            raise InvalidInput(
                f"the session {memory.scope.session_id!r} holds another message than the source as number"
                f" {stored.position}; give the source a session of its own with --session"
            )
    reached = (held[-1].position or 0) - at if held else 0
    return talk.add_messages(messages[reached:])


def _said(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    return message.to_dict(), message.model_extra or {}


def called(message: Message) -> str:
    """Return the tools that a message calls, as a person reads them: "-> read_file {"path": ...}"."""
    from memdb.text.chat import call_as_text

    return "\n".join(f"-> {call_as_text(call)}" for call in message.tool_calls or ())
