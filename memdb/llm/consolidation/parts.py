"""What consolidation needs of a memory, what it returns, and the lock that a session has in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from memdb.layers.archive import ArchivalMemory
from memdb.layers.blocks.store import MemoryBlocks
from memdb.layers.conversation import ConversationMemory
from memdb.layers.facts.store import FactStore
from memdb.layers.layer import Live
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction

R = TypeVar("R")


class SessionMemory(Protocol):
    """The part of a memdb.Memory into which a session is consolidated."""

    scope: Scope
    _home: Engine | Transaction

    @property
    def conversation(self) -> ConversationMemory[Live]:
        """The messages of the session."""
        ...

    @property
    def facts(self) -> FactStore[Live]:
        """The text that stands in every prompt, and the history."""
        ...

    async def atomic(self, unit: Callable[[Any], R]) -> R:
        """Run a unit over the layers in one transaction."""
        ...


class WholeMemory(SessionMemory, Protocol):
    """The part of a memdb.Memory that a MemoryConsolidator uses."""

    @property
    def blocks(self) -> MemoryBlocks[Live]:
        """The blocks of the session."""
        ...

    @property
    def archive(self) -> ArchivalMemory[Live]:
        """Passages that were put away."""
        ...


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What came of a consolidation. It is true when messages were consolidated: `if await ...maybe_consolidate...`.

    Args:
        rounds: how many chunks of messages went into history and facts.
        messages: how many messages these were; the history has so many fewer.
        tokens_before: what the next prompt would have cost.
        tokens_after: what it costs now.
        raw: how many of the messages went into the history as they were, because the model failed.
        reason: why it was left at that; None when the target was reached.
        failed: whether it was left because of the model.
    """

    rounds: int = 0
    messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    raw: int = 0
    reason: str | None = None
    failed: bool = False

    def __bool__(self) -> bool:
        return self.messages > 0


@dataclass(frozen=True, slots=True)
class Extracted:
    """What came of an extraction. It is true when the history became shorter.

    Args:
        messages: how many messages the history has fewer.
        passages: the ids of the facts that are archived of them; of one that was there already, its id.
        raw: how many of the messages went into the history of facts as they were, because no fact was to be had.
        reason: why nothing moved, or why they went raw; None when all went well.
    """

    messages: int = 0
    passages: list[str] = field(default_factory=list)
    raw: int = 0
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.messages > 0


_locks: WeakValueDictionary[tuple[object, ...], asyncio.Lock] = WeakValueDictionary()


def session_lock(memory: SessionMemory) -> asyncio.Lock:
    """Return the lock of a session, one for all handles on a file in this event loop (LightGrep, section 6).

    Other processes are held off by the compare-and-set of the cursor.
    """
    home, scope = memory._home, memory.scope
    file = getattr(home, "path", None) or id(home)
    key = (id(asyncio.get_running_loop()), file, scope.user_id, scope.session_id)
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = asyncio.Lock()
    return lock
