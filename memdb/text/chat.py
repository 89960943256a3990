"""What a chat's messages say: the text of contents and tool calls, and the day as people name it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from memdb.text.check import is_valid

MAX_CALL_CHARS = 1_000  # of a tool call's arguments that are searchable
MAX_CALLS_CHARS = 8_000

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def day(moment: datetime) -> str:
    """Return the day of a time, in UTC, as English writes it: Monday 8 May 2023."""
    utc = moment.astimezone(UTC)
    # Not strftime, which speaks the machine's language.
    return f"{_DAYS[utc.weekday()]} {utc.day} {_MONTHS[utc.month - 1]} {utc.year}"


def searchable(content: Any) -> str:
    """Return the text of a content: of its parts those that have any; images and other data have none."""
    return _valid("\n".join(part for part in _texts(content) if part))


def _valid(text: str) -> str:
    return text if is_valid(text) else text.replace("\x00", " ").encode("utf-8", "replace").decode()


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _texts(part)
    elif isinstance(content, dict) and ("type" in content or "text" in content):
        yield from _texts(content.get("text") or content.get("content"))
        if content.get("type") == "tool_use":
            yield call_as_text(content)
    elif isinstance(content, dict):
        yield json.dumps(content, ensure_ascii=False)
    elif content is not None:
        yield str(content)


def calls_as_text(calls: list[Any] | None) -> str:
    """Return tool calls as a search finds them, a line each."""
    return "\n".join(call_as_text(call) for call in calls or ())[:MAX_CALLS_CHARS]


def call_as_text(call: Any) -> str:
    """Return a tool call as a search finds it: its name and the beginning of its arguments."""
    if not isinstance(call, dict):
        return ""
    function = call.get("function")
    asked = function if isinstance(function, dict) else call
    arguments = asked.get("arguments", asked.get("input", ""))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return _valid(f"{asked.get('name', '')} {text[:MAX_CALL_CHARS]}".strip())
