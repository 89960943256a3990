"""Messages, tools and texts as they can be sent: plain JSON, valid text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memdb.errors import InvalidInput
from memdb.text.check import is_valid
from memdb.text.shown import shown
from memdb.text.tokens import Sendable


def sendable_messages(messages: Iterable[Mapping[str, Any] | Sendable]) -> list[dict[str, Any]]:
    """Return messages as plain dicts; a lone surrogate, which no JSON can carry, becomes a question mark.

    Raises:
        InvalidInput: there is none, one is neither a mapping nor a memdb.Message, or holds what JSON cannot.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InvalidInput(f"messages must be a list of messages, not {type(messages).__name__}")
    listed = [message.to_dict() if isinstance(message, Sendable) else message for message in messages]
    if not listed:
        raise InvalidInput("messages is empty; a model needs at least one message")
    return sendable_dicts(listed, "a message")


def sendable_dicts(values: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return mappings as plain dicts.

    Args:
        name: what one of them is, for the message.

    Raises:
        InvalidInput: one is not a mapping, or holds what JSON cannot.
    """
    for value in values:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{name} must be a mapping, not {type(value).__name__}")
    try:
        return [sendable(value, name) for value in values]
    except RecursionError:
        raise InvalidInput(f"{name} is nested too deeply to be sent as JSON") from None


def sendable(value: Any, name: str) -> Any:
    """Return a value of plain dicts, lists, valid texts and finite numbers that says the same.

    Raises:
        InvalidInput: there is no such value.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {valid_text(str(key)): sendable(inner, name) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(inner, name) for inner in value]
    raise InvalidInput(f"{name} holds {shown(value)}, which JSON cannot carry; leave it out or make it a text")


def valid_text(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate."""
    return text if is_valid(text) else text.encode("utf-8", "replace").decode()
