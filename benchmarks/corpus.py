"""The searched file: short pages of invented words, one user who owns most of them, and a hundred small users."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.texts import Words, pseudo_words
from memdb import Database, KnowledgePage

VOCABULARY = 200_000
EXPONENT = 1.07
BIG_USER = "owner"
SMALL_USERS = 100
SMALL_SHARE = 0.0015  # of the pages, each of the small users
PER_CALL = 5_000


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of a corpus by the share of its pages that hold them.

    Args:
        words: the words, the rarest first.
        shares: their shares, ascending.
    """

    words: list[str]
    shares: list[float]

    def between(self, least: float, most: float) -> list[str]:
        """Return the words that from `least` up to `most` of the pages hold."""
        return self.words[bisect_left(self.shares, least) : bisect_left(self.shares, most)]


async def fill(db: Database, pages: int) -> Vocabulary:
    """Store so many pages, each of about 4 words of title and 22 of body (Zipf over 200,000 words)."""
    counts: Counter[str] = Counter()
    owners: dict[str, list[KnowledgePage]] = {}
    for number, (owner, title, body) in enumerate(_pages(pages)):
        counts.update({*title, *body})
        page = KnowledgePage(id=f"p{number}", title=" ".join(title), content=" ".join(body))
        waiting = owners.setdefault(owner, [])
        waiting.append(page)
        if len(waiting) == PER_CALL:
            await db.memory(owner).pages.add_pages(owners.pop(owner))
    for owner, waiting in owners.items():
        await db.memory(owner).pages.add_pages(waiting)
    by_share = sorted(counts, key=lambda word: (counts[word], word))
    return Vocabulary(by_share, [counts[word] / pages for word in by_share])


def _pages(count: int) -> Iterator[tuple[str, list[str], list[str]]]:
    drawn = Words(pseudo_words(VOCABULARY), EXPONENT, seed=11)
    owner = random.Random(12)
    for _ in range(count):
        small = int(owner.random() / SMALL_SHARE)
        yield (
            small_user(small) if small < SMALL_USERS else BIG_USER,
            drawn.draw_between(2, 6),
            drawn.draw_between(12, 32),
        )


def small_user(number: int) -> str:
    """Return the name of a small user."""
    return f"small-{number:02}"


def mid_words(words: Vocabulary, chosen: random.Random) -> list[str]:
    """Return a query of 5 words that 0.2 to 1 % of the pages hold."""
    return chosen.sample(words.between(0.002, 0.01), 5)


def question(words: Vocabulary, chosen: random.Random) -> list[str]:
    """Return a query like a question: 1 word of over half the pages, 4 of 10 to 50 %, 3 of 0.2 to 1 %, 2 rarer."""
    bands = ((0.5, 1.01, 1), (0.1, 0.5, 4), (0.002, 0.01, 3), (0.0002, 0.002, 2))
    asked = [word for least, most, count in bands for word in chosen.sample(words.between(least, most), count)]
    chosen.shuffle(asked)
    return asked
