"""What a passage of the archive is, and how it lies in its record."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from pydantic import BeforeValidator
from sqlalchemy import ColumnElement, Select, case, func, literal_column, select

from memdb.errors import InvalidInput
from memdb.layers.models import Content, Id, Instant, Json, Model, Tags, Title
from memdb.layers.reading import Columns
from memdb.layers.record import Place, Record, row
from memdb.storage.schema import passage as passage_table
from memdb.storage.schema import recall, record
from memdb.text.check import check_text
from memdb.text.shown import shown

LAYER = "archive"
MAX_SOURCE_CHARS = 100
SUMMARY_CHARS = 100  # a longer content is shown by its beginning (Asterix document, archival_memory_insert)
DEFAULT_IMPORTANCE = 0.5
DEFAULT_SOURCE = "agent"


def _text(value: object) -> str:
    text = check_text(value, "the text")
    if not text.strip():
        raise InvalidInput("the text is blank; give what is to be remembered")
    return text


def check_source(value: object) -> str:
    """Return what a passage comes from, if it can be that.

    Raises:
        InvalidInput: no text, blank, or longer than MAX_SOURCE_CHARS.
    """
    text = check_text(value, "the source", max_chars=MAX_SOURCE_CHARS)
    if not text.strip():
        raise InvalidInput('the source is blank; say what it comes from, such as "agent"')
    return text


def check_importance(value: object) -> float:
    """Return how important a passage is, moved into [0, 1].

    Raises:
        InvalidInput: it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InvalidInput(f"importance must be a number from 0 to 1, not {shown(value)}")
    return float(min(max(value, 0.0), 1.0))


class Passage(Model):
    """A text that was put away to be searched (Asterix document, "Archival Memory").

    Args:
        content: the text, not blank, at most 16 MB in UTF-8.
        summary: what it is shown by, at most 10,000 characters; "" for the content, or of a content of more than 100
            characters the first 97 and "...". It is searched, too, where it was given.
        importance: a number; one outside [0, 1] becomes the nearest end.
        tags: atomic words; stored lower-cased, white space inside as a hyphen, repetitions dropped.
        source: what it comes from: "agent", "block", "conversation", "tool", or a word of yours, at most 100
            characters.
        source_id: which of these: a block's name, the positions of messages, a tool result's id.
        session_id: the session that it comes from; None where it comes from none.
        metadata: any JSON value, at most 1 MB.
        id: the SHA-256 of the content in hex; given by memdb.
        created_at: with a time zone; by default when it is stored.
    """

    content: Annotated[str, BeforeValidator(_text)]
    summary: Title = ""
    importance: Annotated[float, BeforeValidator(check_importance)] = DEFAULT_IMPORTANCE
    tags: Tags = []
    source: Annotated[str, BeforeValidator(check_source)] = DEFAULT_SOURCE
    source_id: Id | None = None
    session_id: Id | None = None
    metadata: Json = {}
    id: Content | None = None
    created_at: Instant = None


# A shell may have left other things there: they say nothing, and are no reason to hide the passage.
IMPORTANCE: ColumnElement[float | None] = case(
    (func.typeof(recall.c.importance).in_([literal_column("'real'"), literal_column("'integer'")]), recall.c.importance)
)


class _PassageColumns(Columns):
    """What is read of a passage: its record, where it comes from, and how important it is."""

    def __init__(self) -> None:
        super().__init__(passage_table)
        self.names = (*self.names, "importance")

    def select(self, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
        sources = record.outerjoin(passage_table, passage_table.c.record_id == record.c.id)
        rows = select(*self._read, IMPORTANCE).select_from(sources.outerjoin(recall, recall.c.record_id == record.c.id))
        return rows.where(*conditions)


PASSAGE = _PassageColumns()


def passage_id(content: str) -> str:
    """Return the id of a passage: the SHA-256 of its content in UTF-8, in hex."""
    return hashlib.sha256(content.encode()).hexdigest()


def passage_of(
    found: Record, source: str | None, source_id: str | None, session_id: str | None, importance: float | None
) -> Passage:
    """Return a passage of what was read: the shape of a row of the columns PASSAGE."""
    return Passage.trusted(
        content=found.content,
        summary=found.summary or beginning(found.content),
        importance=DEFAULT_IMPORTANCE if importance is None else check_importance(importance),
        tags=found.words("tags"),
        source=source or DEFAULT_SOURCE,  # a hand has taken its row away: no reason to hide it
        source_id=source_id,
        session_id=session_id,
        metadata=found.json("metadata"),
        id=found.key,
        created_at=found.created,
    )


def numbered_passage(found: Record, *own: Any) -> tuple[int, Passage]:
    """Return a passage with its record's number: a shape as passage_of is."""
    return found.id, passage_of(found, *own)


def beginning(content: str) -> str:
    """Return what a content without a summary is shown by (Asterix document, archival_memory_insert)."""
    return content if len(content) <= SUMMARY_CHARS else f"{content[: SUMMARY_CHARS - 3]}..."


def passage_row(place: Place, one: Passage, now: str) -> dict[str, Any]:
    """Return a passage's columns of `record` and of `passage`."""
    shown_by = "" if one.summary == beginning(one.content) else one.summary  # or the content would be searched twice
    columns = row(
        place,
        passage_id(one.content),
        now,
        summary=shown_by,
        content=one.content,
        tags=one.tags,
        metadata=one.metadata,
        created_at=one.created_at,
    )
    return columns | {"source": one.source, "source_id": one.source_id, "source_session_id": one.session_id}
