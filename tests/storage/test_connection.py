"""The seam to aiosqlite, and the driver's errors: each SQLite error has one of ours."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time

import aiosqlite
import pytest

import memdb
from memdb.storage import connection as module
from memdb.storage.connection import WorkerConnection, connect, translate


def open_memory() -> sqlite3.Connection:
    return connect("file::memory:", (), timeout=1.0)


async def test_the_seam_to_aiosqlite_is_where_we_hook_in():
    """Fails when an aiosqlite release moves what WorkerConnection builds on."""
    worker = WorkerConnection(open_memory)
    assert {"_tx", "_thread", "_connection", "_connector", "_running"} <= set(vars(worker))
    assert not worker._thread.is_alive()
    assert aiosqlite.core._STOP_RUNNING_SENTINEL is module._STOP_RUNNING_SENTINEL


async def test_a_function_runs_on_the_thread_and_in_order():
    worker = await WorkerConnection.start(open_memory)
    threads: list[str] = []

    def note(raw: sqlite3.Connection) -> int:
        threads.append(threading.current_thread().name)
        return raw.execute("SELECT 1").fetchone()[0]

    assert [await future for future in [worker.post(note), worker.post(note)]] == [1, 1]
    assert threads == ["memdb", "memdb"]
    await worker.close()
    with pytest.raises(ValueError, match="closed"):
        worker.post(note)


async def test_an_error_reaches_its_caller_and_the_thread_lives_on():
    worker = await WorkerConnection.start(open_memory)
    with pytest.raises(memdb.Corrupt):
        await worker.post(lambda raw: raw.execute("nonsense"))
    assert await worker.post(lambda raw: 5) == 5
    await worker.close()


def test_the_thread_outlives_a_closed_loop():
    async def leave() -> WorkerConnection:
        worker = await WorkerConnection.start(open_memory)
        worker.post(lambda raw: time.sleep(0.05))
        return worker

    worker = asyncio.run(leave())
    time.sleep(0.1)
    assert worker._thread.is_alive()
    worker.stop()
    worker._thread.join(timeout=5)
    assert not worker._thread.is_alive()


def all_error_names() -> list[str]:
    names = [name for name in dir(sqlite3) if name.startswith("SQLITE_") and isinstance(getattr(sqlite3, name), int)]
    families = (
        "AUTH BUSY CANTOPEN CONSTRAINT CORRUPT ERROR FULL INTERRUPT IOERR LOCKED MISMATCH NOMEM NOTADB PERM PROTOCOL"
        " RANGE READONLY SCHEMA TOOBIG"
    )
    return [name for name in names if name.removeprefix("SQLITE_").startswith(tuple(families.split()))]


@pytest.mark.parametrize("name", all_error_names())
def test_every_sqlite_error_is_mapped_by_code(name):
    error = sqlite3.OperationalError("text that says nothing")
    error.sqlite_errorname = name
    ours = translate(error)
    assert isinstance(ours, memdb.MemdbError)
    assert "SQLite failed" not in str(ours)


def test_the_special_ones():
    def ours(name: str) -> BaseException:
        error = sqlite3.DatabaseError("x")
        error.sqlite_errorname = name
        return translate(error)

    assert isinstance(ours("SQLITE_BUSY_SNAPSHOT"), memdb.Busy)
    assert isinstance(ours("SQLITE_CORRUPT_VTAB"), memdb.Corrupt)
    assert "check(repair=True)" in str(ours("SQLITE_CORRUPT_VTAB"))
    assert isinstance(ours("SQLITE_NOTADB"), memdb.NotAMemdbFile)
    assert isinstance(ours("SQLITE_SOMETHING_NEW"), memdb.StorageError)
    keep = KeyError("mine")
    assert translate(keep) is keep


def test_every_pragma_says_why():
    for name, value, reason in (*module.COMMON_PRAGMAS, *module.WRITER_PRAGMAS, *module.READER_PRAGMAS):
        assert name.isidentifier()
        assert value
        assert len(reason) > 15
