"""A composite retriever over any parts: memdb's, or others that keep to memdb.protocols."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

from memdb.errors import InvalidInput, MemdbError, RetrievalError
from memdb.layers.arguments import check_query
from memdb.layers.entity import GraphEntity
from memdb.protocols import KeywordExtractor, KnowledgeGraph, KnowledgeStore, check_part
from memdb.retrieval.channels import POOL, SEEDS, way
from memdb.retrieval.ranking import RetrievalResult, RetrievalStrategy, RetrieverConfig, ScoredItem, rank
from memdb.retrieval.retriever import chosen_strategy, extracted
from memdb.retrieval.scoring import Candidate
from memdb.storage.clock import utc_now
from memdb.text.check import check_flag
from memdb.text.extractor import SimpleKeywordExtractor, tag_forms

log = logging.getLogger("memdb")


class ComposedRetriever:
    """The composite retriever of the agcore document with parts of your choice (its requirement NF5).

    `memory.retriever` asks both of memdb's stores in one snapshot; this asks each part by its public methods, and
    scores what comes back in the same way. References between pages are counted by `referenced_by`, where the store
    has it; relations to an entity are not counted.

    Args:
        knowledge_store: where pages are found; None for no such channel.
        knowledge_graph: where entities are found; None for no such channel.
        keyword_extractor: makes the keywords that both are asked with.
        config: see RetrieverConfig.
        clock: returns the present time with its zone.

    Raises:
        InvalidInput: there is neither store nor graph, or a part lacks a method that is needed.
    """

    def __init__(
        self,
        knowledge_store: KnowledgeStore | None = None,
        knowledge_graph: KnowledgeGraph | None = None,
        keyword_extractor: KeywordExtractor | None = None,
        config: RetrieverConfig | None = None,
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if knowledge_store is None and knowledge_graph is None:
            raise InvalidInput("a retriever needs a knowledge_store, a knowledge_graph or both")
        if knowledge_store is not None:
            check_part(knowledge_store, "knowledge_store", "search", "find_by_keywords")
        if knowledge_graph is not None:
            check_part(knowledge_graph, "knowledge_graph", "find_by_keywords", "get_related")
        self._store: Any = knowledge_store
        self._graph: Any = knowledge_graph
        self._extractor: KeywordExtractor = keyword_extractor or SimpleKeywordExtractor()
        check_part(self._extractor, "keyword_extractor", "extract")
        self._config = RetrieverConfig.model_validate(config or RetrieverConfig())
        self._clock = clock
        self._counting: set[asyncio.Task[None]] = set()

    async def retrieve(
        self, query: str, *, strategy: RetrievalStrategy | None = None, explain: bool = False
    ) -> RetrievalResult:
        """Return the pages and entities that answer a query best; see MemoryRetriever.retrieve.

        What is returned is reported to the parts that have `record_recall`, without waiting for them.

        Raises:
            InvalidInput: the query is no text.
            RetrievalError: the extractor failed, or a part raised an error of memdb's; others come as they are.
        """
        chosen = chosen_strategy(self._config.strategy if strategy is None else strategy)
        check_flag(explain, "explain")
        keywords = extracted(self._extractor, check_query(query))
        channels = []
        if self._store is not None and chosen is not RetrievalStrategy.GRAPH_ONLY:
            channels.append(self._pages(query, keywords))
        if self._graph is not None and chosen is not RetrievalStrategy.KNOWLEDGE_ONLY:
            channels.append(self._entities(keywords))
        found = [one for candidates in await _asked(channels) for one in candidates]
        result = rank(found, query, keywords, self._config, self._clock(), explain=explain)
        if not explain:
            self._report(result.items)
        return result

    async def _pages(self, query: str, keywords: list[str]) -> list[Candidate]:
        most = max(POOL, self._config.max_results)
        by_text = await self._store.search(query, most)
        by_name = await self._store.find_by_keywords(keywords, most) if keywords else []
        pages = {page.id: page for page in (*by_text, *by_name)}
        text = {page.id for page in by_text}
        found = [Candidate(page, f"found by {'its text' if page.id in text else 'keyword'}") for page in pages.values()]
        if referenced_by := _ability(self._store, "referenced_by"):
            counts = await asyncio.gather(*(referenced_by(one.source.id) for one in found))
            for one, referrers in zip(found, counts, strict=True):
                one.references = len(referrers)
        return found

    async def _entities(self, keywords: list[str]) -> list[Candidate]:
        most = max(POOL, self._config.max_results)
        named = await self._graph.find_by_keywords([*keywords, *tag_forms(keywords)], most) if keywords else []
        found = {entity.id: Candidate(entity, "named by a keyword", 0) for entity in named}
        depth = self._config.graph_depth
        reached = [hit for entity in named[:SEEDS] if depth for hit in await self._graph.get_related(entity.id, depth)]
        for hit in sorted(reached, key=lambda hit: hit.distance):
            found.setdefault(hit.entity.id, Candidate(hit.entity, way(hit), hit.distance))
        return list(found.values())

    def _report(self, items: list[ScoredItem]) -> None:
        for item in items:
            part = self._graph if isinstance(item.source, GraphEntity) else self._store
            if record_recall := _ability(part, "record_recall"):
                task = asyncio.get_running_loop().create_task(_reported(record_recall, item))
                self._counting.add(task)  # the loop itself keeps no hold of it
                task.add_done_callback(self._counting.discard)


async def _asked(channels: Sequence[Coroutine[Any, Any, list[Candidate]]]) -> list[list[Candidate]]:
    """Ask the channels at once; none goes on alone when another fails."""
    tasks = [asyncio.ensure_future(channel) for channel in channels]
    try:
        return await asyncio.gather(*tasks)
    except MemdbError as error:
        raise RetrievalError(f"a part of the retriever failed: {error}") from error
    finally:
        for task in tasks:
            task.cancel()


def _ability(part: Any, name: str) -> Any:
    """Return a method that a part need not have; None where it lacks it."""
    method = getattr(part, name, None)
    return method if callable(method) else None


async def _reported(record_recall: Any, item: ScoredItem) -> None:
    try:
        await record_recall(item.source.id, item.score)
    except Exception as error:
        log.warning("the recall of %r could not be counted: %s", item.source.id, error)
