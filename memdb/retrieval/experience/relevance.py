"""How memories of several sources are put into one order (decisions, "retrieve_relevant order"; pure).

A source is a shelf: episodes, patterns, skills, anti-patterns. Within each, BM25 against the goal gives the order. To
be put together, a source's scores are divided by its best, which leaves 1 for the best of every source, however little
it has to do with the goal. So they are multiplied by the source's reach: the share of the goal's words that its best
matches hold. Such relevance counts by the square root of what the task gives the source: by the weight itself (0.5
beside 0.15) a pattern that shares two of six words with the goal would come before the very episode that is asked for;
by the root (0.71 beside 0.39) it must hold more than half of what the episode holds.

Two things go before the score. An answer of near-duplicates helps nobody: of episodes whose goals hold the same words
the best MOST_ALIKE keep their places, and the others come after everything else that matches. And a highly relevant
item of a light source can win: a source whose best match is at least HALF as relevant as the best of all has at least
one of the first PLACES_FOR_ALL places, however many of another source have higher scores; so scores need not fall from
one place to the next. Both make one order, so that a shorter answer is the beginning of a longer one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.form import Experience
from memdb.text.overlap import Overlap
from memdb.text.scripts import fold, tokens

LOOKED_CHARS = 8_000  # of what a memory says beside its title
LOOKED_AT = 3  # best matches of a source, whose reach is looked at
LEAST_REACH = 0.05  # of a source that matches at all: BM25 knows forms of a word that Overlap does not
PLAIN, BY_IMPORTANCE = 0.7, 0.3  # what an importance of 0 leaves, and what one of 1 adds
PLACES = 9  # to which scores are compared
SHARE_PLACES = 6  # and what they are made of within a source: less precise, so that it stays the same order
MOST_ALIKE = 2  # episodes whose goals hold the same words, before all that says something else
HALF = 0.5  # of the best relevance: from there on a source is sure of a place
PLACES_FOR_ALL = 3  # the first places; no kind of task has more sources

_TITLES = ("goal", "pattern", "name")
_SUMMARIES = ("description",)
_LEFT_OUT = ("id", "agent", "outcome", "source_episodes", "links", "timestamp", "last_used", "last_accessed")
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class Matched(NamedTuple):
    """What a source has that matches the goal.

    Args:
        source: its name: episodic, semantic, procedural or anti_pattern.
        weight: what it counts for the task, above 0.
        memories: each with its BM25 score, best first; the best by BM25 is among them.
    """

    source: str
    weight: float
    memories: Sequence[tuple[Experience, float]]


class Ranked(NamedTuple):
    """A memory in the one order.

    Args:
        source: where it comes from.
        weight: what its source counts for the task.
        memory: the memory.
        score: what it is ordered by, from 0 to 1; 0 where it does not match the goal.
        bm25: its BM25 score.
        relevance: how relevant it is to the goal, above 0 to 1; 0 where it does not match.
        reach: how much of the goal the best matches of its source hold.
    """

    source: str
    weight: float
    memory: Experience
    score: float = 0.0
    bm25: float = 0.0
    relevance: float = 0.0
    reach: float = 0.0


def ranked(goal: str, found: Iterable[Matched]) -> list[Ranked]:
    """Return what matches a goal, best first: by relevance * sqrt(weight) * (0.7 + 0.3 * importance).

    Of equal scores the newer comes first; one without a time comes last, and then the sources' own order decides.

    Args:
        goal: what the sources were searched for.
        found: the sources.
    """
    overlap = Overlap(goal)
    made = [one for matched in found for one in _of_source(overlap, matched)]
    return sorted(made, key=lambda one: (-round(one.score, PLACES), -_moment(one.memory).timestamp()))


def importance_factor(memory: Experience) -> float:
    """Return what a memory's importance multiplies its relevance with: 0.7 to 1."""
    return _factor(_importance(memory))


def share(bm25: float, best: float, importance: float) -> float:
    """Return what a match counts within its source, 0 to 1: by this the pool is ranked before memories are made.

    Args:
        bm25: its score.
        best: the best score of the source, above 0.
        importance: its own.
    """
    return round(bm25 / best * _factor(importance), SHARE_PLACES)


def said_again(goals: Iterable[str]) -> list[bool]:
    """Return of each goal whether MOST_ALIKE before it hold the same words; "" says nothing and is never said again."""
    counts: Counter[str] = Counter()
    again = []
    for goal in goals:
        said = " ".join(tokens(fold(goal)))
        counts[said] += 1
        again.append(bool(said) and counts[said] > MOST_ALIKE)
    return again


def spread(found: Sequence[Ranked]) -> list[Ranked]:
    """Return what was ranked in the order in which it is returned: of near-duplicates few, of every source something.

    Args:
        found: what `ranked` returned.
    """
    again = said_again([one.memory.goal if isinstance(one.memory, EpisodeTrace) else "" for one in found])
    others = [one for one, is_again in zip(found, again, strict=True) if not is_again]
    late = [one for one, is_again in zip(found, again, strict=True) if is_again]
    enough = HALF * max((one.relevance for one in found), default=0.0)
    relevant = {one.source for one in found if one.relevance >= enough}
    first_of = {one.source: number for number, one in reversed([*enumerate(others)]) if one.source in relevant}
    sure = sorted(first_of.values())[:PLACES_FOR_ALL]
    more = [number for number in range(len(others)) if number not in sure][: PLACES_FOR_ALL - len(sure)]
    first = sorted([*sure, *more])
    return [*(others[n] for n in first), *(one for n, one in enumerate(others) if n not in first), *late]


def _factor(importance: float) -> float:
    return PLAIN + BY_IMPORTANCE * min(1.0, max(0.0, importance))


def _of_source(overlap: Overlap, matched: Matched) -> Iterator[Ranked]:
    best = max((score for _, score in matched.memories), default=0.0)
    if best <= 0 or matched.weight <= 0:
        return
    reach = max(LEAST_REACH, *(_held(overlap, memory) for memory, _ in matched.memories[:LOOKED_AT]))
    for memory, bm25 in matched.memories:
        relevance = reach * bm25 / best
        score = reach * math.sqrt(matched.weight) * share(bm25, best, _importance(memory))
        yield Ranked(matched.source, matched.weight, memory, score, bm25, relevance, reach)


def _importance(memory: Experience) -> float:
    importance: float = getattr(memory, "importance", 0.5)
    return importance


def _held(overlap: Overlap, memory: Experience) -> float:
    """Return how much of the goal a memory holds, 0 to 1."""
    title = next((str(getattr(memory, name)) for name in _TITLES if hasattr(memory, name)), "")
    summary = next((str(getattr(memory, name)) for name in _SUMMARIES if hasattr(memory, name)), "")
    fields = {name: getattr(memory, name) for name in type(memory).model_fields}
    rest = {name: value for name, value in fields.items() if name not in (*_TITLES, *_SUMMARIES, *_LEFT_OUT)}
    return overlap.score(title, summary, _beginning(_texts(rest)))


def _beginning(texts: Iterable[str]) -> str:
    parts, left = [], LOOKED_CHARS
    for text in texts:
        parts.append(text[:left])
        left -= len(text)
        if left <= 0:
            break
    return "\n".join(parts)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Experience):
        yield from _texts({name: getattr(value, name) for name in type(value).model_fields})
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _moment(memory: Experience) -> datetime:
    moment = getattr(memory, "timestamp", None) or getattr(memory, "last_used", None)
    return moment if isinstance(moment, datetime) else _BEFORE_ALL
