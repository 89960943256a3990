"""What episodes of one kind of work were about: those whose goals share no words are no pattern (pure).

The loki document clusters by the kind of work alone, which joins every bug that was ever fixed. So within a kind each
episode goes to the first goal that it is like. The cost grows with the number of different goals, not with its square.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from memdb.layers.experience.episode import EpisodeTrace
from memdb.text.phrases import Phrases
from memdb.text.similarity import telling_words

SHARED = 0.5  # of the shorter goal's words: from there on two are about the same
MAX_COMPARED = 50  # goals that one is compared with: those that share its rarest words
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|ed|es|e|(?<!s)s)$")  # lines, line: lin


def cluster_by_subject(episodes: Sequence[EpisodeTrace], boilerplate: Iterable[str]) -> list[list[EpisodeTrace]]:
    """Return episodes by what they were about, in the order of the first of each.

    Two are about the same when their goals share at least half of the words of the one that has fewer: words without
    their English endings, stop words, numbers and boilerplate. Goals that have none of their own are about the same.

    Args:
        episodes: of one kind of work, in the order of time. Later ones change nothing about where earlier ones belong.
        boilerplate: words and phrases that all episodes of the kind have.
    """
    subjects = _Subjects(boilerplate)
    clusters: dict[int, list[EpisodeTrace]] = {}
    for episode in episodes:
        clusters.setdefault(subjects.number_of(episode.goal), []).append(episode)
    return list(clusters.values())


class _Subjects:
    """The goals that clusters began with, by their words."""

    def __init__(self, boilerplate: Iterable[str]) -> None:
        self._boilerplate = Phrases(boilerplate)
        self._stems: dict[str, str] = {}  # of words; "" for one that says nothing
        self._numbers: dict[frozenset[str], int] = {}
        self._first: list[frozenset[str]] = []
        self._with_word: dict[str, list[int]] = {}

    def number_of(self, goal: str) -> int:
        """Return the number of the cluster that a goal belongs to; it begins one where it is like none."""
        words = frozenset(filter(None, map(self._stem, telling_words(goal))))
        if words not in self._numbers:
            self._numbers[words] = self._begin(words) if (alike := self._alike(words)) is None else alike
        return self._numbers[words]

    def _begin(self, words: frozenset[str]) -> int:
        number = len(self._first)
        self._first.append(words)
        for word in words:
            self._with_word.setdefault(word, []).append(number)
        return number

    def _alike(self, words: frozenset[str]) -> int | None:
        """Return the cluster whose first goal shares most; of several the first."""
        best, found = 0.0, None
        for number in dict.fromkeys(islice(self._near(words), MAX_COMPARED)):
            first = self._first[number]
            shared = len(words & first)
            share = shared / min(len(words), len(first))
            # The rest decides between two that hold all of it.
            alike = share + shared / len(words | first)
            if share >= SHARED and (alike > best or (alike == best and found is not None and number < found)):
                best, found = alike, number
        return found

    def _near(self, words: frozenset[str]) -> Iterator[int]:
        known = [word for word in words if word in self._with_word]
        for word in sorted(known, key=lambda word: (len(self._with_word[word]), word)):
            yield from self._with_word[word]

    def _stem(self, word: str) -> str:
        if word not in self._stems:
            says_nothing = len(word) < 2 or word.isdigit() or self._boilerplate.among([word])
            self._stems[word] = "" if says_nothing else _ENDING.sub("", word)
        return self._stems[word]
