"""Progressive loading (loki document, ProgressiveLoader): topics, the timeline, whole records as far as needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from memdb.layers.arguments import check_query, check_range
from memdb.layers.layer import Layer, Mode, reads
from memdb.protocols import CountsTokens, check_part
from memdb.retrieval.experience import overview
from memdb.retrieval.experience.budget import fitting
from memdb.retrieval.experience.engine import MemoryEngine, check_engine
from memdb.retrieval.experience.merging import LEAD
from memdb.retrieval.experience.relevance import Matched, Ranked, ranked
from memdb.retrieval.experience.retrieving import MAX_BUDGET, as_dict
from memdb.retrieval.experience.sources import SOURCES, count_recalled, matching
from memdb.storage.transaction import Transaction
from memdb.text.overlap import Overlap
from memdb.text.packing import Count
from memdb.text.scripts import fold, tokens
from memdb.text.stopwords import STOP_WORDS

DEFAULT_BUDGET = 2_000
RELEVANT = 0.5  # the least relevance of a topic that shares words with the query
HIGHLY_RELEVANT = 0.8  # from here on a topic need not share any
BY_WORDS = 0.3  # what sharing all words of the query adds to a topic's relevance
MAX_TOPICS = 20
MAX_ACTIONS = 10
MAX_RECORDS = 20
FULL = "full"  # what `_layer` says of whole records

_WORD = re.compile(r"\w+")
# Words that say how somebody asks, not about what.
ASKING = STOP_WORDS | {
    *("about", "exactly", "exact", "detail", "details", "detailed", "specific", "specifically", "full", "complete"),
    *("please", "explain", "show", "tell", "give"),
}

# Words of a query that the title of an episode cannot answer.
DETAIL_WORDS = frozenset(
    {
        *(
            "how",
            "why",
            "exactly",
            "exact",
            "detail",
            "details",
            "detailed",
            "specific",
            "specifically",
            "step",
            "steps",
        ),
        *("code", "error", "errors", "message", "full", "complete", "explain", "show", "implement", "implementation"),
    }
)


@dataclass(frozen=True, slots=True)
class TokenMetrics:
    """What a loading cost, in tokens (loki document).

    Args:
        layer1_tokens: of the topics.
        layer2_tokens: of the timeline.
        layer3_tokens: of whole records.
        total_tokens: of all; at most max_tokens.
        max_tokens: the budget.
        available_tokens: what everything that is stored would cost, an estimate.
        saved_percent: what was saved against that, 0 to 100.
    """

    layer1_tokens: int = 0
    layer2_tokens: int = 0
    layer3_tokens: int = 0
    total_tokens: int = 0
    max_tokens: int = 0
    available_tokens: int = 0
    saved_percent: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dict."""
        return asdict(self)


