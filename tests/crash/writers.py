"""Writers that are killed: each unit stores an item and a page together and is noted down once it is acknowledged."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import memdb
from memdb import KnowledgePage, MemoryItem
from tests.processes.helpers import CONTEXT

TASKS = 4  # writing at once in each process


def write_on(path: Path, notes: Path, name: str) -> None:
    """Open the file and write until killed."""
    noted = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def both(m: Any, id: str, total: int) -> None:
        m.items.save(MemoryItem(id=id, content=f"item {id} 部署"))
        m.items.save(MemoryItem(id=f"total-{name}-{id.split('.')[1]}", content=str(total)))  # replaced every time
        m.pages.add_page(KnowledgePage(id=id, title=f"page {id}", tags=["t"], references=[f"{id}-next"]))

    async def writer(memory: Any, number: int) -> None:
        count = 0
        while True:
            count += 1
            id = f"{name}.{number}.{count}"
            await memory.atomic(lambda m: both(m, id, count))  # noqa: B023 - awaited before the next round
            os.write(noted, f"{id}\n".encode())  # unbuffered: a kill takes none of it back

    async def work() -> None:
        async with memdb.open(path) as db:
            await asyncio.gather(*(writer(db.memory(), number) for number in range(TASKS)))

    asyncio.run(work())


def start(path: Path, notes: Path, name: str) -> ForkServerProcess:
    """Start a process of TASKS writers."""
    process = CONTEXT.Process(target=write_on, args=(path, notes, name), daemon=True)
    process.start()
    return process


async def look(path: Path, notes: Path, *, writing: bool = False) -> int:
    """Check that all that was noted is there and nothing is half there; return how many units were acknowledged.

    Args:
        writing: whether the writers go on meanwhile.
    """
    acknowledged = set(notes.read_text().split()) if notes.exists() else set()
    async with memdb.open(path) as db:
        memory = db.memory()
        items, pages = await memory.atomic(lambda m: (m.items.list(), m.pages.get_index()))
        report = await db.check()
        found = await memory.items.search("部署", limit=10_000)
        linked = [await memory.pages.referenced_by(f"{page.id}-next") for page in pages[-20:]]
    written = {item.id for item in items if not item.id.startswith("total-")}
    totals = {item.id.removeprefix("total-"): int(item.content) for item in items if item.id.startswith("total-")}
    counts = Counter(id.rsplit(".", 1)[0].replace(".", "-") for id in written)
    assert report.problems == []
    assert acknowledged <= written, "an acknowledged write is gone"
    assert written == {page.id for page in pages}, "a unit is half there"
    assert totals == counts, "a unit is half there"
    assert linked == [[page.id] for page in pages[-20:]]
    assert writing or len(found) == min(len(written), 10_000)
    return len(acknowledged)
