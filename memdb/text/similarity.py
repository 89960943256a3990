"""How alike two short texts are, by the words that they share."""

from __future__ import annotations

from collections.abc import Set

from memdb.text.scripts import cut, fold, tokens
from memdb.text.stopwords import STOP_WORDS

LOOKED_CHARS = 20_000


def telling_words(text: str) -> frozenset[str]:
    """Return the words of a text as the index cuts them, without stop words where anything else remains."""
    words = frozenset(tokens(cut(fold(text[:LOOKED_CHARS]))))
    return words - STOP_WORDS or words


def jaccard(one: Set[str], other: Set[str]) -> float:
    """Return what two sets share, by what they hold together: 0 to 1; 0 where one is empty."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0
