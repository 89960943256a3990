"""Several processes keep one file in step with one folder while its notes change and one of them is killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import memdb
from tests.processes.helpers import CONTEXT, in_processes, wait_until

NAMES = [*(f"{n}.md" for n in range(12)), *(f"sub/{n}.md" for n in range(6)), "deep/er/a.md"]


def sync_for(path: Path, folder: Path, seconds: float, own: str) -> int:
    """Sync again and again, with a page of one's own in between; return how often."""

    async def work() -> int:
        count, end = 0, time.monotonic() + seconds
        async with memdb.open(path, durability="normal") as db:
            while time.monotonic() < end:
                report = await memdb.sync_folder(db, folder)
                assert not [reason for _, reason in report.skipped if "vanished" not in reason], report.skipped
                count += 1
                if count % 5 == 0:
                    page = memdb.KnowledgePage(id=f"{own}-{count}", title="mine")
                    await db.memory().pages.add_page(page)
        return count

    return asyncio.run(work())


def watch_for(path: Path, folder: Path, seconds: float, poll: bool) -> int:
    """Watch for a while; return how many syncs did something."""

    async def work() -> int:
        reports: list[Any] = []
        async with (
            memdb.open(path, durability="normal") as db,
            memdb.watch_folder(db, folder, interval=0.05, poll=poll, on_sync=reports.append),
        ):
            await asyncio.sleep(seconds)
        return len(reports)

    return asyncio.run(work())


def disturb_for(folder: Path, seconds: float, seed: int) -> int:
    """Write, rename, swap and delete notes; return how often."""
    chance, count, end = random.Random(seed), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        count += 1
        file, other = (folder / chance.choice(NAMES) for _ in range(2))
        if chance.random() < 0.6 or not file.exists():
            linked = chance.choice(NAMES).rsplit("/", 1)[-1].removesuffix(".md")
            unfinished = file.with_suffix(".unfinished")
            unfinished.write_text(f"# Note {chance.randrange(20)}\n\n{count} [[{linked}]]\n")
            os.replace(unfinished, file)
        elif chance.random() < 0.5:
            os.replace(file, other)
        else:
            file.unlink()
        time.sleep(chance.random() * 0.01)
    return count


def make_folder(folder: Path) -> None:
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")


async def check(path: Path, folder: Path) -> list[str]:
    """Sync once more; the pages are the notes. Return the ids of the other pages."""
    async with memdb.open(path) as db:
        report = await memdb.sync_folder(db, folder)
        assert report.skipped == []
        assert not await memdb.sync_folder(db, folder)
        pages = {entry.id: await db.memory().pages.get_page(entry.id) for entry in await db.memory().pages.get_index()}
        notes = {f"knowledge/{file.relative_to(folder)}": file.read_text() for file in folder.rglob("*.md")}
        assert {id: page.content for id, page in pages.items() if page and id.startswith("knowledge/")} == notes
        for id, page in pages.items():
            assert page is not None
            linked = page.content.partition("[[")[2].partition("]]")[0]
            exists = any(other.endswith(f"/{linked}.md") for other in notes)
            itself = page.references == [] and id.endswith(f"/{linked}.md")
            assert itself or bool(page.references) == bool(linked and exists), (id, page.content, page.references)
            assert set(page.references) <= set(notes)
        rows = await db.read(lambda tx: tx.execute("SELECT path FROM source"))
        assert sorted(f"knowledge/{found}" for (found,) in rows) == sorted(notes)
        assert (await db.check()).problems == []
        return [id for id in pages if not id.startswith("knowledge/")]


def test_four_processes_sync_one_folder_that_changes_all_the_time(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.db", tmp_path / "notes"
    make_folder(folder)
    changing = CONTEXT.Process(target=disturb_for, args=(folder, 4.0, 1))
    changing.start()
    counts = in_processes(sync_for, [(path, folder, 4.0, name) for name in "abcd"])
    changing.join()
    assert changing.exitcode == 0
    assert min(counts) > 5
    others = asyncio.run(check(path, folder))
    assert len(others) == sum(count // 5 for count in counts)


def test_one_that_is_killed_leaves_nothing_half_done(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.db", tmp_path / "notes"
    make_folder(folder)
    for seed in range(4):
        changing = CONTEXT.Process(target=disturb_for, args=(folder, 1.2, seed))
        killed = CONTEXT.Process(target=sync_for, args=(path, folder, 60.0, f"killed{seed}"))
        staying = CONTEXT.Process(target=sync_for, args=(path, folder, 1.5, f"staying{seed}"))
        for process in (changing, killed, staying):
            process.start()
        assert wait_until(path.exists)
        time.sleep(0.4 + 0.15 * seed)
        os.kill(killed.pid or 0, signal.SIGKILL)
        for process in (changing, killed, staying):
            process.join(60)
        assert (changing.exitcode, killed.exitcode, staying.exitcode) == (0, -signal.SIGKILL, 0)
        asyncio.run(check(path, folder))


def test_watches_in_several_processes(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.db", tmp_path / "notes"
    make_folder(folder)
    changing = CONTEXT.Process(target=disturb_for, args=(folder, 2.5, 5))
    changing.start()
    in_processes(watch_for, [(path, folder, 3.5, poll) for poll in (True, False)])
    changing.join()

    async def look() -> list[str]:
        async with memdb.open(path) as db:
            return [entry.id for entry in await db.memory().pages.get_index()]

    followed = asyncio.run(look())
    assert sorted(followed) == sorted(f"knowledge/{file.relative_to(folder)}" for file in folder.rglob("*.md"))
    assert asyncio.run(check(path, folder)) == []


def test_processes_that_start_with_the_same_new_folder_store_it_once(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.db", tmp_path / "notes"
    make_folder(folder)
    added = in_processes(sync_once, [(path, folder, time.time() + 0.5)] * 4)
    assert sum(added) == len(NAMES)
    asyncio.run(check(path, folder))


def sync_once(path: Path, folder: Path, moment: float) -> int:
    async def work() -> int:
        async with memdb.open(path) as db:
            time.sleep(max(0.0, moment - time.time()))
            return len((await memdb.sync_folder(db, folder)).added)

    return asyncio.run(work())
