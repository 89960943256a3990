"""Whether two patterns are the same, and what becomes of them then (loki document, ConsolidationPipeline; pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Any, NamedTuple

from memdb.layers.experience.fields import MAX_ENTRIES
from memdb.layers.experience.pattern import SemanticPattern
from memdb.retrieval.experience.clustering import LAST_DONE
from memdb.text.scripts import fold
from memdb.text.similarity import jaccard, telling_words

TEXT, CATEGORY, CONDITIONS = 0.5, 0.3, 0.2  # what each counts
SAME = 0.8  # from which similarity on two patterns are one
SAME_ANTI = 0.6  # and two anti-patterns
MORE_SURE = 0.05  # what new episodes add to a confidence
SUREST = 0.99
MAX_COMPARED = 100  # patterns that one is compared with: those that share its rarest words

# What every text of clustering begins with: it would make all of them alike, and is no topic's own.
LEAD = re.compile(r"(?:\w+ tasks (?:about|such as:)|Avoid:) ")


class Features(NamedTuple):
    """What of a pattern is compared.

    Args:
        words: those of what it says.
        category: its own.
        conditions: its own, folded.
        right: the words of its correct approach.
        wrong: the words of its incorrect approach; none where that only says which tools were used last.
    """

    words: frozenset[str]
    category: str
    conditions: frozenset[str]
    right: frozenset[str]
    wrong: frozenset[str]


def features(pattern: SemanticPattern) -> Features:
    """Return what of a pattern is compared."""
    lead = LEAD.match(pattern.pattern)
    wrong = pattern.incorrect_approach
    return Features(
        words=telling_words(pattern.pattern[lead.end() :] if lead else pattern.pattern),
        category=pattern.category,
        conditions=frozenset(map(fold, pattern.conditions)),
        right=telling_words(pattern.correct_approach),
        wrong=frozenset() if wrong.startswith(LAST_DONE) else telling_words(wrong),
    )


def similarity(one: SemanticPattern | Features, other: SemanticPattern | Features) -> float:
    """Return how alike two patterns are (loki document), 0 to 1.

    0.5 * what their words share + 0.3 if they have one category + 0.2 * what their conditions share, each by what they
    have together. Conditions share nothing where one pattern has none.
    """
    a, b = (each if isinstance(each, Features) else features(each) for each in (one, other))
    alike = TEXT * jaccard(a.words, b.words) + CATEGORY * (a.category == b.category)
    return round(alike + CONDITIONS * jaccard(a.conditions, b.conditions), 9)


def merged(known: SemanticPattern, found: SemanticPattern) -> SemanticPattern:
    """Return a known pattern with what a found one, which is the same, adds to it.

    New episodes make it surer by 0.05, up to 0.99. What it says stays; its conditions are joined, and approaches are
    taken where it has none.

    Returns:
        A new pattern under the known one's id, or `known` itself where nothing is new.
    """
    sources = set(known.source_episodes)
    fresh = [id for id in found.source_episodes if id not in sources][: MAX_ENTRIES - len(known.source_episodes)]
    conditions = {fold(condition) for condition in known.conditions}
    others = [condition for condition in found.conditions if fold(condition) not in conditions]
    news: dict[str, Any] = {}
    if fresh:
        news["source_episodes"] = known.source_episodes + fresh
        news["confidence"] = max(known.confidence, round(min(known.confidence + MORE_SURE, SUREST), 6))
        news["importance"] = max(known.importance, found.importance)
    if others:
        news["conditions"] = [*known.conditions, *others][:MAX_ENTRIES]
    for field in ("correct_approach", "incorrect_approach"):
        if not getattr(known, field) and getattr(found, field):
            news[field] = getattr(found, field)
    return known.model_copy(update=news) if news else known


class Match(NamedTuple):
    """A known pattern that a found one is.

    Args:
        number: its number among those that are known.
        tells_more: whether the found one may have something to add.
    """

    number: int
    tells_more: bool


class Known:
    """The patterns that are known, by id, by words and by episodes, so that none need be compared with all.

    Args:
        patterns: in any order; they are numbered in the order of their ids.
    """

    def __init__(self, patterns: Iterable[SemanticPattern]) -> None:
        self.patterns: list[SemanticPattern] = []
        self.features: list[Features] = []
        self._sources: list[set[str]] = []
        self._by_id: dict[str, int] = {}
        self._by_word: dict[tuple[str, str], list[int]] = {}  # (category, word); category "" is all of them
        self._by_source: dict[str, list[int]] = {}
        for pattern in sorted(patterns, key=lambda one: one.id):
            self.add(pattern)

    def add(self, pattern: SemanticPattern) -> int:
        """Take a pattern in. Returns its number."""
        number = len(self.patterns)
        self.patterns.append(pattern)
        self.features.append(features(pattern))
        self._sources.append(set())
        self._by_id.setdefault(pattern.id, number)
        for word in self.features[number].words:
            self._by_word.setdefault((pattern.category, word), []).append(number)
            self._by_word.setdefault(("", word), []).append(number)
        self._note_sources(number)
        return number

    def put(self, number: int, pattern: SemanticPattern) -> None:
        """Put what was merged in the place of what was known; words and category are the same."""
        self.patterns[number] = pattern
        self.features[number] = features(pattern)
        self._note_sources(number)

    def same_as(self, found: SemanticPattern, threshold: float) -> Match | None:
        """Return the known pattern that a found one is, or None.

        That is the one with its id; or one that has all its episodes and conditions, since it was merged into that
        before; or else the most similar one of its category, if it is similar enough, of several the first by id.

        Args:
            found: a pattern, perhaps known.
            threshold: from which similarity on two are the same.
        """
        if (number := self._by_id.get(found.id)) is not None:
            return Match(number, True)
        sought = features(found)
        if (number := self._holding(found, sought)) is not None:
            return Match(number, False)
        alike = [(-similarity(sought, self.features[number]), number) for number in self.near(sought, found.category)]
        best, number = min(alike, default=(0.0, 0))
        return Match(number, True) if alike and -best >= threshold else None

    def near(self, sought: Features, category: str = "") -> list[int]:
        """Return the numbers of the patterns that share words, those with rare ones first, at most MAX_COMPARED.

        Args:
            sought: what is looked for.
            category: only patterns of this one; "" for all.
        """
        lists = [numbers for word in sought.words if (numbers := self._by_word.get((category, word)))]
        lists.sort(key=lambda numbers: (len(numbers), numbers))
        return list(dict.fromkeys(_first(lists, MAX_COMPARED)))

    def sharing(self, found: SemanticPattern) -> dict[int, int]:
        """Return the numbers of the patterns that some of the same episodes taught, with how many those are.

        Those that share most, at most MAX_COMPARED: one episode may have taught thousands.
        """
        shared: dict[int, int] = {}
        for id in set(found.source_episodes):
            for number in self._by_source.get(id, ())[:MAX_COMPARED]:
                shared[number] = shared.get(number, 0) + 1
        most = nlargest(MAX_COMPARED, sorted(shared), key=lambda number: shared[number])
        return {number: shared[number] for number in most}

    def _holding(self, found: SemanticPattern, sought: Features) -> int | None:
        """Return the number of a pattern of the same category that has all episodes and conditions of a found one."""
        sources = set(found.source_episodes)
        for number in self._by_source.get(found.source_episodes[0], ()) if sources else ():
            known = self.features[number]
            fits = known.category == sought.category and sought.conditions <= known.conditions
            if fits and sources <= self._sources[number]:
                return number
        return None

    def _note_sources(self, number: int) -> None:
        for id in self.patterns[number].source_episodes:
            if id not in self._sources[number]:
                self._sources[number].add(id)
                self._by_source.setdefault(id, []).append(number)


def _first(lists: list[list[int]], most: int) -> Iterator[int]:
    left = most
    for numbers in lists:
        yield from numbers[:left]
        left -= len(numbers)
        if left <= 0:
            return
