"""A note as a page: what stands in a Markdown file, and the same written back."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.knowledge import KnowledgePage
from memdb.layers.models import MAX_REFERENCES
from memdb.markdown import front
from memdb.markdown.links import Link, find_links
from memdb.storage.clock import to_text
from memdb.text.check import MAX_CONTENT_BYTES, MAX_TITLE_CHARS
from memdb.text.front import MAX_FRONT_BYTES
from memdb.text.headline import first_paragraph, heading
from memdb.text.keywords import extract_keywords
from memdb.text.prose import prose

MAX_NOTE_BYTES = MAX_CONTENT_BYTES + MAX_FRONT_BYTES
PAGE = "page"  # the kind of a link that front matter gives as a page's id

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Note:
    """What a file says.

    Args:
        page: the page, its references still open.
        links: what it refers to, in order.
    """

    page: KnowledgePage
    links: tuple[Link, ...]


def read_bytes(path: str) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: it cannot be read.
        InvalidInput: it is no ordinary file, or too large.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput("it is no ordinary file")
        raw = file.read(MAX_NOTE_BYTES + 1) if status.st_size <= MAX_NOTE_BYTES else b""
    if max(status.st_size, len(raw)) > MAX_NOTE_BYTES:
        raise InvalidInput(f"it is larger than {MAX_NOTE_BYTES:,} bytes; keep it in parts")
    return raw


def parse(raw: bytes, path: str, category: str) -> Note:
    """Return the note that a file holds.

    Args:
        raw: its bytes.
        path: where it stands in its folder: it gives the page its id, "category/path", and perhaps its title.
        category: the page's, where the note names none.

    Raises:
        InvalidInput: it is not UTF-8, its front matter is no YAML, or a page cannot be what it says.
    """
    fields, body = front.split(_text(raw))
    text = prose(body)
    category = _one(fields, "category") or category
    title = _one(fields, "title") if fields.get("title") is not None else heading(body, text) or _stem(path)
    ids = _many(fields, "references", split=False)
    page = KnowledgePage(
        id=_one(fields, "id") or f"{category}/{path}",
        title=title[:MAX_TITLE_CHARS],
        summary=_one(fields, "summary") if "summary" in fields else first_paragraph(body, text),
        content=body,
        tags=_many(fields, "tags"),
        references=ids,
        keywords=_many(fields, "keywords"),
        category=category,
        created_at=_moment(_one(fields, "created_at")),
    )
    links = [Link(PAGE, id) for id in ids] if "references" in fields else find_links(body)
    return Note(page, tuple(links[:MAX_REFERENCES]))


def id_in(raw: bytes) -> str:
    """Return the id that a note gives itself in its front matter; "" where it gives none, or is no note."""
    with suppress(InvalidInput):
        return _one(front.split(_text(raw))[0], "id")
    return ""


def render(page: KnowledgePage) -> str:
    """Return a page as a note of which `parse` makes the same page, with the same references.

    Raises:
        InvalidInput: its front matter would be too large to be read again.
    """
    fields: dict[str, Any] = {
        "id": page.id,
        "title": page.title,
        "summary": page.summary,
        "category": page.category,
        "tags": page.tags,
        "references": page.references,
    }
    if page.keywords and page.keywords != extract_keywords(page.title, page.summary, page.content):
        fields["keywords"] = page.keywords
    if page.created_at is not None:
        fields["created_at"] = to_text(page.created_at)
    return front.join(fields, page.content)


def _text(raw: bytes) -> str:
    if raw.startswith(_UTF16):
        raise InvalidInput("it is UTF-16, only UTF-8 is read")
    try:
        text = raw.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 (byte {error.start + 1})") from None
    if "\x00" in text:
        raise InvalidInput(f"it holds a NUL character (at {text.index(chr(0)) + 1}), so it is no text")
    return text


def _one(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} in its front matter is no text")
    return value


def _many(fields: dict[str, Any], name: str, *, split: bool = True) -> list[str]:
    """Return a list of texts: a YAML list without its empty entries, or one text, cut at commas or else at blanks."""
    value = fields.get(name)
    if value is None:
        return []
    if isinstance(value, str):
        if not split:
            return [value]
        return [part.strip().lstrip("#") for part in (value.split(",") if "," in value else value.split())]
    if isinstance(value, list) and all(part is None or isinstance(part, str) for part in value):
        return [part for part in value if part is not None]
    raise InvalidInput(f"{name} in its front matter is no list of texts")


def _moment(text: str) -> datetime | None:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _stem(path: str) -> str:
    return PurePosixPath(path).stem
