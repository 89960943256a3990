"""Several processes embed one file: together all of it, hardly anything twice; a killed one leaves the rest."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import memdb
from memdb import MemoryItem
from memdb.storage.vectors import packed
from memdb.testing import HashingEmbedder
from tests.processes.helpers import CONTEXT, in_processes, wait_until

COUNT = 600


class Slow(HashingEmbedder):
    """A hashing embedder that takes a while, as models do."""

    async def embed(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0.01)
        return await super().embed(texts)


async def all_embedded(db: memdb.Database, count: int) -> None:
    async with asyncio.timeout(50):
        while await db.embeddings.progress() != (count, 0):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


def embed_on(path: Path, count: int) -> int:
    """Embed until so many records have their vectors; return how many texts this process embedded."""

    async def go() -> int:
        embedder = Slow(16)
        async with memdb.open(path, embedder=embedder) as db, db.embeddings:
            await all_embedded(db, count)
        return sum(map(len, embedder.calls))

    return asyncio.run(go())


def edit_on(path: Path, name: str) -> int:
    """Save, change and delete items, and search in between."""

    async def go() -> int:
        async with memdb.open(path, embedder=Slow(16)) as db:
            memory = db.memory()
            for n in range(40):
                await memory.items.save_many(MemoryItem(id=f"{name}{k}", content=f"{name} {n} {k}") for k in range(8))
                await memory.items.delete(f"{name}{n % 8}")
                hits = await memory.hybrid.search(f"{name} {n} 7", layer="item", k=1)
                assert hits[0].id.startswith(name)
        return 0

    return asyncio.run(go())


async def fill(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory().items.save_many(MemoryItem(id=f"{n}", content=f"item number {n}") for n in range(COUNT))
    async with memdb.open(path, embedder=Slow(16)) as db:
        await db.memory().hybrid.search("item", layer="item")


async def test_together_they_embed_everything_and_hardly_anything_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    embedded = await asyncio.to_thread(in_processes, embed_on, [(path, COUNT)] * 3)
    assert sum(embedded) <= 2 * COUNT
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        hits = await db.memory().hybrid.search("item number 77", layer="item", k=1, bm25_weight=0.0)
        assert [hit.id for hit in hits] == ["77"]
        assert (await db.check()).problems == []


async def test_while_others_save_change_and_delete(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    await asyncio.to_thread(in_processes, edit_on, [(path, "x"), (path, "y"), (path, "z")])
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db, db.embeddings:
        items = {item.id: item.content for item in await db.memory().items.list()}
        await all_embedded(db, len(items))
        rows: list[Any] = await db.read(
            lambda tx: tx.execute(
                "SELECT record.content, vector FROM embedding JOIN record ON record.id = record_id ORDER BY record_id"
            )
        )
        made = await HashingEmbedder(16).embed([content for content, _ in rows])
        assert [vector for _, vector in rows] == [packed(vector, 16) for vector in made]
        assert (await db.check()).problems == []


async def test_a_killed_process_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await fill(path)
    process = CONTEXT.Process(target=embed_on, args=(path, COUNT))
    process.start()
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        before = (await db.embeddings.progress()).embedded
        async with asyncio.timeout(50):
            while (await db.embeddings.progress()).embedded == before:  # noqa: ASYNC110 - another process is at work
                await asyncio.sleep(0.002)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        assert await asyncio.to_thread(wait_until, lambda: not process.is_alive())
        assert (await db.check()).problems == []
        async with db.embeddings:
            await all_embedded(db, COUNT)
        assert (await db.check()).problems == []
