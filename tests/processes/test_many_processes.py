"""Several processes on one file: starting together, writing together."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import MemoryItem
from memdb.storage import migrate
from memdb.storage.schema import SCHEMA_VERSION
from tests.hostile.shell import inserted
from tests.processes.helpers import in_processes


def start_at(path: Path, moment: float, name: str) -> int:
    """Open a file at one moment with all others, write 25 items, close."""

    async def work() -> int:
        async with memdb.open(path) as db:
            items = db.memory().items
            await asyncio.gather(*(items.save(MemoryItem(id=f"{name}-{n}", content=f"from {name}")) for n in range(25)))
            return len(await items.list())

    time.sleep(max(0.0, moment - time.time()))
    return asyncio.run(work())


def test_four_processes_start_at_once_on_a_new_file(tmp_path: Path) -> None:
    for attempt in range(3):
        path = tmp_path / f"{attempt}.db"
        moment = time.time() + 0.3
        seen = in_processes(start_at, [(path, moment, name) for name in "abcd"])
        assert all(25 <= count <= 100 for count in seen)

        async def look(path: Path = path) -> None:
            async with memdb.open(path) as db:
                assert len(await db.memory().items.list()) == 100
                assert len(await db.memory().items.search("from c", limit=100)) == 25
                assert (await db.check()).problems == []

        asyncio.run(look())


def write_five_hundred(path: Path, moment: float, name: str) -> int:
    """Open a file at one moment with all others, write 500 items, some alone and some at once, close."""

    async def work() -> int:
        async with memdb.open(path, durability="normal") as db:
            items = db.memory(name).items
            for n in range(20):
                await items.save(MemoryItem(id=f"alone{n}", content=f"from {name}"))
            for n in range(8):
                many = [MemoryItem(id=f"{n}-{m}", content=f"from {name}") for m in range(60)]
                await asyncio.gather(*map(items.save, many))
            return len(await items.list())

    time.sleep(max(0.0, moment - time.time()))
    return asyncio.run(work())


@pytest.mark.parametrize("older", [False, True])
def test_eight_processes_write_five_hundred_items_each(tmp_path: Path, older: bool) -> None:
    """On a new file, and on one of an older schema, which one of them migrates, once."""
    path = tmp_path / "a.db"
    if older:
        _make_older(path)
    moment = time.time() + 1.0
    assert in_processes(write_five_hundred, [(path, moment, name) for name in "abcdefgh"]) == [500] * 8
    assert len(list(tmp_path.glob("*.bak"))) == older

    async def look() -> None:
        async with memdb.open(path) as db:
            for name in "abcdefgh":
                items = db.memory(name).items
                assert len(await items.list()) == 500
                assert len(await items.search(f"from {name}", limit=1000)) == 500
            assert (await db.check()).problems == []

    asyncio.run(look())


def _make_older(path: Path) -> None:
    """Make a file as an earlier memdb did, with an item in it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    migrate.upgrade(connection, f"{SCHEMA_VERSION - 1:04}")
    connection.execute(inserted("old", "from long ago"))
    connection.close()


def count_up(path: Path, times: int) -> None:
    """Add one to a number in the file, again and again: read, then write, in one unit."""

    async def work() -> None:
        async with memdb.open(path, durability="normal") as db:
            memory = db.memory()

            def add_one(m: Any) -> None:
                found = m.items.get("counter")
                m.items.save(MemoryItem(id="counter", content=str(int(found.content if found else 0) + 1)))

            for _ in range(times // 2):
                await asyncio.gather(memory.atomic(add_one), memory.atomic(add_one))

    asyncio.run(work())


def test_no_count_is_lost_between_four_processes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    in_processes(count_up, [(path, 50)] * 4)

    async def look() -> None:
        async with memdb.open(path) as db:
            found = await db.memory().items.get("counter")
            assert found is not None
            assert found.content == "200"
            assert (await db.check()).problems == []

    asyncio.run(look())


async def test_what_another_process_wrote_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        assert await db.memory().items.list() == []
        await asyncio.to_thread(in_processes, start_at, [(path, 0.0, "other")])
        assert len(await db.memory().items.search("other", limit=50)) == 25
        assert (await db.check()).problems == []
