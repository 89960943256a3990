"""What a chat model answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One answer of a chat model.

    Args:
        content: the text of the answer; None where the model only calls tools.
        tool_calls: the calls, each a dict in the OpenAI shape ({"id", "type", "function": {"name", "arguments"}}), with
            `arguments` left as the model sent them: JSON text, a dict, or a list.
        finish_reason: why the model stopped: "stop", "length" (cut short), "tool_calls", "content_filter"; None where
            the server does not say.
    """

    content: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def truncated(self) -> bool:
        """Whether the answer was cut short by the limit of tokens."""
        return self.finish_reason == "length"
