"""A folder of notes, and the pages that come of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, KnowledgePage, SyncReport
from memdb.markdown import sync


class Notes:
    """A folder of notes that is synced into alice's pages.

    Args:
        db: where the pages go.
        root: the folder; made when it is missing.
    """

    def __init__(self, db: Database, root: Path) -> None:
        self.db, self.root = db, root
        self.pages = db.memory("alice").pages
        root.mkdir(exist_ok=True)

    def write(self, path: str, text: str | bytes = "") -> Path:
        """Write a file of the folder, with the folders above it."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    async def sync(self, **options: Any) -> SyncReport:
        return await memdb.sync_folder(self.db, self.root, **{"user_id": "alice", **options})

    async def page(self, id: str) -> KnowledgePage:
        """Return a page that must be there: "knowledge/" and the file, unless the id says more."""
        found = await self.pages.get_page(id) or await self.pages.get_page(f"knowledge/{id}")
        assert found is not None, f"there is no page {id}"
        return found

    async def ids(self) -> list[str]:
        return sorted(entry.id.removeprefix("knowledge/") for entry in await self.pages.get_index())

    async def references(self, id: str) -> list[str]:
        return [found.removeprefix("knowledge/") for found in (await self.page(id)).references]

    async def recall(self, id: str, times: int) -> None:
        """Mark a page so that it is known again whatever becomes of its id."""
        for _ in range(times):
            await self.db.write(_recall, id)

    async def recalls(self) -> dict[str, int]:
        return dict(await self.db.read(_recalls))


def ids(report: SyncReport) -> dict[str, object]:
    """What a report says, in short: only what is not empty, ids without the category."""

    def short(id: str) -> str:
        return id.removeprefix("knowledge/")

    said = {name: [short(id) for id in getattr(report, name)] for name in ("added", "changed", "removed")}
    said["renamed"] = [(short(old), short(new)) for old, new in report.renamed]
    return {name: value for name, value in said.items() if value}


def _recall(tx: Any, id: str) -> None:
    tx.execute(
        "INSERT INTO recall (record_id, recall_count)"
        " SELECT id, 1 FROM record WHERE key IN (?, 'knowledge/' || ?) AND user_id = 'alice'"
        " ON CONFLICT (record_id) DO UPDATE SET recall_count = recall_count + 1",
        (id, id),
    )


def _recalls(tx: Any) -> list[tuple[str, int]]:
    rows = tx.execute("SELECT record.key, recall_count FROM recall JOIN record ON record.id = record_id")
    return [(key.removeprefix("knowledge/"), count) for key, count in rows]


@pytest.fixture
def notes(db: Database, tmp_path: Path) -> Notes:
    return Notes(db, tmp_path / "notes")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the times of files at once, as if all were written some seconds before the sync."""
    monkeypatch.setattr(sync, "FRESH_NS", 0)


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make files and folders unreadable, also for root."""

    def make(*names: str, error: OSError | None = None) -> None:
        refused = error or PermissionError(13, "Permission denied")
        real_open, real_scandir = os.open, os.scandir

        def opened(path: Any, *args: Any, **options: Any) -> int:
            if isinstance(path, str) and os.path.basename(path) in names:
                raise refused
            return real_open(path, *args, **options)

        def listed(path: Any = ".") -> Any:
            if isinstance(path, str) and os.path.basename(path) in names:
                raise refused
            return real_scandir(path)

        monkeypatch.setattr(os, "open", opened)
        monkeypatch.setattr(os, "scandir", listed)

    return make
