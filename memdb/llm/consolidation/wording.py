"""Messages as they stand in a prompt and in the history: a line each, and the raw archive made of such lines.

    [2026-01-01T12:00] ASSISTANT [tools: read_file]: I'll look.

That is the form of the LightGrep document (section 7). Nothing here raises, whatever a message holds: a raw archive is
what is left when all else failed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memdb.errors import MemdbError
from memdb.layers.message import Message, as_moment
from memdb.storage.clock import to_text
from memdb.text.chat import calls_as_text, searchable
from memdb.text.query import cleaned

RAW_CHARS = 16_000  # of one entry of a raw archive, besides its heading
MAX_TOOLS = 20  # named of one message

AnyMessage = Message | Mapping[str, Any]


def lines_of(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the lines of messages, oldest first; those that say nothing and call nothing have none."""
    return [line for message in messages if (line := _line(_fields(message)))]


def raw_lines_of(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the lines of messages with all that their calls ask for: what is kept where nothing else tells of it."""
    return [line for message in messages if (line := _line(_fields(message), whole=True))]


def raw_entries(messages: Sequence[AnyMessage], now: str, most_chars: int = RAW_CHARS) -> list[str]:
    """Return messages as entries of the history, nothing left out: `[2026-01-01 12:00] [RAW] 12 messages` and lines.

    Args:
        messages: oldest first.
        now: the present time in the stored text form.
        most_chars: of the lines of one entry; of more, several entries are made, cut between messages where that goes.
    """
    parts = list(_parts(raw_lines_of(messages), most_chars))
    noun = "message" if len(messages) == 1 else "messages"
    heading = f"[{now[:16].replace('T', ' ')}] [RAW] {len(messages):,} {noun}"
    if len(parts) == 1:
        return [f"{heading}\n{parts[0]}"]
    return [f"{heading}, part {number} of {len(parts)}\n{part}" for number, part in enumerate(parts, 1)]


def chunk_of(session_id: str, messages: Sequence[Message]) -> str:
    """Return a hash that tells stored messages of a session from all others, so that they are not told of twice."""
    digest = hashlib.sha256(session_id.encode())
    for message in messages:
        digest.update(b"\n" + json.dumps(_fields(message), sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _fields(message: AnyMessage) -> dict[str, Any]:
    if not isinstance(message, Message):
        return dict(message)
    return message.to_dict() | {"created_at": message.created_at, "position": message.position}


def _line(fields: Mapping[str, Any], *, whole: bool = False) -> str:
    role, calls = fields.get("role"), fields.get("tool_calls")
    calls = list(calls) if isinstance(calls, list | tuple) else []
    if isinstance(fields.get("function_call"), Mapping):  # as OpenAI wrote calls before there were several
        calls.append(fields["function_call"])
    content = _content(fields.get("content")) or _calls(calls)
    if whole and calls:
        content = "\n".join(part for part in (_content(fields.get("content")), *map(_whole_call, calls)) if part)
    tools = [name for call in calls if (name := _tool_name(call))]
    if not content and not tools:
        return ""
    suffix = f" [tools: {', '.join(tools[:MAX_TOOLS])}{', ...' if tools[MAX_TOOLS:] else ''}]" if tools else ""
    speaker = role.upper() if isinstance(role, str) and role else "UNKNOWN"
    return cleaned(f"[{_moment(fields)}] {speaker}{suffix}: {content}")


def _calls(calls: list[Any]) -> str:
    try:
        return calls_as_text(calls)
    except (TypeError, ValueError, RecursionError):  # arguments that JSON has no form for
        return ""


def _whole_call(call: Any) -> str:
    """Return a call's name and its arguments, uncut."""
    if not isinstance(call, Mapping):
        return ""
    function = call.get("function")
    asked = function if isinstance(function, Mapping) else call
    arguments = asked.get("arguments", asked.get("input", ""))
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False, default=repr)
        except (TypeError, ValueError, RecursionError):
            arguments = type(arguments).__name__
    return f"{asked.get('name', '')} {arguments}".strip()


def _content(content: Any) -> str:
    """Return what a content says; of a part without text (an image) what kind it is."""
    if not isinstance(content, list):
        return _searchable(content).strip()
    said = (_searchable(part) or (f"[{part.get('type')}]" if isinstance(part, Mapping) else "") for part in content)
    return "\n".join(part for part in said if part).strip()


def _searchable(content: Any) -> str:
    try:
        return searchable(content)
    except (TypeError, ValueError, RecursionError):  # what JSON has no form for
        return str(type(content).__name__)


def _tool_name(call: Any) -> str:
    if not isinstance(call, Mapping):
        return ""
    function = call.get("function")
    name = (function if isinstance(function, Mapping) else call).get("name")
    return name[:80] if isinstance(name, str) else ""


def _moment(fields: Mapping[str, Any]) -> str:
    """Return when a message was said, to the minute; "?" where it does not say."""
    value = fields.get("created_at") or fields.get("timestamp")
    try:
        moment = value if isinstance(value, datetime) else as_moment(value)
        return "?" if moment is None else to_text(moment)[:16]
    except MemdbError:
        return str(value)[:16] if isinstance(value, str) and value.strip() else "?"


def _parts(lines: Sequence[str], most_chars: int) -> Iterator[str]:
    """Yield lines joined to texts of at most so many characters; a longer line is spread over several."""
    part: list[str] = []
    size = 0
    for line in lines:
        if part and size + len(line) > most_chars:
            yield "\n".join(part)
            part, size = [], 0
        while len(line) > most_chars:
            # An entry loses the white space at its end: the cut stands before it.
            cut = len(line[:most_chars].rstrip()) or most_chars
            yield line[:cut]
            line = line[cut:]
        part.append(line)
        size += len(line) + 1
    if part or not lines:
        yield "\n".join(part)
