"""What a search found, as a model reads it: a line each, and no more of a text than helps."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from memdb.text.answer import one_line
from memdb.text.packing import MORE, stretch
from memdb.text.query import parse
from memdb.text.scripts import fold

INDENT = "   "


class Excerpts:
    """Cuts texts to what answers a query.

    Args:
        query: any text.
    """

    def __init__(self, query: str) -> None:
        self._words = [word for term in parse(query) for word in term.text.split()]

    def of(self, text: str, width: int) -> str:
        """Return about `width` characters of a text as one line: its beginning, or what holds more of the query."""
        if len(text) <= width:
            return one_line(text)
        best = stretch(text, self._words, width)
        begun = f"{text[:width].rstrip()}{MORE}"
        return one_line(best if self._held(best) > self._held(begun) else begun)

    def _held(self, text: str) -> int:
        folded = fold(text)
        return sum(word in folded for word in set(self._words))


def numbered(lines: Iterable[str]) -> list[str]:
    """Return lines with their numbers, from 1."""
    return [f"{number}. {line}" for number, line in enumerate(lines, 1)]


def date(moment: datetime | None) -> str:
    """Return the day of a time."""
    return "unknown" if moment is None else moment.date().isoformat()


def minute(moment: datetime | None) -> str:
    """Return a time to the minute."""
    return "unknown" if moment is None else moment.isoformat(" ")[:16]


def many(number: int, thing: str) -> str:
    """Return a number of things: "1 passage", "3 passages"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
