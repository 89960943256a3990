"""The prose of a Markdown text: what stands outside code and comments."""

from __future__ import annotations

import re
from bisect import bisect_left

CODE = "\0"  # no note holds it

_PREFIX = r"^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*+"  # of quotations and lists
_TOKEN = re.compile(
    _PREFIX + r"(?:(?P<fence>`{3,})[^`\n]*|(?P<tildes>~{3,}).*)$|(?:\\[\\`\[\]<!])++|(?P<ticks>`+)|<!--", re.M
)
_TICKS = re.compile(r"`+")
_BLANK = re.compile(r"^[ \t\r]*$", re.M)
_NOT_BREAK = re.compile(r"[^\n]")


def prose(body: str) -> str:
    """Return a note without code and comments, every other character in its place.

    Fenced code and comments become blanks, the characters of inline code and of escapes CODE.
    """
    kept: list[str] = []
    at, runs, closed = 0, _Runs(body), True
    while token := _TOKEN.search(body, at):
        kept.append(body[at : token.start()])
        fence = token["fence"] or token["tildes"]
        blank = " " if fence or token[0] == "<!--" else CODE
        end: int | None = token.end()
        if fence:
            end = _end_of_fence(body, token.end(), fence)
        elif token["ticks"]:
            end = runs.end_of_code(token.start(), token.end())
        elif token[0] == "<!--":
            found = body.find("-->", token.end()) if closed else -1
            closed = found >= 0  # not looked for again: a text of nothing but openers would take for ever
            end = found + 3 if closed else None
        at = token.end() if end is None else end
        kept.append(_NOT_BREAK.sub(blank, body[token.start() : at]))
    kept.append(body[at:])
    return "".join(kept)


def _end_of_fence(body: str, start: int, fence: str) -> int:
    close = re.compile(rf"^[ \t>]*{re.escape(fence[0])}{{{min(len(fence), 1000)},}}[ \t\r]*$", re.M)
    found = close.search(body, start)
    return found.end() if found else len(body)


class _Runs:
    """Where the runs of backticks stand: code ends at the next run of the same length in the same paragraph."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._by_length: dict[int, list[int]] | None = None
        self._blanks: list[int] = []

    def end_of_code(self, start: int, end: int) -> int | None:
        """Return where the inline code ends that the run from start to end opens; None when nothing closes it."""
        if self._by_length is None:
            self._by_length = {}
            for run in _TICKS.finditer(self._body):
                self._by_length.setdefault(len(run[0]), []).append(run.start())
            self._blanks = [blank.start() for blank in _BLANK.finditer(self._body)]
        length = end - start
        alike = self._by_length.get(length, [])
        next_run, next_blank = bisect_left(alike, end), bisect_left(self._blanks, end)
        if next_run == len(alike):
            return None
        if next_blank < len(self._blanks) and self._blanks[next_blank] < alike[next_run]:
            return None
        return alike[next_run] + length
