"""Markdown notes by name, their index and the searches over it: MarkdownStore (local-ai document, "MemoryStore")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_query, check_score
from memdb.layers.notes import files as note_files
from memdb.layers.notes import index as note_index
from memdb.layers.notes import names as note_names
from memdb.layers.notes.index import IndexEntry
from memdb.layers.recall import record_recalls
from memdb.layers.record import Place
from memdb.retrieval.notes.indexed import IndexedNotes
from memdb.scope import Scope
from memdb.storage import fulltext
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_text
from memdb.text.headline import headline
from memdb.text.query import parse
from memdb.text.shown import shown

TOP_N = 5  # local-ai document: candidates of stage 1
HYBRID_TOP_N = 10
BM25_WEIGHT = 0.5


class PageSearch(Protocol):
    """Finds pages by their words and their meaning: memory.hybrid."""

    async def page_ids(
        self, query: str, *, k: int = 10, bm25_weight: float = 0.5, categories: list[str] | None = None
    ) -> list[str]:
        """Return the ids of the pages that match best, best first."""
        ...


class CategoryDirectory(str):
    """A category as the folder that it would be: `notes.category_dir("work") / "plan.md"` is "work/plan.md"."""

    __slots__ = ()

    def __truediv__(self, filename: str) -> str:
        return f"{self}/{check_key(filename, 'filename')}"


class MarkdownStore(IndexedNotes):
    """The knowledge pages of one user as a folder of Markdown notes (local-ai document). It is `memory.notes`.

    A note is called by its file name, and "category/file.md" where two categories hold the same file name; both forms
    are taken everywhere, and so is the page's id. Names are text: nothing here reads the disk, "../../x" is a name like
    any other. A folder on the disk comes in by sync_folder, watch_folder or MemoryIndexService.

    The index says what each note is about: title, description and keywords, which are those of its page, and of which
    text they are. Notes that are new or have changed are made anew by rule, without a model; what was written through
    memdb (or synced) keeps the title, description and keywords that it was given. Until a user has an index, nothing is
    kept of it. `user_id`, where a method takes one, must be the user of this handle.

    Args:
        scope: whose notes.
        home: the engine.
        hybrid: finds pages by meaning, too; None for BM25 alone.
    """

    def __init__(self, scope: Scope, home: Engine, hybrid: PageSearch | None = None) -> None:
        super().__init__(scope, home)
        self._hybrid = hybrid

    # -- files --------------------------------------------------------------------------------------------------------

    async def list_user_files(self, user_id: str, category: str) -> list[str]:
        """Return the names of a category's notes, in the order of adding."""
        self._checked(user_id, None)
        return await self._home.read(note_files.list_files, self._place, check_key(category, "category"))

    async def read_file(self, name: str) -> str:
        """Return the text of a note.

        Raises:
            MissingFile: there is none of this name; it is also a FileNotFoundError.
            InvalidInput: several have this name; say which by "category/file.md".
        """
        return await self._home.read(note_files.read_file, self._place, check_key(name, "name"))

    async def write_file(self, name: str, content: str, *, category: str | None = None) -> str:
        """Create a note, or replace the text of the one that is there.

        Its title is the first heading of the first rank, else the file's name; its description the first paragraph. A
        note that is there keeps its tags and references, and keywords that its author chose.

        Args:
            name: "category/file.md", or "file.md", which makes new notes in the category "knowledge".
            content: the text, at most 16 MB in UTF-8.
            category: of the note, where its name alone would not say: `name` then is the name within it.

        Returns:
            What the note is called.

        Raises:
            InvalidInput: several notes have this name, or the text cannot be kept.
        """
        check_key(name, "name")
        if category is not None:
            check_key(category, "category")
        says = headline(check_text(content, "content"))
        return await self._home.write(note_files.write_file, self._place, name, category, content, says)

    async def delete_file(self, name: str) -> None:
        """Delete a note and all that belongs to it.

        Raises:
            MissingFile: there is none of this name.
            InvalidInput: several have this name.
        """
        await self._home.write(note_files.delete_file, self._place, check_key(name, "name"))

    def category_dir(self, category: str) -> CategoryDirectory:
        """Return a category to make names with: `notes.category_dir("work") / "plan.md"`. Nothing is made on a disk."""
        return CategoryDirectory(check_key(category, "category"))

    # -- searches -----------------------------------------------------------------------------------------------------

    async def bm25_search(
        self, query: str, top_n: int = TOP_N, *, user_id: str | None = None, categories: Iterable[str] | None = None
    ) -> list[str]:
        """Return the names of the notes that match a query best by BM25, best first, ties in the order of adding.

        Args:
            query: any text in any language; words in double quotes are a phrase.
            top_n: how many at most, 0 to 10,000.
            categories: None for all.
        """
        chosen = self._checked(user_id, categories)
        return await self._home.read(_search, self._place, check_query(query), check_limit(top_n, "top_n"), chosen)

    async def fast_filter(
        self, query: str, top_n: int = TOP_N, *, user_id: str | None = None, categories: Iterable[str] | None = None
    ) -> list[str]:
        """Return what bm25_search returns (local-ai document: an alias)."""
        return await self.bm25_search(query, top_n, user_id=user_id, categories=categories)

    async def hybrid_search(
        self,
        query: str,
        top_n: int = HYBRID_TOP_N,
        bm25_weight: float = BM25_WEIGHT,
        *,
        user_id: str | None = None,
        categories: Iterable[str] | None = None,
    ) -> list[str]:
        """Return the names of the notes that match a query best by its words and by its meaning, best first.

        Without an embedder, or where it fails, this is bm25_search.

        Args:
            query: any text in any language.
            top_n: how many at most.
            bm25_weight: from 0, the vectors alone, to 1, BM25 alone.
            categories: None for all.
        """
        chosen = self._checked(user_id, categories)
        if not 0 <= check_score(bm25_weight, "bm25_weight") <= 1:
            raise InvalidInput(f"bm25_weight must be a number from 0 to 1, not {shown(bm25_weight)}")
        if self._hybrid is None:
            return await self.bm25_search(query, top_n, categories=chosen)
        most = check_limit(top_n, "top_n")
        ids = await self._hybrid.page_ids(check_query(query), k=most, bm25_weight=bm25_weight, categories=chosen)
        return await self._home.read(_names_of_ids, self._place, ids)

    async def entries(self, names: Iterable[str]) -> dict[str, IndexEntry]:
        """Return what is known of some notes, by the names that were asked for.

        A name of no note, or of several, is left out.
        """
        return await self._home.read(
            _entries, self._place, [check_key(name, "names") for name in check_bulk(names, "names")]
        )

    async def record_recall(self, name: str, score: float) -> None:
        """Count that a note proved useful, if it is there; the caller does not wait for the disk."""
        if check_score(score) < 0:
            raise InvalidInput(f"score must be at least 0, not {shown(score)}")
        await self._home.read(_recall, self._place, check_key(name, "name"), float(score))


