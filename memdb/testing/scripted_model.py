"""A chat model for tests: it answers what the test says, in order, and notes what it was asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from memdb.errors import InvalidInput
from memdb.storage.transaction import run_unit
from memdb.text.reply import ChatReply

Scripted = str | ChatReply | BaseException


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a ScriptedModel was asked, as it stood at that moment.

    Args:
        messages: the messages, oldest first.
        tools: the tools offered, or None.
        tool_choice: which of them to call, or None.
        max_tokens: of the answer, or None.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    max_tokens: int | None = None

    @property
    def text(self) -> str:
        """The contents of all messages that are text, a line between two."""
        return "\n".join(m["content"] for m in self.messages if isinstance(m.get("content"), str))


class ScriptedModel:
    """A chat model that gives the replies it was made with, one a call: `ScriptedModel(["first", "second"])`.

    What goes wrong is an AssertionError, so that the test fails: a call when no reply is left, and a call inside a
    unit, which holds the file's lock while the model thinks. A unit is known by its being under way on the caller's
    stack; what it hands to a thread of its own is not seen.

    Args:
        replies: each a text, a ChatReply, or an exception to raise.

    Attributes:
        calls: what it was asked, oldest first. A call that fails the test is not among them.

    Raises:
        InvalidInput: replies is a text, or a reply is none of these.
    """

    def __init__(self, replies: Iterable[Scripted]) -> None:
        if isinstance(replies, str) or not isinstance(replies, Iterable):
            raise InvalidInput(f"replies must be a list of replies, not {type(replies).__name__}")
        self._replies = list(replies)
        self._given = 0
        self.calls: list[ModelCall] = []
        for reply in self._replies:
            if not isinstance(reply, str | ChatReply | BaseException):
                raise InvalidInput(
                    f"a reply must be a text, a ChatReply or an exception to raise, not {type(reply).__name__}"
                )

    @property
    def left(self) -> int:
        """How many replies have not been given yet."""
        return len(self._replies) - self._given

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Coroutine[Any, Any, ChatReply]:
        """Return the next reply, once awaited; see memdb.protocols.ChatModel for the arguments.

        Raises:
            AssertionError: no reply is left, a unit is under way, or no event loop awaits it.
            Whatever the reply is, if it is an exception.
        """
        _fail_inside_unit()  # here too: a unit that cannot await would drop the coroutine unseen
        return self._answer(messages, tools, tool_choice, max_tokens)

    async def _answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        tool_choice: str | Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> ChatReply:
        _fail_inside_unit()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise AssertionError("ScriptedModel.chat() must be awaited on an event loop") from None
        if not self.left:
            raise AssertionError(
                f"ScriptedModel was asked once more after its {len(self._replies)} replies; asked last: "
                f"{_shortened(messages)}"
            )
        reply = self._replies[self._given]
        self._given += 1
        self.calls.append(
            ModelCall(
                [deepcopy(dict(message)) for message in messages],
                None if tools is None else [deepcopy(dict(tool)) for tool in tools],
                deepcopy(dict(tool_choice)) if isinstance(tool_choice, Mapping) else tool_choice,
                max_tokens,
            )
        )
        await asyncio.sleep(0)  # as any model does: others go on meanwhile
        if isinstance(reply, BaseException):
            raise reply
        return ChatReply(reply, finish_reason="stop") if isinstance(reply, str) else reply

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._replies)} replies, {self.left} left)"


def _fail_inside_unit() -> None:
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is run_unit.__code__:
            raise AssertionError(
                "a model was called inside a unit, which holds the file's lock until it returns: read first, ask the "
                "model with no transaction open, then write"
            )


def _shortened(messages: Sequence[Mapping[str, Any]]) -> str:
    return repr(messages[-1])[:500] if messages else "nothing"
