"""How well a page or an entity answers a query, in [0, 1]: the scoring strategies of the agcore document.

The measure is always the query as it was asked, never the keywords made of it (but for Keyword, which says so).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import model_validator

from memdb.errors import InvalidInput
from memdb.layers.entity import GraphEntity
from memdb.layers.models import Model, Share
from memdb.layers.page import KnowledgePage
from memdb.storage.clock import days_since
from memdb.text.overlap import Overlap
from memdb.text.scripts import RUN, fold, tokens

CONTENT_CHARS = 20_000  # how far into a text keywords are looked for


class ScoringStrategy(StrEnum):
    """Which signal orders the results, and is held against min_score (agcore document, "ScoringStrategy").

    TEXT_OVERLAP: words shared with the question. An entity that shares none scores 0, however near it is.
    KEYWORD: where its keywords stand: name, title or tag before summary or type before content.
    GRAPH_DISTANCE: nearness to what the keywords name; pages score 0.
    TEMPORAL_WEIGHT: how lately it was stored.
    REFERENCE_COUNT: what is most referred to; what nothing refers to scores 0.
    HYBRID: the weighted sum of overlap, graph, temporal and reference, see ScoreWeights.
    """

    TEXT_OVERLAP = "text_overlap"
    KEYWORD = "keyword"
    GRAPH_DISTANCE = "graph_distance"
    TEMPORAL_WEIGHT = "temporal_weight"
    REFERENCE_COUNT = "reference_count"
    HYBRID = "hybrid"


class ScoreWeights(Model):
    """What each signal counts under HYBRID, each from 0 to 1 (agcore document, section 3.3).

    Where they sum to more than 1, each counts by its share of the sum, so that scores stay within [0, 1].

    Args:
        overlap: the overlap with the text of the query.
        graph: the distance in the graph.
        temporal: how lately it was changed.
        reference: how often it is referred to.
    """

    overlap: Share = 0.5
    graph: Share = 0.2
    temporal: Share = 0.1
    reference: Share = 0.2

    @model_validator(mode="after")
    def _of_something(self) -> ScoreWeights:
        if not any(self.model_dump().values()):
            raise InvalidInput("all weights are 0, so nothing would score; give one of them more")
        return self

    def shares(self) -> dict[str, float]:
        """Return what each signal counts, by its short name."""
        weights: dict[str, float] = self.model_dump()
        total = sum(weights.values())
        return weights if total <= 1 + 1e-9 else {name: weight / total for name, weight in weights.items()}


class ScoreBreakdown(NamedTuple):
    """What each signal gave, each in [0, 1].

    Args:
        overlap_score: n-grams shared with the query, the title's above the summary's above the content's.
        keyword_score: the mean over the keywords of where each is found: name, title or tag 1, summary or type 0.7,
            content or description 0.4, nowhere 0.
        graph_score: 1 / (1 + distance) from the entities that the keywords name; 0 for what is not in the graph.
        temporal_score: 1 / (1 + days since it was stored last).
        reference_score: what refers to it, by the most that anything found has: pages by references, entities by
            relations that lead to them.
    """

    overlap_score: float
    keyword_score: float
    graph_score: float
    temporal_score: float
    reference_score: float


@dataclass(slots=True)
class Candidate:
    """What one of the two channels found.

    Args:
        source: the page or the entity.
        found_by: how it was found, in a few words.
        distance: relations from the nearest entity that the keywords name; None for a page.
        references: how many things refer to it.
        signals: what is known of it already; see Scorer.
    """

    source: KnowledgePage | GraphEntity
    found_by: str
    distance: int | None = None
    references: int = 0
    signals: dict[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """ "page" or "entity"."""
        return "page" if isinstance(self.source, KnowledgePage) else "entity"

    @property
    def fields(self) -> tuple[str, str, str]:
        """Its texts by weight: title, summary, content."""
        source = self.source
        if isinstance(source, KnowledgePage):
            return source.title, source.summary, source.content
        return source.name, source.entity_type, source.description


class Scorer:
    """Gives the signals of candidates for one query; each is computed when it is asked for, and once.

    Args:
        query: as it was asked.
        keywords: what was made of it.
        candidates: all that were found: references are counted by the most that any of a kind has.
        now: the present time.
    """

    def __init__(self, query: str, keywords: Sequence[str], candidates: Sequence[Candidate], now: datetime) -> None:
        self._overlap = Overlap(query)
        self._words = [_sought(keyword) for keyword in keywords]
        self._now = now
        self._most: dict[str, int] = {}
        for one in candidates:
            self._most[one.kind] = max(self._most.get(one.kind, 0), one.references)

    def signal(self, one: Candidate, name: str) -> float:
        """Return one signal by its short name, such as "overlap" for overlap_score."""
        if name not in one.signals:
            one.signals[name] = SIGNALS[name](self, one)
        return one.signals[name]

    def breakdown(self, one: Candidate) -> ScoreBreakdown:
        """Return all signals."""
        return ScoreBreakdown(*(self.signal(one, name) for name in SIGNALS))

    def score(self, one: Candidate, parts: Mapping[str, float]) -> float:
        """Return the weighted sum of signals (agcore document, section 3.3)."""
        return sum(weight * self.signal(one, name) for name, weight in parts.items())

    def overlap(self, one: Candidate) -> float:
        """Return what the texts share with the query; tags stand beside the summary."""
        title, summary, content = one.fields
        tags = " ".join(tag.replace("-", " ") for tag in one.source.tags)
        return self._overlap.score(title, f"{summary} {tags}" if tags else summary, content)

    def keyword(self, one: Candidate) -> float:
        """Return how well the keywords name it."""
        return keyword_score(self._words, one)

    def graph(self, one: Candidate) -> float:
        """Return how near it stands to what the keywords name."""
        return 0.0 if one.distance is None else 1 / (1 + one.distance)

    def temporal(self, one: Candidate) -> float:
        """Return 1 / (1 + days since it was stored); 0 where that is not known, and a time to come counts as now."""
        if one.source.updated_at is None:
            return 0.0
        return 1 / (1 + days_since(one.source.updated_at, self._now))

    def reference(self, one: Candidate) -> float:
        """Return how much refers to it, by the most that anything found of its kind has."""
        return one.references / self._most[one.kind] if one.references else 0.0


# The signals in the order of ScoreBreakdown.
SIGNALS: Mapping[str, Callable[[Scorer, Candidate], float]] = {
    "overlap": Scorer.overlap,
    "keyword": Scorer.keyword,
    "graph": Scorer.graph,
    "temporal": Scorer.temporal,
    "reference": Scorer.reference,
}

NAMED, DESCRIBED, MENTIONED = 1.0, 0.7, 0.4


def keyword_score(words: Sequence[tuple[str, ...]], candidate: Candidate) -> float:
    """Return the mean over keywords (see _sought) of the best place where each is found, at a word's beginning."""
    if not words:
        return 0.0
    title, summary, content = candidate.fields
    places = (
        (NAMED, _as_words(title)),
        (NAMED, " ".join(("", *(fold(tag) for tag in candidate.source.tags)))),
        (DESCRIBED, _as_words(summary)),
        (MENTIONED, _as_words(content[:CONTENT_CHARS])),
    )
    return sum(max((share for share, text in places if _holds(text, word)), default=0.0) for word in words) / len(words)


def _as_words(text: str) -> str:
    return " ".join(("", *tokens(fold(text))))


def _sought(keyword: str) -> tuple[str, ...]:
    """Return what says that a text holds a keyword: it, at a word's beginning but in a script without spaces."""
    word = fold(keyword)
    cut = word if RUN.match(word) else f" {' '.join(tokens(word)) or word}"
    return cut, f" {word}"


def _holds(text: str, word: tuple[str, ...]) -> bool:
    return any(form in text for form in word)


# What each strategy sums up: the signals, each with what it counts.
PARTS: Mapping[ScoringStrategy, Callable[[ScoreWeights], Mapping[str, float]]] = {
    ScoringStrategy.TEXT_OVERLAP: lambda weights: {"overlap": 1.0},
    ScoringStrategy.KEYWORD: lambda weights: {"keyword": 1.0},
    ScoringStrategy.GRAPH_DISTANCE: lambda weights: {"graph": 1.0},
    ScoringStrategy.TEMPORAL_WEIGHT: lambda weights: {"temporal": 1.0},
    ScoringStrategy.REFERENCE_COUNT: lambda weights: {"reference": 1.0},
    ScoringStrategy.HYBRID: lambda weights: weights.shares(),
}
