"""Texts into a budget of tokens: counted no further than need be, cut where a reader would pause, kept within bounds.

Pure functions. A `count` is what says how many tokens a text costs, such as TokenCounter.count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from memdb.text.check import is_valid
from memdb.text.scripts import fold

Count = Callable[[str], int]

MORE = "…"  # stands where a text goes on
CHARS_PER_TOKEN = 8  # a text of more has been cut or is hardly text: few words of any script cost less
STRETCH_CHARS = 4_000
PARTS = 4  # of a stretch: it begins with any of them
SCANNED_CHARS = 100_000  # of a text that are searched for its best stretch
MAX_WORDS = 32  # of a query that are looked for in it
_LABEL_CHARS = 120  # of a line that are compared with a label
_ROUNDS, _GUESSES = 14, 5
_ENOUGH = 0.95  # of a budget: a cut that fills it so far is not bettered
_LATE = 0.8  # a cut goes back to a pause no further than this

_PAUSES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s|(?<=[。！？।])"),
    re.compile(r"\s"),
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.M)


def within(text: str, limit: int, count: Count) -> int | None:
    """Return what a text costs, or None where that is more than `limit`; far beyond it, nothing is counted."""
    size = CHARS_PER_TOKEN * max(limit, 8)
    while size < len(text):
        if count(text[:size]) > limit:
            return None
        size *= 4
    tokens = count(text)
    return tokens if tokens <= limit else None


def cut(text: str, limit: int, count: Count) -> str:
    """Return the beginning of a text that costs at most `limit` tokens, with MORE at its end; the text if it fits.

    It ends with a paragraph, a line, a sentence or a word if one ends near, and a fence that is open there is closed.

    Returns:
        "" when nothing but MORE would fit.
    """
    if within(text, limit, count) is not None:
        return text
    low, high = 0, min(len(text) - 1, CHARS_PER_TOKEN * max(limit, 0))
    best, guess = "", high // 2
    for tried in range(_ROUNDS):
        if not low < guess <= high:
            guess = (low + high + 1) // 2
        piece = _beginning(text, guess)
        tokens = count(piece) if piece else 0
        if tokens > limit:
            high = guess - 1
        else:
            low = guess
            best = max(best, piece, key=len)
            if tokens >= _ENOUGH * limit:
                break
        if low >= high:
            break
        guess = int(guess * limit / max(tokens, 1) * 0.98) if tried < _GUESSES else 0
    return best


def _beginning(text: str, size: int) -> str:
    """Return about `size` characters of a text's beginning, as `cut` does."""
    end, least = size, int(_LATE * size)
    for pause in _PAUSES:
        places = [match.start() for match in pause.finditer(text, least, size)]
        if places:
            end = places[-1]
            break
    else:
        while end > least and unicodedata.category(text[end])[0] == "M":  # an accent stays with its letter
            end -= 1
    piece = text[:end].rstrip()
    return closed(piece + MORE) if piece else ""


def closed(text: str) -> str:
    """Return a text with the fence closed that it leaves open: what follows would read as its code."""
    opened = ""
    for match in _FENCE.finditer(text):
        marks, rest = match.groups()
        if not opened:
            opened = "" if "`" in rest and marks[0] == "`" else marks
        elif marks.startswith(opened) and not rest.strip():  # "```…" is still code to a reader
            opened = ""
    return f"{text}\n{opened}" if opened else text


def contained(text: str, labels: tuple[str, ...]) -> str:
    """Return a stored text as it may stand in a section: no line of it reads as the label of another.

    A line that does is quoted ("> Working memory:"), whatever its letter case, marks of Markdown or spaces. Ends of
    lines become "\\n"; NUL becomes a space and a lone surrogate "?", which no API takes.

    Args:
        labels: of all sections.
    """
    if not is_valid(text):
        text = text.replace("\x00", " ").encode("utf-8", "replace").decode()
    label = _label(labels)
    lines = [f"> {line}" if label.match(_plain(line[:_LABEL_CHARS])) else line for line in text.splitlines()]
    return "\n".join(lines)


@lru_cache(maxsize=16)
def _label(labels: tuple[str, ...]) -> re.Pattern[str]:
    forms = (r"[\W_]+".join(re.escape(word) for word in re.findall(r"[^\W_]+", label.casefold())) for label in labels)
    return re.compile(rf"[\W_]*(?:{'|'.join(forms) or '(?!)'})[^\S:]*[\W_]*?(?::|$)")


def _plain(line: str) -> str:
    if line.isascii():
        return line.casefold()
    folded = unicodedata.normalize("NFKC", line).casefold()
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


def stretch(text: str, words: Sequence[str], size: int = STRETCH_CHARS) -> str:
    """Return the stretch of a long text that holds most different words, or its beginning; a short one as it is.

    Args:
        words: in the form of memdb.text.scripts.fold; the end of a long one may differ.
        size: how many characters at most.

    Returns:
        Whole paragraphs or lines where there are any; MORE at an end where the text goes on.
    """
    if len(text) <= size:
        return text
    stems = [word[: max(4, len(word) - 3)] for word in dict.fromkeys(words)][:MAX_WORDS]
    step = size // PARTS
    parts = [fold(text[at : at + step]) for at in range(0, min(len(text), SCANNED_CHARS), step)]
    windows = ["".join(parts[at : at + PARTS]) for at in range(max(1, len(parts) - PARTS + 1))]
    held = [sum(stem in window for stem in stems) for window in windows]
    first = held.index(max(held))
    same = next((at for at in range(first, len(held)) if held[at] < held[first]), len(held)) - first
    # In the midst of the windows that hold the words, or what stands at its ends would be cut off with them.
    at = (first + min(same, PARTS) // 2) * step if first or held[0] else 0
    piece = text[at : at + size]
    if at:
        begin = next((found for mark in ("\n\n", "\n", " ") if 0 <= (found := piece.find(mark)) < size // 8), 0)
        piece = MORE + piece[begin:].lstrip()
    return piece if at + size >= len(text) else _beginning(piece, len(piece) - 1)
