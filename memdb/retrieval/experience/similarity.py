"""Experience by likeness (loki document, retrieve_by_similarity)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from memdb.layers import reading
from memdb.layers.arguments import MAX_LIMIT, check_limit, check_query
from memdb.layers.experience import found_patterns
from memdb.layers.experience.form import Experience
from memdb.layers.experience.skills import SKILLS, skill_of
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.experience.stored_episodes import EPISODES, episode_of
from memdb.layers.experience.stored_patterns import KINDS, PATTERNS, pattern_of
from memdb.layers.layer import Layer, reads
from memdb.layers.record import Place, Record
from memdb.retrieval.experience.said_once import warn_once
from memdb.retrieval.experience.sources import ANTI, count_recalled, form_of_answer
from memdb.retrieval.meaning.hybrid import HybridSearch
from memdb.retrieval.meaning.rankings import Answer, Question
from memdb.storage import fulltext
from memdb.storage.transaction import Transaction
from memdb.text.query import parse
from memdb.text.shown import shown

WITH_OTHERS = 3  # times as many are looked at where a layer holds other things, too

P = ParamSpec("P")
R = TypeVar("R")
Dicts = list[dict[str, Any]]
Named = tuple[str, Experience]  # the name of its source, and a memory


class Collection(NamedTuple):
    """What is searched.

    Args:
        layer: the layer of its records.
        shape: makes a memory of a row, with the name of its source.
        columns: of a row.
        anti_only: whether only anti-patterns belong to it.
    """

    layer: str
    shape: Callable[..., Named]
    columns: reading.Columns
    anti_only: bool = False


def _episode(found: Record, *own: Any) -> Named:
    return "episodic", episode_of(found, *own)


def _pattern(found: Record, kind: str, *own: Any) -> Named:
    return ANTI if kind == KINDS[1] else "semantic", pattern_of(found, kind, *own)


def _skill(found: Record, *own: Any) -> Named:
    return "procedural", skill_of(found, *own)


COLLECTIONS = {
    "episodic": Collection(EPISODE, _episode, EPISODES),
    "semantic": Collection(PATTERN, _pattern, PATTERNS),
    "procedural": Collection(SKILL, _skill, SKILLS),
    "anti_patterns": Collection(PATTERN, _pattern, PATTERNS, anti_only=True),
}

# What else programs call them: by what _source says, and by the names of the layers.
ALIASES = {
    **dict.fromkeys(("episode", "episodes"), "episodic"),
    **dict.fromkeys(("pattern", "patterns"), "semantic"),
    **dict.fromkeys(("skill", "skills"), "procedural"),
    "anti_pattern": "anti_patterns",
}


def by_words(tx: Transaction, user_id: str, query: str, collection: str, top_k: int) -> Dicts:
    """Return the best matches by BM25, and count them as recalled; see MemoryEngine.retrieve_by_similarity."""
    wanted = _checked(query, collection, top_k)
    if wanted is None:
        return []
    if wanted.anti_only:
        hits = found_patterns.scored(tx, user_id, query, top_k, anti=True)
        return _counted(tx, user_id, [((ANTI, memory), score) for memory, score in hits])
    scores = dict(fulltext.search(tx, parse(query), Place(wanted.layer, user_id).within(), top_k))
    return _counted(tx, user_id, reading.ranked(tx, user_id, scores, wanted.shape, wanted.columns))


async def _by_meaning(hybrid: HybridSearch, query: str, collection: str, top_k: int = 5) -> Dicts:
    wanted = _checked(query, collection, top_k)
    if wanted is None:
        return []
    k = min(top_k * WITH_OTHERS if wanted.anti_only else top_k, MAX_LIMIT)
    asked = Question(query, hybrid.scope.user_id, (wanted.layer,), None, None, 0.5, k)

    def unit(tx: Transaction, answer: Answer) -> Dicts:
        made = reading.ranked(tx, asked.user_id, dict(answer.ranking), wanted.shape, wanted.columns)
        found = [hit for hit in made if not wanted.anti_only or hit[0][0] == ANTI]
        return _counted(tx, asked.user_id, found[:top_k])

    return await hybrid._answered(asked, unit)


class by_meaning_where_live(reads[P, R]):
    """Marks the method that is `_by_meaning` on a live layer whose database has an embedder."""

    def _start(self, layer: Layer[Any], *args: Any, **kwargs: Any) -> Any:
        hybrid: HybridSearch | None = None if layer._hybrid is None else layer._hybrid()  # type: ignore[attr-defined]
        if hybrid is None or not hybrid._embeds:
            return super()._start(layer, *args, **kwargs)
        return _by_meaning(hybrid, *args, **kwargs)


def _checked(query: str, collection: str, top_k: int) -> Collection | None:
    check_query(query)
    check_limit(top_k, "top_k")
    wanted = COLLECTIONS.get(ALIASES.get(collection, collection)) if isinstance(collection, str) else None
    if wanted is None:
        warn_once(f"there is no collection {shown(collection)} of experience; there are {', '.join(COLLECTIONS)}")
    return wanted


def _counted(tx: Transaction, user_id: str, found: Sequence[tuple[Named, float]]) -> Dicts:
    # A cosine may be below 0, a recall's score may not.
    count_recalled(tx, user_id, [(name, memory, max(0.0, score)) for (name, memory), score in found])
    return [{**form_of_answer(memory), "_source": name, "_score": score} for (name, memory), score in found]
