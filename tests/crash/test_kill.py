"""SIGKILL at random moments: every acknowledged write is there, nothing is half there, the file is sound."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import memdb
from memdb import MemoryItem
from tests.crash.writers import look, start
from tests.processes.helpers import script, wait_until

KILLS = 20


async def test_kills_under_eight_writers(tmp_path: Path) -> None:
    path, notes = tmp_path / "a.db", tmp_path / "notes"
    chance = random.Random(1)
    writers = [start(path, notes, f"w{n}") for n in range(2)]
    acknowledged = 0
    for kill in range(KILLS):
        await asyncio.sleep(0.05 + chance.random() * 0.25)
        victim = writers.pop(chance.randrange(len(writers)))
        victim.kill()
        victim.join()
        acknowledged = await look(path, notes, writing=True)
        writers.append(start(path, notes, f"k{kill}"))
    for writer in writers:
        writer.kill()
        writer.join()
    assert await look(path, notes) >= acknowledged > 0


async def test_kills_while_the_file_is_being_made(tmp_path: Path) -> None:
    chance = random.Random(2)
    for round in range(12):
        path, notes = tmp_path / f"{round}.db", tmp_path / f"notes{round}"
        writers = [start(path, notes, f"w{n}") for n in range(2)]
        if round % 3:  # else: before there is a file, or just then
            assert await asyncio.to_thread(wait_until, path.exists)
        await asyncio.sleep(chance.random() * 0.05)
        for writer in writers:
            writer.kill()
            writer.join()
        await look(path, notes)


def test_a_rollback_journal_left_by_a_kill_is_played_back(tmp_path: Path) -> None:
    """Where the filesystem holds no WAL, or a person has switched it off, a kill leaves a hot journal."""
    path = tmp_path / "a.db"

    async def make() -> None:
        async with memdb.open(path) as db:
            await db.memory().items.save_many([MemoryItem(id=str(n), content="steady " * 50) for n in range(500)])

    killed = """
        import os, signal, sqlite3, sys
        shell = sqlite3.connect(sys.argv[1], isolation_level=None)
        shell.execute("PRAGMA journal_mode = DELETE")
        shell.execute("PRAGMA cache_size = 2")
        shell.execute("BEGIN IMMEDIATE")
        shell.execute("UPDATE record SET content = 'torn'")
        os.kill(os.getpid(), signal.SIGKILL)
    """

    async def look_again() -> None:
        async with memdb.open(path) as db:
            assert len(await db.memory().items.search("steady", limit=1000)) == 500
            assert (await db.check()).problems == []

    asyncio.run(make())
    script(killed, path, folder=tmp_path)
    assert Path(f"{path}-journal").exists()
    asyncio.run(look_again())


def test_a_kill_in_the_first_moment_of_a_file_leaves_it_usable(tmp_path: Path) -> None:
    """Every prefix of what opening a new file does: nothing yet, an empty file, a WAL switched on, half a schema."""

    async def use(path: Path) -> None:
        async with memdb.open(path) as db:
            await db.memory().items.save(MemoryItem(id="a", content="x"))
            assert (await db.check()).problems == []

    for name, sql in {
        "empty": "",
        "wal": "PRAGMA journal_mode = WAL",
        "torn": "BEGIN; CREATE TABLE record (x)",
    }.items():
        path = tmp_path / f"{name}.db"
        path.touch()
        shell = sqlite3.connect(path, isolation_level=None)
        shell.executescript(sql)
        shell.close()
        asyncio.run(use(path))
