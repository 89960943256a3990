"""Never run, only type-checked: memdb's own stores, and a user's, are accepted where the protocols are asked for."""

from __future__ import annotations

import memdb
import memdb.testing
from memdb import protocols
from memdb.layers.layer import Inside, Live
from memdb.retrieval.composed import ComposedRetriever
from memdb.text.extractor import SimpleKeywordExtractor


def own(memory: memdb.Memory[Live]) -> ComposedRetriever:
    items: list[protocols.MemoryStore] = [memory.items, memory.items.with_eviction(memdb.EvictionConfig())]
    pages: protocols.KnowledgeStore = memory.pages
    graph: protocols.KnowledgeGraph = memory.graph
    extractor: protocols.KeywordExtractor = SimpleKeywordExtractor()
    return ComposedRetriever(pages, graph, extractor) if items else ComposedRetriever(memory.pages)


def inside(memory: memdb.Memory[Inside]) -> list[protocols.MemoryStore]:
    return [memory.items]  # type: ignore[list-item]


class Items:
    """A user's own store, which inherits from nothing."""

    async def save(self, item: memdb.MemoryItem) -> None: ...
    async def get(self, id: str) -> memdb.MemoryItem | None: ...
    async def delete(self, id: str) -> None: ...
    async def record_recall(self, id: str, score: float) -> None: ...
    async def list(self, filter: memdb.MemoryFilter | None = None) -> list[memdb.MemoryItem]:
        return []


async def suites() -> None:
    report = await memdb.testing.check(memdb.testing.MEMORY_STORE, Items)
    report.raise_for_failures()
    await memdb.testing.check(memdb.testing.KNOWLEDGE_GRAPH, Items)  # type: ignore[misc]
