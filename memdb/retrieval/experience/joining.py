"""What becomes of one user's patterns among another's: new ones, the same ones, merged ones (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from memdb.layers.experience.fields import MAX_ENTRIES
from memdb.layers.experience.parts import Link
from memdb.layers.experience.pattern import SemanticPattern
from memdb.retrieval.experience.copying import said, suffixed
from memdb.retrieval.experience.merging import (
    CATEGORY,
    CONDITIONS,
    SAME,
    SAME_ANTI,
    TEXT,
    Features,
    Known,
    features,
    merged,
    similarity,
)
from memdb.text.similarity import jaccard

COPIED, THERE, MERGED, RENAMED = "copied", "there", "merged", "renamed"


class Held(NamedTuple):
    """A pattern as a user has it.

    Args:
        number: its record's.
        pattern: what it says.
        kind: "pattern" or "anti_pattern".
    """

    number: int
    pattern: SemanticPattern
    kind: str


class Joined(NamedTuple):
    """What becomes of a pattern.

    Args:
        id: its own.
        outcome: COPIED, THERE, MERGED or RENAMED.
        number: of the record to be copied as it stands; None for none.
        put: what is to be stored; None for nothing.
        kind: of what is stored.
    """

    id: str
    outcome: str
    number: int | None
    put: SemanticPattern | None
    kind: str


def joined(
    mine: Iterable[Held],
    theirs: Iterable[Held],
    renamed: Mapping[str, str],
    *,
    skills: Mapping[str, str] = MappingProxyType({}),
    deduplicate: bool,
) -> list[Joined]:
    """Return what becomes of each pattern of mine among theirs. Of the same patterns a second time, nothing new.

    Args:
        mine: the patterns to be taken over.
        theirs: those that are there.
        renamed: ids of episodes that got others.
        skills: ids of skills that did, which links may point at; an episode of the same id goes before.
        deduplicate: whether a pattern that is similar to one of theirs is merged into that (merging.merged). Patterns
            of mine are not merged with one another.
    """
    run = _Run(theirs)
    settled = [(held, run.settle(_sourced(held.pattern, renamed), held.kind, deduplicate)) for held in mine]
    ids = {**skills, **renamed, **{held.pattern.id: id for held, (id, _) in settled}}
    return [run.finish(held, id, outcome, renamed, ids) for held, (id, outcome) in settled]


def _sourced(pattern: SemanticPattern, renamed: Mapping[str, str]) -> SemanticPattern:
    """Return a pattern whose episodes have the ids that they got."""
    if renamed.keys().isdisjoint(pattern.source_episodes):
        return pattern
    return pattern.model_copy(update={"source_episodes": [renamed.get(id, id) for id in pattern.source_episodes]})


class _Run:
    def __init__(self, theirs: Iterable[Held]) -> None:
        self._theirs = {held.pattern.id: held for held in theirs}
        self._now = {id: held.pattern for id, held in self._theirs.items()}
        self._known = Known(self._now.values())

    def settle(self, found: SemanticPattern, kind: str, deduplicate: bool) -> tuple[str, str]:
        """Return the id under which a pattern stands among theirs, and what becomes of it."""
        taken = self._theirs.get(found.id)
        if taken is not None and self._is_same(taken, found, kind):
            return found.id, THERE
        id = found.id if taken is None else suffixed(found.id, found, "links")
        if id in self._theirs:
            return id, THERE
        if deduplicate and (number := self._most_alike(found, kind)) is not None:
            known = self._known.patterns[number]
            self._known.put(number, merged(known, found))
            self._now[known.id] = self._known.patterns[number]
            return known.id, MERGED
        self._now[id] = found.model_copy(update={"id": id})
        return id, COPIED if taken is None else RENAMED

    def _is_same(self, taken: Held, found: SemanticPattern, kind: str) -> bool:
        return taken.kind == kind and said(taken.pattern, "links") == said(found, "links")

    def _most_alike(self, found: SemanticPattern, kind: str) -> int | None:
        """Return the number of the pattern of the same kind that is most alike, if it is alike enough."""
        sought = features(found)
        near = [
            number
            for number in self._known.near(sought, found.category)
            if self._theirs[self._known.patterns[number].id].kind == kind
        ]
        least, number = min(((-self._alike(sought, found, number), number) for number in near), default=(0.0, -1))
        return number if near and -least >= (SAME_ANTI if kind == "anti_pattern" else SAME) else None

    def _alike(self, sought: Features, found: SemanticPattern, number: int) -> float:
        """Return how alike a pattern is to one of theirs, into which it may have been merged before."""
        known, sources = self._known.features[number], set(self._known.patterns[number].source_episodes)
        # Conditions that others have brought since must not make it a new one.
        merged_before = found.source_episodes and sources.issuperset(found.source_episodes)
        if merged_before and sought.conditions and sought.conditions <= known.conditions:
            return round(TEXT * jaccard(sought.words, known.words) + CATEGORY + CONDITIONS, 9)
        return similarity(sought, known)

    def finish(self, held: Held, id: str, outcome: str, renamed: Mapping[str, str], ids: Mapping[str, str]) -> Joined:
        """Return what is to be done for a pattern, whose links follow what got another id."""
        links = [link.model_copy(update={"to_id": ids.get(link.to_id, link.to_id)}) for link in held.pattern.links]
        if (
            outcome == COPIED
            and links == held.pattern.links
            and renamed.keys().isdisjoint(held.pattern.source_episodes)
        ):
            return Joined(held.pattern.id, outcome, held.number, None, held.kind)
        there = self._theirs.get(id)
        now = self._now[id]
        if there is None:
            return Joined(held.pattern.id, outcome, None, now.model_copy(update={"links": links}), held.kind)
        told = {(link.to_id, link.relation) for link in now.links}
        more = [link for link in links if (link.to_id, link.relation) not in told and link.to_id != id]
        now = self._now[id] = _linked(now, more)
        return Joined(held.pattern.id, outcome, None, None if now is there.pattern else now, there.kind)


def _linked(pattern: SemanticPattern, more: list[Link]) -> SemanticPattern:
    more = more[: MAX_ENTRIES - len(pattern.links)]
    return pattern.model_copy(update={"links": [*pattern.links, *more]}) if more else pattern
