"""The index of a tree's notes: what it says of a note that has not changed since."""

from __future__ import annotations

from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.notes import index as note_index
from memdb.layers.notes import indexing as note_indexing
from memdb.layers.reading import numbers
from memdb.layers.record import Place
from memdb.retrieval.notes.index_form import FileEntry
from memdb.storage.transaction import Transaction

SAME_S = 2.0  # two times of a file that are no further apart are one: some disks count in steps of two seconds


class IndexEntries:
    """The entries of `memory_index.json`.

    Attributes:
        passed_over: how many of them were of an older text than the file's.
    """

    def __init__(self) -> None:
        self.passed_over = 0
        self._entries: dict[tuple[str, str], FileEntry] = {}

    def read(self, index: dict[str, Any]) -> None:
        """Take the entries of an index of the documented form; whatever else it holds is passed over."""
        files = index.get("files") if index.get("index_version") == note_index.INDEX_VERSION else None
        for one in files if isinstance(files, list) else ():
            try:
                entry = FileEntry.model_validate(one)
            except InvalidInput:
                continue
            self._entries[entry.category, entry.filename] = entry

    def of(self, category: str, filename: str, modified: float) -> FileEntry | None:
        """Return what the index says of a file; None where it is of another time (the document's rule)."""
        entry = self._entries.get((category, filename))
        if entry is None:
            return None
        if entry.last_modified is None or abs(entry.last_modified - modified) > SAME_S:
            self.passed_over += 1
            return None
        return entry


def put_entry(tx: Transaction, place: Place, page_id: str, entry: FileEntry) -> None:
    """Let the index say of a page what an entry says."""
    number = numbers(tx, place, [page_id])[page_id]
    page = note_indexing.page_of(tx, place, number)
    if page is not None:
        if not note_index.there_is(tx, place):
            note_index.begin(tx, place)
        note_indexing.put_chosen(tx, place, page, entry.title, entry.description, entry.keywords)
