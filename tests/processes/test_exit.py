"""A program that never closes its handle still ends, quietly, and keeps what was acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import memdb
from tests.processes.helpers import script

START = """
import asyncio, sys, time, memdb
from memdb import MemoryItem
keep = []
async def start():
    db = await memdb.open("a.db")
    keep.append(db)
    await db.memory().items.save(MemoryItem(id="acknowledged", content="x"))
    await db.memory().items.search("x")
    return db
"""
ENDINGS = {
    "it just returns": "asyncio.run(start())",
    "the handle is dropped": "asyncio.run(start()); keep.clear()",
    "it raises": """
async def main():
    await start()
    raise SystemExit(3)
asyncio.run(main())
""",
    "writes wait": """
async def main():
    db = await start()
    keep.extend(asyncio.ensure_future(db.memory().items.save(MemoryItem(id=str(n), content="x"))) for n in range(500))
asyncio.run(main())
""",
    "writes and reads are under way": """
async def main():
    db = await start()
    keep.append(asyncio.ensure_future(db.write(lambda tx: time.sleep(0.3))))
    keep.append(asyncio.ensure_future(db.read(lambda tx: time.sleep(0.3))))
    await asyncio.sleep(0.1)
asyncio.run(main())
time.sleep(0.6)
""",
    "the last lines are under way": """
async def main():
    db = await start()
    keep.append(asyncio.ensure_future(db.write(lambda tx: time.sleep(0.3))))
    await asyncio.sleep(0.1)
asyncio.run(main())
""",
    "opening is under way": """
async def main():
    await start()
    keep.append(asyncio.ensure_future(memdb.open("b.db").__aenter__()))
    await asyncio.sleep(0.001)
asyncio.run(main())
""",
    "the loop is stopped, not closed": """
loop = asyncio.new_event_loop()
db = loop.run_until_complete(start())
keep.append(loop.create_task(db.memory().items.save(MemoryItem(id="b", content="x"))))
loop.call_soon(loop.stop)
loop.run_forever()
del loop
keep.clear()
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_that_never_closes_ends_and_keeps_what_was_acknowledged(tmp_path: Path, ending: str) -> None:
    done = script(START + ENDINGS[ending], folder=tmp_path)
    assert done.returncode == (3 if ending == "it raises" else 0)
    if ending != "the loop is stopped, not closed":  # there Python itself speaks of the destroyed task
        assert done.stderr == ""

    async def look() -> None:
        async with memdb.open(tmp_path / "a.db") as db:
            assert await db.memory().items.get("acknowledged") is not None
            assert (await db.check()).problems == []

    asyncio.run(look())
