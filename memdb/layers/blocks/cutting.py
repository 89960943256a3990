"""Texts counted in tokens (cl100k_base) and cut to a number of them: pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from memdb.text.tokens import TokenCounter

LONGEST_TOKEN = 128  # characters of the longest token of cl100k_base: a longer text has more tokens than one
LONGEST_WORD = 200  # characters within which the end of a word is looked for
NEAR_ENOUGH = 0.02  # of the tokens that fit may be left unused, so that a long text is counted a few times only

_SPACE = re.compile(r"\s")


@cache
def _counter() -> TokenCounter:
    return TokenCounter()


def load_counter() -> None:
    """Read the table of tokens, which takes 0.2 s once a process."""
    count("a")


def count(text: str) -> int:
    """Return how many tokens a text has."""
    return _counter().count(text)


def fits(text: str, size: int) -> bool:
    """Return whether a text has at most `size` tokens, without counting one that is surely too long."""
    return len(text) <= size * LONGEST_TOKEN and count(text) <= size


def beginning(text: str, size: int) -> str:
    """Return the beginning of a text that has at most `size` tokens; "" where not even a character fits.

    It ends with a whole line, or a whole word, where that keeps at least half of what fits.
    """
    if fits(text, size):
        return text
    end = _longest(len(text), size, lambda chars: text[:chars])
    space = _SPACE.search(text, end, end + LONGEST_WORD)
    if space is not None and count(text[: space.start()]) <= size:  # the rest of a word often is of the same token
        end = space.start()
    return next((kept for kept in _tidy_beginnings(text, end) if kept.strip() and count(kept) <= size), "")


def ending(text: str, size: int) -> str:
    """Return the ending of a text that has at most `size` tokens; see `beginning`."""
    if fits(text, size):
        return text
    start = len(text) - _longest(len(text), size, lambda chars: text[len(text) - chars :])
    spaces = [found.end() for found in _SPACE.finditer(text, max(start - LONGEST_WORD, 0), start)]
    if spaces and count(text[spaces[-1] :]) <= size:
        start = spaces[-1]
    return next((kept for kept in _tidy_endings(text, start) if kept.strip() and count(kept) <= size), "")


def _longest(length: int, size: int, piece: Callable[[int], str]) -> int:
    """Return how many characters a piece may have so that it has at most `size` tokens: nearly the most.

    What fits is counted, never reckoned: a part of a text may have more tokens than the whole.
    """
    low, low_tokens, high = 0, 0, min(length, size * LONGEST_TOKEN) + 1
    aim, chars, step = size * (1 - NEAR_ENOUGH / 2), min(4 * size, high - 1), 0
    while high - low > 1 and low_tokens < size * (1 - NEAR_ENOUGH):
        tokens = count(piece(chars))
        if tokens <= size:
            low, low_tokens = chars, tokens
        else:
            high = chars
        step += 1
        rate = chars / max(tokens, 1)
        # By the rate just seen; by halves now and then, for a text whose parts differ.
        guess = (low + high) // 2 if step % 3 == 0 else low + int((aim - low_tokens) * rate)
        chars = max(low + 1, min(guess, high - 1))
    return low


def _tidy_beginnings(text: str, end: int) -> Iterator[str]:
    line = text.rfind("\n", end // 2, end + 1)
    if line > 0:
        yield text[:line].rstrip()
    spaces = [found.start() for found in _SPACE.finditer(text, max(end // 2, end - LONGEST_WORD), end + 1)]
    if spaces:
        yield text[: spaces[-1]].rstrip()
    yield text[:end]


def _tidy_endings(text: str, start: int) -> Iterator[str]:
    before, half = max(start - 1, 0), (start + len(text)) // 2
    line = text.find("\n", before, half + 1)
    if line >= 0:
        yield text[line + 1 :].lstrip("\r\n")
    space = _SPACE.search(text, before, min(half, start + LONGEST_WORD))
    if space is not None:
        yield text[space.end() :].lstrip()
    yield text[start:]
