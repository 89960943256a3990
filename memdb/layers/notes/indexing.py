"""How a note is indexed: by rule when its content has changed, or with keywords that a model chose (local-ai document).

The title, description and keywords of a page are its record's own. Whoever writes a page through memdb gives them (a
sync from the note, write_file from its text, add_page as it is told), so indexing such a page only makes keywords anew
that a model chose for another text. What a shell has written is read again as a file would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, text, update

from memdb.layers import reading
from memdb.layers.notes import index as note_index
from memdb.layers.notes.index import State, digest
from memdb.layers.notes.names import all_notes
from memdb.layers.page import readable
from memdb.layers.record import Place, Record
from memdb.storage.schema import record
from memdb.storage.segments import segments
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.headline import headline
from memdb.text.json_text import to_json
from memdb.text.keywords import extract_keywords

BATCH = 200  # notes that one unit indexes
BATCH_CHARS = 8_000_000  # and how much text it reads for that

_TWINS = [column.name for column in record.c if column.name.endswith("_seg")]
_SET = Statement(
    update(record)
    .where(record.c.id == param("number"), record.c.user_id == param("user_id"), record.c.layer == param("layer"))
    .values(
        {name: param(name) for name in ("title", "summary", "keywords", *_TWINS)}
        | {"seg_revision": func.max(record.c.seg_revision, text("0")) + text("1")}
    )
)


class Reading(NamedTuple):
    """A note as it would be indexed by rule.

    Args:
        page: its record.
        title, summary: what the index will say.
        keywords: those that its author chose, else those by rule.
        free: whether others may be chosen: its author chose none.
    """

    page: Record
    title: str
    summary: str
    keywords: list[str]
    free: bool


def stale(tx: Transaction, place: Place, categories: Sequence[str] | None) -> list[int]:
    """Return the notes that are new or whose content is not what was indexed, in the order of adding."""
    if not note_index.there_is(tx, place):
        return [note.number for note in all_notes(tx, place) if categories is None or note.category in categories]
    return [state.number for state in changed(tx, place, categories)]


def changed(tx: Transaction, place: Place, categories: Sequence[str] | None) -> list[State]:
    """Return what an index knows of the notes that are stale; only those that were flagged are looked at."""
    return [state for state in note_index.flagged(tx, place, categories) if _has_changed(tx, place, state)]


def refresh(
    tx: Transaction, place: Place, categories: Sequence[str] | None, after: int = -1
) -> tuple[list[int], int | None]:
    """Index by rule what has changed, some notes at a time.

    Args:
        after: the number of the note that was looked at last.

    Returns:
        The notes that had changed, and the number to go on after; None when none is left.
    """
    if not note_index.there_is(tx, place):
        note_index.begin(tx, place)
    found: list[int] = []
    chars = 0
    for at, state in enumerate(note_index.flagged(tx, place, categories, after=after, limit=BATCH + 1)):
        if at == BATCH or chars > BATCH_CHARS:
            return found, after
        after = state.number
        page = page_of(tx, place, state.number)
        if page is None:
            continue
        chars += len(page.content)
        if digest(page.content) == state.hash:
            note_index.unflag(tx, place, state.number, by_model=state.by_model and not _is_by_rule(page))
        else:
            read = _by_rule(page, state)
            put(tx, place, page, read.title, read.summary, read.keywords, by_model=False)
            found.append(state.number)
    return found, None


def read_for_model(tx: Transaction, place: Place, number: int) -> Reading | None:
    """Return a note as it would be indexed by rule, for a model to choose better keywords; None when it is gone."""
    state, page = note_index.state_of(tx, place, number), page_of(tx, place, number)
    return None if state is None or page is None else _by_rule(page, state)


def put_if_same(tx: Transaction, place: Place, seen: Reading, keywords: list[str], *, by_model: bool) -> bool:
    """Index a note with these keywords, unless its texts or its keywords have changed since it was read.

    Returns:
        Whether it was indexed; what says something else now waits to be.
    """
    now = page_of(tx, place, seen.page.id)
    if now is None or _texts(now) != _texts(seen.page):
        return False
    put(tx, place, seen.page, seen.title, seen.summary, keywords, by_model=by_model)
    return True


def put(
    tx: Transaction, place: Place, page: Record, title: str, summary: str, keywords: list[str], *, by_model: bool
) -> None:
    """Give a note what the index says of it, and mark it as indexed. The time when it was last stored stays."""
    if (title, summary, keywords) != (page.title, page.summary, page.words("keywords")):
        twins = segments(title, page.words("tags"), summary, keywords, page.content)
        values = {"title": title, "summary": summary, "keywords": to_json(keywords), **twins}
        tx.run(_SET, user_id=place.user_id, layer=place.layer, number=page.id, **values)
    note_index.mark(tx, place, page.id, digest(page.content), by_model=by_model)


def put_chosen(
    tx: Transaction, place: Place, page: Record, title: str | None, summary: str | None, keywords: list[str] | None
) -> None:
    """Index a note as somebody says who is not its author: other keywords than it has count as those of a model.

    Args:
        title, summary, keywords: None for those that it has.
    """
    title, summary = page.title if title is None else title, page.summary if summary is None else summary
    has, state = page.words("keywords"), note_index.state_of(tx, place, page.id)
    words = has if keywords is None else keywords or extract_keywords(title, summary, page.content)
    by_model = words != extract_keywords(title, summary, page.content)
    if words == has and (state is None or not state.by_model):
        by_model = False
    put(tx, place, page, title, summary, words, by_model=by_model)


def page_of(tx: Transaction, place: Place, number: int) -> Record | None:
    """Return the record of a note; None where it is gone or cannot be read."""
    return next(reading.shaped(tx, reading.by_ids(tx, place.user_id, [number]), readable), None)


def _has_changed(tx: Transaction, place: Place, state: State) -> bool:
    if not state.hash:
        return True
    page = page_of(tx, place, state.number)
    return page is not None and digest(page.content) != state.hash


def _by_rule(page: Record, state: State) -> Reading:
    title, summary, words = page.title, page.summary, page.words("keywords")
    if state.by_hand and digest(page.content) != state.hash:
        own_title, own_summary = headline(page.content)
        title, summary = own_title or title, own_summary or summary
    by_rule = extract_keywords(title, summary, page.content)
    # What neither rule nor model made of this text, the page's author chose.
    free = state.by_hand or (state.by_model and state.hash is not None) or words in ([], by_rule)
    return Reading(page, title, summary, by_rule if free else words, free)


def _is_by_rule(page: Record) -> bool:
    """Whether a note's keywords are those by rule: written again, it may have lost those that a model chose."""
    return page.words("keywords") == extract_keywords(page.title, page.summary, page.content)


def _texts(page: Record) -> tuple[str, str, str, str]:
    return page.title, page.summary, page.keywords, page.content
