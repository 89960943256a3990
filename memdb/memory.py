"""Every layer of one scope under one roof."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memdb.errors import InvalidInput
from memdb.layers.layer import Inside, Live, Mode
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_callable

if TYPE_CHECKING:
    import os

    from memdb.layers.archive import ArchivalMemory
    from memdb.layers.blocks.store import MemoryBlocks
    from memdb.layers.conversation import ConversationMemory
    from memdb.layers.facts.store import FactStore
    from memdb.layers.graph import KnowledgeGraph
    from memdb.layers.items import MemoryStore
    from memdb.layers.knowledge import KnowledgeStore
    from memdb.layers.runtime.manager import MemoryManager
    from memdb.retrieval.experience.engine import MemoryEngine
    from memdb.retrieval.meaning.hybrid import HybridSearch
    from memdb.retrieval.meaning.service import EmbeddingService
    from memdb.retrieval.notes.store import MarkdownStore
    from memdb.retrieval.retriever import MemoryRetriever
    from memdb.storage.transfer import Exported, Imported

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
    def facts(self) -> FactStore[Mode]:
        """The text that stands in every prompt, and the history of what happened."""
        from memdb.layers.facts.store import FactStore

        return FactStore(self.scope, self._home, consolidate=_consolidate)

    @cached_property
    def blocks(self) -> MemoryBlocks[Mode]:
        """Named texts of the session that the agent edits, each of a limited size."""
        from memdb.layers.blocks.store import MemoryBlocks

        return MemoryBlocks(self.scope, self._home, summarizing=_summarizing)

    @cached_property
    def archive(self) -> ArchivalMemory[Mode]:
        """Passages that were put away, to be searched."""
        from memdb.layers.archive import ArchivalMemory

        hybrid = None if self._embeddings is None else lambda: self.hybrid
        return ArchivalMemory(self.scope, self._home, hybrid=hybrid)

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
    def engine(self) -> MemoryEngine[Mode]:
        """What was lived and learnt: episodes, patterns, skills, and what a task needs of them."""
        from memdb.retrieval.experience.engine import MemoryEngine

        hybrid = None if self._embeddings is None else lambda: self.hybrid
        return MemoryEngine(self.scope, self._home, hybrid=hybrid)

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
        check_callable(unit)

        def act(tx: Transaction) -> R:
            inside: Memory[Inside] = Memory(scope, tx)
            if talk is not None and talk._config is not None:
                inside.conversation.configure(talk._config)
            return unit(inside)

        home = self._home
        assert isinstance(home, Engine)
        return await home.write(act)

    async def export_state(self: Memory[Live], path: str | os.PathLike[str]) -> Exported:
        """Write the state of this scope to a file: what belongs to the session, and what the user has of no session.

        All of it but vectors, which are made anew (Asterix document, save_state; decisions, "whole-state save and
        load"). No key of a model's API, no setting of a client and no path of the database is in it: memdb stores none.
        The file is an export, as `memdb export` writes it (memdb.storage.transfer), of one moment, while others go on.

        Args:
            path: the file; it is whole or not there. An earlier export there is replaced.

        Returns:
            What was written: counts, and what could not be read and went along as bytes.

        Raises:
            AlreadyExists: another kind of file is there.
            InvalidInput, MissingFile, StorageError: the path cannot be written; an older file there is as it was.
            SerializationError: a record is too large for a line.
        """
        from memdb.storage.transfer.state import export_state

        return await export_state(self._engine("export_state"), self.scope, path)

    async def import_state(self: Memory[Live], path: str | os.PathLike[str], *, replace: bool = False) -> Imported:
        """Store what export_state() wrote, all of it or nothing; the user and session of the file become this scope's.

        What is here under the same id is replaced, an earlier text of facts and blocks is kept as a version, and what
        the file does not name stays. Importing again changes nothing.

        Args:
            path: the file.
            replace: whether this scope is emptied first, so that it holds exactly what the file says. Other sessions
                of the user keep what is theirs, but share what belongs to the user.

        Returns:
            What was stored.

        Raises:
            MissingFile: there is no such file.
            InvalidInput: it is no state, or one of a newer memdb, or damaged, with the first line that is; nothing was
                stored.
            StorageError: and its kin, when the file could not be read or stored; nothing was stored.
        """
        from memdb.storage.transfer.state import import_state

        return await import_state(self._engine("import_state"), self.scope, path, replace=replace)

    def _engine(self, method: str) -> Engine:
        if not isinstance(self._home, Engine):
            raise InvalidInput(f"a unit reads and writes no files: call {method} outside of it")
        return self._home


def _consolidate(*args: Any, **options: Any) -> Any:
    from memdb.llm.consolidation.chunk import consolidate

    return consolidate(*args, **options)


def _summarizing(*args: Any, **options: Any) -> Any:
    from memdb.llm.blocks import SummarizingBlocks

    return SummarizingBlocks(*args, **options)
