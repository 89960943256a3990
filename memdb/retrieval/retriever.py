"""The composite retriever of the agcore document: keywords once, two channels in one snapshot, scores with reasons."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from copy import copy
from typing import Self

from memdb.errors import GraphError, InvalidInput, RetrievalError
from memdb.layers.arguments import check_query
from memdb.layers.entity import LAYER as ENTITIES
from memdb.layers.layer import Layer, Mode, reads
from memdb.layers.page import LAYER as PAGES
from memdb.layers.page import KnowledgePage
from memdb.layers.recall import record_recalls
from memdb.layers.record import Place
from memdb.protocols import KeywordExtractor
from memdb.retrieval import channels
from memdb.retrieval.ranking import RetrievalResult, RetrievalStrategy, RetrieverConfig, ScoredItem, rank
from memdb.retrieval.scoring import Candidate
from memdb.storage.clock import from_text
from memdb.storage.transaction import Transaction
from memdb.text.check import check_choice, check_flag
from memdb.text.extractor import SimpleKeywordExtractor

MAX_KEYWORDS = 64  # of an extractor's keywords; the first ones are taken
MAX_KEYWORD_CHARS = 1_000  # no name is longer


class MemoryRetriever(Layer[Mode]):
    """Finds pages and entities of one user (agcore document, section 3.3, "MemoryRetriever")."""

    _config = RetrieverConfig()
    _extractor: KeywordExtractor = SimpleKeywordExtractor()

    def with_config(self, config: RetrieverConfig) -> Self:
        """Return the same retriever with another configuration.

        Raises:
            InvalidInput: the configuration is not what it must be.
        """
        retriever = copy(self)
        retriever._config = RetrieverConfig.model_validate(config)
        return retriever

    def with_extractor(self, extractor: KeywordExtractor) -> Self:
        """Return the same retriever with another way to make keywords of a query.

        Args:
            extractor: any object with `extract(query) -> list[str]`, a plain function that may run on any thread.
        """
        if isinstance(extractor, type) or not callable(getattr(extractor, "extract", None)):
            raise InvalidInput(f"an extractor has a method extract(query), which {type(extractor).__name__} lacks")
        retriever = copy(self)
        retriever._extractor = extractor
        return retriever

    @reads
    def retrieve(
        self, tx: Transaction, query: str, *, strategy: RetrievalStrategy | None = None, explain: bool = False
    ) -> RetrievalResult:
        """Return the pages and entities that answer a query best.

        Keywords are made of the query once. Pages are found by BM25 over the query itself and by keyword, entities by
        name, tag or type and then along their relations; at most 100 in each way. What was found is scored against the
        query, what scores below min_score is dropped, and the best are returned. The same file, query and clock give
        the same answer. What is returned counts as recalled, with its score, unless an explanation is asked for; the
        caller does not wait for that.

        Args:
            query: any text in any language. One of stop words alone has no keywords, but pages are found by its words.
            strategy: which channels are asked; None for what the configuration says.
            explain: whether each item says what each signal gave, and the answer what was cut by which rule.

        Returns:
            The answer: items best first, how many were found, the keywords.

        Raises:
            InvalidInput: the query is no text.
            RetrievalError: the extractor failed, or the traversal took too long.
        """
        config, chosen = self._config, chosen_strategy(self._config.strategy if strategy is None else strategy)
        check_flag(explain, "explain")
        keywords = extracted(self._extractor, check_query(query))
        most = max(channels.POOL, config.max_results)
        found: list[Candidate] = []
        if chosen is not RetrievalStrategy.GRAPH_ONLY:
            found += channels.pages(tx, self.scope, query, keywords, most)
        if chosen is not RetrievalStrategy.KNOWLEDGE_ONLY:
            try:
                found += channels.entities(tx, self.scope, keywords, config.graph_depth, most)
            except GraphError as error:
                raise RetrievalError(f"the graph could not be searched for {query[:60]!r}: {error}") from error
        result = rank(found, query, keywords, config, from_text(tx.now), explain=explain)
        if not explain:
            self._count(tx, result.items)
        return result

    def _count(self, tx: Transaction, items: Iterable[ScoredItem]) -> None:
        by_layer: dict[str, list[tuple[str, float]]] = {PAGES: [], ENTITIES: []}
        for item in items:
            by_layer[_layer(item)].append((item.source.id, item.score))
        for layer, scores in by_layer.items():
            if scores:
                record_recalls(tx, Place.of(layer, self.scope), scores)


def extracted(extractor: KeywordExtractor, query: str) -> list[str]:
    """Return an extractor's keywords, at most MAX_KEYWORDS.

    Raises:
        RetrievalError: it raised, or returned something else than texts.
    """
    try:
        keywords = extractor.extract(query)
    except Exception as error:
        raise RetrievalError(f"{type(extractor).__name__}.extract failed on {query[:60]!r}: {error}") from error
    if not isinstance(keywords, list | tuple) or not all(isinstance(keyword, str) for keyword in keywords):
        if isinstance(keywords, Coroutine):
            keywords.close()
            raise RetrievalError(f"{type(extractor).__name__}.extract must be a plain function, not an async one")
        raise RetrievalError(
            f"{type(extractor).__name__}.extract must return a list of texts, not {type(keywords).__name__}"
        )
    return [keyword[:MAX_KEYWORD_CHARS] for keyword in keywords[:MAX_KEYWORDS]]


def chosen_strategy(value: str) -> RetrievalStrategy:
    """Return a strategy that was given by its name or as it is.

    Raises:
        InvalidInput: there is no such strategy.
    """
    return RetrievalStrategy(check_choice(value, "strategy", RetrievalStrategy))


def _layer(item: ScoredItem) -> str:
    return PAGES if isinstance(item.source, KnowledgePage) else ENTITIES
