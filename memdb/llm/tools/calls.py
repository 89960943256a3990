"""A tool call of a model's answer, in the shape of either API, and the message that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memdb.llm.tools.result import ToolResult
from memdb.text.query import cleaned
from memdb.text.reply import ChatReply


class ToolCall(NamedTuple):
    """One call.

    Args:
        name: of the tool; "" where the call names none.
        arguments: as the model sent them.
        id: of the call; None where it has none.
        is_anthropic: whether it is a tool_use block of the Anthropic API.
    """

    name: str
    arguments: Any
    id: str | None
    is_anthropic: bool

    def answer(self, result: ToolResult) -> dict[str, Any]:
        """Return the message to send back: of role "tool", or a user's with a tool_result block."""
        if self.is_anthropic:
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self.id or "", "content": str(result)}
            if result.status == "error":
                block["is_error"] = True
            return {"role": "user", "content": [block]}
        message: dict[str, Any] = {"role": "tool", "content": str(result)}
        if self.id:
            message["tool_call_id"] = self.id
        return message | ({"name": self.name} if self.name else {})


def read_call(call: Any) -> ToolCall:
    """Return a call as it was sent: a dict, or an object of an API's own client.

    OpenAI: {"id", "type": "function", "function": {"name", "arguments"}}, also without "function" around the two.
    Anthropic: {"type": "tool_use", "id", "name", "input"}. Of anything else the name is "".
    """
    given = _mapping(call)
    id = _text(given.get("id"))
    if given.get("type") == "tool_use":
        return ToolCall(_text(given.get("name")), given.get("input"), id or None, True)
    function = _mapping(given.get("function")) or given
    return ToolCall(_text(function.get("name")), function.get("arguments"), id or None, False)


def is_several(call: Any) -> bool:
    """Whether what should be one call is a list of them, or the whole answer that holds them."""
    if isinstance(call, list | tuple):
        return bool(call)
    if isinstance(call, ChatReply):
        return True
    given = _mapping(call)
    return isinstance(given.get("tool_calls"), list) and "function" not in given


def _mapping(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    try:
        dumped = given.model_dump()  # what the clients of both APIs give is a pydantic model
    except Exception:
        return {}
    return dumped if isinstance(dumped, Mapping) else {}


def _text(value: Any) -> str:
    return cleaned(value).strip() if isinstance(value, str) else ""
