"""The headline of a note: its first heading of the first rank and its first paragraph, without Markdown's marks."""

from __future__ import annotations

import re

from memdb.text.check import MAX_TITLE_CHARS
from memdb.text.prose import CODE, prose

MAX_SUMMARY_CHARS = 500
MAX_LOOKED_AT = 20_000  # characters of a heading or paragraph
MAX_BEGINNING = 500_000  # characters of a note in which they are looked for: 16 MB of nothing but marks take 15 s

_HEADING = re.compile(r"^ {0,3}#[ \t]+(?P<atx>\S.*)$|^ {0,3}(?P<setext>\S.*)\n {0,3}=+[ \t\r]*$", re.M)
_BLOCK = re.compile(r"(?:^.*\S.*$\n?)+", re.M)
_NO_PARAGRAPH = re.compile(r" {0,3}(?:#{1,6}(?:\s|$)|[|>]|\[?!\[|(?:[-*_][ \t]*){3,}$|\[[^\]]+\]:)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_MARKS = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
# No part can run into another link, so that a text of nothing but brackets does not take for ever.
_LINK = re.compile(r"!?\[\[(?:[^\[\]|\0]*\|)?([^\[\]|]+)\]\]|!?\[([^\[\]]*)\]\((?:[^()\0]++|\([^()\0]*+\))*+\)")


def headline(body: str) -> tuple[str, str]:
    """Return the title and the description that a note gives itself (local-ai document): "" where it gives none.

    Both are looked for in its first MAX_BEGINNING characters.
    """
    body = body[:MAX_BEGINNING]
    text = prose(body)
    return heading(body, text)[:MAX_TITLE_CHARS], first_paragraph(body, text)


def heading(body: str, text: str) -> str:
    """Return the first heading of the first rank outside of code; "" where there is none.

    Args:
        body: the note.
        text: its prose.
    """
    found = _HEADING.search(text)
    if found is None:
        return ""
    start, end = found.span(found.lastgroup or 0)
    line = text[start:end].rstrip()
    if found.lastgroup == "atx":  # "# Title ##" is closed, "# C#" is not
        bare = line.rstrip("#")
        line = bare if bare[-1:] in ("", " ", "\t") else line
    return _plain(line, body[start : start + len(line)])


def first_paragraph(body: str, text: str) -> str:
    """Return the first paragraph: no heading, code, table, quotation, image or comment; "" where there is none.

    Args:
        body: the note.
        text: its prose.
    """
    for block in _BLOCK.finditer(text):
        if lines := _paragraph(block[0], body[block.start() : block.end()]):
            return _cut(_plain(" ".join(line for line, _ in lines), " ".join(shown for _, shown in lines)))
    return ""


def _paragraph(block: str, original: str) -> list[tuple[str, str]]:
    """Return the lines of a block that belong to a paragraph, as prose and as they stand in the note."""
    kept: list[tuple[str, str]] = []
    for line, shown in zip(block.split("\n"), original.split("\n"), strict=True):
        indented = shown.startswith(("    ", "\t"))
        blanks = len(line) - len(line.lstrip())
        line, shown = line.strip(), shown[blanks:]
        if "|" in line and "-" in line and not line.strip(" \t|:-"):  # a table, what stood above is its head
            return kept[:-1] if kept and "|" in kept[-1][0] else kept
        if _UNDERLINE.match(line) and kept:
            kept.clear()  # what stood above was a heading
        elif line and not indented and not _NO_PARAGRAPH.match(line):
            item = _ITEM.match(line)
            start = item.end() if item else 0
            kept.append((line[start:], shown[start : len(line)]))
    return kept


def _plain(text: str, original: str) -> str:
    """Return prose without the marks of Markdown, and with the code that stood in it."""
    text, original = text[:MAX_LOOKED_AT], original[:MAX_LOOKED_AT]
    code = iter([shown for shown, char in zip(original, text, strict=True) if char == CODE] if CODE in text else ())
    for _ in range(2):  # an image in a link
        text = _LINK.sub(lambda match: match[1] or match[2] or "", text)
    text = " ".join(_MARKS.sub("", text).split())
    return re.sub(CODE, lambda _: next(code).strip("`"), text).strip()


def _cut(text: str) -> str:
    if len(text) <= MAX_SUMMARY_CHARS:
        return text
    cut = text[: MAX_SUMMARY_CHARS - 1]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > MAX_SUMMARY_CHARS // 2 else cut) + "…"
