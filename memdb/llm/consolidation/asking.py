"""Asking a model to consolidate: the tool is forced where the server takes that, and what is no answer is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from memdb.errors import InvalidInput
from memdb.llm.consolidation.save_memory import NAME, SAVE_MEMORY, SavedMemory, read_save_memory
from memdb.protocols import ChatModel
from memdb.retrieval.asking import cancels_us
from memdb.text.query import cleaned
from memdb.text.reply import ChatReply

FORCED = {"type": "function", "function": {"name": NAME}}
# By these, servers that cannot be told which tool to call say so (LightGrep document, "Consolidation loop", 4).
_CANNOT_FORCE = ("tool_choice", "toolchoice", "does not support", 'should be ["none", "auto"]')
MAX_REASON_CHARS = 2_000


class Refused(Exception):
    """The model failed, or its answer is of no use; the text says why."""


async def ask_to_save(llm: ChatModel, prompt: Sequence[Mapping[str, Any]], max_tokens: int | None) -> SavedMemory:
    """Return what a model wants to be remembered.

    Raises:
        Refused: it failed, did not call save_memory, or the arguments are of no use.
    """
    options = {"tools": [SAVE_MEMORY], "max_tokens": max_tokens}
    try:
        reply = await ask(llm, prompt, **options, tool_choice=FORCED)
    except Refused as refused:
        if not any(marker in str(refused).lower() for marker in _CANNOT_FORCE):
            raise
        reply = await ask(llm, prompt, **options, tool_choice="auto")
    try:
        return read_save_memory(reply.tool_calls)
    except InvalidInput as error:
        raise Refused(str(error)) from error


async def ask(llm: ChatModel, prompt: Sequence[Mapping[str, Any]], **options: Any) -> ChatReply:
    """Return a model's answer.

    Raises:
        Refused: it failed, said that it failed, or was cut short by the limit of tokens.
    """
    try:
        reply: object = await llm.chat(prompt, **options)
        finish = getattr(reply, "finish_reason", None) if isinstance(reply, ChatReply) else None
        content = getattr(reply, "content", None)
    except AssertionError:  # a model that a test has made says that it should not have been asked
        raise
    except (Exception, asyncio.CancelledError) as error:
        if cancels_us(error):
            raise
        raise Refused(f"{type(llm).__name__} failed: {_shown(error) or type(error).__name__}") from error
    if not isinstance(reply, ChatReply):
        raise Refused(f"{type(llm).__name__} returned a {type(reply).__name__}, not a ChatReply")
    if finish == "error":
        raise Refused(f"{type(llm).__name__} failed: {_shown(content or 'it does not say why')}")
    if finish == "length":
        raise Refused("the model's answer was cut short by the limit of tokens")
    return reply


def _shown(error: object) -> str:
    try:
        return cleaned(str(error))[:MAX_REASON_CHARS]
    except Exception:  # an error of a client that cannot even be printed
        return type(error).__name__
