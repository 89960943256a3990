"""Messages and tools in the OpenAI shape, as the Anthropic API wants them, and its answers the other way round."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from memdb.errors import InvalidInput
from memdb.llm.client import Malformed
from memdb.text.chat import searchable
from memdb.text.reply import ChatReply
from memdb.text.shown import shown

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_INSTRUCTING_ROLES = ("system", "developer")
# Blocks that the Anthropic API has itself go through as they are.
_OWN_BLOCKS = ("image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking", "search_result")

Block = dict[str, Any]


def anthropic_messages(messages: Iterable[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Return what the system says, and the messages of the others.

    All that system and developer messages say stands together at the beginning, a blank line between two. A tool's
    message is a result in a message of the user; what one role says in several messages becomes one. What says
    nothing is left out, since the API refuses blank text.

    Raises:
        InvalidInput: there is no message but the system's, or one has a part or a call that cannot be sent.
    """
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = message.get("role")
        if role in _INSTRUCTING_ROLES:
            system.append(searchable(message.get("content")))
            continue
        speaker = "assistant" if role == "assistant" else "user"
        blocks = [_tool_result(message)] if role == "tool" else [*_parts(message.get("content")), *_calls(message)]
        if turns and turns[-1]["role"] == speaker:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": speaker, "content": blocks})
    if not turns:
        raise InvalidInput("messages has nothing to answer: give at least one message of a user that is not blank")
    return "\n\n".join(text for text in system if text.strip()), turns


def anthropic_tools(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tools as the Anthropic API wants them; one in its own shape stays as it is.

    Raises:
        InvalidInput: a tool has no function with a name.
    """
    return [_tool(tool) if "function" in tool or "name" not in tool else tool for tool in tools]


def anthropic_choice(choice: Any) -> dict[str, Any]:
    """Return a tool_choice as the Anthropic API wants it.

    Raises:
        InvalidInput: it is none that memdb.protocols.ChatModel names.
    """
    if isinstance(choice, str) and choice in _CHOICES:
        return {"type": _CHOICES[choice]}
    function = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        return {"type": "tool", "name": function["name"]}
    raise InvalidInput(
        f"tool_choice must be 'auto', 'none', 'required' or {{'type': 'function', 'function': {{'name': ...}}}}, not "
        f"{shown(choice)}"
    )


def reply_in(answer: dict[str, Any]) -> ChatReply:
    """Return an answer of the Anthropic API; the arguments of a call stay the object that they are there.

    Raises:
        Malformed: it has no list of blocks, or a call without a name.
    """
    blocks = answer.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise Malformed("has no list of content blocks")
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise Malformed("has a block of text without text")
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    reason = answer.get("stop_reason")
    finish = _FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else None
    return ChatReply("".join(map(str, texts)) if texts else None, calls, finish)


def _call(block: Block) -> dict[str, Any]:
    if not isinstance(block.get("name"), str) or not isinstance(block.get("id"), str):
        raise Malformed("has a tool call without a name or an id")
    return {
        "id": block["id"],
        "type": "function",
        "function": {"name": block["name"], "arguments": block.get("input", {})},
    }


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidInput(f"a tool must have a function with a name, not {shown(tool)}")
    made = {
        "name": function["name"],
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }
    return made | ({"description": function["description"]} if function.get("description") else {})


def _tool_result(message: dict[str, Any]) -> Block:
    id = message.get("tool_call_id")
    if not isinstance(id, str) or not id:
        raise InvalidInput("a message of a tool has no tool_call_id; give the id of the call it answers")
    result: Block = {"type": "tool_result", "tool_use_id": id}
    parts = list(_parts(message.get("content")))
    return result | ({"content": parts} if parts else {})


def _calls(message: dict[str, Any]) -> Iterator[Block]:
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not call.get("id"):
            raise InvalidInput(f"a tool call must have an id and a function with a name, not {shown(call)}")
        yield {
            "type": "tool_use", "id": str(call["id"]), "name": function["name"], "input": _arguments(function)
        }  # fmt: skip


def _arguments(function: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments as the object the API demands; what is none is kept under "arguments"."""
    given = function.get("arguments")
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            return {"arguments": given}
    if isinstance(given, list) and given and isinstance(given[0], dict):
        given = given[0]
    return given if isinstance(given, dict) else {} if given is None else {"arguments": given}


def _parts(content: Any) -> Iterator[Block]:
    if isinstance(content, list):
        for part in content:
            yield from _part(part) if isinstance(part, dict) else _text(part)
    else:
        yield from _text(content)


def _part(part: dict[str, Any]) -> Iterator[Block]:
    kind = part.get("type")
    if kind in _OWN_BLOCKS:
        yield part
    elif kind == "image_url":
        image = part.get("image_url")
        yield {"type": "image", "source": _image(image.get("url") if isinstance(image, dict) else image)}
    elif isinstance(part.get("text"), str):
        yield from _text(part["text"])
    elif isinstance(part.get("refusal"), str):
        yield from _text(part["refusal"])
    else:
        raise InvalidInput(f"a part of type {kind!r} cannot be sent to this API; leave it out or make it a text")


def _image(url: Any) -> dict[str, Any]:
    if not isinstance(url, str) or not url.startswith(("data:", "http://", "https://")):
        raise InvalidInput("an image_url must have a url that begins with data:, http:// or https://")
    kind, comma, data = url.removeprefix("data:").partition(";base64,")
    if url.startswith("data:") and not comma:
        raise InvalidInput("an image in a data: url must be in base64")
    return {"type": "base64", "media_type": kind, "data": data} if comma else {"type": "url", "url": url}


def _text(content: Any) -> Iterator[Block]:
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
    if text.strip():
        yield {"type": "text", "text": text}
