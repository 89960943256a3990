"""watch_folder: pages follow a folder while a program runs."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import memdb
from memdb import InvalidInput, KnowledgePage, MissingExtra, SyncReport
from memdb.markdown import watch as watching

PATIENCE_S = 15.0
both = pytest.mark.parametrize("poll", [True, False], ids=["polled", "told"])


async def until(true: Callable[[], object], patience: float = PATIENCE_S) -> None:
    """Wait for what the watch is about to do."""
    async with asyncio.timeout(patience):
        while True:
            found = true()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.02)


def watch(notes, poll: bool | None = True, interval: float = 0.05, **options):
    return memdb.watch_folder(notes.db, notes.root, user_id="alice", poll=poll, interval=interval, **options)


def warnings(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if "in step" in record.getMessage()]


@both
async def test_pages_follow_the_folder(notes, poll):
    notes.write("a.md", "x")
    reports: list[SyncReport] = []
    async with watch(notes, poll, on_sync=reports.append) as watched:
        assert await notes.ids() == ["a.md"]  # entering has synced
        assert watched.report.added == ["knowledge/a.md"]
        notes.write("b.md", "[[a]]")
        await until(lambda: len(reports) > 1)
        assert await notes.ids() == ["a.md", "b.md"]
        (notes.root / "b.md").rename(notes.root / "c.md")
        await until(lambda: any(report.renamed for report in reports))
        notes.write("c.md", "changed")
        await until(lambda: any(report.changed for report in reports))
        (notes.root / "c.md").unlink()
        await until(lambda: any(report.removed for report in reports))
        assert await notes.ids() == ["a.md"]
    assert all(reports), "on_sync hears only of what is other than before"


async def test_a_change_is_told_long_before_the_interval(notes):
    async with watch(notes, False, interval=3600):
        await asyncio.sleep(0.6)  # the first sync after changes are told is over
        notes.write("new/folder/a.md", "x")
        await until(lambda: _has(notes, "new/folder/a.md"), 5)
        notes.write("new/folder/b.md", "x")
        await until(lambda: _has(notes, "new/folder/b.md"), 5)


async def _has(notes, name: str) -> bool:
    return name in await notes.ids()


@both
async def test_what_changes_before_the_watch_has_begun_is_seen(notes, poll, monkeypatch):
    real = watching.FolderWatch._sync

    async def sync(self):
        await real(self)
        if self._task is None:  # entering: the first sync is over, nothing is watched yet
            notes.write("between.md", "x")

    monkeypatch.setattr(watching.FolderWatch, "_sync", sync)
    async with watch(notes, poll, interval=3600 if poll is False else 0.05):
        await until(lambda: _has(notes, "between.md"))


@both
async def test_leaving_ends_it_at_once_and_leaves_nothing_behind(notes, poll):
    # One worker, or how many asyncio starts would hang on how fast the machine is.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    threads, tasks = threading.active_count(), len(asyncio.all_tasks())
    async with watch(notes, poll, interval=3600):
        await asyncio.sleep(0.5)
    async with asyncio.timeout(2):
        async with watch(notes, poll, interval=3600):
            pass
    assert len(asyncio.all_tasks()) == tasks
    notes.write("after.md", "x")
    await asyncio.sleep(0.3)
    assert await notes.ids() == []
    assert threading.active_count() <= threads + 3  # workers of asyncio and anyio, which wait for the next to do


@both
async def test_an_error_in_the_block_goes_out_and_ends_the_watch(notes, poll):
    async def fail() -> None:
        async with watch(notes, poll):
            await asyncio.sleep(0.2)
            raise ZeroDivisionError

    tasks = len(asyncio.all_tasks())
    with pytest.raises(ZeroDivisionError):
        await fail()
    assert len(asyncio.all_tasks()) == tasks


@both
async def test_a_cancelled_block_ends_the_watch(notes, poll):
    tasks = len(asyncio.all_tasks())
    inside = asyncio.Event()

    async def stay() -> None:
        async with watch(notes, poll):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(stay())
    await inside.wait()
    await asyncio.sleep(0.4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(asyncio.all_tasks()) == tasks


@both
async def test_a_folder_that_goes_and_comes_back(notes, poll, tmp_path, caplog):
    notes.write("a.md", "x")
    async with watch(notes, poll):
        notes.root.rename(tmp_path / "away")
        await until(lambda: warnings(caplog))
        await asyncio.sleep(0.4)  # many looks
        assert 1 <= len(warnings(caplog)) <= 2  # once, perhaps once more in other words
        assert await notes.ids() == ["a.md"]
        (tmp_path / "away").rename(notes.root)
        notes.write("b.md", "y")
        await until(lambda: _has(notes, "b.md"))
        notes.write("c.md", "z")
        await until(lambda: _has(notes, "c.md"))
        logged = len(warnings(caplog))
        notes.root.rename(tmp_path / "away")
        await until(lambda: len(warnings(caplog)) > logged)
        (tmp_path / "away").rename(notes.root)


async def test_a_folder_that_was_replaced_is_told_of_again(notes, tmp_path):
    async with watch(notes, False, interval=0.3):
        await asyncio.sleep(0.4)
        notes.root.rename(tmp_path / "away")
        notes.root.mkdir()
        notes.write("a.md", "x")
        await until(lambda: _has(notes, "a.md"))


async def test_an_error_of_the_database_is_told_once_and_does_not_end_it(notes, caplog, monkeypatch):
    real, broken = watching.sync_folder, True

    async def sync(*args, **options):
        if broken:
            raise memdb.Busy("another process held the file")
        return await real(*args, **options)

    async with watch(notes) as watched:
        monkeypatch.setattr(watching, "sync_folder", sync)
        await until(lambda: warnings(caplog))
        await asyncio.sleep(0.3)
        assert len(warnings(caplog)) == 1
        broken = False
        notes.write("a.md", "x")
        await until(lambda: _has(notes, "a.md"))
        assert watched.report.added in ([], ["knowledge/a.md"])


async def test_what_on_sync_raises_does_not_end_the_watch(notes, caplog):
    told: list[SyncReport] = []

    def on_sync(report: SyncReport) -> None:
        told.append(report)
        if len(told) == 1:
            raise KeyError
        if len(told) == 2:
            raise RuntimeError("a bug of the caller")

    async with watch(notes, on_sync=on_sync):
        for name in ("a.md", "b.md", "c.md"):
            notes.write(name, "x")
            await until(lambda name=name: any(f"knowledge/{name}" in report.added for report in told))
    assert len(warnings(caplog)) == 2
    assert all("Traceback" in record.getMessage() for record in caplog.records if "in step" in record.getMessage())


async def test_what_on_sync_raises_while_entering_is_raised(notes):
    notes.write("a.md", "x")

    def on_sync(report: SyncReport) -> None:
        raise KeyError

    tasks = len(asyncio.all_tasks())
    with pytest.raises(KeyError):
        async with watch(notes, on_sync=on_sync):
            pytest.fail("entered")
    assert len(asyncio.all_tasks()) == tasks


@pytest.mark.parametrize(
    "error", [RuntimeError("error in underlying watcher: no more watches"), OSError(28, "no space")]
)
async def test_where_changes_cannot_be_told_the_folder_is_looked_at(notes, caplog, monkeypatch, error):
    import watchfiles

    async def awatch(*args, **options):
        raise error
        yield

    monkeypatch.setattr(watchfiles, "awatch", awatch)
    async with watch(notes, None):
        await until(lambda: any("not told" in record.getMessage() for record in caplog.records))
        notes.write("a.md", "x")
        await until(lambda: _has(notes, "a.md"))
        await asyncio.sleep(0.3)
    assert (
        len([record for record in caplog.records if record.levelno >= logging.WARNING and "SQLite" not in record.msg])
        == 1
    )


async def test_a_skipped_note_is_told_once(notes):
    reports: list[SyncReport] = []
    notes.write("bad.md", b"\xff")
    async with watch(notes, on_sync=reports.append):
        await asyncio.sleep(0.4)
        assert [report.skipped[0].path for report in reports] == ["bad.md"]
        notes.write("bad.md", "good")
        await until(lambda: len(reports) == 2)
        assert (reports[1].skipped, reports[1].added) == ([], ["knowledge/bad.md"])


async def test_a_database_in_the_folder_does_not_keep_the_watch_busy(tmp_path, monkeypatch):
    """A note whose id is taken makes every sync look for it in the database; that must not look like a change."""
    syncs, real = [], watching.sync_folder

    async def sync(*args, **options):
        syncs.append(args)
        return await real(*args, **options)

    monkeypatch.setattr(watching, "sync_folder", sync)
    async with memdb.open(tmp_path / "agent.db") as db:
        await db.memory().pages.add_page(KnowledgePage(id="knowledge/a.md", title="mine"))
        (tmp_path / "a.md").write_text("x")
        async with memdb.watch_folder(db, tmp_path, poll=False, interval=3600):
            await asyncio.sleep(1)
            count = len(syncs)
            await asyncio.sleep(1.5)
            assert len(syncs) - count <= 1


@both
async def test_synced_waits_for_a_sync(notes, poll):
    async with watch(notes, poll, interval=3600) as watched:
        for n in range(5):
            notes.write(f"{n}.md", f"{n}")
            await watched.synced()
            assert f"{n}.md" in await notes.ids()
        assert await asyncio.gather(*(watched.synced() for _ in range(4)))


async def test_two_watches_of_one_folder(notes):
    async with watch(notes, None), watch(notes, True) as second:
        for n in range(10):
            notes.write("a.md", f"{n}")
            await second.synced()
        assert (await notes.page("a.md")).content == "9"


async def test_a_watch_is_entered_once(notes):
    watched = watch(notes)
    async with watched:
        with pytest.raises(InvalidInput, match="entered already"):
            await watched.__aenter__()


async def test_a_folder_that_is_missing_at_the_start_may_be_entered_later(notes, tmp_path):
    watched = memdb.watch_folder(notes.db, tmp_path / "later", user_id="alice", poll=True)
    with pytest.raises(memdb.MissingFile):
        await watched.__aenter__()
    (tmp_path / "later").mkdir()
    async with watched:
        pass


async def test_bad_arguments(notes):
    for interval in (0, 0.01, 3601, True, "3", None, float("nan")):
        with pytest.raises(InvalidInput, match="interval"):
            memdb.watch_folder(notes.db, notes.root, interval=interval)
    for options in ({"user_id": ""}, {"category": ""}):
        with pytest.raises(InvalidInput):
            async with memdb.watch_folder(notes.db, notes.root, **options):
                pytest.fail("entered")


async def test_without_watchfiles_it_polls_or_says_so(notes, monkeypatch):
    monkeypatch.setattr(watching, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"memdb\[watch\]"):
        watch(notes, False)
    monkeypatch.setitem(__import__("sys").modules, "watchfiles", None)
    async with watch(notes, None):
        notes.write("a.md", "x")
        await until(lambda: _has(notes, "a.md"))


async def test_closing_the_database_first_is_told_and_leaving_still_works(tmp_path, caplog):
    (tmp_path / "notes").mkdir()
    db = await memdb.open(tmp_path / "agent.db")
    async with memdb.watch_folder(db, tmp_path / "notes", interval=0.05, poll=True):
        await db.close()
        await until(lambda: warnings(caplog))
    assert len(warnings(caplog)) == 1


async def test_a_watch_follows_many_changes_of_another_thread(notes):
    """Files come, change and go while syncs are under way."""
    stop = threading.Event()

    def disturb() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            notes.write(f"{n % 7}.md", f"{n} [[{(n + 1) % 7}]]")
            if n % 3 == 0:
                (notes.root / f"{n % 5}.md").unlink(missing_ok=True)
            if n % 4 == 0 and (notes.root / f"{n % 7}.md").exists():
                os.replace(notes.root / f"{n % 7}.md", notes.root / f"x{n % 3}.md")
            stop.wait(0.001)

    async with watch(notes, None) as watched:
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            await asyncio.sleep(1.5)
        finally:
            stop.set()
            await asyncio.to_thread(thread.join)
        await watched.synced()
        files = {path.name: path.read_text() for path in notes.root.iterdir()}
        assert {id: (await notes.page(id)).content for id in await notes.ids()} == files
