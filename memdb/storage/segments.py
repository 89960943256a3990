"""The texts that the index is given in place of those it could not cut, and refilling them after a shell's edit."""

from __future__ import annotations

import json
import sqlite3

from memdb.text.keywords import extract_keywords, split_names
from memdb.text.scripts import cut, fold, twin

INDEXED_NAME_CHARS = 200_000  # how far into a text identifiers are looked for
_PAGE = 500

_UNFILLED = """
SELECT id, title, tags, summary, keywords, content FROM record WHERE seg_revision = 0 AND id > ? ORDER BY id LIMIT ?
"""
_FILL = """
UPDATE record
   SET title_seg = :title_seg, tags_seg = :tags_seg, summary_seg = :summary_seg, keywords_seg = :keywords_seg,
       content_seg = :content_seg, seg_revision = 1
 WHERE id = :id
"""


def segments(title: str, tags: list[str], summary: str, keywords: list[str], content: str) -> dict[str, str | None]:
    """Return the *_seg columns of a record: None where FTS5 indexes the text well as it stands.

    Keywords made by rule repeat what the texts say, so the index is given only those that a person or a model chose
    (indexing both cost 0.02 of recall on dialogue), and the other spellings of identifiers (StateGraph -> state graph).
    """
    chosen = [] if keywords == extract_keywords(title, summary, content) else keywords
    names = split_names("\n".join((title, summary, content[:INDEXED_NAME_CHARS])))
    words = " ".join((cut(fold(" ".join(chosen))), *names)).strip()
    return {
        "title_seg": twin(title),
        "tags_seg": twin(" ".join(tags)),
        "summary_seg": twin(summary),
        "keywords_seg": words if words or keywords else None,
        "content_seg": twin(content),
    }


def refill(connection: sqlite3.Connection) -> None:
    """Make the segments of all records that a shell has written, in the caller's transaction."""
    last = 0
    while rows := connection.execute(_UNFILLED, (last, _PAGE)).fetchall():
        for record_id, title, tags, summary, keywords, content in rows:
            filled = segments(title, _list(tags), summary, _list(keywords), content)
            connection.execute(_FILL, {**filled, "id": record_id})
            last = record_id


def _list(text: str) -> list[str]:
    """Return a JSON array of text, or what can be had of it after an edit by hand."""
    try:
        values = json.loads(text)
    except ValueError:
        return []
    return [str(value) for value in values] if isinstance(values, list) else []
