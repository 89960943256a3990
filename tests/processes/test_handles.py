"""Handles that meet in one process: they do not take each other's locks, and closing them loses nothing."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Closed, MemoryItem, NotAMemdbFile
from tests.processes.helpers import open_files, wait_until

COUNT = """
import sqlite3, sys
shell = sqlite3.connect(sys.argv[1])
print(shell.execute("SELECT count(*) FROM record").fetchone()[0])
shell.close()
"""


async def seen_by_another_program(path: Path) -> int:
    """Count the records as the sqlite3 shell would: open, look, close (the last close folds the log away)."""
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", COUNT, str(path), stdout=asyncio.subprocess.PIPE
    )
    return int((await program.communicate())[0])


async def save(db: memdb.Database, id: str) -> None:
    await db.memory().items.save(MemoryItem(id=id, content="x"))


@pytest.mark.parametrize("second", ["opened", "opened and closed", "read-only", "refused", "backup target"])
async def test_a_second_handle_does_not_take_away_the_locks_of_the_first(tmp_path: Path, second: str) -> None:
    """POSIX drops all of a process's locks on a file when it closes any descriptor of it; SQLite then sees nobody."""
    path = tmp_path / "a.db"
    first = await memdb.open(path)
    await save(first, "1")
    other = None
    if second == "backup target":
        other = await memdb.open(tmp_path / "other.db")
        with pytest.raises(memdb.MemdbError):
            await other.backup(path)
    elif second == "refused":
        with pytest.raises(memdb.InvalidInput):
            await first.__aenter__()
    else:
        other = await memdb.open(path, read_only=second == "read-only")
        if second == "opened and closed":
            await other.close()
    assert await seen_by_another_program(path) == 1
    await save(first, "2")
    assert await seen_by_another_program(path) == 2, "an acknowledged write went into an unlinked log"
    await first.close()
    if other is not None:
        await other.close()
    assert await seen_by_another_program(path) == 2


async def test_two_handles_of_one_process_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as one, memdb.open(path) as two:
        await asyncio.gather(*(save(db, f"{name}{n}") for n in range(50) for name, db in (("a", one), ("b", two))))
        assert len(await one.memory().items.list()) == len(await two.memory().items.list()) == 100
        assert (await one.check()).problems == []


async def test_reads_that_wait_while_the_handle_closes_are_answered_or_told(tmp_path: Path) -> None:
    db = await memdb.open(tmp_path / "a.db", readers=1)
    reads = [asyncio.create_task(db.read(lambda tx: time.sleep(0.05) or 1)) for _ in range(5)]
    await asyncio.sleep(0.02)
    await db.close()
    answers = await asyncio.wait_for(asyncio.gather(*reads, return_exceptions=True), 10)
    assert [answer for answer in answers if answer != 1 and not isinstance(answer, Closed)] == []


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_reads_that_are_just_connecting_when_the_handle_closes_leave_nothing_behind(
    path: Path, turns: int
) -> None:
    threads, files = threading.active_count(), open_files()
    db = await memdb.open(path)
    reads = [asyncio.create_task(db.read(lambda tx: 1)) for _ in range(4)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await db.close()
    answers = await asyncio.wait_for(asyncio.gather(*reads, return_exceptions=True), 10)
    assert [answer for answer in answers if answer != 1 and not isinstance(answer, Closed)] == []
    assert wait_until(lambda: threading.active_count() <= threads and open_files() <= files)


async def test_reads_that_are_cancelled_while_the_handle_closes_are_cancelled_and_nothing_else(path: Path) -> None:
    chance = random.Random(7)
    for _ in range(100):
        db = await memdb.open(path, readers=2)
        reads = [asyncio.create_task(db.read(lambda tx: tx.execute("SELECT count(*) FROM record"))) for _ in range(5)]
        await asyncio.sleep(chance.random() * 0.003)
        closing = asyncio.create_task(db.close())
        await asyncio.sleep(chance.random() * 0.002)
        for read in reads:
            read.cancel()
        for answer in await asyncio.gather(*reads, return_exceptions=True):
            assert answer == [(0,)] or isinstance(answer, asyncio.CancelledError | Closed), repr(answer)
        await asyncio.wait_for(closing, 10)


async def test_writes_that_wait_while_the_handle_closes_are_stored(tmp_path: Path) -> None:
    db = await memdb.open(tmp_path / "a.db")
    writes = [asyncio.create_task(save(db, str(n))) for n in range(2000)]
    await asyncio.sleep(0)
    await db.close()
    await asyncio.gather(*writes)
    async with memdb.open(tmp_path / "a.db") as again:
        assert len(await again.memory().items.list()) == 2000
        assert (await again.check()).problems == []


async def test_a_cancelled_close_takes_nothing_from_a_write_under_way_and_can_be_finished(tmp_path: Path) -> None:
    threads, files = threading.active_count(), open_files()
    db = await memdb.open(tmp_path / "a.db")
    write = asyncio.create_task(db.write(lambda tx: time.sleep(0.2) or "stored"))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(db.close())
    await asyncio.sleep(0.05)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert await write == "stored"
    await db.close()
    assert wait_until(lambda: threading.active_count() <= threads and open_files() <= files)


async def test_two_callers_of_close_both_find_it_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await memdb.open(path)
    await save(db, "1")
    slow = asyncio.create_task(db.write(lambda tx: time.sleep(0.1)))
    await asyncio.sleep(0.02)
    first = asyncio.create_task(db.close())
    await asyncio.sleep(0)
    await db.close()
    assert not os.path.exists(f"{path}-wal"), "close() returned before the file was closed"
    await asyncio.gather(first, slow)


async def test_opening_that_fails_leaves_no_descriptor_no_thread_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all " * 100)
    threads, files = threading.active_count(), open_files()
    for _ in range(30):
        with pytest.raises(NotAMemdbFile):
            await memdb.open(path)
    assert wait_until(lambda: threading.active_count() <= threads and open_files() <= files)
    assert os.listdir(tmp_path) == ["notes.txt"], "something was left beside a file that is not ours"


async def test_a_handle_dropped_unclosed_ends_its_threads(tmp_path: Path) -> None:
    threads, files = threading.active_count(), open_files()
    db: Any = await memdb.open(tmp_path / "a.db")
    await save(db, "1")
    await db.memory().items.list()
    del db
    await asyncio.sleep(0.05)
    assert wait_until(lambda: threading.active_count() <= threads and open_files() <= files)
    shell = sqlite3.connect(tmp_path / "a.db")
    assert shell.execute("SELECT count(*) FROM record").fetchone() == (1,)
    shell.close()
