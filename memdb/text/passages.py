"""A text cut into passages: what an embedder, which reads a page or less at once, is given of a record."""

from __future__ import annotations

import re
import unicodedata

PASSAGE_CHARS = 1_000  # some 250 words: what small models read whole
MAX_PARTS = 64  # passages of one record; what lies beyond is found by its words alone
MAX_TEXT_CHARS = 2 * PASSAGE_CHARS * MAX_PARTS  # of a text that are looked at: all that its passages can hold, and more

# Where a passage may end, the best first: a paragraph, a line, a sentence, a clause, a word.
_ENDS = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？｡।။។]+[」』”’）]*\s*"),
    re.compile(r"[;:,]\s+|[，、；：،؛]\s*"),
    re.compile(r"\s+"),
)
_SPACE = re.compile(r"\s*")
_JOINER = "\u200d"  # holds an emoji of several characters together


def passages(title: str, summary: str, content: str) -> list[str]:
    """Return what an embedder is given of a record, in the order of the text.

    The title stands before the first passage. A summary that the content repeats, and a heading that repeats the title,
    are left out. The same texts always give the same passages.

    Returns:
        At most MAX_PARTS passages of at most PASSAGE_CHARS characters, none empty; none when there is no text.
    """
    body = content[:MAX_TEXT_CHARS]
    if title:
        body = body.removeprefix(f"# {title}\n")
    parts = (title.strip(), "" if summary in body else summary.strip(), body.strip())
    return cut_passages("\n\n".join(part for part in parts if part))


def cut_passages(text: str) -> list[str]:
    """Return a text cut where a reader would pause, into passages as `passages` describes them."""
    found: list[str] = []
    text = text[:MAX_TEXT_CHARS].rstrip()
    at = _after_space(text, 0)
    while at < len(text) and len(found) < MAX_PARTS:
        end = _end(text, at)
        found.append(text[at:end].rstrip())
        at = _after_space(text, end)
    return found


def _end(text: str, at: int) -> int:
    """Return where the passage that begins at `at` ends: at the last good place of its second half."""
    most = at + PASSAGE_CHARS
    if len(text) <= most:
        return len(text)
    for pattern in _ENDS:
        places = [match.end() for match in pattern.finditer(text, at + PASSAGE_CHARS // 2, most)]
        if places:
            return places[-1]
    while most > at + PASSAGE_CHARS // 2 and _clings(text, most):
        most -= 1
    return most


def _clings(text: str, at: int) -> bool:
    """Return whether the character at `at` belongs to the one before it: a mark, or one half of an emoji."""
    return unicodedata.category(text[at])[0] == "M" or _JOINER in (text[at], text[at - 1])


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()
