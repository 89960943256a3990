"""Eviction: what a save costs in a store that is full, beside a save into a store that was empty when it began.

Each store has a file of its own, so the full one also pays for the size of its file. Every save into the full store
throws one item away: a row is written, and another one deleted with its index entry, counts and statistics.
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta
from itertools import count

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import Capacity, EvictionConfig, MemoryItem, MemoryStore, RecallBased, Ttl
from memdb.layers.layer import Live

Store = MemoryStore[Live]
AGE_S = 1_000.0  # what stands in the full store was saved over so many seconds


async def run(settings: Settings) -> list[Comparison]:
    """Compare each policy at its bound, one caller and 64, and RecallBased with weights that scan."""
    size = settings.size(100_000, 500)
    results = []
    for name, policy, recalled in (
        ("Ttl", Ttl(ttl_secs=round(AGE_S)), 0.0),
        ("Capacity", Capacity(max_items=size), 0.0),
        ("RecallBased", RecallBased(max_items=size), 0.0),
        ("RecallBased, 9 of 10 recalled", RecallBased(max_items=size), 0.9),
    ):
        results += await _policy(settings, name, EvictionConfig(policy=policy), size, recalled)
    recency = RecallBased(max_items=size, recall_weight=0.1, score_weight=0.5, recency_weight=0.4)
    results.append(await _scanning(settings, EvictionConfig(policy=recency), size))
    return results


class _Clock:
    """A clock that goes on by one step a save, so that a full store under Ttl loses an item with each."""

    def __init__(self, step: timedelta) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.step = step

    def __call__(self) -> datetime:
        return self.now

    def tick(self) -> None:
        self.now += self.step


async def _policy(
    settings: Settings, name: str, config: EvictionConfig, size: int, recalled: float
) -> list[Comparison]:
    """Compare one caller and 64 callers under one policy."""
    clock, other = (_Clock(timedelta(seconds=AGE_S / size)) for _ in range(2))
    tag = name.replace(" ", "-").replace(",", "")
    async with (
        memdb.open(settings.folder / f"full-{tag}.db", clock=clock) as full_db,
        memdb.open(settings.folder / f"empty-{tag}.db", clock=other) as empty_db,
    ):
        full, empty = (db.memory("alice").items.with_eviction(config) for db in (full_db, empty_db))
        await _fill(full_db.memory("alice").items, size, clock, recalled)
        numbers, results = count(), []
        for callers, rounds, saves in (
            (1, settings.size(60, 3), 20),
            (64, settings.size(30, 3), settings.size(640, 64)),
        ):
            result = Comparison(
                f"save at {size:,} items, {name}, {callers} {'caller' if callers == 1 else 'callers'}",
                f"save into a store at its bound ({callers} at once), synchronous=FULL",
                "the same into a store that began empty, in a file of its own",
                target=1.5,
            )
            for number in range(-1, rounds):
                items = [[_item(next(numbers)) for _ in range(saves)] for _ in range(2)]
                ours = await _save(full, items[0], callers, clock)
                theirs = await _save(empty, items[1], callers, other)
                if number >= 0:
                    result.round(ours, theirs)
            results.append(result)
        await _check_bound(full_db, config, size)
        return results


async def _scanning(settings: Settings, config: EvictionConfig, size: int) -> Comparison:
    """Publish what a save costs under weights that let a fresh item be worth more than a recalled one: a scan."""
    result = Comparison(
        f"save at {size:,} items, RecallBased 0.1/0.5/0.4",
        "save into a store at its bound, one caller: the value of every item is computed",
        "the same into a store that began empty",
    )
    clock, numbers = _Clock(timedelta(seconds=AGE_S / size)), count()
    async with (
        memdb.open(settings.folder / "full-scan.db", clock=clock) as full_db,
        memdb.open(settings.folder / "empty-scan.db", clock=clock) as empty_db,
    ):
        full, empty = (db.memory("alice").items.with_eviction(config) for db in (full_db, empty_db))
        await _fill(full_db.memory("alice").items, size, clock, 0.9)
        for number in range(-1, settings.size(20, 2)):
            ours = await _save(full, [_item(next(numbers)) for _ in range(3)], 1, clock)
            theirs = await _save(empty, [_item(next(numbers)) for _ in range(3)], 1, clock)
            if number >= 0:
                result.round(ours, theirs)
    return result


async def _fill(store: Store, size: int, clock: _Clock, recalled: float) -> None:
    """Fill a store, its items one step of the clock apart, and recall a share of them."""
    begin = clock.now - size * clock.step
    texts = sentences(size, seed=7)
    for at in range(0, size, 50_000):
        await store.save_many(
            MemoryItem(id=f"old-{number}", content=texts[number], created_at=begin + (number + 1) * clock.step)
            for number in range(at, min(at + 50_000, size))
        )
    chosen = random.Random(11)
    for number in range(size):
        if chosen.random() < recalled:
            await store.record_recall(f"old-{number}", chosen.random())
    await store.recall_stats("old-0")  # until all are counted


async def _check_bound(db: memdb.Database, config: EvictionConfig, size: int) -> None:
    held = sum(row.records for row in (await db.stats()).layers)
    assert held == size, f"{held} items instead of {size} under {config}"


_TEXTS = sentences(1_000, seed=5)


def _item(number: int) -> MemoryItem:
    return MemoryItem(id=f"new-{number}", content=_TEXTS[number % len(_TEXTS)])


async def _save(store: Store, items: list[MemoryItem], callers: int, clock: _Clock) -> Times:
    """Save items, each caller one after another; return each save's time, or with several callers the time a save."""
    times, left = Times(), iter(items)

    async def caller() -> None:
        for item in left:
            clock.tick()
            start = time.perf_counter()
            await store.save(item)
            if callers == 1:
                times.add(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    if callers > 1:
        times.add(time.perf_counter() - start, len(items))
    return times
