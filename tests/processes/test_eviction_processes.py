"""Several processes keep one store within bounds; the recalls that each counts add up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import memdb
from memdb import MemoryItem
from memdb.layers.policies import Capacity, EvictionConfig, RecallBased
from tests.processes.helpers import in_processes

BOUND = 20
POLICIES = {"capacity": Capacity(max_items=BOUND), "recall": RecallBased(max_items=BOUND)}


def save_on(path: Path, name: str, policy: str, interval: int) -> int:
    """Save 60 items, 4 at a time, and recall some; return the most that was ever seen."""

    async def go() -> int:
        most = 0
        async with memdb.open(path) as db:
            config = EvictionConfig(policy=POLICIES[policy], check_interval=interval)
            items = db.memory().items.with_eviction(config)
            for n in range(15):
                await asyncio.gather(*(items.save(MemoryItem(id=f"{name}-{n}-{k}", content="x")) for k in range(4)))
                await items.record_recall(f"{name}-{n}-0", 0.5)
                most = max(most, len(await items.list()))
        return most

    return asyncio.run(go())


def recall_on(path: Path, times: int) -> None:
    """Recall one item so many times, some of them flushed by writes, the rest by the close."""

    async def go() -> None:
        async with memdb.open(path) as db:
            items = db.memory().items
            for n in range(times):
                await items.record_recall("a", 0.5)
                if n % 10 == 0:
                    await items.save(MemoryItem(id="b", content=str(n)))

    asyncio.run(go())


async def test_the_bound_holds_for_all_of_them_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        calls = [(path, "a", "capacity", 1), (path, "b", "recall", 1), (path, "c", "recall", 1)]
        seen = await asyncio.to_thread(in_processes, save_on, calls)
        assert max(seen) <= BOUND
        assert len(await db.memory().items.list()) == BOUND
        assert (await db.check()).problems == []


async def test_an_interval_is_counted_over_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        calls = [(path, "a", "capacity", 10), (path, "b", "recall", 10)]
        seen = await asyncio.to_thread(in_processes, save_on, calls)
        assert BOUND < max(seen) <= BOUND + 9
        assert len(await db.memory().items.list()) == BOUND  # 120 writes: the last one was checked
        assert (await db.check()).problems == []


async def test_recalls_of_several_processes_add_up(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        items = db.memory().items
        await items.save(MemoryItem(id="a", content="x"))
        await asyncio.to_thread(in_processes, recall_on, [(path, 60), (path, 60), (path, 60)])
        stats = await items.recall_stats("a")
        assert stats is not None
        assert (stats.recall_count, stats.total_score) == (180, 90.0)
        assert (await db.check()).problems == []
