"""A handle belongs to one event loop of one process; anywhere else it says so."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import memdb
from memdb import Closed, MemoryItem
from tests.processes.helpers import in_process, script

CALLS: tuple[Callable[[memdb.Database], Awaitable[object]], ...] = (
    lambda db: db.memory().items.get("a"),
    lambda db: db.memory().items.save(MemoryItem(id="b", content="x")),
    lambda db: db.memory().atomic(lambda m: m.items.list()),
    lambda db: db.read(lambda tx: 1),
    lambda db: db.write(lambda tx: 1),
    lambda db: db.check(),
    lambda db: db.stats(),
    lambda db: db.forget("default"),
    lambda db: db.backup("copy.db"),
)


async def opened(path: Path) -> memdb.Database:
    db = await memdb.open(path)
    await db.memory().items.save(MemoryItem(id="a", content="x"))
    return db


async def refused(db: memdb.Database, words: str) -> None:
    for call in CALLS:
        with pytest.raises(Closed, match=words):
            await asyncio.wait_for(call(db), 10)


def test_a_second_event_loop_gets_a_clear_error(tmp_path: Path) -> None:
    with asyncio.Runner() as first:
        db = first.run(opened(tmp_path / "a.db"))
        with asyncio.Runner() as second:
            second.run(refused(db, "another event loop"))
        first.run(db.close())


async def test_a_closed_handle_says_so(tmp_path: Path) -> None:
    db = await opened(tmp_path / "a.db")
    await db.close()
    await db.close()
    await refused(db, "is closed")


def test_closing_in_a_second_loop_does_not_hang_on_writes_the_first_one_left(tmp_path: Path) -> None:
    async def leave_a_write() -> memdb.Database:
        db = await opened(tmp_path / "a.db")
        task = asyncio.create_task(db.write(lambda tx: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        task.cancel()
        return db

    async def close(db: memdb.Database) -> None:
        try:
            await asyncio.wait_for(db.close(), 10)
        except Closed as error:
            assert "event loop" in str(error)  # noqa: PT017 - both a refusal and a clean close are fine

    db = asyncio.run(leave_a_write())
    asyncio.run(close(db))


def test_closing_after_a_loop_was_closed_over_waiting_reads(tmp_path: Path) -> None:
    done = script(
        """
        import asyncio, time, memdb
        loop = asyncio.new_event_loop()
        db = loop.run_until_complete(memdb.open("a.db", readers=1).__aenter__())
        reads = [loop.create_task(db.read(lambda tx: time.sleep(0.1))) for _ in range(3)]
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()
        asyncio.run(db.close())
        print("closed")
        """,
        folder=tmp_path,
    )
    assert done.stdout == "closed\n", done.stderr


def use_in_forked_child(path: Path) -> tuple[int, int]:
    """Fork with a handle open; return the child's exit code and how many items the parent then has."""
    with asyncio.Runner() as runner:
        db = runner.run(opened(path))
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            code = 1
            try:
                asyncio.run(refused(db, "before a fork"))
                asyncio.run(db.close())
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        async def go_on() -> int:
            await db.memory().items.save(MemoryItem(id="after", content="x"))
            assert (await db.check()).problems == []
            count = len(await db.memory().items.list())
            await db.close()
            return count

        return code, runner.run(go_on())


def test_a_forked_child_is_refused_and_does_not_disturb_its_parent(tmp_path: Path) -> None:
    assert in_process(use_in_forked_child, tmp_path / "a.db") == (0, 2)


def test_a_forked_child_that_drops_the_handle_leaves_the_parents_file_alone(tmp_path: Path) -> None:
    done = script(
        """
        import asyncio, gc, os, memdb
        with asyncio.Runner() as runner:
            db = runner.run(memdb.open("a.db").__aenter__())
            runner.run(db.memory().items.save(memdb.MemoryItem(id="a", content="x")))
            child = os.fork()
            if child == 0:
                del db
                gc.collect()
                os._exit(0)
            print("child", os.waitpid(child, 0)[1])
            runner.run(db.memory().items.save(memdb.MemoryItem(id="b", content="x")))
            print(len(runner.run(db.memory().items.list())), runner.run(db.check()).problems)
            runner.run(db.close())
        """,
        folder=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("child 0\n2 []\n", "")


def test_a_forked_child_may_open_the_file_itself(tmp_path: Path) -> None:
    done = script(
        """
        import asyncio, os, signal, memdb
        async def save(db, id):
            await db.memory().items.save(memdb.MemoryItem(id=id, content="hello " + id))
            assert await db.memory().items.search("hello")
        async def alone(id):
            async with memdb.open("a.db") as db:
                await save(db, id)
        with asyncio.Runner() as runner:
            db = runner.run(memdb.open("a.db").__aenter__())
            runner.run(save(db, "parent"))
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                asyncio.run(alone("child"))
                os._exit(0)
            print("child", os.waitpid(child, 0)[1])
            runner.run(save(db, "later"))
            print(len(runner.run(db.memory().items.list())), runner.run(db.check()).problems)
            runner.run(db.close())
        """,
        folder=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("child 0\n3 []\n", "")


def test_a_lock_that_was_held_when_a_child_was_forked_is_free_in_the_child(tmp_path: Path) -> None:
    """Every lock of the library that is no handle's own: another thread of the parent may hold it just then."""
    done = script(
        """
        import importlib, os, pkgutil, signal, sys, threading, memdb
        for module in pkgutil.walk_packages(memdb.__path__, "memdb."):
            if ".cli" not in module.name and not module.name.endswith("__main__"):
                try:
                    importlib.import_module(module.name)
                except ImportError:  # of an extra
                    pass
        def locks():
            modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("memdb.")]
            found = [value for module in modules for value in vars(module).values()]
            found += [inner for value in found if type(value).__module__.startswith("memdb.")
                      for inner in getattr(value, "__dict__", {}).values()]
            return [value for value in found if isinstance(value, type(threading.Lock()))]
        held = locks()
        for lock in dict.fromkeys(held):
            lock.acquire()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(sum(not lock.acquire(timeout=0.1) for lock in dict.fromkeys(locks())))
        print(len(set(held)) >= 3, os.waitpid(child, 0)[1])
        """,
        folder=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")
