"""Passages to search: a hundred thousand short ones, made of the sentences of retrieval sets, and real questions."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import folders, load

COUNT = 100_000
MOST_SENTENCES = 3  # in a passage
LONGEST = 400  # characters of a sentence: longer stretches without a full stop are cut

_END = re.compile(r"(?<=[.!?])\s+|\n{2,}")


@dataclass(frozen=True, slots=True)
class Passages:
    """What is searched, and what is asked.

    Args:
        texts: the passages, the same at every run.
        questions: the questions of the sets, shuffled.
    """

    texts: list[str]
    questions: list[str]


def made_of(given: Iterable[Path], count: int = COUNT) -> Passages:
    """Make passages of the sets in some folders.

    Each document is cut into passages of 1 to 3 of its sentences; where that gives fewer than `count`, sentences of all
    sets are put together at random, so words are as common among them as in the sets.
    """
    chosen = random.Random(5)
    cut: list[list[str]] = []
    questions: dict[str, None] = {}
    for folder in folders(given):
        found = load(folder)
        cut += [list(_sentences(text)) for text in dict.fromkeys(document.text for document in found.documents)]
        questions |= dict.fromkeys(query.text for query in found.queries)
    texts = [" ".join(part) for document in cut for part in _parts(document, chosen)]
    sentences = [sentence for document in cut for sentence in document]
    while len(texts) < count:
        texts.append(" ".join(chosen.choices(sentences, k=chosen.randint(1, MOST_SENTENCES))))
    chosen.shuffle(texts)
    asked = list(questions)
    chosen.shuffle(asked)
    return Passages(texts[:count], asked)


def _sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        for at in range(0, len(sentence), LONGEST):
            if part := sentence[at : at + LONGEST].strip():
                yield part


def _parts(sentences: list[str], chosen: random.Random) -> Iterator[list[str]]:
    at = 0
    while at < len(sentences):
        size = chosen.randint(1, MOST_SENTENCES)
        yield sentences[at : at + size]
        at += size
