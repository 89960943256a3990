"""What of a conversation a model may be sent: pure functions on messages.

A model API refuses a tool result whose call it was not shown, and a call whose results are missing. So calls and their
results stay together or go together; a message itself is never changed (LightGrep document; decisions on history).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from memdb.layers.message import Message

_ANSWERING = ("tool", "function")
_SETTING = ("system", "developer")  # roles that set the scene: they may stand before the first user's message
_NONE: Counter[str] = Counter()  # never changed


def legal(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that may be sent, in their order.

    Left out are tool results without their call, calls of which a result is missing (a turn that is still under way
    is one), second answers to one call, and what stands before the first message of a user if there is one.

    Args:
        messages: consecutive messages, oldest first.
    """
    kept = list(_whole_groups(messages)) if any(map(_may_belong, messages)) else messages
    first = next((at for at, message in enumerate(kept) if is_users(message)), 0)
    return [message for at, message in enumerate(kept) if at >= first or message.role in _SETTING]


def is_users(message: Message) -> bool:
    """Whether a message is a user's own, not tool results that an API wants in a user's name."""
    return message.role == "user" and not _answered(message)


def is_answer(message: Message) -> bool:
    """Whether a message is the result of a call, or of several."""
    return bool(_answered(message))


def unanswered(group: Sequence[Message]) -> bool:
    """Whether results of a call are still to come: no cut may stand between it and them."""
    call, *results = group
    answered: Counter[str] = Counter()
    for result in results:
        answered += _answered(result)
    return bool(_asked(call) - answered)


def groups(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield messages that must not be parted: a call with the results that follow it, and every other alone."""
    at = 0
    while at < len(messages):
        asked, end = _asked(messages[at]), at + 1
        while asked and end < len(messages) and _answered(messages[end]):
            end += 1
        yield list(messages[at:end])
        at = end


def _whole_groups(messages: Sequence[Message]) -> Iterator[Message]:
    for group in groups(messages):
        call, *results = group
        asked = _asked(call)
        if not asked:
            if not _answered(call):
                yield call
            continue
        open_calls = Counter(asked)
        answers = []
        for result in results:
            answered = _answered(result)
            if answered <= open_calls:
                open_calls -= answered
                answers.append(result)
        if not open_calls:
            yield call
            yield from answers


def _may_belong(message: Message) -> bool:
    """Whether a message may call or answer at all: to say so of those that do not spares three counters each (8 us)."""
    return bool(
        message.tool_calls
        or message.tool_call_id is not None
        or message.role in _ANSWERING
        or isinstance(message.content, list)
    )


def _asked(message: Message) -> Counter[str]:
    """Return the ids of the calls that a message makes, as OpenAI and as Anthropic write them; "" for one without."""
    if not _may_belong(message):
        return _NONE
    calls = [call for call in message.tool_calls or () if isinstance(call, dict)]
    return Counter(_id(call.get("id")) for call in (*calls, *_parts(message, "tool_use")))


def _answered(message: Message) -> Counter[str]:
    """Return the ids of the calls that a message answers; "" for a result that names none (Ollama)."""
    if not _may_belong(message):
        return _NONE
    answered = Counter(_id(part.get("tool_use_id")) for part in _parts(message, "tool_result"))
    if message.role in _ANSWERING or message.tool_call_id is not None:
        answered[_id(message.tool_call_id)] += 1
    return answered


def _id(value: object) -> str:
    return "" if value is None else str(value)


def _parts(message: Message, kind: str) -> list[dict[str, Any]]:
    parts = message.content if isinstance(message.content, list) else ()
    return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]
