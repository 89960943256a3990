"""Episodes into patterns: what a run of the ConsolidationPipeline of the loki document has to store (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.pattern import SemanticPattern
from memdb.retrieval.experience.clustering import anti_patterns_of, in_order, patterns_of
from memdb.retrieval.experience.linking import links_of
from memdb.retrieval.experience.merging import SAME, SAME_ANTI, Known, merged


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """What a consolidation did (loki document, "ConsolidationPipeline").

    Args:
        patterns_created: how many patterns are new.
        patterns_merged: how many that were found are known already, anti-patterns too, whether they told something new
            or not.
        anti_patterns_created: how many anti-patterns are new.
        links_created: how many links the new ones have.
        episodes_processed: how many episodes were looked at.
        duration_seconds: how long it took.
        vector_index_stale: whether vectors must be made anew; memdb keeps them in step by itself.
    """

    patterns_created: int = 0
    patterns_merged: int = 0
    anti_patterns_created: int = 0
    links_created: int = 0
    episodes_processed: int = 0
    duration_seconds: float = 0.0
    vector_index_stale: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dict of the document's keys."""
        return asdict(self)


class Consolidated(NamedTuple):
    """What a consolidation found, to be stored.

    Args:
        created: new patterns, with their links.
        changed: patterns that were known, with what is new about them.
        result: what it counts; duration_seconds is 0.
    """

    created: list[SemanticPattern]
    changed: list[SemanticPattern]
    result: ConsolidationResult


def consolidated(episodes: Iterable[EpisodeTrace], patterns: Iterable[SemanticPattern]) -> Consolidated:
    """Return what episodes teach beside what is known. Nothing that is given is changed.

    Of the same episodes a second run, with what the first one stored, creates and changes nothing. Ids are made of what
    a pattern is about, so that two that run side by side find the same.

    Args:
        episodes: in any order; what was neither success nor failure teaches nothing.
        patterns: all that are known, anti-patterns too.
    """
    run = _Run(Known(patterns))
    looked_at = in_order(episodes)
    for pattern in patterns_of(looked_at):
        run.settle(pattern, SAME)
    for pattern in anti_patterns_of(looked_at):
        run.settle(pattern, SAME_ANTI)
    links = run.link()
    created = [run.known.patterns[number] for number in run.created]
    anti = sum(pattern.is_anti_pattern for pattern in created)
    return Consolidated(
        created,
        [run.known.patterns[number] for number in sorted(run.changed - run.created.keys())],
        ConsolidationResult(
            patterns_created=len(created) - anti,
            patterns_merged=run.merged,
            anti_patterns_created=anti,
            links_created=links,
            episodes_processed=len(looked_at),
        ),
    )


class _Run:
    def __init__(self, known: Known) -> None:
        self.known = known
        self.created: dict[int, None] = {}
        self.changed: set[int] = set()
        self.merged = 0

    def settle(self, found: SemanticPattern, threshold: float) -> None:
        """Put what was found to what is known: as new, or into what it is the same as."""
        match = self.known.same_as(found, threshold)
        if match is None:
            self.created[self.known.add(found)] = None
            return
        self.merged += 1
        before = self.known.patterns[match.number]
        after = merged(before, found) if match.tells_more else before
        if after is not before:
            self.known.put(match.number, after)
            self.changed.add(match.number)

    def link(self) -> int:
        """Give what is new its links. Returns how many."""
        count = 0
        for number in self.created:
            pattern = self.known.patterns[number]
            if links := links_of(number, self.known):
                count += len(links)
                self.known.patterns[number] = pattern.model_copy(update={"links": [*pattern.links, *links]})
        return count
