"""Asking a model to consolidate: the tool is forced where the server takes that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memdb.asking import ask_whole
from memdb.errors import InvalidInput, ModelError
from memdb.llm.consolidation.save_memory import NAME, SAVE_MEMORY, SavedMemory, read_save_memory
from memdb.protocols import ChatModel

FORCED = {"type": "function", "function": {"name": NAME}}
# By these, servers that cannot be told which tool to call say so (LightGrep document, "Consolidation loop", 4).
_CANNOT_FORCE = ("tool_choice", "toolchoice", "does not support", 'should be ["none", "auto"]')


async def ask_to_save(llm: ChatModel, prompt: Sequence[Mapping[str, Any]], max_tokens: int | None) -> SavedMemory:
    """Return what a model wants to be remembered.

    Raises:
        ModelError: it failed, did not call save_memory, or the arguments are of no use.
    """
    options: dict[str, Any] = {"tools": [SAVE_MEMORY], "max_tokens": max_tokens}
    try:
        reply = await ask_whole(llm, prompt, **options, tool_choice=FORCED)
    except ModelError as failed:
        if not any(marker in str(failed).lower() for marker in _CANNOT_FORCE):
            raise
        reply = await ask_whole(llm, prompt, **options, tool_choice="auto")
    try:
        return read_save_memory(reply.tool_calls)
    except InvalidInput as error:
        raise ModelError(str(error)) from error
