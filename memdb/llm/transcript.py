"""A conversation as a model is shown it when it is to be summarised: a text, in pieces that fit into a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memdb.errors import InvalidInput
from memdb.text.chat import calls_as_text, searchable
from memdb.text.packing import Count
from memdb.text.tokens import Sendable

MAX_CHARS_PER_TOKEN = 8  # a text of more characters than this a token is cut before it is counted at all
INSTRUCTING_ROLES = ("system", "developer")  # what the agent is told with every call is not what happened


def transcript_pieces(
    messages: Iterable[Mapping[str, Any] | Sendable], count: Count, *, tokens: int, tool_result_chars: int
) -> list[str]:
    """Return messages as texts of at most so many tokens each, oldest first; a message is never spread over two.

    Left out are messages of the system and messages that say nothing; what a tool returned is cut to
    `tool_result_chars`, any other message to the size of a piece, both in the middle.

    Raises:
        InvalidInput: a message is not a mapping.
    """
    pieces: list[str] = []
    piece: list[str] = []
    used = 0
    for message in messages:
        text = _line(message, tool_result_chars)
        if not text:
            continue
        text = fitting(text, tokens - 1, count)
        size = count(text) + 1  # the line break
        if piece and used + size > tokens:
            pieces.append("\n".join(piece))
            piece, used = [], 0
        piece.append(text)
        used += size
    return [*pieces, "\n".join(piece)] if piece else pieces


def fitting(text: str, tokens: int, count: Count) -> str:
    """Return a text cut in its middle so that it has at most so many tokens, or as few as that comes to."""
    chars = tokens * MAX_CHARS_PER_TOKEN
    cut = cut_middle(text, chars)
    while (size := count(cut)) > tokens and chars > 1:
        chars = min(chars - 1, int(min(chars, len(cut)) * tokens / size * 0.95))
        cut = cut_middle(text, max(chars, 1))
    return cut


def cut_middle(text: str, chars: int) -> str:
    """Return a text of about `chars` characters: two thirds from its beginning, the rest from its end."""
    if len(text) <= chars:
        return text
    end = chars // 3
    return f"{text[: chars - end]} [... {len(text) - chars:,} characters left out ...] {text[len(text) - end :]}"


def _line(given: Mapping[str, Any] | Sendable, tool_result_chars: int) -> str:
    message = given.to_dict() if isinstance(given, Sendable) else given
    if not isinstance(message, Mapping):
        raise InvalidInput(f"a message must be a mapping or a memdb.Message, not {type(message).__name__}")
    role = str(message.get("role") or "unknown")
    if role in INSTRUCTING_ROLES:
        return ""
    content = searchable(message.get("content")).strip()
    if role == "tool":
        content = cut_middle(content, tool_result_chars)
    calls = message.get("tool_calls")
    asked = calls_as_text(calls) if isinstance(calls, list) else ""
    said = "\n".join(part for part in (content, asked and f"(calls) {asked}") if part)
    name = message.get("name")
    return f"[{role} {name}] {said}" if said and name else f"[{role}] {said}" if said else ""
