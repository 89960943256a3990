"""Writing a user's runtime memory and notes as a tree, of which `import_tree` makes the same again."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdb.errors import AlreadyExists, InvalidInput, NotFound
from memdb.layers import reading
from memdb.layers.knowledge import KnowledgeStore
from memdb.layers.layer import Inside, Live
from memdb.layers.notes import names as note_names
from memdb.layers.page import LAYER as PAGES
from memdb.layers.page import KnowledgePage
from memdb.layers.record import Place, Record
from memdb.layers.runtime import saves, stored_results
from memdb.layers.runtime.envelope import FORMAT_VERSION, envelope, epoch
from memdb.layers.runtime.manager import MemoryManager
from memdb.markdown.export import FileNames
from memdb.markdown.note import render
from memdb.scope import DEFAULT_USER, Scope
from memdb.storage.transaction import Transaction
from memdb.storage.whole_file import file_path, told_of, written_whole
from memdb.text.check import check_flag, check_id
from memdb.trees.layout import (
    DATA,
    INDEX,
    MANIFEST,
    PLANS,
    RUNTIME,
    STATE,
    TOOL_RESULTS,
    WORKING,
    FileNaming,
    Manifest,
    stem,
)
from memdb.trees.report import TreeReport

if TYPE_CHECKING:
    from memdb.database import Database

BATCH = 100  # notes in memory at once


async def export_tree(
    db: Database, folder: str | os.PathLike[str], *, user_id: str = DEFAULT_USER, force: bool = False
) -> TreeReport:
    """Write a user's states, summaries, checkpoints, tool results and notes as a `memory/` and `memory_data/` tree.

    Of each checkpoint the last save is written, not its history. Each file is whole or not there. Notes are written as
    they stand; front matter is added only to those with tags or references, which the text alone would lose.

    Args:
        folder: where to; made when it is missing. It must be empty or hold an earlier tree of memdb.
        user_id: whose memory.
        force: whether files that are there may be replaced in any folder.

    Returns:
        What was written.

    Raises:
        NotFound: the file holds nothing of the user that a tree has room for; nothing was written.
        AlreadyExists: the folder holds something else.
        InvalidInput: it is no folder.
        StorageError: a file cannot be written.
    """
    check_id(user_id, "user_id")
    check_flag(force, "force")
    root = file_path(folder, "the tree")
    sessions = [info.session_id for info in await db.sessions(user_id)]
    notes = await db.read(_notes, user_id)
    manifest = await asyncio.to_thread(_prepare, root, force)
    writer = _Writer(db, root, manifest)
    for session_id in sorted(sessions):
        await writer.session(Scope(user_id, session_id))
    await writer.notes(user_id, notes)
    if not writer.report.total:
        raise NotFound(f"the file holds no runtime memory and no notes of user {user_id!r}; nothing was exported")
    await writer.finish(user_id)
    return writer.report


def _prepare(root: Path, force: bool) -> Manifest:
    with told_of(root):
        if root.exists() and not root.is_dir():
            raise InvalidInput(f"{root} is no folder; name one to write the tree to")
        manifest = Manifest.read(root / RUNTIME)
        if not force and root.is_dir() and any(root.iterdir()) and not (root / RUNTIME / MANIFEST).exists():
            raise AlreadyExists(f"{root} holds something else than a tree of memdb; name another folder, or force it")
    return manifest


def _notes(tx: Transaction, user_id: str) -> list[note_names.Note]:
    return note_names.all_notes(tx, Place.of(PAGES, Scope(user_id)))


class _Writer:
    """One export of a tree."""

    def __init__(self, db: Database, root: Path, manifest: Manifest) -> None:
        self.report = TreeReport()
        self._db, self._root, self._manifest = db, root, manifest
        self._naming = FileNaming(manifest)
        self._written: set[str] = set()
        self._like = None if db.path == ":memory:" else Path(db.path)

    async def session(self, scope: Scope) -> None:
        """Write what a session holds."""
        manager = self._db.memory(scope.user_id, scope.session_id).manager
        name = self._naming.of_scope(scope)
        if (state := await manager.state_envelope()) is not None:
            await self._write(f"{RUNTIME}/{STATE}/{name}.json", _json(state))
            self.report.states += 1
        if summary := await manager.get_working_memory():
            await self._write(f"{RUNTIME}/{WORKING}/{name}.md", _text(summary))
            self.report.working_memories += 1
        for at, save in enumerate(await self._db.read(_saves, scope)):
            path = (
                f"{RUNTIME}/{PLANS}/{name}.json" if at == 0 else f"{RUNTIME}/{PLANS}/{name}.{_cased(save['id'])}.json"
            )
            await self._write(path, _json(save))
            self.report.checkpoints += 1
        for id in await self._db.read(_result_ids, scope):
            await self._result(manager, id)

    async def _result(self, manager: MemoryManager[Live], id: str) -> None:
        told = await self._db.read(_result_of, manager.scope, id)
        if told is None:  # expired or deleted meanwhile
            return
        file = self._naming.of_result(manager.scope, id)
        await self._write(f"{RUNTIME}/{TOOL_RESULTS}/{file}", _json(told))
        self.report.tool_results += 1

    async def notes(self, user_id: str, notes: list[note_names.Note]) -> None:
        """Write the notes of a user."""
        names: dict[str, FileNames] = {}
        for at in range(0, len(notes), BATCH):
            for note, page, updated in await self._db.read(_pages, user_id, notes[at : at + BATCH]):
                filename = note.filename
                if not filename.startswith(f"{user_id}_"):
                    filename = f"{stem(user_id)}_{filename.replace('/', '_')}"
                category = stem(note.category)
                path = f"{category}/{names.setdefault(category, FileNames()).of(filename)}"
                self._manifest.notes[path] = (user_id, page.id)
                bare = not (page.tags or page.references)
                text = _text(page.content if bare else render(page))
                await self._write(f"{DATA}/{path}", text, modified=updated)
                self.report.notes += 1

    async def finish(self, user_id: str) -> None:
        """Write the index of the notes and what says whose the files are."""
        index = await self._db.memory(user_id).notes.read_index()
        if index.get("files"):
            await self._write(f"{DATA}/{INDEX}", _json(self._renamed(user_id, index)))
        old = await asyncio.to_thread(self._leftovers, user_id)
        await self._write(f"{RUNTIME}/{MANIFEST}", self._manifest.text().encode())
        for path in old:
            await asyncio.to_thread((self._root / path).unlink, missing_ok=True)

    def _leftovers(self, user_id: str) -> list[str]:
        """Return the files of an earlier export that hold what is gone since; the manifest forgets them."""
        results, notes = self._manifest.results, self._manifest.notes
        found = [f"{RUNTIME}/{TOOL_RESULTS}/{name}" for name, whose in results.items() if whose[0] == user_id]
        found += [f"{DATA}/{path}" for path, whose in notes.items() if whose[0] == user_id]
        for name in [name for name, whose in self._manifest.scopes.items() if whose[0] == user_id]:
            found += [f"{RUNTIME}/{STATE}/{name}.json", f"{RUNTIME}/{WORKING}/{name}.md"]
            plans = self._root / RUNTIME / PLANS
            found += [
                f"{RUNTIME}/{PLANS}/{path.name}"
                for path in (*plans.glob(f"{name}.json"), *plans.glob(f"{name}.*.json"))
            ]
        if all(whose[0] == user_id for whose in notes.values()):
            found.append(f"{DATA}/{INDEX}")
        old = [path for path in found if path not in self._written]
        for path in old:
            results.pop(path.removeprefix(f"{RUNTIME}/{TOOL_RESULTS}/"), None)
            notes.pop(path.removeprefix(f"{DATA}/"), None)
        return old

    def _renamed(self, user_id: str, index: dict[str, Any]) -> dict[str, Any]:
        """Return an index with the names that the files have in the tree."""
        paths = {page_id: path for path, (owner, page_id) in self._manifest.notes.items() if owner == user_id}
        files = []
        for entry in index["files"]:
            page_id = f"{entry['category']}/{entry['filename']}"
            path = paths.get(page_id) or paths.get(entry["filename"])
            if path is not None:
                category, _, filename = path.partition("/")
                files.append({**entry, "category": category, "filename": filename})
        return {**index, "files": files}

    async def _write(self, path: str, data: bytes, *, modified: float | None = None) -> None:
        self._written.add(path)
        await asyncio.to_thread(_write, self._root / path, data, self._like, modified)


def _write(path: Path, data: bytes, like: Path | None, modified: float | None) -> None:
    with told_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path, like) as file:
        file.write(data)
    if modified is not None:  # by which the index tells whether it is of this text
        with told_of(path):
            os.utime(path, (modified, modified))


def _saves(tx: Transaction, scope: Scope) -> list[dict[str, Any]]:
    """Return the last save of each id as its file, newest first; `status` stands beside what the document has there."""
    return [
        {
            "format_version": FORMAT_VERSION,
            "id": save.id,
            "saved_at": epoch(save.saved_at),
            "status": save.status,
            "payload": save.payload,
        }
        for save in saves.current(tx, scope, None)
    ]


def _result_of(tx: Transaction, scope: Scope, id: str) -> dict[str, Any] | None:
    """Return a tool result as its file; `expires_at` stands beside what the document has there."""
    place = Place.of(stored_results.LAYER, scope, by_session=True)
    with suppress(NotFound):
        return stored_results.read(tx, place, id, lambda at, stored: _told(at, place, stored))
    return None


def _told(tx: Transaction, place: Place, stored: stored_results.Stored) -> dict[str, Any]:
    found = stored.record
    told = envelope(found.key, found.updated_at, stored_results.payload_of(tx, place, stored))
    return told if found.expires is None else {**told, "expires_at": found.expires.isoformat()}


def _result_ids(tx: Transaction, scope: Scope) -> list[str]:
    place = Place.of(stored_results.LAYER, scope, by_session=True)
    return stored_results.ids(tx, place)


def _pages(
    tx: Transaction, user_id: str, notes: list[note_names.Note]
) -> list[tuple[note_names.Note, KnowledgePage, float]]:
    """Return notes with their pages and when these were last stored, in seconds since 1970."""
    place, store = Place.of(PAGES, Scope(user_id)), KnowledgeStore[Inside](Scope(user_id), tx)
    found = []
    for note in notes:
        page, updated = store.get_page(note.page_id), reading.get(tx, place, note.page_id, _updated)
        if page is not None and updated is not None:
            found.append((note, page, updated))
    return found


def _updated(found: Record) -> float:
    return found.updated.timestamp()


def _cased(id: str) -> str:
    """Return an id as a file's name that differs from all others by more than letter case."""
    return stem(id if id == id.lower() else f"{id}.")


def _json(value: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate
        return (json.dumps(value, indent=2) + "\n").encode()


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
