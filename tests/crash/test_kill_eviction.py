"""SIGKILL in the middle of saves that evict: what was acknowledged within the bound is there, and never more."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

import memdb
from memdb import MemoryItem
from memdb.layers.policies import Capacity, EvictionConfig, EvictionPolicy, Hybrid, RecallBased
from tests.processes.helpers import CONTEXT, wait_until

BOUND = 8
KILLS = 6
POLICIES: dict[str, EvictionPolicy] = {
    "capacity": Capacity(max_items=BOUND),
    "recall": RecallBased(max_items=BOUND),
    "hybrid": Hybrid(ttl_secs=3_600, max_items=BOUND),
}


def save_on(path: Path, notes: Path, policy: str, first: int) -> None:
    """Save numbered items one after the other until killed, noting each that is acknowledged."""
    noted = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def go() -> None:
        async with memdb.open(path) as db:
            items = db.memory().items.with_eviction(EvictionConfig(policy=POLICIES[policy]))
            number = first
            while True:
                await items.save(MemoryItem(id=str(number), content="x " * 200))
                os.write(noted, f"{number}\n".encode())
                number += 1

    asyncio.run(go())


def size_of(notes: Path) -> int:
    return notes.stat().st_size if notes.exists() else 0


@pytest.mark.parametrize("policy", POLICIES)
async def test_kills_in_the_middle_of_evicting(tmp_path: Path, policy: str) -> None:
    path, notes = tmp_path / "a.db", tmp_path / "notes"
    chance, first = random.Random(3), 0
    for turn in range(KILLS):
        known = size_of(notes)
        process = CONTEXT.Process(target=save_on, args=(path, notes, policy, first), daemon=True)
        process.start()
        if turn % 2:  # half of the kills hit a child that saves, however long a busy machine takes to start it
            assert await asyncio.to_thread(wait_until, lambda known=known: size_of(notes) > known)
        await asyncio.sleep(0.1 + chance.random() * 0.15)
        process.kill()
        process.join()
        acknowledged = [*map(int, notes.read_text().split())] if notes.exists() else []
        async with memdb.open(path) as db:
            items = db.memory().items
            held = [int(item.id) for item in await items.list()]
            newest = max([-1, *held])
            assert held == [*range(max(0, newest - BOUND + 1), newest + 1)]
            assert newest - max([-1, *acknowledged]) in (0, 1)  # one may be stored and not acknowledged
            first = newest + 1
            await items.with_eviction(EvictionConfig(policy=POLICIES[policy])).save(
                MemoryItem(id=str(first), content="x")
            )
            with notes.open("a") as noted:
                noted.write(f"{first}\n")
            first += 1
            assert len(await items.list()) == min(BOUND, first)
            assert (await db.check()).problems == []
    assert first > BOUND
