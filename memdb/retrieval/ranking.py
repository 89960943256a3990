"""From what the channels found to an answer: score, drop what is too low, sort, cut; each step can be explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict

from memdb.layers.entity import GraphEntity
from memdb.layers.models import Model, Share, whole_number
from memdb.layers.page import KnowledgePage
from memdb.layers.traversal import MAX_DEPTH
from memdb.retrieval.scoring import PARTS, SIGNALS, Candidate, ScoreBreakdown, Scorer, ScoreWeights, ScoringStrategy
from memdb.text.check import check_choice
from memdb.text.extractor import tag_forms
from memdb.text.scripts import fold

MAX_RESULTS = 10_000


class RetrievalStrategy(StrEnum):
    """Which channels are asked: both, pages alone, or the graph alone (agcore document, "RetrievalStrategy")."""

    HYBRID = "hybrid"
    KNOWLEDGE_ONLY = "knowledge_only"
    GRAPH_ONLY = "graph_only"


class RetrieverConfig(Model):
    """How a retriever answers (agcore document, section 3.3).

    Args:
        scoring: which signal orders the results. Under the default TEXT_OVERLAP an entity that is only related to what
            the question names shares no word with it and is cut: to be answered by relations use HYBRID.
        max_results: how many at most, 1 to 10,000.
        min_score: what scores below is dropped, 0 to 1.
        graph_depth: how many relations from the entities that the keywords name, 0 for those alone.
        weights: what each signal counts under ScoringStrategy.HYBRID.
        strategy: which channels are asked, unless a call says otherwise.
    """

    model_config = ConfigDict(frozen=True)

    scoring: Annotated[ScoringStrategy, BeforeValidator(lambda value: check_choice(value, "it", ScoringStrategy))] = (
        ScoringStrategy.TEXT_OVERLAP
    )
    max_results: Annotated[int, whole_number("max_results", 1, MAX_RESULTS)] = 20
    min_score: Share = 0.1
    graph_depth: Annotated[int, whole_number("graph_depth", 0, MAX_DEPTH)] = 2
    weights: ScoreWeights = ScoreWeights()
    strategy: Annotated[
        RetrievalStrategy, BeforeValidator(lambda value: check_choice(value, "it", RetrievalStrategy))
    ] = RetrievalStrategy.HYBRID


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """A page or an entity in an answer.

    Args:
        source: the page or the entity.
        score: in [0, 1].
        breakdown: what each signal gave.
        explanation: why it stands where it stands, in words; "" unless asked for.
    """

    source: KnowledgePage | GraphEntity
    score: float
    breakdown: ScoreBreakdown
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """What was found and is not in the answer.

    Args:
        source: the page or the entity.
        score: its score.
        rule: which rule cut it: "min_score" or "max_results".
        explanation: what each signal gave, in words.
    """

    source: KnowledgePage | GraphEntity
    score: float
    rule: str
    explanation: str


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """An answer (agcore document, "RetrievalResult").

    Args:
        items: best first; ties with pages before entities, then in the order in which the channels found them.
        total_found: how many scored at least min_score, before the answer was cut to max_results.
        query: what was asked.
        keywords: what the extractor made of it.
        cut: what was found and cut, best first; only where an explanation was asked for.
    """

    items: list[ScoredItem]
    total_found: int
    query: str
    keywords: list[str] = field(default_factory=list)
    cut: list[Cut] = field(default_factory=list)


def rank(
    candidates: Sequence[Candidate],
    query: str,
    keywords: list[str],
    config: RetrieverConfig,
    now: datetime,
    *,
    explain: bool = False,
) -> RetrievalResult:
    """Return the answer that a configuration makes of candidates: the same for the same arguments.

    Args:
        candidates: pages in the order in which they were found, then entities.
        query: as it was asked.
        keywords: what was made of it.
        now: the present time.
        explain: whether each item says why it stands where it stands, and the answer what was cut.
    """
    parts = PARTS[config.scoring](config.weights)
    scorer = Scorer(query, keywords, candidates, now)
    scored = [(scorer.score(one, parts), one) for one in candidates]
    scored.sort(key=lambda entry: -entry[0])  # stable
    found = sum(score >= config.min_score for score, _ in scored)
    kept = min(found, config.max_results)

    named_by = {fold(form): form for form in (*keywords, *tag_forms(keywords))} if explain else {}

    def explained(one: Candidate, score: float) -> str:
        return _explained(scorer.breakdown(one), score, _found_by(one, named_by), parts) if explain else ""

    items = [
        ScoredItem(one.source, score, scorer.breakdown(one), explained(one, score)) for score, one in scored[:kept]
    ]
    cut = [
        Cut(one.source, score, "max_results" if at < found else "min_score", explained(one, score))
        for at, (score, one) in enumerate(scored[kept:], kept)
        if explain
    ]
    return RetrievalResult(items, found, query, keywords, cut)


def _found_by(one: Candidate, keywords: Mapping[str, str]) -> str:
    """Return how a candidate was found; of what keywords name, by which of them (folded -> as it is spelled)."""
    source = one.source
    if not isinstance(source, GraphEntity) or one.distance != 0:
        return one.found_by
    name, tags, kind = fold(source.name), {fold(tag) for tag in source.tags}, fold(source.entity_type)
    for what, is_so in (
        ("its name begins with", name.startswith),
        ("it has the tag", tags.__contains__),
        ("it is of the type", kind.__eq__),
    ):
        if by := next((spelled for folded, spelled in keywords.items() if is_so(folded)), None):
            return f"{what} {by!r}"
    return one.found_by


def _explained(signals: ScoreBreakdown, score: float, found_by: str, parts: Mapping[str, float]) -> str:
    """Return an explanation: 0.42 = 0.5 x overlap 0.64 + 0.2 x graph 0.50; found by its text."""
    values = dict(zip(SIGNALS, signals, strict=True))
    summands = " + ".join(
        f"{name} {values[name]:.2f}" if weight == 1 else f"{weight:.3g} x {name} {values[name]:.2f}"
        for name, weight in parts.items()
    )
    others = [f"{name} {value:.2f}" for name, value in values.items() if name not in parts and value]
    beside = f" (not counted: {', '.join(others)})" if others else ""
    return f"{score:.2f} = {summands}{beside}; {found_by}"
