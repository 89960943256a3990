"""Reads of one statement that wait are answered in one hop, and none of them is another's trouble."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Closed, MemoryItem, StorageError
from memdb.storage import readers

COUNT = 100


@pytest.fixture(name="path")
async def a_filled_file(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        await db.memory().items.save_many([MemoryItem(id=f"{n}", content=f"text {n}") for n in range(COUNT)])
    return path


@pytest.fixture(name="hops")
def counted_hops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many reads each hop of several answered."""
    found: list[int] = []
    post = readers.WorkerConnection.post_and_tell

    def counted(self: Any, function: Any, land: Any) -> None:
        found.append(1)
        post(self, function, land)

    monkeypatch.setattr(readers.WorkerConnection, "post_and_tell", counted)
    return found


def blocking(db: memdb.Database) -> tuple[asyncio.Task[Any], threading.Event, threading.Event]:
    """Let a read take the one connection until it is told to go on."""
    begun, go_on = threading.Event(), threading.Event()

    def unit(tx: Any) -> None:
        begun.set()
        assert go_on.wait(20)

    return asyncio.create_task(db.read(unit)), begun, go_on


async def behind_one(db: memdb.Database, *acts: Any) -> tuple[list[asyncio.Task[Any]], asyncio.Task[Any], Any]:
    """Start acts while the connection is taken; return them, who holds it, and what lets it go."""
    await db.memory().items.get("0")  # the connection is open
    held, begun, go_on = blocking(db)
    await asyncio.to_thread(begun.wait, 20)
    tasks = [asyncio.create_task(act) for act in acts]
    await asyncio.sleep(0)
    return tasks, held, go_on


async def test_each_caller_gets_its_own_answer_and_few_hops_are_taken(path: Path, hops: list[int]) -> None:
    async with memdb.open(path, readers=1) as db:
        items = db.memory().items
        tasks, held, go_on = await behind_one(db, *(items.get(f"{n}") for n in range(COUNT + 1)))
        go_on.set()
        found = await asyncio.gather(*tasks)
        await held
    assert [item and item.content for item in found] == [*(f"text {n}" for n in range(COUNT)), None]
    assert len(hops) == -(-(COUNT + 1) // readers.MOST_TOGETHER)


async def test_who_is_cancelled_while_waiting_disturbs_nobody(path: Path) -> None:
    async with memdb.open(path, readers=1) as db:
        items = db.memory().items
        tasks, held, go_on = await behind_one(db, *(items.get(f"{n}") for n in range(COUNT)))
        for task in tasks[::3]:
            task.cancel()
        go_on.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await held
        assert await items.get("5")
    for number, answer in enumerate(found):
        if number % 3 == 0:
            assert isinstance(answer, asyncio.CancelledError)
        else:
            assert isinstance(answer, MemoryItem)
            assert answer.id == f"{number}"


async def test_who_fails_fails_alone(path: Path) -> None:
    def fails(tx: Any) -> None:
        raise LookupError("mine")

    def is_refused(tx: Any) -> None:
        tx.rows("SELECT 1")
        tx.rows("SELECT 2")

    async with memdb.open(path, readers=1) as db:
        read_one = db.engine.read_one
        items = db.memory().items
        acts = (items.get("1"), read_one(fails), items.get("2"), read_one(is_refused), items.get("3"))
        tasks, held, go_on = await behind_one(db, *acts)
        go_on.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await held
    assert [getattr(answer, "id", type(answer)) for answer in found] == ["1", LookupError, "2", StorageError, "3"]


async def test_reads_of_several_statements_keep_their_turn_among_them(path: Path) -> None:
    done: list[str] = []

    async def told(name: str, act: Any) -> None:
        await act
        done.append(name)

    async with memdb.open(path, readers=1) as db:
        items = db.memory().items
        acts = [
            told("first", items.get("1")),
            told("list", items.list()),
            told("second", items.get("2")),
            told("third", items.get("3")),
        ]
        tasks, held, go_on = await behind_one(db, *acts)
        go_on.set()
        await asyncio.wait_for(asyncio.gather(*tasks), 20)
        await held
    assert sorted(done) == ["first", "list", "second", "third"]
    assert done[0] == "first"


async def test_who_waits_when_the_database_is_closed_is_told(path: Path) -> None:
    db = await memdb.open(path, readers=1)
    items = db.memory().items
    tasks, held, go_on = await behind_one(db, *(items.get(f"{n}") for n in range(COUNT)))
    closing = asyncio.create_task(db.close())
    await asyncio.sleep(0.05)
    go_on.set()
    found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    await closing
    await held
    for answer in found:
        assert isinstance(answer, Closed | MemoryItem)
    assert any(isinstance(answer, Closed) for answer in found)


async def test_who_waits_for_connections_that_cannot_be_opened_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_more(self: Any) -> Any:
        await asyncio.sleep(0.01)
        raise OSError("no more files may be opened")

    async with memdb.open(path, readers=2) as db:
        pool = db.engine._readers
        monkeypatch.setattr(pool, "_connect", no_more.__get__(pool))
        acts = [asyncio.create_task(db.memory().items.get(f"{n}")) for n in range(COUNT)]
        found = await asyncio.wait_for(asyncio.gather(*acts, return_exceptions=True), 20)
    assert all(isinstance(answer, Exception) for answer in found)
