"""A task cancelled at any await: its unit is there as a whole or not at all, and everything goes on working."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import KnowledgePage, MemoryItem
from tests.processes.helpers import open_files, wait_until

TIMES = 60  # for each of the five verbs: 300 cancellations

Act = Callable[[memdb.Database, str], Awaitable[Any]]


def pair(name: str) -> Callable[[Any], str]:
    """Return a unit that writes an item and a page together."""

    def unit(m: Any) -> str:
        m.items.save(MemoryItem(id=name, content=f"item {name}"))
        m.pages.add_page(KnowledgePage(id=name, title=f"page {name}"))
        return name

    return unit


async def _write(db: memdb.Database, name: str) -> str:
    await db.memory().items.save_many([MemoryItem(id=f"{name}-{part}", content="x") for part in "ab"])
    return name


def _walk(tx: Any) -> Any:
    """Read long enough to be cancelled in the middle of a statement."""
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT sum(i) FROM n"
    return tx.execute(sql)[0][0]


ACTS: dict[str, Act] = {
    "read": lambda db, name: db.read(_walk),
    "write": _write,
    "atomic": lambda db, name: db.memory().atomic(pair(name)),
}


async def cut_short(chance: random.Random, task: asyncio.Task[Any]) -> Any:
    """Cancel a task at a random moment; return its value, or None when it was cancelled in time."""
    if chance.random() < 0.5:
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
    else:
        await asyncio.sleep(chance.random() * 0.004)
    task.cancel()
    (answer,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(answer, asyncio.CancelledError):
        return None
    assert not isinstance(answer, BaseException), repr(answer)
    return answer


async def look_whole(db: memdb.Database, path: Path, acknowledged: set[str]) -> None:
    """Check that nothing is half there, all that was acknowledged is, and no connection is stuck."""
    memory = db.memory()
    answers = await asyncio.wait_for(asyncio.gather(*(db.read(_walk) for _ in range(12))), 30)
    assert answers == [20000 * 20001 // 2] * 12
    items = {item.id for item in await memory.items.list()}
    pages = {entry.id for entry in await memory.pages.get_index()}
    assert {item for item in items if "-" not in item} == pages
    assert {item[:-2] for item in items if item.endswith("-a")} == {item[:-2] for item in items if item.endswith("-b")}
    assert acknowledged <= {item.removesuffix("-a") for item in items}
    await asyncio.wait_for(_write(db, "last"), 30)
    shell = sqlite3.connect(path, timeout=0, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")  # nobody holds the write lock
    shell.execute("ROLLBACK")
    busy, _, _ = shell.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    shell.close()
    assert busy == 0, "a reader was left inside its snapshot"
    assert (await db.check()).problems == []


@pytest.mark.parametrize("verb", ACTS)
async def test_cancelled_units_land_whole_or_not_at_all(tmp_path: Path, verb: str) -> None:
    chance = random.Random(verb)
    path = tmp_path / "a.db"
    async with memdb.open(path, readers=2) as db:
        acknowledged = set()
        for round in range(TIMES // 3):
            names = [f"{verb}{round}.{n}" for n in range(3)]
            cut = [cut_short(chance, asyncio.create_task(ACTS[verb](db, name))) for name in names]
            answers = await asyncio.gather(*cut, ACTS["atomic"](db, f"kept{round}"))
            acknowledged |= {answer for answer in answers if isinstance(answer, str)}
        assert {f"kept{round}" for round in range(TIMES // 3)} <= acknowledged
        await look_whole(db, path, acknowledged)


async def test_cancelled_opens_leave_nothing_behind(tmp_path: Path) -> None:
    chance = random.Random("open")
    async with memdb.open(tmp_path / "warm.db"):
        pass
    threads, files = threading.active_count(), open_files()
    for n in range(TIMES):
        path = tmp_path / f"{n % 7}.db"
        task = asyncio.create_task(memdb.open(path).__aenter__())
        await asyncio.sleep(chance.random() * 0.015)
        if (db := await cut_short(chance, task)) is not None:
            await db.close()
    assert wait_until(lambda: threading.active_count() <= threads and open_files() <= files)
    for n in range(7):
        async with memdb.open(tmp_path / f"{n}.db") as db:
            await look_whole(db, tmp_path / f"{n}.db", set())


async def test_cancelled_closes_lose_nothing_and_can_be_finished(tmp_path: Path) -> None:
    chance = random.Random("close")
    path = tmp_path / "a.db"
    acknowledged = set()
    threads, files = threading.active_count(), open_files()
    for n in range(TIMES):
        db = await memdb.open(path)
        writes = [asyncio.create_task(ACTS["atomic"](db, f"{n}.{m}")) for m in range(3)]
        await db.memory().items.list()
        await cut_short(chance, asyncio.create_task(db.close()))
        acknowledged |= set(await asyncio.wait_for(asyncio.gather(*writes), 30))
        await asyncio.wait_for(db.close(), 30)
    assert wait_until(lambda: threading.active_count() <= threads and open_files() <= files)
    async with memdb.open(path) as db:
        await look_whole(db, path, acknowledged)
