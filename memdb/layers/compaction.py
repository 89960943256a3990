"""What is left out of a history that is too long for its model: old tool results (agcore document, section 3.6).

Pure functions on messages. It is done whenever a history is read; what is stored never changes (decisions, "tool-result
compaction"). A result that was left out once reads the same ever after, so that a model API finds its cached prefix.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from memdb.layers.history import is_answer
from memdb.layers.message import Message
from memdb.layers.window import CompactConfig
from memdb.text.tokens import TokenCounter

MAX_NAME_CHARS = 80  # of a tool's name in the text that stands for its result


@cache
def exact_counter() -> TokenCounter:
    """Return the counter by which stored messages are counted, too; it reads its table at its first count."""
    return TokenCounter()


def compacted(messages: Sequence[Message], config: CompactConfig, count: TokenCounter) -> list[Message]:
    """Return a history with the contents of old tool results left out if it is too long; otherwise as it is.

    It is too long with more tokens than context_window - reserved_tokens. Then every result but the newest keep_recent
    is replaced by a short text that names the tool and says where the result stands; one that is no longer than that
    text stays. Only such contents and the tokens of their messages differ: ids, names, roles and order stay.

    Args:
        messages: in their order, as get_history returns them; they are not changed.
        count: counts the messages whose tokens are not known, and those that change.
    """
    sizes = (count.count_messages([found]) if found.tokens is None else found.tokens for found in messages)
    old = sum(map(_results, messages)) - config.keep_recent
    if old <= 0 or sum(sizes) <= config.context_window - config.reserved_tokens:
        return list(messages)
    names: dict[str, str] = {}  # of the tools, by the ids of their calls: a later call may have an older one's id
    history = []
    for message in messages:
        names |= _named(message)
        shorter = _without_results(message, names, old) if old > 0 and is_answer(message) else message
        old -= _results(message)
        history.append(shorter if shorter is message else _counted(shorter, count))
    return history


def _results(message: Message) -> int:
    """Return how many tool results a message holds: one, or as many as it has parts of that type (Anthropic)."""
    return sum(map(_is_result, _parts(message))) or int(is_answer(message))


def _without_results(message: Message, names: dict[str, str], most: int) -> Message:
    """Return a message with the contents of its first `most` results left out; itself where nothing changes."""
    if not any(map(_is_result, _parts(message))):
        tool = names.get(message.tool_call_id or "") or message.name
        content = _left_out(message.content, tool, message.position)
    else:
        content = []
        for part in message.content:
            if _is_result(part) and most > 0:
                most -= 1
                tool = names.get(str(part.get("tool_use_id")))
                text = _left_out(part.get("content"), tool, message.position)
                part = part if text is part.get("content") else {**part, "content": text}
            content.append(part)
        if all(new is old for new, old in zip(content, message.content, strict=True)):
            return message
    return message if content is message.content else message.model_copy(update={"content": content})


def _left_out(content: Any, tool: str | None, position: int | None) -> Any:
    """Return the text that stands for a result, or the result itself when it is no longer than that."""
    if content is None:
        return None
    size = len(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))
    name = " ".join((tool or "").split())[:MAX_NAME_CHARS]
    result = f"the result of {name}" if name else "a tool's result"
    where = "" if position is None else f"; it is stored in full as message {position} of this session"
    text = f"[{result} was left out here: {size:,} characters{where}]"
    return text if size > len(text) else content


def _counted(message: Message, count: TokenCounter) -> Message:
    return message.model_copy(update={"tokens": count.count_messages([message])})


def _named(message: Message) -> dict[str, str]:
    """Return the names of the tools that a message calls, by the ids of the calls (OpenAI's and Anthropic's form)."""
    named = {}
    for call in (*(message.tool_calls or ()), *(part for part in _parts(message) if _has_type(part, "tool_use"))):
        if isinstance(call, dict) and call.get("id") is not None:
            function = call.get("function")
            name = (function if isinstance(function, dict) else call).get("name")
            named[str(call["id"])] = name if isinstance(name, str) else ""
    return named


def _parts(message: Message) -> list[Any]:
    return message.content if isinstance(message.content, list) else []


def _is_result(part: object) -> bool:
    return _has_type(part, "tool_result")


def _has_type(part: object, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind
