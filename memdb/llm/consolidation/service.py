"""Consolidation in the background, while an agent goes on talking (LightGrep document, "Callers": after each turn)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from inspect import signature
from types import TracebackType
from typing import Any, Protocol, Self

from memdb.asking import cancels_us
from memdb.errors import InvalidInput, MemdbError
from memdb.layers.arguments import check_range
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.llm.consolidation.parts import Consolidated
from memdb.protocols import ChatModel
from memdb.scope import Scope
from memdb.text.query import cleaned
from memdb.text.traced import traced

CONCURRENCY = 2
log = logging.getLogger("memdb")

_Key = tuple[str, str]
_Noticed = tuple[object, str, str]  # whose database, user, session


class HasMemories(Protocol):
    """The part of a memdb.Database that is used here."""

    def memory(self, user_id: str = ..., session_id: str = ...) -> Any:
        """Return the memory of one user and session."""
        ...


class HasScope(Protocol):
    """What is noticed: a memdb.Memory."""

    scope: Scope


class ConsolidationService:
    """Consolidates the sessions that it is told of, one after the other, from start() to stop().

    >>> async with memdb.ConsolidationService(db, llm, context_window_tokens=65_536) as service:
    ...     service.notice(memory)  # after each turn; returns at once

    A session that is noticed again while it waits is looked at once; while it is being consolidated, once more
    afterwards. Sessions of one user, who have their facts in common, take turns. What goes wrong with one session is
    logged and stands in `problems`; it stops nobody. What waits at the end is done before stop() returns.

    Args:
        source: an open database, or a function that makes a MemoryConsolidator of the memory that was noticed.
        llm: the chat model, with a database.
        concurrency: how many sessions, of different users, are consolidated at once, 1 to 100.
        options: those of MemoryConsolidator (context_window_tokens and the rest), with a database.

    Attributes:
        problems: what went wrong last, by user and session; what goes well takes it away.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(
        self,
        source: HasMemories | Callable[[Any], MemoryConsolidator],
        llm: ChatModel | None = None,
        *,
        concurrency: int = CONCURRENCY,
        **options: Any,
    ) -> None:
        self.problems: dict[_Key, str] = {}
        self._concurrency = check_range(concurrency, "concurrency", 1, 100)
        self._make = _maker(source, llm, options)
        self._waiting: dict[_Noticed, Any] = {}
        # Users: their sessions share the facts, and would ask in vain side by side.
        self._running: set[tuple[object, str]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        """Begin.

        Raises:
            InvalidInput: the service runs already.
        """
        if self._tasks:
            raise InvalidInput("this service runs already; stop() it first")
        self._stopping = False
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._concurrency)]

    async def stop(self) -> None:
        """Finish what waits and end."""
        self._stopping = True
        self._wake.set()
        tasks, self._tasks = self._tasks, []
        await asyncio.gather(*tasks)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def notice(self, memory: HasScope) -> None:
        """Let a session be looked at, soon; nothing is awaited and nothing read here.

        Args:
            memory: the memory of a user and session.

        Raises:
            InvalidInput: it is none, or the service does not run.
        """
        scope = getattr(memory, "scope", None)
        if not isinstance(scope, Scope):
            raise InvalidInput(f"memory must be a memdb.Memory, not {type(memory).__name__}")
        if not self._tasks:
            raise InvalidInput("this service does not run: use `async with memdb.ConsolidationService(...)`")
        # By the database, too: a function may make consolidators of the memories of several.
        home = id(getattr(memory, "_home", None))
        self._waiting.setdefault((home, scope.user_id, scope.session_id), memory)
        self._idle.clear()
        self._wake.set()

    async def drained(self) -> None:
        """Wait until all that was noticed so far is done."""
        await self._idle.wait()

    async def _work(self) -> None:
        while True:
            key = next((key for key in self._waiting if key[:2] not in self._running), None)
            if key is not None:
                await self._look(key, self._waiting.pop(key))
            elif self._stopping and not self._waiting:
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _look(self, noticed: _Noticed, memory: Any) -> None:
        key = noticed[1:]
        self._running.add(noticed[:2])
        try:
            problem = _problem(await self._make(memory).maybe_consolidate_by_tokens())
        except (Exception, asyncio.CancelledError) as error:
            if cancels_us(error):
                raise
            problem = str(error) or type(error).__name__
            expected = isinstance(error, MemdbError)
            trace = "" if expected else f"\n{traced(error)}"
            log.warning("messages of %s were not consolidated: %s%s", memory.scope, cleaned(problem), trace)
        finally:
            self._running.discard(noticed[:2])
            self._wake.set()
            if not self._waiting and not self._running:
                self._idle.set()
        if problem is None:
            self.problems.pop(key, None)
        else:
            self.problems[key] = problem


def _maker(
    source: HasMemories | Callable[[Any], MemoryConsolidator], llm: ChatModel | None, options: dict[str, Any]
) -> Callable[[Any], MemoryConsolidator]:
    """Return what makes the consolidator of what was noticed."""
    memories = getattr(source, "memory", None)
    if not callable(memories):
        if not callable(source):
            raise InvalidInput(f"source must be a database or a function, not {type(source).__name__}")
        if llm is not None or options:
            raise InvalidInput("llm and options are the function's own where one makes the consolidators")
        return source
    known = [*signature(MemoryConsolidator).parameters][2:]  # behind memory and llm
    for name in options:
        if name not in known:
            raise InvalidInput(f"there is no option {name[:60]!r}; the options are concurrency, {', '.join(known)}")
    scope = Scope()
    MemoryConsolidator(memories(scope.user_id, scope.session_id), _given(llm), **options)  # says what is wrong, now
    return lambda noticed: MemoryConsolidator(noticed, _given(llm), **options)


def _given(llm: ChatModel | None) -> ChatModel:
    if llm is None:
        raise InvalidInput("llm must be given with a database: the model that consolidates")
    return llm


def _problem(done: Consolidated) -> str | None:
    """Return what went wrong with the model; None where nothing did."""
    if done.raw:
        return f"the model failed, and {done.raw:,} messages went into the history as they are"
    return done.reason if done.failed else None
