"""Texts to store and search: the same at every run, with words as unevenly spread as in real texts."""

from __future__ import annotations

import itertools
import random
from functools import cache

_COMMON = """
    the of and to a in is that it was for on with as he be at by had his not are but from or have an they which one
    you were her all she there would their we him been has when who will more no if out so said what up its about
    into than them can only other new some could time these two may then do first any my now such like our over man
    me even most made after also did many before must through back years where much your way well down should
    because each just those people how too little state good very make world still own see men work long get here
    between both life being under never day same another know while last might us great old year off come since
    against go came right used take three tea coffee meeting project budget weekend train holiday report review
    deadline customer
""".split()  # noqa: SIM905 - commonest first
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_ENDINGS = ("", "n", "r", "st", "ing", "ed", "er", "ment", "tion", "s")


class Words:
    """Words drawn by Zipf's law: the word of rank r in proportion to 1 / r ** exponent.

    Args:
        words: the words, commonest first.
        exponent: how uneven.
        seed: which sequence.
    """

    def __init__(self, words: list[str], exponent: float, seed: int) -> None:
        self.words = words
        self._cumulative = list(itertools.accumulate((rank + 1) ** -exponent for rank in range(len(words))))
        self._random = random.Random(seed)

    def draw(self, count: int) -> list[str]:
        """Return `count` words."""
        return self._random.choices(self.words, cum_weights=self._cumulative, k=count)

    def draw_between(self, least: int, most: int) -> list[str]:
        """Return from `least` to `most` words."""
        return self.draw(self._random.randint(least, most))


def sentences(count: int, *, seed: int) -> list[str]:
    """Return English-like sentences of 20 to 30 words over 20,000 words: common English ones, then invented ones."""
    drawn = Words(_vocabulary(20_000), 1.0, seed)
    return [" ".join(drawn.draw_between(20, 30)).capitalize() + "." for _ in range(count)]


@cache
def _vocabulary(size: int) -> list[str]:
    made = random.Random(1)
    words = dict.fromkeys(_COMMON)
    while len(words) < size:
        words["".join(made.choices(_SYLLABLES, k=made.randint(1, 3))) + made.choice(_ENDINGS)] = None
    return list(words)


def pseudo_words(size: int) -> list[str]:
    """Return distinct words that stemming leaves alone and that no list of stop words holds, the short ones first."""
    last = [syllable for syllable in _SYLLABLES if syllable[-1] in "aou"]
    shuffled = random.Random(1)
    words: list[str] = []
    for syllables in (2, 3):
        made = ["".join(parts) for parts in itertools.product(*[_SYLLABLES] * (syllables - 1), last)]
        shuffled.shuffle(made)
        words += made
    return words[:size]