def _search(tx: Transaction, place: Place, query: str, top_n: int, categories: list[str] | None) -> list[str]:
    """Search each category for itself: BM25 scores do not depend on which records are asked for."""
    terms = parse(query)
    found = [
        hit
        for category in (categories if categories is not None else [None])
        for hit in fulltext.search(tx, terms, place.within(category=category), top_n)
    ]
    found.sort(key=lambda hit: (-hit[1], hit[0]))
    notes = note_names.notes_of(tx, place, [number for number, _ in found[:top_n]])
    return note_names.called(tx, place, notes)


def _names_of_ids(tx: Transaction, place: Place, page_ids: list[str]) -> list[str]:
    names = note_names.names_like(tx, place, page_ids)
    return note_names.called(tx, place, [note for page_id in page_ids for note in names.find(page_id)[:1]])


def _entries(tx: Transaction, place: Place, names: list[str]) -> dict[str, IndexEntry]:
    known = note_names.names_like(tx, place, names)
    notes = {name: found[0] for name in names if len(found := known.find(name)) == 1}
    entries = note_index.entries_of(tx, place, [note.number for note in notes.values()])
    return {name: entries[note.number] for name, note in notes.items() if note.number in entries}


def _recall(tx: Transaction, place: Place, name: str, score: float) -> None:
    note = note_names.names_like(tx, place, [name]).one(name)
    if note is not None:
        record_recalls(tx, place, [(note.page_id, score)])
