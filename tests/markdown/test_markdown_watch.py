"""Watching: in step until it is left, by being told or by looking, and nothing stays behind."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import memdb
from memdb import InvalidInput, MissingExtra, MissingFile
from memdb.markdown import watch


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n")
    return folder


async def until(true: Callable[[], bool]) -> None:
    for _ in range(400):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize("poll", [False, True])
async def test_pages_follow_the_folder_until_it_is_left(db: memdb.Database, notes: Path, poll: bool) -> None:
    reports: list[memdb.SyncReport] = []
    before = asyncio.all_tasks()
    async with memdb.watch_folder(
        db, notes, user_id="alice", poll=poll, interval=0.2, on_sync=reports.append
    ) as watching:
        assert watching.report.added == ["knowledge/a.md"]
        (notes / "b.md").write_text("# B\n")  # perhaps before anybody is told of changes
        await until(lambda: any("knowledge/b.md" in report.added for report in reports))
        (notes / "a.md").write_text("# A, changed\n")
        await until(lambda: any("knowledge/a.md" in report.changed for report in reports))
        (notes / "b.md").rename(notes / "c.md")
        await until(lambda: any(report.renamed for report in reports))
        (notes / "c.md").unlink()
        await until(lambda: any(report.removed for report in reports))
    assert asyncio.all_tasks() == before
    (notes / "later.md").write_text("# Later\n")
    await asyncio.sleep(0.6)
    assert [entry.id for entry in await db.memory("alice").pages.get_index()] == ["knowledge/a.md"]


@pytest.mark.parametrize("poll", [False, True])
async def test_a_folder_that_is_gone_for_a_while_costs_no_page(
    db: memdb.Database, notes: Path, poll: bool, caplog: pytest.LogCaptureFixture
) -> None:
    pages = db.memory("alice").pages
    async with memdb.watch_folder(db, notes, user_id="alice", poll=poll, interval=0.1) as watching:
        shutil.move(notes, notes.with_name("away"))
        await until(lambda: "vanish" in caplog.text or "no folder" in caplog.text or "not in step" in caplog.text)
        await asyncio.sleep(0.5)
        assert [entry.id for entry in await pages.get_index()] == ["knowledge/a.md"]
        assert len([record for record in caplog.records if record.name == "memdb"]) <= 3  # not at every look
        shutil.move(notes.with_name("away"), notes)
        (notes / "b.md").write_text("# B\n")
        await until(lambda: watching.report.unchanged + len(watching.report.added) == 2)


async def test_what_is_wrong_from_the_start_is_raised(db: memdb.Database, tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        async with memdb.watch_folder(db, tmp_path / "nope"):
            raise AssertionError
    for interval in (0, -1, 10_000, "3", True):
        with pytest.raises(InvalidInput, match="interval"):
            memdb.watch_folder(db, tmp_path, interval=interval)  # type: ignore[arg-type]


async def test_without_watchfiles_it_looks(db: memdb.Database, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"memdb\[watch\]"):
        memdb.watch_folder(db, notes, poll=False)
    async with memdb.watch_folder(db, notes, interval=0.1) as watching:
        (notes / "b.md").write_text("# B\n")
        await until(lambda: watching.report.unchanged + len(watching.report.added) == 2)


async def test_an_error_in_the_block_ends_the_watch(db: memdb.Database, notes: Path) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(RuntimeError, match="mine"):
        async with memdb.watch_folder(db, notes, poll=True, interval=0.1):
            raise RuntimeError("mine")
    assert asyncio.all_tasks() == before
