"""What the tools work with: the memory of one scope, perhaps a model, and a measure of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from memdb.layers.archive import ArchivalMemory
from memdb.layers.blocks.store import MemoryBlocks
from memdb.layers.conversation import ConversationMemory
from memdb.layers.facts.store import FactStore
from memdb.layers.layer import Live
from memdb.layers.runtime.manager import MemoryManager
from memdb.protocols import ChatModel, CountsTokens
from memdb.text.packing import Count

R = TypeVar("R")


class AgentMemory(Protocol):
    """What the tools need of a memdb.Memory, as db.memory() gives it."""

    @property
    def manager(self) -> MemoryManager[Live]:
        """Its stored tool results."""
        ...

    @property
    def conversation(self) -> ConversationMemory[Live]:
        """The messages of its session."""
        ...

    @property
    def facts(self) -> FactStore[Live]:
        """Its long-term text and its history."""
        ...

    @property
    def blocks(self) -> MemoryBlocks[Live]:
        """The blocks of its session."""
        ...

    @property
    def archive(self) -> ArchivalMemory[Live]:
        """Its passages."""
        ...

    async def atomic(self, unit: Callable[[Any], R], /) -> R:
        """Run a unit over all layers in one transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Bench:
    """What a tool is given beside its arguments.

    Args:
        memory: whose memory.
        llm: what summarises a block that is over its size; None for none.
        counter: counts tokens.
        tokens: the most that a result may cost.
    """

    memory: AgentMemory
    llm: ChatModel | None
    counter: CountsTokens
    tokens: int

    @property
    def count(self) -> Count:
        """How many tokens a text costs."""
        return self.counter.count
