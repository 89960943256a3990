"""The texts that the index is given in place of those it could not cut, and refilling them after a shell's edit."""

from __future__ import annotations

import json
import sqlite3

from memdb.errors import MemdbError
from memdb.storage.connection import lenient_text
from memdb.text.check import check_text
from memdb.text.keywords import extract_keywords, split_names
from memdb.text.scripts import cut, fold, twin

INDEXED_NAME_CHARS = 200_000  # how far into a text identifiers are looked for
_PAGE = 500
_TEXTS = ("title", "tags", "summary", "keywords", "content")
_TWINS = tuple(f"{name}_seg" for name in _TEXTS)

_ROWS = f"""
SELECT id, seg_revision, {", ".join(_TEXTS + _TWINS)} FROM record WHERE id > ? ORDER BY id LIMIT {_PAGE}
"""
_FILL = f"""
UPDATE record SET {", ".join(f"{name} = :{name}" for name in _TWINS)}, seg_revision = max(seg_revision, 0) + 1
 WHERE id = :id
"""


def segments(
    title: str, tags: list[str], summary: str, keywords: list[str], content: str, *, by_rule: bool | None = None
) -> dict[str, str | None]:
    """Return the *_seg columns of a record: None where FTS5 indexes the text well as it stands.

    Keywords made by rule repeat what the texts say, so the index is given only those that a person or a model chose
    (indexing both cost 0.02 of recall on dialogue), and the other spellings of identifiers (StateGraph -> state graph).

    Args:
        by_rule: whether the keywords are made by rule; None to find out by making them.
    """
    names = split_names("\n".join((title, summary, content[:INDEXED_NAME_CHARS])))
    words = " ".join(names)
    if keywords:
        if by_rule is None:
            by_rule = keywords == extract_keywords(title, summary, content)
        words = " ".join((cut(fold(" ".join([] if by_rule else keywords))), *names)).strip()
    return {
        "title_seg": twin(title),
        "tags_seg": twin(" ".join(tags)) if tags else None,
        "summary_seg": twin(summary),
        "keywords_seg": words if words or keywords else None,
        "content_seg": twin(content),
    }


def wrong_segments(connection: sqlite3.Connection, *, repair: bool) -> int:
    """Return how many records the index is given other texts for than they need; with `repair` set them right.

    Records that a shell has written are among them (seg_revision 0), and those whose segments were changed by hand.
    Rows that cannot be read are passed over: the first read sets them aside.
    """
    wrong, last = 0, 0
    connection.text_factory = lenient_text
    try:
        while rows := connection.execute(_ROWS, (last,)).fetchall():
            last = rows[-1][0]
            for record_id, revision, *values in rows:
                needed = _needed(values[: len(_TEXTS)])
                if needed is None or (revision > 0 and list(needed.values()) == values[len(_TEXTS) :]):
                    continue
                wrong += 1
                if repair:
                    connection.execute(_FILL, {**needed, "id": record_id})
    finally:
        connection.text_factory = str
    return wrong


def _needed(texts: list[object]) -> dict[str, str | None] | None:
    try:
        title, tags, summary, keywords, content = (check_text(text, "a text") for text in texts)
        return segments(title, _list(tags), summary, _list(keywords), content)
    except MemdbError:
        return None


def _list(text: str) -> list[str]:
    """Return a JSON array of text, or what can be had of it after an edit by hand."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [str(value) for value in values] if isinstance(values, list) else []
