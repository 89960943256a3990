"""Start: a fresh process that gets one item, beside one that only imports what memdb stands on and reads one row."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from memdb import MemoryItem

_OURS = """
import asyncio, sys, memdb
async def main():
    async with memdb.open(sys.argv[1]) as db:
        item = await db.memory("alice").items.get("a")
        assert item is not None and item.content == "Alice prefers tea"
asyncio.run(main())
"""
_THEIRS = """
import sqlite3, sys, sqlalchemy
from pydantic import BaseModel
class Item(BaseModel):
    id: str
    content: str
    metadata: dict = {}
    created_at: str = ""
connection = sqlite3.connect(sys.argv[1])
key, content = connection.execute("SELECT key, content FROM record WHERE key = 'a'").fetchone()
assert Item(id=key, content=content).content == "Alice prefers tea"
connection.close()
"""


async def run(settings: Settings) -> list[Comparison]:
    """Compare two fresh processes, in turn, from their start to their end."""
    result = Comparison(
        "start of a process",
        "import memdb, open an existing file, get one item, close",
        "import pydantic and sqlalchemy, build a model of four fields, read the same row with sqlite3",
        target=1.6,
    )
    path = settings.folder / "start.db"
    async with memdb.open(path) as db:
        await db.memory("alice").items.save(MemoryItem(id="a", content="Alice prefers tea"))
    for script in (_OURS, _THEIRS):
        _process(script, path)  # compiles what is not compiled yet
    for _ in range(settings.size(21, 2)):
        result.round(_process(_OURS, path), _process(_THEIRS, path))
    return [result]


def _process(script: str, path: Path) -> Times:
    """Return what a process takes that runs `script` with a file's path."""
    home = str(Path(memdb.__file__).parents[1])
    search = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    times = Times()
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, env={**os.environ, "PYTHONPATH": search})
    times.add(time.perf_counter() - start)
    return times
