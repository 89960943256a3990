"""Links of a note to other notes: [[wiki]] links and relative Markdown links, outside code and comments."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from memdb.text.check import is_valid

WIKI, PATH = "wiki", "path"
CODE = "\0"  # no note holds it


class Link(NamedTuple):
    """A link as the note writes it.

    Args:
        kind: WIKI or PATH.
        target: what it names, without label and part of the note: a note's name, or a path with / between its parts.
    """

    kind: str
    target: str


_PREFIX = r"^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*+"  # of quotations and lists
_TOKEN = re.compile(
    _PREFIX + r"(?:(?P<fence>`{3,})[^`\n]*|(?P<tildes>~{3,}).*)$|\\[\\`\[\]<!]|(?P<ticks>`+)|<!--", re.M
)
_TICKS = re.compile(r"`+")
_BLANK = re.compile(r"^[ \t\r]*$", re.M)
_NOT_BREAK = re.compile(r"[^\n]")

_DESTINATION = r"(?:<(?P<angled>[^<>\n]*+)>|(?P<bare>(?:[^\s()<>\\]|\\.|\([^\s()]*+\))++))"
_TITLE = r"""(?:\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?"""
_LINK = re.compile(
    rf"""(?P<embed>!?)\[\[(?P<wiki>[^\[\]\n]{{1,1000}})\]\]
       | ^[ ]{{0,3}}\[(?!\^)[^\[\]\n]++\]:[ \t]*+(?:<(?P<defined_angled>[^<>\n]*+)>|(?P<defined>\S++))
       | (?P<opener>!?\[)
       | \](?:\(\s*+{_DESTINATION}{_TITLE}\s*+\))?""",
    re.M | re.X,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def find_links(body: str) -> list[Link]:
    """Return a note's links to other notes, each once, in order of appearance."""
    return list(dict.fromkeys(_links(prose(body)))) if "[" in body else []


def _links(text: str) -> Iterator[Link]:
    openers: list[str] = []
    for match in _LINK.finditer(text):
        if match["wiki"] is not None:
            yield from _wiki(match["wiki"])
        elif match["opener"]:
            openers.append(match["opener"])
        elif (defined := match["defined_angled"] or match["defined"]) is not None:
            yield from _path(defined)
        elif openers and openers.pop() == "[":  # an image's opener is ![
            yield from _path(match["angled"] or match["bare"] or "")


def _wiki(inside: str) -> Iterator[Link]:
    target = inside.split("|", 1)[0].rstrip("\\").split("#", 1)[0].strip()
    if target and CODE not in target:
        yield Link(WIKI, target)


def _path(destination: str) -> Iterator[Link]:
    if _SCHEME.match(destination):
        return
    target = unquote(_ESCAPED.sub(r"\1", destination.split("#", 1)[0].split("?", 1)[0]), errors="surrogateescape")
    if target and CODE not in target and is_valid(target):
        yield Link(PATH, target)


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
