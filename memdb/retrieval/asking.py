"""Asking what is not ours: a chat model for a text, and whose cancellation it is that comes out of it."""

from __future__ import annotations

import asyncio
from typing import Any

from memdb.errors import InvalidInput, ModelError
from memdb.protocols import ChatModel
from memdb.text.query import cleaned


def cancels_us(error: BaseException) -> bool:
    """Return whether an error is the cancellation of the running task, not of something that a model awaited.

    A client that cancels its own work (a shared request, a time-out of its own) has failed; nobody wants us to end.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


def check_model(llm: object, name: str = "llm") -> None:
    """Check that an object can be asked as a chat model, if it is not None.

    Raises:
        InvalidInput: it cannot.
    """
    if llm is not None and (isinstance(llm, type) or not callable(getattr(llm, "chat", None))):
        raise InvalidInput(f"{name} must have the method chat(messages), which {type(llm).__name__} lacks, or be None")


async def ask(llm: ChatModel, prompt: str, max_tokens: int | None = None) -> str:
    """Return what a model answers to one message.

    Raises:
        ModelError: it failed, or answered with no text.
    """
    try:
        reply: Any = await llm.chat([{"role": "user", "content": prompt}], max_tokens=max_tokens)
        content = getattr(reply, "content", None)
    except AssertionError:  # a model that a test has made says that it should not have been asked
        raise
    except (Exception, asyncio.CancelledError) as error:
        if cancels_us(error):
            raise
        raise ModelError(f"{type(llm).__name__} failed: {cleaned(str(error)) or type(error).__name__}") from error
    if not isinstance(content, str):
        raise ModelError(f"{type(llm).__name__} answered with no text")
    return content
