"""The four sources of experience: episodes, patterns, skills, anti-patterns; how each is searched and listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memdb.layers import reading
from memdb.layers.experience import episodes, found_patterns, skills
from memdb.layers.experience.form import Experience
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skills import SKILLS, skill_of
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.experience.stored_episodes import EPISODES, episode_of
from memdb.layers.experience.stored_patterns import KINDS, PATTERNS, pattern_of
from memdb.layers.recall import record_recalls
from memdb.layers.record import Place, Record
from memdb.retrieval.experience.pool import Kind, best_of
from memdb.retrieval.experience.relevance import LOOKED_AT
from memdb.storage.transaction import Transaction

ANTI = "anti_pattern"
LEAST_CONFIDENCE = 0.5  # of a pattern that is proposed (loki document)
SHOWN_SOURCES = 5  # ids of the episodes that a pattern comes from, the newest of them

Scored = Sequence[tuple[Experience, float]]


class Source(NamedTuple):
    """A source.

    Args:
        name: what `_source` says of its memories.
        weight: its name in TASK_STRATEGIES.
        layer: the layer of its records.
        kind: which of the layer's patterns are its own; None where all records are.
        shape: makes a memory of a row.
        columns: of a row.
        in_order: (tx, user_id, limit) -> the first in the documented order.
    """

    name: str
    weight: str
    layer: str
    kind: str | None
    shape: Callable[..., Experience]
    columns: reading.Columns
    in_order: Callable[[Transaction, str, int], Sequence[Experience]]


def _patterns_in_order(tx: Transaction, user_id: str, limit: int) -> Sequence[Experience]:
    return found_patterns.found(tx, user_id, min_confidence=LEAST_CONFIDENCE, anti=False, limit=limit)


def _anti_in_order(tx: Transaction, user_id: str, limit: int) -> Sequence[Experience]:
    return found_patterns.found(tx, user_id, anti=True, limit=limit)


# In the order in which equal weights stand (loki document, retrieve_relevant).
SOURCES = (
    Source("episodic", "episodic", EPISODE, None, episode_of, EPISODES, episodes.recent),
    Source("semantic", "semantic", PATTERN, KINDS[0], pattern_of, PATTERNS, _patterns_in_order),
    Source("procedural", "skills", SKILL, None, skill_of, SKILLS, skills.all_of),
    Source(ANTI, "anti_patterns", PATTERN, KINDS[1], pattern_of, PATTERNS, _anti_in_order),
)
BY_NAME = {source.name: source for source in SOURCES}


def matching(
    tx: Transaction, user_id: str, sources: Iterable[Source], query: str, k: int, *, least_confidence: float = 0.0
) -> dict[str, Scored]:
    """Return the best matches of some sources with their BM25 scores, by the sources' names, in their order.

    The best are those of memdb.retrieval.experience.pool. Patterns and anti-patterns lie in one layer: where both are
    asked for, it is searched once, which spares a question of common words a quarter of its time.

    Args:
        k: how many of each at most; at least LOOKED_AT, by which a source's reach is told. The best by BM25 may be one
            more.
        least_confidence: of patterns; anti-patterns count whatever theirs is.
    """
    named = {source.name: source for source in sources}
    found: dict[str, dict[int, float]] = {}
    for layer in dict.fromkeys(source.layer for source in named.values()):
        wanted = {
            name: Kind(source.kind, least_confidence if name == "semantic" else 0.0)
            for name, source in named.items()
            if source.layer == layer
        }
        found |= best_of(tx, user_id, layer, query, wanted, max(k, LOOKED_AT))
    return {name: _made(tx, user_id, source, found[name]) for name, source in named.items()}


def _made(tx: Transaction, user_id: str, source: Source, scores: Mapping[int, float]) -> Scored:
    """Return memories with their scores, in the order of the scores given."""
    order = {number: at for at, number in enumerate(scores)}
    rows = sorted(reading.by_ids(tx, user_id, order, source.columns), key=lambda row: order[row[0]])

    def shape(record: Record, *own: Any) -> tuple[Experience, float]:
        return source.shape(record, *own), scores.get(record.id, 0.0)

    return [*reading.shaped(tx, rows, shape, source.columns)]


def form_of_answer(memory: Experience) -> dict[str, Any]:
    """Return a memory's dict as retrievals return it: of a pattern's many source_episodes the last SHOWN_SOURCES.

    A pattern may come from thousands of episodes, whose ids would cost more tokens than all that it says. How many
    there are stands in source_episode_count; the store's get() gives all.
    """
    form = memory.to_dict()
    if isinstance(memory, SemanticPattern):
        form["source_episodes"] = memory.source_episodes[-SHOWN_SOURCES:]
        form["source_episode_count"] = len(memory.source_episodes)
    return form


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
