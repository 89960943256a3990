"""Writes: durable saves of items, beside raw sqlite3 writing like rows just as durably.

Both sides hold the same rows under the same unique key, with a full-text index of the same tokenizer kept by a trigger,
at synchronous=FULL in WAL mode; their files grow by the same rows at the same time. memdb also keeps what a raw table
has not: scope tokens, counts, tags, a column for each kind of text, expiry. Items and rows are made beforehand.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from itertools import count

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.raw import RawFile, Row
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import MemoryItem, MemoryStore
from memdb.layers.layer import Live

Pair = tuple[list[MemoryItem], list[Row]]

NOW = "2026-01-01T00:00:00.000000Z"
LIMIT = "a row of raw sqlite3 rows inserted one by one in one transaction of"


async def run(settings: Settings) -> list[Comparison]:
    """Compare one caller, 64 and 256 callers, and a bulk save."""
    return [
        await one_caller(settings),
        *await many_callers(settings, 64, target=3.0),
        *await many_callers(settings, 256, target=2.0),
        await bulk(settings),
    ]


async def one_caller(settings: Settings) -> Comparison:
    """Compare one caller that awaits save after save with raw autocommit: a transaction and its fsync a row."""
    result = Comparison(
        "save, one caller",
        "await memory.items.save(item), one after another, synchronous=FULL",
        "raw sqlite3 autocommit INSERT of a like row, synchronous=FULL, WAL, same thread",
        target=1.8,
    )
    size = settings.size(20, 5)
    async with _items(settings, "one") as store:
        with closing(RawFile(settings.folder / "one-raw.db")) as raw:
            for items, rows in _pairs(size, settings.size(101, 4)):
                result.round(await _save_each(store, items), raw.autocommit(rows))
    return _without_first(result)


async def many_callers(settings: Settings, callers: int, *, target: float) -> list[Comparison]:
    """Compare callers that save at once, each awaiting save after save, with the limit: rows in one transaction.

    Once with transactions of as many rows as there are callers (each has its fsync, as each of memdb's has), once with
    a single transaction of all rows of the round.
    """
    size = settings.size(5120, callers)
    measured = f"{callers} callers awaiting save after save: time of all by rows, synchronous=FULL"
    like = Comparison(f"save, {callers} callers / {callers} rows", measured, f"{LIMIT} {callers}", target)
    large = Comparison(f"save, {callers} callers / {size:,} rows", measured, f"{LIMIT} {size}", target)
    latencies = Times()
    async with _items(settings, f"many-{callers}") as store:
        with (
            closing(RawFile(settings.folder / f"like-{callers}.db")) as like_raw,
            closing(RawFile(settings.folder / f"large-{callers}.db")) as large_raw,
        ):
            for items, rows in _pairs(size, settings.size(10, 3)):
                ours = await _save_at_once(store, items, callers, latencies)
                like.round(ours, like_raw.in_transactions(rows, callers))
                large.round(ours, large_raw.in_transactions(rows, size))
    like.notes = {"a_save_waits_us": latencies.figures()}
    like.detail = f"a save waits {latencies.median / 1000:.1f} ms, p99 {latencies.p99 / 1000:.1f}"
    return [_without_first(like), _without_first(large)]


async def bulk(settings: Settings) -> Comparison:
    """Compare save_many of 10,000 items with 10,000 raw rows inserted one by one in one transaction."""
    size = settings.size(10_000, 200)
    measured = f"await memory.items.save_many({size} items), by row"
    result = Comparison(f"save_many of {size:,}", measured, f"{LIMIT} {size}", target=1.3)
    async with _items(settings, "bulk") as store:
        with closing(RawFile(settings.folder / "bulk-raw.db")) as raw:
            for items, rows in _pairs(size, settings.size(7, 3)):
                times = Times()
                start = time.perf_counter()
                await store.save_many(items)
                times.add(time.perf_counter() - start, size)
                result.round(times, raw.in_transactions(rows, size))
    return _without_first(result)


@asynccontextmanager
async def _items(settings: Settings, name: str) -> AsyncIterator[MemoryStore[Live]]:
    async with memdb.open(settings.folder / f"{name}.db") as db:
        yield db.memory("alice").items


def _pairs(size: int, rounds: int) -> Iterator[Pair]:
    """Yield for each round its items and the raw rows that hold the same."""
    number = count()
    for seed in range(rounds):
        texts = sentences(size, seed=seed)
        keys = [f"memory-{next(number):08}" for _ in texts]
        notes = {"source": "chat", "turn": seed}
        yield (
            [MemoryItem(id=key, content=text, metadata=notes) for key, text in zip(keys, texts, strict=True)],
            [
                ("alice", "item", "", key, text, json.dumps(notes), NOW, NOW)
                for key, text in zip(keys, texts, strict=True)
            ],
        )


async def _save_each(store: MemoryStore[Live], items: list[MemoryItem]) -> Times:
    times = Times()
    for item in items:
        start = time.perf_counter()
        await store.save(item)
        times.add(time.perf_counter() - start)
    return times


async def _save_at_once(store: MemoryStore[Live], items: list[MemoryItem], callers: int, latencies: Times) -> Times:
    """Let callers save all items between them; return the time a row, and add what each save waited."""
    left = iter(items)

    async def caller() -> None:
        for item in left:
            begin = time.perf_counter()
            await store.save(item)
            latencies.add(time.perf_counter() - begin)

    start = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    times = Times()
    times.add(time.perf_counter() - start, len(items))
    return times


def _without_first(result: Comparison) -> Comparison:
    """Drop the first round, in which both sides prepare their statements and make their logs."""
    each = len(result.ours.values) // len(result.ratios)
    del result.ours.values[:each], result.theirs.values[:each], result.ratios[0]
    return result
