"""A line of JSONL or a file of text, as the fields of a page or a message, or as a reason to skip it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from memdb.cli import chats
from memdb.storage.lines import json_lines
from memdb.text.check import MAX_CONTENT_BYTES, MAX_TITLE_CHARS

MAX_TITLE_FROM_TEXT = 80
CARRIED = ("summary", "tags", "references", "category", "keywords", "created_at")  # keys of a row that a page has too

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Row:
    """What one line or file holds.

    Args:
        place: where it stands, for a message.
        size: how many bytes of the source it took.
        fields: the page's or the message's fields; empty when it is skipped.
        user: whose; None for the command's default.
        session: of a message, its session, "" for the command's default; None for a page.
        reason: why it is skipped; "" when it is not.
    """

    place: str
    size: int
    fields: dict[str, Any] = field(default_factory=dict)
    user: str | None = None
    session: str | None = None
    reason: str = ""


def lines(file: BinaryIO, place: str) -> Iterator[Row]:
    """Yield the lines of a JSONL file that are not blank, one at a time in memory."""
    session = ""
    for line in json_lines(file):
        row = Row(f"{place} {line.number}", line.size)
        value = line.value
        if isinstance(value, dict) and chats.is_session(value):
            session = value["key"]
            continue
        if isinstance(value, dict) and chats.is_message(value):
            row.session = chats.session_of(value) or session
            row.fields = chats.message_of(value)
            row.reason = _set_user(row, value)
        else:
            row.reason = line.reason or _fill(row, value)
        yield row


def text_file(path: str, id: str) -> Row:
    """Return a file of text as a row: its title is its first heading, else its name.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        raw = file.read(MAX_CONTENT_BYTES + 1)
    row = Row(path, len(raw))
    if len(raw) > MAX_CONTENT_BYTES:
        row.reason = f"it is larger than {MAX_CONTENT_BYTES:,} bytes; store it in parts"
        return row
    try:
        text = raw.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        utf16 = raw.startswith(_UTF16)
        row.reason = "it is UTF-16, only UTF-8 is read" if utf16 else f"it is not UTF-8 (byte {error.start + 1})"
        return row
    if text.strip():
        title = _heading(text) or Path(path).stem
        row.fields = {"id": id, "title": title[:MAX_TITLE_CHARS], "content": text}
    else:
        row.reason = "it has no text"
    return row


def first_words(text: str) -> str:
    """Return the beginning of a text as a title, cut at a word."""
    line = " ".join(text[: 8 * MAX_TITLE_FROM_TEXT].split())
    if len(line) <= MAX_TITLE_FROM_TEXT:
        return line
    cut = line[:MAX_TITLE_FROM_TEXT]
    space = cut.rfind(" ")
    return (cut[:space] if space > MAX_TITLE_FROM_TEXT // 2 else cut[:-1]) + "…"


def _fill(row: Row, value: Any) -> str:
    """Fill a row from a line's value; return what is wrong with it, or ""."""
    if not isinstance(value, dict):
        return 'it is no JSON object such as {"_id": "1", "text": "..."} or {"role": "user", "content": "..."}'
    text, title, id = (value.get(name) for name in ("text", "title", "_id"))
    if not isinstance(text, str) or not text.strip():
        return "it has no text"
    if id is None or id == "":
        return "its _id is missing"
    if isinstance(id, bool) or not isinstance(id, str | int):
        return "its _id is no text"
    if reason := _set_user(row, value):
        return reason
    row.fields = {name: value[name] for name in CARRIED if value.get(name) is not None}
    row.fields |= {
        "id": str(id),
        "title": title if isinstance(title, str) and title.strip() else first_words(text),
        "content": text,
    }
    return ""


def _set_user(row: Row, value: dict[str, Any]) -> str:
    group = value.get("group")
    if group is not None and not isinstance(group, str):
        return "its group is no text"
    row.user = group or None
    return ""


def _heading(text: str) -> str:
    """Return the first heading of the first rank (# ...) that stands outside a block of code."""
    in_code = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        elif line.startswith("# ") and not in_code:
            return line[2:].strip().rstrip("#").rstrip()
    return ""
