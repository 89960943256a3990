"""Several processes keep one folder and one file in step while the notes change and one of them is killed."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import memdb
from tests.processes.helpers import CONTEXT, in_processes

ROUNDS = 25


def sync_again_and_again(path: Path, folder: Path, seed: int) -> int:
    """Change notes and sync, round after round; return how many pages this process added or changed."""

    async def work() -> int:
        chosen, done = random.Random(seed), 0
        async with memdb.open(path, busy_timeout=30) as db:
            for number in range(ROUNDS):
                note = folder / f"n{chosen.randrange(12)}.md"
                match chosen.randrange(4):
                    case 0:
                        note.unlink(missing_ok=True)
                    case 1 if note.exists():
                        note.replace(folder / f"n{chosen.randrange(12)}.md") if note.exists() else None
                    case _:
                        note.write_text(f"# Note {seed}-{number}\n\nsee [[n{chosen.randrange(12)}]]\n")
                try:
                    report = await memdb.sync_folder(db, folder, user_id="alice")
                except memdb.Busy:
                    continue
                done += len(report.added) + len(report.changed)
        return done

    try:
        return asyncio.run(work())
    except FileNotFoundError:  # the other one moved it first
        return 0


async def check(path: Path, folder: Path) -> None:
    """The pages are the notes, once all has come to rest."""
    async with memdb.open(path) as db:
        await memdb.sync_folder(db, folder, user_id="alice")
        pages = db.memory("alice").pages
        found = {entry.id: await pages.get_page(entry.id) for entry in await pages.get_index()}
        texts = {id: page.content for id, page in found.items() if page is not None}
        assert texts == {f"knowledge/{note.name}": note.read_text() for note in folder.glob("*.md")}
        again = await memdb.sync_folder(db, folder, user_id="alice")
        assert not again
        assert again.unchanged == len(texts)
        report = await db.check()
        assert report.ok, report.problems


async def test_processes_that_sync_one_folder_agree_in_the_end(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    done = in_processes(sync_again_and_again, [(path, folder, seed) for seed in range(3)])
    assert sum(done) > 0
    await check(path, folder)


async def test_a_sync_that_is_killed_is_whole_or_not_there(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(300):
        (folder / f"n{number}.md").write_text(f"# Note {number}\n\nsee [[n{number + 1}]]\n")
    for wait in (0.0, 0.05, 0.1, 0.2, 0.4, 0.8):
        process = CONTEXT.Process(target=sync_again_and_again, args=(path, folder, 7), daemon=True)
        process.start()
        time.sleep(wait)
        process.kill()
        process.join()
        async with memdb.open(path) as db:
            assert len(await db.memory("alice").pages.get_index()) in (0, *range(280, 320))
    await check(path, folder)
