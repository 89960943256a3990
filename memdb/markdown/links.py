"""Links of a note to other notes: [[wiki]] links and relative Markdown links, outside code and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from memdb.text.check import is_valid
from memdb.text.prose import CODE, prose

WIKI, PATH = "wiki", "path"


class Link(NamedTuple):
    """A link as the note writes it.

    Args:
        kind: WIKI or PATH.
        target: what it names, without label and part of the note: a note's name, or a path with / between its parts.
    """

    kind: str
    target: str


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
