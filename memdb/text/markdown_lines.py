"""Which lines of a Markdown text are code."""

from __future__ import annotations

import re

BULLET = re.compile(r"(?:[-*+•] +|\d{1,3}[.)] +|[-*+•]$)")
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*)$")


def is_fence(line: str) -> bool:
    """Return whether a line, without what indents it, begins or ends a block of code; a bullet may stand before it."""
    return _fence(line) is not None


def code_lines(lines: list[str]) -> list[bool]:
    """Return for each line whether it is part of a fenced code block, fences included.

    A fence that nothing closes opens no block: an answer that was cut short would be code to its end.
    """
    inside = [False] * len(lines)
    fences = [_fence(line.strip()) for line in lines]
    unclosed: dict[str, int] = {}  # the shortest fence of a character that is known to have no end: longer have none
    at = 0
    while at < len(lines):
        opening = fences[at]
        if opening is not None and len(opening[1]) < unclosed.get(opening[1][0], len(opening[1]) + 1):
            end = _closing(lines, fences, at, opening[1])
            if end is None:
                unclosed[opening[1][0]] = len(opening[1])
            else:
                inside[at : end + 1] = [True] * (end + 1 - at)
                at = end
        at += 1
    return inside


def unfenced(text: str) -> str:
    """Return what stands between the first fence and the last one of a text, or after the only one; else the text."""
    lines = text.splitlines()
    fences = [at for at, line in enumerate(lines) if _fence(line.strip())]
    if not fences:
        return text
    return "\n".join(lines[fences[0] + 1 : fences[-1] if len(fences) > 1 else len(lines)])


def _fence(line: str) -> re.Match[str] | None:
    bullet = BULLET.match(line)
    return _FENCE.match(line, bullet.end() if bullet else 0)


def _closing(lines: list[str], fences: list[re.Match[str] | None], opened: int, marks: str) -> int | None:
    for at in range(opened + 1, len(lines)):
        fence = fences[at]
        if fence is not None and fence.start() == 0 and not fence[2].strip() and fence[1].startswith(marks):
            return at
    return None
