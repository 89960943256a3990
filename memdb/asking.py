"""Asking a model of the user's: anything may come of it, and whatever is no answer becomes a ModelError.

Never ask with a transaction open: a model takes seconds, and other writers would wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from memdb.errors import ModelError
from memdb.protocols import ChatModel
from memdb.text.reply import ChatReply
from memdb.text.traced import described


def cancels_us(error: BaseException) -> bool:
    """Return whether an error is the cancellation of the running task, not of something that a model awaited.

    A client that cancels its own work (a shared request, a time-out of its own) has failed; nobody wants us to end.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


async def ask(
    llm: ChatModel, messages: Sequence[Mapping[str, Any]], *, seconds: float | None = None, **options: Any
) -> ChatReply:
    """Return what a model answers, which may be cut short by the limit of tokens.

    Args:
        messages: oldest first, in the OpenAI shape.
        seconds: how long it may take; None for as long as it takes.
        options: what else `chat` takes: tools, tool_choice, max_tokens.

    Raises:
        ModelError: it failed, said that it failed, took too long, or returned something else than a ChatReply.
    """
    name = type(llm).__name__
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            reply: object = await llm.chat(messages, **options)
    except AssertionError:  # a model that a test has made says that it should not have been asked
        raise
    except (Exception, asyncio.CancelledError) as error:
        if cancels_us(error):
            raise
        if limit.expired():
            raise ModelError(f"{name} did not answer within {seconds:g} seconds") from None
        raise ModelError(f"{name} failed: {described(error)}") from error
    if not isinstance(reply, ChatReply):
        raise ModelError(f"{name} returned a {type(reply).__name__}, not a ChatReply")
    if reply.finish_reason == "error":
        raise ModelError(f"{name} failed: {described(reply.content or 'it does not say why')}")
    return reply


async def ask_whole(
    llm: ChatModel, messages: Sequence[Mapping[str, Any]], *, seconds: float | None = None, **options: Any
) -> ChatReply:
    """Return what a model answers, if it came to its end; see ask.

    Raises:
        ModelError: also when the answer was cut short.
    """
    reply = await ask(llm, messages, seconds=seconds, **options)
    if reply.truncated:
        raise ModelError(f"the answer of {type(llm).__name__} was cut short by the limit of tokens")
    return reply


async def ask_text(llm: ChatModel, prompt: str, max_tokens: int | None = None) -> str:
    """Return the text that a model answers to one message, as far as it came; see ask.

    Raises:
        ModelError: also when it answered with no text.
    """
    reply = await ask(llm, [{"role": "user", "content": prompt}], max_tokens=max_tokens)
    if not isinstance(reply.content, str):
        raise ModelError(f"{type(llm).__name__} answered with no text")
    return reply.content
