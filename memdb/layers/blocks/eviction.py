"""How a block that has grown too large comes back to its size: a table of strategies, and pure functions.

In all of them what was just written stays and what was there before gives way, its oldest lines first. A new text that
is too large by itself is cut at its end. What a strategy says of archiving holds for what was there before; of a new
text that is cut the whole is archived, too. `discard` alone loses anything.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from memdb.layers.blocks.config import EvictionStrategy
from memdb.layers.blocks.cutting import beginning, count, ending, fits

MIN_SUMMARY_TOKENS = 8  # room for fewer is not worth asking a model
LEAST_LEFT = 8  # tokens: of a block that gives way for others fewer would be a scrap of a line


class Archived(Enum):
    """What of the text that was there before goes to the archive."""

    WHOLE = "whole"
    WHAT_IS_CUT = "what is cut"
    NOTHING = "nothing"


class Strategy(NamedTuple):
    """One way to give way.

    Args:
        archived: what goes to the archive.
        kept: how much of the block the newest lines of the old text may take above a new one, as a share of its size.
    """

    archived: Archived
    kept: float


# The names are those of the Asterix document, and `truncate` of its program. With a model summarize_and_archive puts a
# summary in the place of all that was there (`summarised`); without one the newest lines stay, at most half the block:
# a block that was full again at once would be cut at each further line. What stays of an archived text is not archived
# once more.
STRATEGIES: dict[EvictionStrategy, Strategy] = {
    "summarize_and_archive": Strategy(Archived.WHOLE, kept=0.5),
    "archive_only": Strategy(Archived.WHOLE, kept=0.0),
    "truncate": Strategy(Archived.WHAT_IS_CUT, kept=1.0),
    "discard": Strategy(Archived.NOTHING, kept=1.0),
}


class Overflow(NamedTuple):
    """A text that does not fit.

    Args:
        old: what gives way.
        new: what was just written, which stays; "" when nothing was.
        known: how many characters at the beginning of the old text are archived already.
    """

    old: str
    new: str
    known: int = 0

    @property
    def whole(self) -> str:
        """The text of both, a line break between them."""
        return f"{self.old}\n{self.new}" if self.old and self.new else self.old or self.new


class Evicted(NamedTuple):
    """What an eviction leaves.

    Args:
        content: the block's content, within its size.
        archived: the texts to archive, in their order.
        known: how many characters at the beginning of the content are archived then.
    """

    content: str
    archived: list[str]
    known: int = 0


def evicted(strategy: EvictionStrategy, overflow: Overflow, size: int) -> Evicted:
    """Return what a strategy leaves of a text in a block of `size` tokens."""
    rule = STRATEGIES[strategy]
    old, new, known = overflow
    if new and not fits(new, size):
        archived = [] if rule.archived is Archived.NOTHING else [_piece(old, known, len(old)), new]
        return Evicted(beginning(new, size), told(archived))
    kept = _above(ending, old, new, size, size if not new else int(rule.kept * size))
    cut = len(old) - len(kept)
    end = {Archived.WHOLE: len(old), Archived.WHAT_IS_CUT: cut, Archived.NOTHING: 0}[rule.archived]
    lost = told([_piece(old, known, end)])
    return Evicted(Overflow(kept, new).whole, lost, max(0, max(known, end) - cut))


class Original(NamedTuple):
    """What a model is asked to summarise.

    Args:
        text: the text.
        below: what stands under its summary.
        room: how many tokens the summary may have.
    """

    text: str
    below: str
    room: int


def original(overflow: Overflow, size: int) -> Original:
    """Return what is to be summarised of a text that does not fit: the old part; all, where the new one is too long."""
    if overflow.old and overflow.new and fits(overflow.new, size):
        return Original(overflow.old, overflow.new, size - count(overflow.new) - 1)
    return Original(overflow.whole, "", size)


def summarised(overflow: Overflow, summary: str | None, size: int) -> Evicted:
    """Return what a model's summary leaves of a text: the summary, as far as there is room, above what is new.

    Args:
        summary: None where the model had none: then lines stay as they do without a model.
    """
    if summary is None:
        return evicted("summarize_and_archive", overflow, size)
    below = original(overflow, size).below
    content = Overflow(_above(beginning, summary, below, size, size), below).whole
    return Evicted(content, originals(overflow, size))


def originals(overflow: Overflow, size: int) -> list[str]:
    """Return the texts that are archived before a model is asked: those that it is to summarise, each whole."""
    old = _piece(overflow.old, overflow.known, len(overflow.old))
    return told([old] if original(overflow, size).below else [old, overflow.new])


def _above(cut: Callable[[str, int], str], text: str, below: str, size: int, most: int) -> str:
    """Return as much of a text as fits above another one, and at most `most` tokens of it.

    Both are counted as one: long runs are counted in chunks, and so may be a few tokens more than their parts.
    """
    if not below:
        return cut(text, size)
    room = min(most, size - count(below) - 1)
    while room > 0 and (kept := cut(text, room)):
        over = count(f"{kept}\n{below}") - size
        if over <= 0:
            return kept
        room -= over
    return ""


def _piece(text: str, start: int, end: int) -> str:
    """Return a part of a text, without the line breaks at which it was cut."""
    piece = text[start:end]
    piece = piece.lstrip("\n") if start else piece
    return piece.rstrip("\n") if end < len(text) else piece


def told(texts: list[str]) -> list[str]:
    """Return the texts that say anything."""
    return [text for text in texts if text.strip()]
