"""What notes are called: "file.md", and "category/file.md" where two categories hold the same file name (local-ai).

A note is a page. Its file name is the page's id without the category before it, as in the view v_note_index; a name is
text, never a path of the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import func, literal_column, select, text

from memdb.errors import InvalidInput, MissingFile
from memdb.layers.page import DEFAULT_CATEGORY
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage.schema import record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction

MOST_CATEGORIES = 1_000  # in which a bare file name is looked for; beyond them a note is found by its whole name


class Note(NamedTuple):
    """A page as a note.

    Args:
        number: its record's number.
        page_id: its id.
        category: its category.
    """

    number: int
    page_id: str
    category: str

    @property
    def filename(self) -> str:
        """Its name within its category."""
        return self.page_id.removeprefix(f"{self.category}/") or self.page_id

    @property
    def forms(self) -> tuple[str, str, str]:
        """What it may be called, the shortest first: its file name, that with its category, its id."""
        return self.filename, f"{self.category}/{self.filename}", self.page_id


class Names:
    """What some notes are called.

    Args:
        notes: all whose names may be mistaken for one another.
    """

    def __init__(self, notes: Iterable[Note]) -> None:
        self._by_id: dict[str, Note] = {}
        self._by_whole: dict[str, list[Note]] = {}
        self._by_file: dict[str, list[Note]] = {}
        for note in notes:
            filename, whole, page_id = note.forms
            self._by_id[page_id] = note
            self._by_whole.setdefault(whole, []).append(note)
            self._by_file.setdefault(filename, []).append(note)

    def find(self, name: str) -> list[Note]:
        """Return the notes that a name may mean: by their id, else with their category, else without it."""
        if name in self._by_id:
            return [self._by_id[name]]
        return self._by_whole.get(name) or self._by_file.get(name, [])

    def one(self, name: str) -> Note | None:
        """Return the note that a name means, or None.

        Raises:
            InvalidInput: it may mean several.
        """
        found = self.find(name)
        if len(found) > 1:
            choices = " or ".join(repr(self.name(note)) for note in found[:3])
            raise InvalidInput(f"{name!r} is the name of {len(found)} files: say {choices}")
        return found[0] if found else None

    def within(self, category: str, filename: str) -> Note | None:
        """Return the note of a category with this file name, or None."""
        found = [note for note in self._by_file.get(filename, ()) if note.category == category]
        return next((note for note in found if note.page_id != filename), found[0] if found else None)

    def name(self, note: Note) -> str:
        """Return the shortest name that means this note alone."""
        filename, whole, page_id = note.forms
        if len(self._by_file.get(filename, ())) < 2 and self.find(filename) == [note]:
            return filename
        return whole if self.find(whole) == [note] else page_id


_COLUMNS = select(record.c.id, record.c.key, func.coalesce(record.c.category, DEFAULT_CATEGORY))
# "+ 0": under statistics of a sample SQLite walks the records of all users by their id to spare the sort.
_ALL = Statement(_COLUMNS.where(here()).order_by(record.c.id.op("+")(literal_column("0"))))
_OF_KEYS = Statement(_COLUMNS.where(here(), record.c.key.in_(select(each("keys").c.value))))
_OF_NUMBERS = Statement(
    _COLUMNS.where(
        record.c.id.in_(select(each("ids").c.value)),
        record.c.user_id.concat("") == param("user_id"),  # concat: or SQLite would walk the user's whole index
        record.c.layer == param("layer"),
    )
)


def _categories() -> Statement:
    """The categories there are, from each to the next one: the cost grows with them, not with the pages."""
    least = select(func.min(record.c.category)).where(
        record.c.user_id == param("user_id"), record.c.layer == param("layer")
    )
    found = select(least.where(record.c.category > text("''")).scalar_subquery().label("name")).cte("found", True)
    after = least.where(record.c.category > found.c.name).correlate(found).scalar_subquery()
    found = found.union_all(select(after).where(found.c.name.is_not(None)))
    return Statement(select(found.c.name).where(found.c.name.is_not(None)).limit(MOST_CATEGORIES))


_CATEGORIES = _categories()


def all_notes(tx: Transaction, place: Place) -> list[Note]:
    """Return every note of a user, in the order of adding."""
    return _notes(tx.all(_ALL, **place.values()))


def notes_of(tx: Transaction, place: Place, numbers: Iterable[int]) -> list[Note]:
    """Return the notes with these numbers, in the order of the numbers; what is not there is left out."""
    order = {number: at for at, number in enumerate(numbers)}
    rows = tx.all(_OF_NUMBERS, ids=json.dumps(list(order)), user_id=place.user_id, layer=place.layer)
    return sorted(_notes(rows), key=lambda note: order[note.number])


def names_like(tx: Transaction, place: Place, names: Iterable[str]) -> Names:
    """Return all notes that some names may mean: a few look-ups a name, whatever the number of notes."""
    before = [f"{row[0]}/" for row in tx.all(_CATEGORIES, **place.values()) if isinstance(row[0], str)]
    if f"{DEFAULT_CATEGORY}/" not in before:
        before.append(f"{DEFAULT_CATEGORY}/")
    keys = {key for name in names for start in before for key in (name, start + name, name.removeprefix(start)) if key}
    return Names(_notes(tx.all(_OF_KEYS, **place.values(keys=json.dumps(sorted(keys))))))


def called(tx: Transaction, place: Place, notes: Iterable[Note]) -> list[str]:
    """Return what notes are called, in their order."""
    given = list(notes)
    names = names_like(tx, place, {form for note in given for form in note.forms})
    return [names.name(note) for note in given]


def find_note(tx: Transaction, place: Place, name: str) -> Note:
    """Return the note that a name means.

    Raises:
        MissingFile: there is none.
        InvalidInput: it may mean several.
    """
    note = names_like(tx, place, [name]).one(name)
    if note is None:
        raise MissingFile(f"there is no file {name!r}; list_user_files() says which there are")
    return note


def _notes(rows: Iterable[tuple[int, object, object]]) -> list[Note]:
    """Return rows as notes; one whose id a hand has made bytes is none."""
    return [
        Note(number, key, category)
        for number, key, category in rows
        if isinstance(key, str) and isinstance(category, str)
    ]
