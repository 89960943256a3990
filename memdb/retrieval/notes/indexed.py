"""The index of a user's notes: read, write, populate, refresh (local-ai document, "Index Management Methods")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_bulk, check_key, check_range
from memdb.layers.notes import index as note_index
from memdb.layers.notes import indexing as note_indexing
from memdb.layers.notes import names as note_names
from memdb.layers.notes.names import Note
from memdb.layers.page import LAYER
from memdb.layers.record import Place
from memdb.protocols import ChatModel, check_model
from memdb.retrieval.notes import index_form
from memdb.retrieval.notes.index_form import FileEntry, IndexReport
from memdb.retrieval.notes.populating import PopulateReport, populate
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag
from memdb.text.shown import shown

CONCURRENCY = 4  # files whose keywords a model chooses at a time
MAX_CONCURRENCY = 64
MAX_CATEGORIES = 1_000  # of one call


class IndexedNotes:
    """The index of one user's notes. MarkdownStore is one, with the notes themselves and the searches."""

    def __init__(self, scope: Scope, home: Engine) -> None:
        self.scope = scope
        self._home = home
        self._place = Place.of(LAYER, scope)

    @property
    def read_only(self) -> bool:
        """Whether the file is open for reading only, so that its index cannot be kept."""
        return self._home.options.read_only

    async def index_exists(self) -> bool:
        """Return whether this user's notes were ever indexed. Without notes there is no index."""
        return await self._home.read(note_index.there_is, self._place)

    async def read_index(self) -> dict[str, Any]:
        """Return the index as memory_index.json has it (version 3), {} where there is none.

        Returns:
            {"index_version": 3, "last_updated": epoch, "files": [{"filename", "title", "description", "keywords",
            "category", "last_modified": epoch}, ...]} in the order of adding; notes that were not indexed yet are left
            out.
        """
        return await self._home.read(index_form.read, self._place)

    async def write_index(self, index: Mapping[str, Any]) -> IndexReport:
        """Replace the index by one that read_index() gave.

        Files that it does not name are new to the next look. An entry whose file is not there is left out and reported;
        one whose file was stored at another time than its last_modified says stands, and is stale. An index of an older
        version is not taken: all files are indexed anew, by rule.

        Raises:
            InvalidInput: it is no such index, or of a newer version; nothing was changed.
        """
        version, files = index_form.check(index)
        if version == note_index.INDEX_VERSION:
            return await self._home.write(index_form.write, self._place, files)
        await self._home.write(note_index.forget, self._place, None)
        await self._refresh(None)
        return IndexReport(rebuilt=True)

    async def update_index_entry(
        self, filename: str, title: str, description: str, keywords: Iterable[str], category: str
    ) -> None:
        """Say what the index has of one note. It holds until the note's text changes.

        Args:
            filename: the note's name within its category.
            keywords: at most 64; by rule where empty.

        Raises:
            MissingFile: the category holds no such file.
            InvalidInput: an argument is not what it must be.
        """
        words = check_bulk(keywords, "keywords")
        entry = FileEntry(filename=filename, title=title, description=description, keywords=words, category=category)
        await self._home.write(index_form.update, self._place, entry)

    async def populate_index_from_files(
        self,
        user_id: str,
        categories: Iterable[str] | None,
        llm: ChatModel | None,
        *,
        rebuild: bool = False,
        concurrency: int = CONCURRENCY,
    ) -> PopulateReport:
        """Index the notes of some categories with keywords that a model chooses, 5 to 10 a file.

        Each file is stored as soon as its keywords are known: a call that is cancelled or dies loses nothing, and the
        next one goes on with the rest. Where the model fails or its answer is of no use, the file gets keywords by rule
        (the log says so once); after five failures in a row it is not asked any more. A file that is changed meanwhile
        is left for the next look. Keywords that a note's author chose stay.

        Args:
            categories: None for all.
            llm: the model; None for keywords by rule.
            rebuild: also files whose keywords a model chose already.
            concurrency: how many files at a time, 1 to 64.
        """
        chosen = self._checked(user_id, categories)
        check_range(concurrency, "concurrency", 1, MAX_CONCURRENCY)
        check_flag(rebuild, "rebuild")
        if llm is not None:
            check_model(llm)
            numbers = await self._home.write(
                lambda tx: note_index.await_model(tx, self._place, chosen, rebuild=rebuild)
            )
            return await populate(self._home, self._place, numbers, llm, concurrency)
        await self._home.write(
            note_index.forget if rebuild else note_index.begin, self._place, *([chosen] if rebuild else [])
        )
        return PopulateReport(by_rule=[note.page_id for note in await self._refresh(chosen)])

    async def get_stale_entries(self, user_id: str, categories: Iterable[str] | None = None) -> list[tuple[str, str]]:
        """Return the notes that are new or whose text has changed since they were indexed, however it was changed.

        Returns:
            (category, file name) of each, in the order of adding.
        """
        chosen = self._checked(user_id, categories)
        return await self._home.read(_stale, self._place, chosen)

    async def refresh_stale_entries(
        self, user_id: str, categories: Iterable[str] | None = None
    ) -> list[tuple[str, str]]:
        """Index anew by rule, without a model, what get_stale_entries() tells of.

        Returns:
            (category, file name) of each note that was indexed, in the order of adding.
        """
        notes = await self._refresh(self._checked(user_id, categories))
        return [(note.category, note.filename) for note in notes]

    async def is_fresh(self) -> bool:
        """Return whether nothing was written to any note since it was indexed: a look-up, however many there are."""
        return not await self._home.read(note_index.any_flagged, self._place)

    async def awaits_model(self, categories: Iterable[str] | None = None) -> bool:
        """Return whether populating the index was begun and not finished."""
        return await self._home.read(note_index.awaits_model, self._place, checked_categories(categories))

    async def _refresh(self, categories: list[str] | None) -> list[Note]:
        found: list[int] = []
        after: int | None = -1
        while after is not None:
            changed, after = await self._home.write(note_indexing.refresh, self._place, categories, after)
            found += changed
        return await self._home.read(note_names.notes_of, self._place, found)

    def _checked(self, user_id: str | None, categories: Iterable[str] | None) -> list[str] | None:
        """Return the categories, each once; None for all.

        Raises:
            InvalidInput: the user is another, or the categories are no list of names.
        """
        mine = self.scope.user_id
        if user_id is not None and (not isinstance(user_id, str) or user_id != mine):
            other = shown(user_id)
            raise InvalidInput(f"user_id must be {shown(mine)}, whose notes these are: ask db.memory({other}).notes")
        return checked_categories(categories)


def checked_categories(categories: Iterable[str] | None) -> list[str] | None:
    """Return categories, each once; None for all.

    Raises:
        InvalidInput: they are no list of names, or too many.
    """
    if categories is None:
        return None
    chosen = list(dict.fromkeys(check_key(name, "categories") for name in check_bulk(categories, "categories")))
    if len(chosen) > MAX_CATEGORIES:
        raise InvalidInput(f"categories has {len(chosen):,} entries; at most {MAX_CATEGORIES:,} go into one call")
    return chosen


def _stale(tx: Transaction, place: Place, categories: list[str] | None) -> list[tuple[str, str]]:
    notes = note_names.notes_of(tx, place, note_indexing.stale(tx, place, categories))
    return [(note.category, note.filename) for note in notes]
