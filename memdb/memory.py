"""Every layer of one scope under one roof."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from memdb.errors import InvalidInput
from memdb.layers.layer import Inside, Live, Mode
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction

if TYPE_CHECKING:
    from memdb.layers.conversation import ConversationMemory
    from memdb.layers.graph import KnowledgeGraph
    from memdb.layers.items import MemoryStore
    from memdb.layers.knowledge import KnowledgeStore
    from memdb.layers.runtime.manager import MemoryManager
    from memdb.retrieval.meaning.hybrid import HybridSearch
    from memdb.retrieval.meaning.service import EmbeddingService
    from memdb.retrieval.notes.store import MarkdownStore
    from memdb.retrieval.retriever import MemoryRetriever

R = TypeVar("R")


class Memory(Generic[Mode]):
    """The memory of one scope. Made by Database.memory(); making one costs nothing, a layer is loaded at its first use.

    Args:
        scope: whose memory.
        home: the engine, or inside an atomic unit its transaction.
        embeddings: gives the database's embedding service; None inside an atomic unit.
    """

    def __init__(
        self, scope: Scope, home: Engine | Transaction, embeddings: Callable[[], EmbeddingService] | None = None
    ) -> None:
        self.scope = scope
        self._home = home
        self._embeddings = embeddings

    @cached_property
    def manager(self) -> MemoryManager[Mode]:
        """What the agent is doing: state, working memory, checkpoints, tool results."""
        from memdb.layers.runtime.manager import MemoryManager

        return MemoryManager(self.scope, self._home)

    @cached_property
    def items(self) -> MemoryStore[Mode]:
        """Key-value items."""
        from memdb.layers.items import MemoryStore

        return MemoryStore(self.scope, self._home)

    @cached_property
    def conversation(self) -> ConversationMemory[Mode]:
        """The messages of the session."""
        from memdb.layers.conversation import ConversationMemory

        return ConversationMemory(self.scope, self._home)

    @cached_property
    def pages(self) -> KnowledgeStore[Mode]:
        """Knowledge pages."""
        from memdb.layers.knowledge import KnowledgeStore

        return KnowledgeStore(self.scope, self._home)

    @cached_property
    def graph(self) -> KnowledgeGraph[Mode]:
        """The knowledge graph: entities and relations."""
        from memdb.layers.graph import KnowledgeGraph

        return KnowledgeGraph(self.scope, self._home)

    @cached_property
    def retriever(self) -> MemoryRetriever[Mode]:
        """Finds pages and entities, scored with reasons."""
        from memdb.retrieval.retriever import MemoryRetriever

        return MemoryRetriever(self.scope, self._home)

    @cached_property
    def notes(self) -> MarkdownStore:
        """The pages as Markdown notes, with their index; not inside an atomic unit, since it may ask a model."""
        from memdb.retrieval.notes.store import MarkdownStore

        if not isinstance(self._home, Engine):
            raise InvalidInput("notes may ask a model, which a unit must not: use the pages of this memory instead")
        return MarkdownStore(self.scope, self._home, self.hybrid if self._embeddings is not None else None)

    @cached_property
    def hybrid(self) -> HybridSearch:
        """Finds records of every layer by their words and their meaning; not inside an atomic unit: it asks a model."""
        from memdb.retrieval.meaning.hybrid import HybridSearch

        if self._embeddings is None:
            raise InvalidInput("a search by meaning asks a model, which a unit must not: search before memory.atomic()")
        return HybridSearch(self.scope, self._embeddings())

    async def atomic(self: Memory[Live], unit: Callable[[Memory[Inside]], R]) -> R:
        """Run a unit over all layers in one transaction: it lands whole or not at all.

        Args:
            unit: a plain function of a memory whose methods are plain calls. It awaits nothing, calls no model, and
                changes nothing but through that memory: it may be run more than once.

        Returns:
            What the unit returned, once it is on disk.

        Raises:
            Whatever the unit raised; nothing of it was stored.
        """
        scope, talk = self.scope, self.__dict__.get("conversation")

        def act(tx: Transaction) -> R:
            inside: Memory[Inside] = Memory(scope, tx)
            if talk is not None and talk._config is not None:
                inside.conversation.configure(talk._config)
            return unit(inside)

        home = self._home
        assert isinstance(home, Engine)
        return await home.write(act)
