"""Pages written as Markdown notes, of which `sync_folder` makes the same pages."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from memdb.errors import InvalidInput
from memdb.layers.knowledge import KnowledgePage, KnowledgeStore
from memdb.layers.layer import Inside
from memdb.markdown.note import id_in, read_bytes, render
from memdb.markdown.report import ExportReport, Skipped
from memdb.markdown.resolve import SUFFIXES
from memdb.markdown.scan import folder_name, real_folder
from memdb.scope import DEFAULT_USER, Scope
from memdb.storage.transaction import Transaction
from memdb.text.check import check_id

if TYPE_CHECKING:
    from memdb.database import Database

BATCH = 200  # pages in memory at once
MAX_NAME_BYTES, MAX_PARTS = 200, 16

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]|^\.|[. ]$')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³])(?:\.|$)", re.I)
_NO_NAME = re.compile(r"[^\w-]+")


async def export_folder(
    db: Database, folder: str | os.PathLike[str], *, user_id: str = DEFAULT_USER, category: str | None = None
) -> ExportReport:
    """Write a user's pages as Markdown notes with front matter; syncing the folder gives the same pages again.

    A note is written whole or not at all. One that says the same already is left as it is, one of the same page is
    replaced, and a file that holds anything else is never touched: its page is reported instead.

    Args:
        folder: where to; made when it is missing.
        user_id: whose pages.
        category: only pages of this category.

    Raises:
        InvalidInput: the folder cannot be made, or is no folder; an id is no valid text.
    """
    if category is not None:
        check_id(category, "category")
    ids = [entry.id for entry in await db.memory(user_id).pages.get_index(category=category)]
    root = await asyncio.to_thread(_make, folder)
    report, names = ExportReport(), FileNames()
    for at in range(0, len(ids), BATCH):
        pages = await db.read(_pages, user_id, ids[at : at + BATCH])
        await asyncio.to_thread(_write_all, root, pages, names, report)
    return report


def _pages(tx: Transaction, user_id: str, ids: list[str]) -> list[KnowledgePage]:
    store: KnowledgeStore[Inside] = KnowledgeStore(Scope(user_id), tx)
    pages = [store.get_page(id) for id in ids]
    return [page for page in pages if page is not None]


def _make(folder: str | os.PathLike[str]) -> Path:
    try:
        os.makedirs(folder_name(folder), exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be made a folder ({error.strerror})") from None
    return real_folder(folder)


def _write_all(root: Path, pages: list[KnowledgePage], names: FileNames, report: ExportReport) -> None:
    for page in pages:
        path = names.of(page.id)
        try:
            _write(root, path, page, report)
        except OSError as error:
            report.skipped.append(Skipped(page.id, f"{path} cannot be written ({error.strerror or error})"))
        except InvalidInput as error:
            report.skipped.append(Skipped(page.id, str(error)))


def _write(root: Path, path: str, page: KnowledgePage, report: ExportReport) -> None:
    target = root / path
    text = render(page).encode()
    parent = Path(os.path.realpath(target.parent))
    if parent != root and root not in parent.parents:  # before a folder is made there
        raise InvalidInput(f"{path} leads out of the folder by a link")
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        there = read_bytes(str(target)) if os.path.isfile(target) and not os.path.islink(target) else b""
        if there == text:
            report.unchanged.append(path)
            return
        if id_in(there) != page.id:
            raise InvalidInput(f"{path} is there already and holds something else; move it away")
    unfinished = target.with_name(f".{uuid4().hex}.unfinished")
    try:
        unfinished.write_bytes(text)
        os.replace(unfinished, target)
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()
    report.written.append(path)


class FileNames:
    """The files of pages: their ids where these can be paths, else a name made of the id's words and its hash."""

    def __init__(self) -> None:
        self._files: set[str] = set()  # folded: on some disks letter case does not count
        self._folders: set[str] = set()

    def of(self, id: str) -> str:
        """Return the path of a page's file, in the folder, with / between its parts."""
        path = id if id.lower().endswith(SUFFIXES) else f"{id}.md"
        if not _is_safe(path) or not self._take(path):
            words = _NO_NAME.sub("-", id)[:40].strip("-")
            path = f"{words}-{hashlib.sha256(id.encode()).hexdigest()[:16]}.md".lstrip("-")
            self._take(path)
        return path

    def _take(self, path: str) -> bool:
        """Take a path, unless it is another page's or one of the two would have to be a file and a folder."""
        folded = unicodedata.normalize("NFKC", path).casefold()
        parts = folded.split("/")
        folders = {"/".join(parts[:count]) for count in range(1, len(parts))}
        if folded in self._files or folded in self._folders or folders & self._files:
            return False
        self._files.add(folded)
        self._folders |= folders
        return True


def _is_safe(path: str) -> bool:
    parts = path.split("/")
    return len(parts) <= MAX_PARTS and all(
        part and len(part.encode()) <= MAX_NAME_BYTES and not _UNSAFE.search(part) and not _RESERVED.match(part)
        for part in parts
    )
