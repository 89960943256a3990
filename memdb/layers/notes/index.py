"""The index of notes: of which text each page's title, description and keywords are (local-ai document, index v3).

Triggers flag what is new or changed (see memdb.storage.schema.note_index), so nothing here looks at pages that did not
change, except where all are asked for. How a note is indexed is in memdb.layers.notes.indexing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, delete, exists, func, literal_column, select, text, update

from memdb.errors import SerializationError
from memdb.layers import reading
from memdb.layers.notes.names import Note
from memdb.layers.page import DEFAULT_CATEGORY
from memdb.layers.reading import here
from memdb.layers.record import Place, Record
from memdb.storage.clock import from_text
from memdb.storage.schema import note_index, record
from memdb.storage.statement import Statement, each, insert, param
from memdb.storage.transaction import Row, Transaction

INDEX_VERSION = 3
ANOTHER = "another"  # the hash of a text that is not known
FORGOTTEN = ""  # the hash of what was indexed once and is to be made anew


class State(NamedTuple):
    """What the index knows of a note.

    Args:
        number: its record's number.
        hash: SHA-256 of the content that was indexed; None: never.
        by_model: whether a model chose its keywords; of a note never indexed, whether one is to.
        by_hand: whether its text was written by hand, in a shell, since memdb last wrote it.
        indexed_at: when it was indexed, in the stored text form, if ever.
    """

    number: int
    hash: str | None
    by_model: bool
    by_hand: bool
    indexed_at: str | None


class IndexEntry(NamedTuple):
    """What the index says of a note.

    Args:
        note: the note.
        title, description, keywords: those of its page.
        last_modified: when the page was last stored, in UTC.
    """

    note: Note
    title: str
    description: str
    keywords: list[str]
    last_modified: datetime


_MINE = note_index.c.user_id == param("user_id")
_OF_PAGE = (
    record.c.id == note_index.c.record_id,
    record.c.user_id == param("user_id"),
    record.c.layer == param("layer"),
)
# concat: the list of categories must not become the way to the records; the flags are.
_IN_CATEGORIES = func.coalesce(record.c.category, DEFAULT_CATEGORY).concat("").in_(select(each("categories").c.value))
_STATE = (
    *(note_index.c[name] for name in ("record_id", "hash", "by_model")),
    record.c.seg_revision,
    note_index.c.indexed_at,
)
_INDEXED = func.coalesce(note_index.c.hash, text("''")) != text("''")
_FLAGGED = note_index.c.stale.is_not(None)


def _states(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(*_STATE).where(_MINE, *_OF_PAGE, *conditions).order_by(note_index.c.record_id)


def _both(rows: Select[Any]) -> tuple[Statement, Statement]:
    """Return what selects of all categories, and of some."""
    return Statement(rows), Statement(rows.where(_IN_CATEGORIES))


_EVERY = _both(_states())
_STALE = _both(_states(_FLAGGED, note_index.c.record_id > param("after")).limit(param("limit")))
_PENDING = _both(_states(_FLAGGED, note_index.c.by_model == text("1"), note_index.c.hash.is_(None)).limit(1))
_ANY_FLAGGED = Statement(_states(_FLAGGED).limit(1))
_ONE = Statement(_states(note_index.c.record_id == param("number")))
_EXISTS = Statement(select(note_index.c.record_id).where(_MINE).limit(1))
_LAST = Statement(select(func.max(note_index.c.indexed_at)).where(_MINE))
_BEGIN = Statement(
    insert(note_index)
    .from_select(["record_id", "user_id", "stale"], select(record.c.id, record.c.user_id, text("1")).where(here()))
    .on_conflict_do_nothing()
)
_PRUNE = Statement(delete(note_index).where(_MINE, ~exists().where(*_OF_PAGE).correlate(note_index)))
_GIVEN = note_index.c.record_id.in_(select(each("numbers").c.value))
_AWAIT_MODEL = Statement(
    update(note_index).where(_MINE, _GIVEN, note_index.c.hash.is_(None)).values(by_model=text("1"))
)
_FORGET = Statement(update(note_index).where(_MINE, _GIVEN).values(hash=FORGOTTEN, stale=text("1")))
_OUTDATE = Statement(
    update(note_index).where(_MINE, note_index.c.record_id == param("number")).values(hash=ANOTHER, stale=text("1"))
)
_UNFLAG = Statement(
    update(note_index)
    .where(_MINE, note_index.c.record_id == param("number"))
    .values(stale=text("NULL"), by_model=param("by_model"))
)
_MARK = Statement(
    insert(note_index)
    .values(
        record_id=param("number"),
        user_id=param("user_id"),
        hash=param("hash"),
        by_model=param("by_model"),
        indexed_at=param("now"),
    )
    .on_conflict_do_update(
        index_elements=["record_id"],
        set_={"hash": param("hash"), "by_model": param("by_model"), "stale": text("NULL"), "indexed_at": param("now")},
    )
)


def _entries(*conditions: ColumnElement[bool]) -> Statement:
    """Select whole records but for their content."""
    columns = [record.c[name] if name != "content" else literal_column("''") for name in Record._fields]
    return Statement(select(*columns).where(*conditions).order_by(record.c.id))


_INDEX = _entries(_MINE, *_OF_PAGE, _INDEXED)
_NUMBERED = _entries(
    record.c.id.in_(select(each("numbers").c.value)),
    record.c.user_id.concat("") == param("user_id"),
    record.c.layer == param("layer"),
)


def digest(content: str) -> str:
    """Return the hash by which the index knows a content."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def there_is(tx: Transaction, place: Place) -> bool:
    """Return whether a user has an index."""
    return tx.one(_EXISTS, user_id=place.user_id) is not None


