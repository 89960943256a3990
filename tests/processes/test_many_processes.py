"""Several processes on one file: starting together, writing together."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import memdb
from memdb import MemoryItem
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
