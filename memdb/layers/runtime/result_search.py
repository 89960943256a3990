"""Searching inside one tool result, chunk by chunk: what is in memory is a few lines, or a part of one that is long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memdb.storage.blobs import Chunk
from memdb.text.finder import Finder

MATCH_CHARS = 400  # of a match's line that are shown
BEFORE_CHARS = 100  # of them before the match
LONG_LINE_CHARS = 65_536  # a longer line is looked through in parts
OVERLAP_CHARS = 4_096  # by which the parts of a long line overlap


class ToolResultMatch(NamedTuple):
    """A line of a tool result in which a search found something.

    Args:
        line: its number, from 1.
        start: how many bytes stand before the match: read_tool_result(id, start=...) reads on from there.
        text: the line, or of a long one what stands around the match, with "…" where it is cut.
    """

    line: int
    start: int
    text: str


class _Stretch(NamedTuple):
    """What is looked through at a time: whole lines, or a part of a line too long to hold.

    Args:
        text: the text.
        start: how many bytes stand before it.
        line: the number of its first line.
        seen: how many characters at its beginning were looked through before.
        until: a match that begins here or after is left to the next stretch.
    """

    text: str
    start: int
    line: int
    seen: int
    until: int


def search(chunks: Iterable[Chunk], finder: Finder, limit: int) -> list[ToolResultMatch]:
    """Return the first `limit` lines in which something is found, in their order."""
    found: list[ToolResultMatch] = []
    matches = _by_line if finder.by_line else _by_match
    for stretch in _stretches(chunks) if limit else ():
        if finder.absent(stretch.text):
            continue
        for match in matches(stretch, finder):
            if not found or match.line > found[-1].line:  # one a line, also of a line in parts
                found.append(match)
            if len(found) == limit:
                return found
    return found


def _stretches(chunks: Iterable[Chunk]) -> Iterator[_Stretch]:
    text, start, line, seen = "", 0, 1, 0
    for chunk in chunks:
        text += chunk.data.decode("utf-8", "surrogatepass")
        cut = text.rfind("\n") + 1
        if cut:
            yield _Stretch(text[:cut], start, line, seen, cut)
            start, line, seen = start + _size(text[:cut]), line + text.count("\n"), 0
            text = text[cut:]
        if len(text) >= LONG_LINE_CHARS:
            until = len(text) - OVERLAP_CHARS
            yield _Stretch(text, start, line, seen, until)
            kept = until - OVERLAP_CHARS  # what stands before a match may matter to a pattern
            start, seen, text = start + _size(text[:kept]), until - kept, text[kept:]
    if text:
        yield _Stretch(text, start, line, seen, len(text))


def _by_match(stretch: _Stretch, finder: Finder) -> Iterator[ToolResultMatch]:
    """Yield the matches of what does not look beyond a line: it is given the whole text."""
    text, line, counted, at = stretch.text, stretch.line, 0, stretch.seen
    while (begin := finder.find(text, at)) is not None and begin < stretch.until:
        line += text.count("\n", counted, begin)
        counted = begin
        end = text.find("\n", begin)
        yield _match(stretch, line, text.rfind("\n", 0, begin) + 1, begin, len(text) if end < 0 else end)
        if end < 0:
            return
        at = end + 1


def _by_line(stretch: _Stretch, finder: Finder) -> Iterator[ToolResultMatch]:
    text, begin, seen = stretch.text, 0, stretch.seen
    line = stretch.line
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        # A copy of the line: to a pattern, ^ and $ and what it looks for before and after must end with it.
        alone = text[begin:end].removesuffix("\r")
        found = finder.find(alone, seen)
        if found is not None and begin + found < stretch.until:
            yield _match(stretch, line, begin, begin + found, end)
        begin, seen, line = end + 1, 0, line + 1


def _match(stretch: _Stretch, line: int, begin: int, at: int, end: int) -> ToolResultMatch:
    """Return the match at `at` of a line that reaches from `begin` to `end`."""
    text = stretch.text
    first = begin if end - begin <= MATCH_CHARS else max(begin, at - BEFORE_CHARS)
    last = min(end, first + MATCH_CHARS)
    whole_before = first == begin and not (begin == 0 and stretch.seen)
    whole_after = last == end and (end < len(text) or stretch.until == len(text))
    shown = text[first:last].removesuffix("\r")
    shown = ("" if whole_before else "…") + shown + ("" if whole_after else "…")
    return ToolResultMatch(line, stretch.start + _size(text[:at]), shown)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