def last_updated(tx: Transaction, place: Place) -> datetime | None:
    """Return when a note was last indexed, if ever."""
    return _time(tx.value(_LAST, user_id=place.user_id))


def entries(tx: Transaction, place: Place) -> list[IndexEntry]:
    """Return what the index says, in the order of adding; what was never indexed is not in it."""
    return list(reading.shaped(tx, tx.all(_INDEX, user_id=place.user_id, layer=place.layer), _entry))


def entries_of(tx: Transaction, place: Place, numbers: Iterable[int]) -> dict[int, IndexEntry]:
    """Return what an index would say of some notes now, whether they are indexed or not, by number."""
    rows = tx.all(_NUMBERED, numbers=json.dumps(list(numbers)), user_id=place.user_id, layer=place.layer)
    return {entry.note.number: entry for entry in reading.shaped(tx, rows, _entry)}


def begin(tx: Transaction, place: Place) -> None:
    """Let a user have an index: what is not in it yet is flagged. Entries without a page go."""
    tx.run(_BEGIN, **place.values())
    tx.run(_PRUNE, user_id=place.user_id, layer=place.layer)


def any_flagged(tx: Transaction, place: Place) -> bool:
    """Return whether any note was flagged since it was indexed: a look-up, whatever the number of notes."""
    return tx.one(_ANY_FLAGGED, user_id=place.user_id, layer=place.layer) is not None


def flagged(
    tx: Transaction, place: Place, categories: Sequence[str] | None, *, after: int = -1, limit: int = -1
) -> list[State]:
    """Return the notes that are new or were written to since they were indexed, by number.

    Args:
        after: only those beyond this number.
        limit: how many at most; -1 for all.
    """
    return [_state(row) for row in _rows(tx, place, _STALE, categories, after=after, limit=limit)]


def state_of(tx: Transaction, place: Place, number: int) -> State | None:
    """Return what the index knows of a note; None where it is not in it."""
    found = tx.one(_ONE, user_id=place.user_id, layer=place.layer, number=number)
    return None if found is None else _state(found)


def mark(tx: Transaction, place: Place, number: int, hash: str, *, by_model: bool) -> None:
    """Note that a note is indexed, of which content, and whether a model chose its keywords."""
    tx.run(_MARK, user_id=place.user_id, number=number, hash=hash, by_model=int(by_model), now=tx.now)


def unflag(tx: Transaction, place: Place, number: int, *, by_model: bool) -> None:
    """Note that a note's content is as it was indexed, and whether a model chose the keywords that it has."""
    tx.run(_UNFLAG, user_id=place.user_id, number=number, by_model=int(by_model))


def forget(tx: Transaction, place: Place, categories: Sequence[str] | None) -> None:
    """Let all notes of some categories be indexed anew."""
    begin(tx, place)
    found = [row[0] for row in _rows(tx, place, _EVERY, categories)]
    tx.run(_FORGET, user_id=place.user_id, numbers=json.dumps(found))


def outdate(tx: Transaction, place: Place, number: int) -> None:
    """Let a note that is indexed count as indexed from another text: the next look makes it anew, by rule."""
    tx.run(_OUTDATE, user_id=place.user_id, number=number)


def await_model(tx: Transaction, place: Place, categories: Sequence[str] | None, *, rebuild: bool) -> list[int]:
    """Return the notes whose keywords a model is to choose, and note it: what a crash leaves over waits on.

    Args:
        rebuild: all of these categories, not only those whose keywords no model chose or whose text has changed.
    """
    begin(tx, place)
    anew = {state.number for state in flagged(tx, place, categories)}
    found = [row[0] for row in _rows(tx, place, _EVERY, categories) if rebuild or row[0] in anew or row[2] != 1]
    tx.run(_AWAIT_MODEL, user_id=place.user_id, numbers=json.dumps(found))
    return found


def awaits_model(tx: Transaction, place: Place, categories: Sequence[str] | None) -> bool:
    """Return whether there are notes that a model was to choose keywords for and did not get to."""
    return bool(_rows(tx, place, _PENDING, categories))


def _rows(
    tx: Transaction,
    place: Place,
    statements: tuple[Statement, Statement],
    categories: Sequence[str] | None,
    **values: Any,
) -> list[Row]:
    values |= {"user_id": place.user_id, "layer": place.layer}
    if categories is None:
        return tx.all(statements[0], **values)
    return tx.all(statements[1], categories=json.dumps(list(categories)), **values)


def _state(row: Row) -> State:
    number, hash, by_model, revision, at = row
    known = hash if isinstance(hash, str) else None  # a hand may have left bytes
    return State(number, known, by_model == 1, revision == 0, at if _time(at) is not None else None)


def _time(at: object) -> datetime | None:
    """Return a stored time; None where there is none, or a hand has written something else."""
    try:
        return from_text(at) if isinstance(at, str) else None
    except SerializationError:
        return None


def _entry(found: Record) -> IndexEntry:
    note = Note(found.id, found.key, found.category or DEFAULT_CATEGORY)
    return IndexEntry(note, found.title, found.summary, found.words("keywords"), found.updated)
