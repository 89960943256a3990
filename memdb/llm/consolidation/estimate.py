"""What the next prompt costs: everything that is sent, counted by the model itself where it can.

(LightGrep document, section 7, "Token estimation chain"; decisions, "what the estimate counts".)
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from memdb.asking import cancels_us
from memdb.errors import InvalidInput
from memdb.layers.arguments import check_bulk
from memdb.layers.message import Message
from memdb.protocols import ChatModel, CountsMessages, check_part
from memdb.text.query import cleaned
from memdb.text.shown import shown
from memdb.text.tokens import Sendable, TokenCounter
from memdb.text.traced import described

KEPT_ENCODING = "cl100k_base"  # in which stored messages are counted
log = logging.getLogger("memdb")

Prompt = list[Mapping[str, Any] | Sendable]
BuildMessages = Callable[[list[dict[str, Any]]], Any | Awaitable[Any]]
Tools = Sequence[Mapping[str, Any]] | Callable[[], Any]


class Estimator:
    """Estimates what a prompt costs; stored messages are not counted again.

    Args:
        llm: is asked first, where it has estimate_prompt_tokens(messages, tools, model) or count_tokens(messages).
        counter: counts where the model cannot; by default TokenCounter().
        build_messages: makes the real prompt of the history's messages (dicts); may be async. None for the history with
            the facts before it.
        tools: what is sent of tools: a list, or a function that returns it; may be async.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(
        self, llm: ChatModel, counter: CountsMessages | None, build_messages: BuildMessages | None, tools: Tools | None
    ) -> None:
        self._counter = TokenCounter() if counter is None else counter
        check_part(self._counter, "counter", "count(text)", "count_messages(messages)")
        if build_messages is not None and not callable(build_messages):
            raise InvalidInput(f"build_messages must be a function, not {type(build_messages).__name__}")
        if tools is not None and not callable(tools):
            tools = check_bulk(tools, "tools")
        self._llm, self._build, self._tools = llm, build_messages, tools
        self._kept = isinstance(self._counter, TokenCounter) and self._counter.name == KEPT_ENCODING
        self._failed: set[str] = set()

    def count(self, text: str) -> int:
        """Return how many tokens a text costs."""
        return self._counter.count(text)

    def size(self, message: Message | Mapping[str, Any]) -> int:
        """Return how many tokens a message costs: by the kept count where it is the counter's own, at least 1."""
        tokens = message.tokens if self._kept and isinstance(message, Message) else None
        return max(1, self._counter.count_messages([message]) if tokens is None or tokens <= 0 else tokens)

    async def prompt(self, history: Sequence[Message], facts: str) -> int:
        """Return what the next call costs.

        Args:
            history: what get_history returns.
            facts: what get_memory_context returns; counted where there is no build_messages.

        Raises:
            InvalidInput: build_messages or tools gave something else than a list of messages or tools.
        """
        given = [message.to_dict() for message in history]
        sent: Prompt
        if self._build is None:
            sent = [*([{"role": "system", "content": facts}] if facts else []), *given]
        else:
            sent = check_bulk(await _resolved(self._build(list(given))), "what build_messages returned")
        tools = (
            check_bulk(await _resolved(self._tools()), "what tools() returned")
            if callable(self._tools)
            else (self._tools or [])
        )
        native = await self._native(sent, list(tools))
        if native is not None:
            return native
        known = {id(each): message for each, message in zip(given, history, strict=True)}
        return await asyncio.to_thread(self._counted, sent, known, list(tools))

    def _counted(self, sent: Prompt, known: Mapping[int, Message], tools: list[Any]) -> int:
        total = self._of_tools(tools)
        for each in sent:
            message = known.get(id(each))
            untouched = message is not None and each == message.to_dict()
            total += self.size(message) if message is not None and untouched else self._counter.count_messages([each])
        return total

    def _of_tools(self, tools: list[Any]) -> int:
        return self._counter.count(json.dumps(tools, ensure_ascii=False, default=str, skipkeys=True)) if tools else 0

    # -- the model's own count -----------------------------------------------------------------------------------------

    async def _native(self, sent: Prompt, tools: list[Any]) -> int | None:
        """Return what the model itself says that a prompt costs; None where it cannot say."""
        if callable(getattr(self._llm, "estimate_prompt_tokens", None)):
            model = getattr(self._llm, "model", None)
            found = await self._asked("estimate_prompt_tokens", sent, tools or None, model)
            if found is not None:
                return found
        count = getattr(self._llm, "count_tokens", None)
        if not sent or not callable(count):
            return None
        if _takes(count, "tools"):
            return await self._asked("count_tokens", sent, tools=tools or None)
        found = await self._asked("count_tokens", sent)
        return None if found is None else found + await asyncio.to_thread(self._of_tools, tools)

    async def _asked(self, method: str, *args: Any, **options: Any) -> int | None:
        name = f"{type(self._llm).__name__}.{method}"
        try:
            found = await _resolved(getattr(self._llm, method)(*args, **options))
        except (Exception, asyncio.CancelledError) as error:
            if cancels_us(error):
                raise
            self._warn(name, f"failed: {described(error)}")
            return None
        number = found[0] if isinstance(found, tuple | list) and found else found
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63:
            return number
        self._warn(name, f"returned {cleaned(shown(number))}, no number of tokens")
        return None

    def _warn(self, name: str, problem: str) -> None:
        if name not in self._failed:  # once: it is asked at every turn
            self._failed.add(name)
            log.warning("%s %s; tokens are counted by %s", name, problem, type(self._counter).__name__)


async def _resolved(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _takes(method: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
