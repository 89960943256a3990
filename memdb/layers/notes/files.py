"""Notes as files: list, read, write and delete pages by the names of notes (local-ai document, MemoryStore)."""

from __future__ import annotations

from pathlib import PurePosixPath

from memdb.errors import MissingFile, SerializationError
from memdb.layers import reading, records
from memdb.layers.knowledge import KnowledgeStore
from memdb.layers.layer import Inside
from memdb.layers.notes import index as note_index
from memdb.layers.notes import names as note_names
from memdb.layers.notes.names import Names, Note, find_note
from memdb.layers.page import DEFAULT_CATEGORY, KnowledgePage, readable
from memdb.layers.record import Place
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_TITLE_CHARS


def list_files(tx: Transaction, place: Place, category: str) -> list[str]:
    """Return the names of the notes of a category, in the order of adding."""
    notes = note_names.all_notes(tx, place)
    names = Names(notes)
    return [names.name(note) for note in notes if note.category == category]


def read_file(tx: Transaction, place: Place, name: str) -> str:
    """Return the text of a note.

    Raises:
        MissingFile: there is none of this name, or it cannot be read.
        InvalidInput: several have this name.
    """
    page = reading.get(tx, place, find_note(tx, place, name).page_id, readable)
    if page is None:
        raise MissingFile(f"the file {name!r} cannot be read; what it held is in the quarantine")
    return page.content


def write_file(
    tx: Transaction, place: Place, name: str, category: str | None, content: str, headline: tuple[str, str]
) -> str:
    """Create a note or replace its text, title and description, and return what it is called.

    A note that is there keeps its tags, its references, the time when it was made, and keywords that its author chose.

    Args:
        category: of the note; None for what stands before the first slash of the name.
        headline: the title and the description that the text gives itself.
    """
    note = _standing(tx, place, name, category)
    filename = note.filename if note is not None else name if category is not None else _split(name)[1]
    title = (headline[0] or PurePosixPath(filename).stem or filename)[:MAX_TITLE_CHARS]
    texts = {"title": title, "summary": headline[1], "content": content}
    store: KnowledgeStore[Inside] = KnowledgeStore(Scope(place.user_id), tx)
    if note is None:
        category = category or _split(name)[0]
        page_id = f"{category}/{filename}"
        store.add_page(KnowledgePage(id=page_id, category=category, **texts))
    else:
        page_id = note.page_id
        store.update_page(_old(tx, place, store, note, content).model_copy(update=texts))
    return note_names.called(tx, place, note_names.names_like(tx, place, [page_id]).find(page_id))[0]


def _standing(tx: Transaction, place: Place, name: str, category: str | None) -> Note | None:
    """Return the note that is there under a name, or None."""
    if category is None:
        return note_names.names_like(tx, place, [name]).one(name)
    return note_names.names_like(tx, place, [f"{category}/{name}"]).within(category, name)


def _old(tx: Transaction, place: Place, store: KnowledgeStore[Inside], note: Note, content: str) -> KnowledgePage:
    """Return the page of a note, without keywords that a model chose for another text than `content`."""
    page = store.get_page(note.page_id)
    if page is None:
        raise SerializationError(f"the page {note.page_id!r} could not be read and is set aside; write it again")
    state = note_index.state_of(tx, place, note.number)
    other = state is not None and state.by_model and content != page.content
    return page.model_copy(update={"keywords": []}) if other else page


def delete_file(tx: Transaction, place: Place, name: str) -> None:
    """Delete a note and all that belongs to it.

    Raises:
        MissingFile: there is none of this name.
        InvalidInput: several have this name.
    """
    records.remove(tx, place, find_note(tx, place, name).page_id)


def _split(name: str) -> tuple[str, str]:
    """Return the category of a new note and its name within it."""
    category, _slash, filename = name.partition("/")
    return (category, filename) if category and filename else (DEFAULT_CATEGORY, name)