class ProgressiveLoader(Layer[Mode]):
    """Loads what a query needs of a user's experience, the cheapest first.

    Args:
        engine: the experience of a user: memory.engine, also that of an atomic unit. It stands for the document's
            base_path, index_layer and timeline_layer: where the memories lie, and both layers, which it computes.
        counter: counts tokens, with a method count(text); by default as the engine counts them.

    Raises:
        InvalidInput: engine is something else.
    """

    def __init__(self, engine: MemoryEngine[Mode], *, counter: CountsTokens | None = None) -> None:
        given = check_engine(engine, "ProgressiveLoader")
        super().__init__(given.scope, given._home)
        if counter is not None:
            check_part(counter, "counter", "count(text)")
        self._count: Count = given.count_tokens if counter is None else counter.count

    @reads
    def load_relevant_context(
        self, tx: Transaction, query: str, max_tokens: int = DEFAULT_BUDGET
    ) -> tuple[list[dict[str, Any]], TokenMetrics]:
        """Return what a query needs, in one snapshot: topics, then actions of the timeline, then whole records.

        Topics are those that share words with the query; those of ASKING do not count, nor what all consolidated
        patterns begin with ("Debugging tasks about"). Actions are those of the newest 50 that share any. They are
        enough where there are any and the query asks for no detail ("what did we do about the login"); one that does
        ("how exactly ..."), or finds no action, is answered with whole records, the most relevant first. These come
        before topics and actions then: they may take half of the budget, and the best that fits into all of it is
        there. In each layer what does not fit is left out, and the sum never exceeds the budget. Whole records count
        as recalled.

        Args:
            query: any text in any language.
            max_tokens: the budget, 0 to 10,000,000. A dict costs the tokens of its compact JSON text.

        Returns:
            Dicts, each with `_layer` "index", "timeline" or "full", those of whole records with _source and _score,
            too; and what they cost.

        Raises:
            InvalidInput: the query is no text, or the budget is out of range.
        """
        budget = check_range(max_tokens, "max_tokens", 0, MAX_BUDGET)
        index = overview.index(tx, self.scope.user_id)
        available = index["total_tokens_available"]
        overlap = Overlap(what_is_asked(check_query(query)))
        matching_actions = [*self._actions(tx, overlap)]
        is_whole = not matching_actions or asks_for_detail(query)
        records = self._whole(tx, query) if is_whole else []
        titles = budget - self._kept_for(records, budget)
        topics, first = fitting(_topics(index, overlap), MAX_TOPICS, titles, _itself, self._count)
        actions, second = fitting(matching_actions, MAX_ACTIONS, titles - first, _itself, self._count)
        whole, third = fitting(records, MAX_RECORDS, budget - first - second, _whole_dict, self._count)
        count_recalled(tx, self.scope.user_id, [(one.source, one.memory, one.score) for one in whole])
        total = first + second + third
        saved = 100 * (1 - total / available) if available > total else 0.0
        metrics = TokenMetrics(first, second, third, total, budget, available, round(saved, 1))
        return [*topics, *actions, *map(_whole_dict, whole)], metrics

    def _kept_for(self, records: list[Ranked], budget: int) -> int:
        """Return what of the budget topics and actions leave to whole records: their half, or one that needs more."""
        some = fitting(records, MAX_RECORDS, budget // 2, _whole_dict, self._count)[1]
        return some or fitting(records, 1, budget, _whole_dict, self._count)[1]

    def _actions(self, tx: Transaction, overlap: Overlap) -> Iterator[dict[str, Any]]:
        found = overview.timeline(tx, self.scope.user_id, overview.TIMELINE_LENGTH)
        for action in found["recent_actions"]:
            if overlap.score(action["action"], action["topic_id"], "") > 0:
                yield {**action, "_layer": "timeline"}

    def _whole(self, tx: Transaction, query: str) -> list[Ranked]:
        user_id = self.scope.user_id
        found = matching(tx, user_id, SOURCES, query, MAX_RECORDS)
        return ranked(query, [Matched(name, 1.0, hits) for name, hits in found.items()])


def what_is_asked(query: str) -> str:
    """Return a query without the words of ASKING: what titles can be compared with."""
    return _WORD.sub(lambda word: "" if fold(word.group()) in ASKING else word.group(), query)


def asks_for_detail(query: str) -> bool:
    """Return whether a query asks for more than titles can answer."""
    return not DETAIL_WORDS.isdisjoint(tokens(fold(query)))


def _topics(index: Mapping[str, Any], overlap: Overlap) -> list[dict[str, Any]]:
    """Return the topics that have to do with a query, the most relevant first."""
    found = []
    for topic in index["topics"]:
        share = overlap.score(topic["id"], LEAD.sub("", topic["summary"], count=1), "")
        relevance = min(1.0, topic["relevance_score"] + BY_WORDS * share)
        if share > 0 and relevance >= RELEVANT:
            found.append({**topic, "relevance_score": round(relevance, 3), "_layer": "index"})
    return sorted(found, key=lambda topic: -topic["relevance_score"])


def _itself(entry: dict[str, Any]) -> dict[str, Any]:
    return entry


def _whole_dict(one: Ranked) -> dict[str, Any]:
    return {**as_dict(one), "_layer": FULL}
