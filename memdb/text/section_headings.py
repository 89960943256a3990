"""Headings of a working summary, as models really write them."""

from __future__ import annotations

import re

from memdb.text.markdown_lines import BULLET

GOAL = "Current Goal"
SECTIONS = (GOAL, "Completed", "Important Discoveries", "Open Issues", "Decisions")
MAX_HEADING_CHARS = 200
BARE = 7  # the level of a heading that is bold or bare: below every one with #

_NAMES = {name.casefold(): name for name in SECTIONS} | {
    "goal": GOAL,
    "current goals": GOAL,
    "important discovery": "Important Discoveries",
    "discoveries": "Important Discoveries",
    "open issue": "Open Issues",
    "issues": "Open Issues",
    "decision": "Decisions",
    "done": "Completed",
    "progress": "Completed",
    "completed work": "Completed",
    "key facts": "Important Discoveries",
    "findings": "Important Discoveries",
    "open": "Open Issues",
    "open questions": "Open Issues",
    "next steps": "Open Issues",
    "todo": "Open Issues",
    "to do": "Open Issues",
}
_NO_WORD = re.compile(r"[\W_]+")


def heading_in(line: str, *, bare: bool) -> tuple[str, str, int] | None:
    """Return a heading's name, what follows on its line, and its level; None where the line is none."""
    text = line.lstrip("#")
    level = len(line) - len(text)
    if 1 <= level <= 6:
        name, rest = _named(text.strip(" \t#"))
        return (name, rest, level) if text[:1] in (" ", "\t") or section_named(name) else None
    if (bullet := BULLET.match(line)) and (bare or line[0].isdigit()):
        line = line[bullet.end() :]
    for mark in ("**", "__"):
        if line.startswith(mark) and (end := line.find(mark, 2)) > 0 and section_named(line[2:end]):
            return line[2:end], line[end + 2 :].lstrip(" :"), BARE
    if bare:
        name, rest = _named(line)
        if section_named(name):
            return name, rest, BARE
    return None


def _named(text: str) -> tuple[str, str]:
    """Split `Current Goal: mend the login` in two, where what stands before the colon is a section's name."""
    name, colon, rest = text.partition(":")
    return (name, rest.strip()) if colon and section_named(name) else (text, "")


def section_named(name: str) -> str | None:
    """Return the section that a heading names, be it with a number, a symbol or a remark in brackets; else None."""
    return _NAMES.get(plain(name[:MAX_HEADING_CHARS].partition("(")[0]))


def plain(text: str) -> str:
    """Return a text in small letters without punctuation, symbols and a bullet or number before it."""
    bullet = BULLET.match(text.strip())
    return " ".join(_NO_WORD.sub(" ", text.strip()[bullet.end() if bullet else 0 :]).casefold().split())
