"""Reads: get of one item, beside a bare hop to a worker thread and beside a raw select.

A hop takes 27 us while the system runs both threads on one core and 75 while it does not, which it decides anew every
now and then for each thread; so the hop that a get is held against is one to the thread that answered it. aiosqlite's
own hop, to a thread of its own, stands beside it.
"""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import aiosqlite

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import MemoryItem, MemoryStore
from memdb.layers.layer import Live
from memdb.storage.engine import Engine

_SELECT = """
SELECT key, content, metadata, created_at, expires_at FROM record
 WHERE user_id = ? AND layer = ? AND session_id = ? AND key = ?
"""


async def run(settings: Settings) -> list[Comparison]:
    """Compare `await memory.items.get(id)`, one after another, over a file of some thousand items."""
    measured = "await memory.items.get(id), one after another"
    hop = Comparison("get / bare hop", measured, "the same thread running a function that does nothing", target=2.0)
    other = Comparison("get / aiosqlite's hop", measured, "an aiosqlite worker running a function that does nothing")
    select = Comparison("get / raw select", measured, "sqlite3 SELECT of the same row by its key, on the same thread")
    keys = [f"memory-{number:08}" for number in range(settings.size(5_000, 200))]
    path = settings.folder / "reads.db"
    async with memdb.open(path) as db, aiosqlite.connect(":memory:") as worker:
        store = db.memory("alice").items
        texts = sentences(len(keys), seed=7)
        await store.save_many(MemoryItem(id=key, content=text) for key, text in zip(keys, texts, strict=True))
        with closing(_raw(path)) as raw:
            chosen = random.Random(7)
            await _gets(store, keys[:100])
            for _ in range(settings.size(400, 3)):  # some seconds: shorter, one busy moment of the machine decides
                wanted = chosen.sample(keys, 100)
                ours = await _gets(store, wanted)
                hop.round(ours, await hops(_reader_of(store), len(wanted)))
                other.round(ours, await hops(worker, len(wanted)))
                select.round(ours, _selects(raw, wanted))
    return [hop, other, select]


def _reader_of(store: MemoryStore[Live]) -> aiosqlite.Connection:
    """Return the connection that answered the last read of a store's handle."""
    engine = store._home
    assert isinstance(engine, Engine)
    assert engine._readers is not None
    return engine._readers._idle[-1]


async def hops(worker: aiosqlite.Connection, count: int) -> Times:
    """Return what a bare hop takes: to the worker's thread, a function that does nothing, and back."""
    times = Times()
    for _ in range(count):
        start = time.perf_counter()
        await worker._execute(_nothing)  # type: ignore[no-untyped-call]
        times.add(time.perf_counter() - start)
    return times


def _nothing() -> None:
    return None


async def _gets(store: MemoryStore[Live], keys: list[str]) -> Times:
    times = Times()
    for key in keys:
        start = time.perf_counter()
        await store.get(key)
        times.add(time.perf_counter() - start)
    return times


def _raw(path: Path) -> sqlite3.Connection:
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA cache_size = -8192")
    return raw


def _selects(raw: sqlite3.Connection, keys: list[str]) -> Times:
    times = Times()
    for key in keys:
        start = time.perf_counter()
        raw.execute(_SELECT, ("alice", "item", "", key)).fetchone()
        times.add(time.perf_counter() - start)
    return times
