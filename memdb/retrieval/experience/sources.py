"""The four sources of experience: episodes, patterns, skills, anti-patterns; how each is searched and listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import select

from memdb.layers import reading
from memdb.layers.experience import episodes, patterns, skills
from memdb.layers.experience.form import Experience
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.experience.stored_patterns import KIND, KINDS, PATTERNS, pattern_of
from memdb.layers.recall import record_recalls
from memdb.layers.record import Place
from memdb.storage import fulltext
from memdb.storage.schema import pattern, record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.text.query import parse

ANTI = "anti_pattern"
LEAST_CONFIDENCE = 0.5  # of a pattern that is proposed (loki document)

Scored = Sequence[tuple[Experience, float]]


class Source(NamedTuple):
    """A source.

    Args:
        name: what `_source` says of its memories.
        weight: its name in TASK_STRATEGIES.
        layer: the layer of its records.
        matching: (tx, user_id, query, k) -> its best matches by BM25, with their scores.
        in_order: (tx, user_id, limit) -> the first in the documented order.
    """

    name: str
    weight: str
    layer: str
    matching: Callable[[Transaction, str, str, int], Scored]
    in_order: Callable[[Transaction, str, int], Sequence[Experience]]


def _patterns_matching(tx: Transaction, user_id: str, query: str, k: int) -> Scored:
    return patterns.scored(tx, user_id, query, k, anti=False)


def _anti_matching(tx: Transaction, user_id: str, query: str, k: int) -> Scored:
    return patterns.scored(tx, user_id, query, k, anti=True)


def _patterns_in_order(tx: Transaction, user_id: str, limit: int) -> Sequence[Experience]:
    return patterns.found(tx, user_id, min_confidence=LEAST_CONFIDENCE, anti=False, limit=limit)


def _anti_in_order(tx: Transaction, user_id: str, limit: int) -> Sequence[Experience]:
    return patterns.found(tx, user_id, anti=True, limit=limit)


# In the order in which equal weights stand (loki document, retrieve_relevant).
SOURCES = (
    Source("episodic", "episodic", EPISODE, episodes.scored, episodes.recent),
    Source("semantic", "semantic", PATTERN, _patterns_matching, _patterns_in_order),
    Source("procedural", "skills", SKILL, skills.scored, skills.all_of),
    Source(ANTI, "anti_patterns", PATTERN, _anti_matching, _anti_in_order),
)
_KINDS = Statement(
    select(record.c.id, KIND)
    .select_from(record.outerjoin(pattern, pattern.c.record_id == record.c.id))
    .where(record.c.id.in_(select(each("ids").c.value)), record.c.user_id.concat("") == param("user_id"))
)
BY_NAME = {source.name: source for source in SOURCES}


def matching(tx: Transaction, user_id: str, sources: Iterable[Source], query: str, k: int) -> dict[str, Scored]:
    """Return the best matches of some sources, at most k of each, by the sources' names, in their order.

    Patterns and anti-patterns lie in one layer: where both are asked for, it is searched once, which spares a question
    of common words a quarter of its time.
    """
    named = {source.name: source for source in sources}
    both = _both_kinds(tx, user_id, query, k) if {"semantic", ANTI} <= named.keys() else {}
    return {
        name: both[name] if name in both else source.matching(tx, user_id, query, k) for name, source in named.items()
    }


def _both_kinds(tx: Transaction, user_id: str, query: str, k: int) -> dict[str, Scored]:
    """Return the best patterns and the best anti-patterns; without a kind of which there may be others."""
    fetch = 3 * k + 10
    hits = fulltext.search(tx, parse(query), Place(PATTERN, user_id).within(), fetch)
    kinds: dict[int, str] = dict(tx.all(_KINDS, ids=json.dumps([number for number, _ in hits]), user_id=user_id))
    found: dict[str, Scored] = {}
    for name, kind in zip(("semantic", ANTI), KINDS, strict=True):
        best = [hit for hit in hits if kinds.get(hit[0]) == kind][:k]
        if len(best) == k or len(hits) < fetch:
            found[name] = reading.ranked(tx, user_id, dict(best), pattern_of, PATTERNS)
    return found


def id_of(memory: Experience) -> str:
    """Return a memory's id."""
    one: Any = memory
    return str(one.id)


def count_recalled(tx: Transaction, user_id: str, recalled: Iterable[tuple[str, Experience, float]]) -> None:
    """Count that memories were recalled: written later, never awaited (memdb.storage.recalls).

    Args:
        recalled: of each its source's name, the memory and the score that it had.
    """
    by_layer: dict[str, list[tuple[str, float]]] = {}
    for name, memory, score in recalled:
        by_layer.setdefault(BY_NAME[name].layer, []).append((id_of(memory), score))
    for layer, scores in by_layer.items():
        record_recalls(tx, Place(layer, user_id), scores)
