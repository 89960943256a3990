"""The index of notes as the dict that the local-ai document keeps in memory_index.json, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import FiniteFloat

from memdb.errors import InvalidInput, MissingFile
from memdb.layers.arguments import check_bulk
from memdb.layers.models import Content, Id, Keywords, Model, Title
from memdb.layers.notes import index as note_index
from memdb.layers.notes import indexing as note_indexing
from memdb.layers.notes import names as note_names
from memdb.layers.notes.index import INDEX_VERSION, IndexEntry
from memdb.layers.notes.names import Names
from memdb.layers.page import DEFAULT_CATEGORY
from memdb.layers.record import Place
from memdb.storage.clock import from_text
from memdb.storage.transaction import Transaction
from memdb.text.shown import shown

SAME_S = 0.001  # two times of a file that are no further apart are one


class FileEntry(Model):
    """A file's entry in the index; see MarkdownStore.read_index. What is None stays as it is."""

    filename: Id
    title: Title | None = None
    description: Content | None = None
    keywords: Keywords | None = None
    category: Id = DEFAULT_CATEGORY
    last_modified: FiniteFloat | None = None


@dataclass(slots=True)
class IndexReport:
    """What writing an index did.

    Args:
        written: (category, file name) of the entries that stand now.
        stale: those of them that are of another time than the file, and made anew, by rule, at the next refresh.
        skipped: (category, file name, why) of those that were left out.
        rebuilt: whether the index was of an older version, and was made anew by rule instead.
    """

    written: list[tuple[str, str]] = field(default_factory=list)
    stale: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    rebuilt: bool = False


def read(tx: Transaction, place: Place) -> dict[str, Any]:
    """Return the index as the documented dict; {} where there is none.

    An entry of a file that has changed since has the time when it was indexed: another than the file's.
    """
    if not note_index.there_is(tx, place):
        return {}
    updated = note_index.last_updated(tx, place)
    older = {state.number: state.indexed_at for state in note_indexing.changed(tx, place, None)}
    return {
        "index_version": INDEX_VERSION,
        "last_updated": 0.0 if updated is None else updated.timestamp(),
        "files": [_as_dict(entry, older.get(entry.note.number)) for entry in note_index.entries(tx, place)],
    }


def _as_dict(entry: IndexEntry, indexed_at: str | None) -> dict[str, Any]:
    return {
        "filename": entry.note.filename,
        "title": entry.title,
        "description": entry.description,
        "keywords": entry.keywords,
        "category": entry.note.category,
        "last_modified": (entry.last_modified if indexed_at is None else from_text(indexed_at)).timestamp(),
    }


def check(index: object) -> tuple[int, list[FileEntry]]:
    """Return the version of an index and its entries; none of an older version, whose entries nobody asks for.

    Raises:
        InvalidInput: it is not such a dict, or newer than this memdb.
    """
    if not isinstance(index, Mapping):
        raise InvalidInput(f"index must be a dict as read_index() returns it, not {type(index).__name__}")
    version = index.get("index_version")
    if isinstance(version, bool) or not isinstance(version, int) or version > INDEX_VERSION:
        raise InvalidInput(f"index_version must be a whole number up to {INDEX_VERSION}, not {shown(version)}")
    if version < INDEX_VERSION:
        return version, []
    files = check_bulk(index.get("files", []), "files")
    return version, [FileEntry.model_validate(one) for one in files]


def write(tx: Transaction, place: Place, files: Sequence[FileEntry]) -> IndexReport:
    """Replace the index by these entries; what they leave out is new to the next look.

    An entry of another time than the file's is of another text: it stands, and is stale (the document's rule).
    """
    note_index.forget(tx, place, None)
    names = Names(note_names.all_notes(tx, place))
    report = IndexReport()
    for entry in files:
        note = names.within(entry.category, entry.filename)
        page = None if note is None else note_indexing.page_of(tx, place, note.number)
        if page is None:
            report.skipped.append((entry.category, entry.filename, "there is no such file"))
        else:
            note_indexing.put_chosen(tx, place, page, entry.title, entry.description, entry.keywords)
            report.written.append((entry.category, entry.filename))
            if entry.last_modified is not None and abs(page.updated.timestamp() - entry.last_modified) > SAME_S:
                note_index.outdate(tx, place, page.id)
                report.stale.append((entry.category, entry.filename))
    return report


def update(tx: Transaction, place: Place, entry: FileEntry) -> None:
    """Put one entry into the index.

    Raises:
        MissingFile: there is no such file.
    """
    names = note_names.names_like(tx, place, [f"{entry.category}/{entry.filename}"])
    note = names.within(entry.category, entry.filename)
    page = None if note is None else note_indexing.page_of(tx, place, note.number)
    if page is None:
        raise MissingFile(f"the category {entry.category!r} holds no file {entry.filename!r}; nothing was indexed")
    if not note_index.there_is(tx, place):
        note_index.begin(tx, place)
    note_indexing.put_chosen(tx, place, page, entry.title, entry.description, entry.keywords)
