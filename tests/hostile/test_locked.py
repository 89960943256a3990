"""A file that another connection holds longer than the timeout: Busy in one sentence, and all goes on afterwards."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Busy, MemoryItem
from memdb.storage.schema import SCHEMA_VERSION
from tests.hostile.hostile_values import complaint
from tests.hostile.shell import shell

TIMEOUT = 0.2

OLDER = (
    f"PRAGMA user_version = {SCHEMA_VERSION - 1}",
    f"UPDATE alembic_version SET version_num = '{SCHEMA_VERSION - 1:04}'",
)

Act = Callable[[memdb.Database], Awaitable[object]]
WRITES: dict[str, Act] = {
    "save": lambda db: db.memory().items.save(MemoryItem(id="b", content="x")),
    "save_many": lambda db: db.memory().items.save_many([MemoryItem(id="b", content="x")]),
    "message": lambda db: db.memory().conversation.add_message({"role": "user", "content": "x"}),
    "state": lambda db: db.memory().manager.update_state({"a": 1}),
    "turn": lambda db: db.memory().atomic(lambda m: m.items.delete("a")),
    "forget": lambda db: db.forget("default"),
    "repair": lambda db: db.check(repair=True),
}
WRITING = ("BEGIN IMMEDIATE",)
WHOLE = ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "DELETE FROM aging")  # readers have to wait, too


@contextmanager
def held(path: Path, *statements: str) -> Iterator[None]:
    holder = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        holder.execute(statement)
    try:
        yield
    finally:
        holder.rollback()
        holder.close()


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    async with memdb.open(tmp_path / "a.db") as db:
        await db.memory().items.save(MemoryItem(id="a", content="tea"))
    return tmp_path / "a.db"


async def refused(act: Awaitable[Any]) -> None:
    begun = time.monotonic()
    with pytest.raises(Busy) as caught:
        await asyncio.wait_for(act, 30)
    assert complaint(caught.value) is None
    assert time.monotonic() - begun < 15, "it waited for much longer than it was told to"


async def intact(db: memdb.Database) -> None:
    await db.memory().items.save(MemoryItem(id="later", content="tea"))
    assert [item.id for item in await db.memory().items.list()] == ["a", "later"]
    assert (await db.check()).problems == []


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_that_finds_the_file_held_is_told_so(file: Path, name: str) -> None:
    async with memdb.open(file, busy_timeout=TIMEOUT) as db:
        await db.memory().items.get("a")
        with held(file, *WRITING):
            await refused(WRITES[name](db))
            assert (await db.memory().items.search("tea"))[0].item.id == "a"  # readers do not wait
        await intact(db)


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"create": False}])
async def test_opening_a_file_that_is_held_as_a_whole_is_told_so(file: Path, options: dict[str, Any]) -> None:
    with held(file, *WHOLE):
        await refused(_opened(file, **options))
    async with memdb.open(file, busy_timeout=TIMEOUT) as db:
        await intact(db)


async def _opened(path: Path, **options: Any) -> None:
    async with memdb.open(path, busy_timeout=TIMEOUT, **options) as db:
        await db.memory().items.list()


async def test_migrating_a_held_file_waits_and_is_told_so(file: Path) -> None:
    shell(file, *OLDER)
    before = shell(file, "SELECT * FROM record")
    with held(file, *WRITING):
        await refused(_opened(file))
    assert shell(file, "SELECT * FROM record") == before
    assert shell(file, "PRAGMA user_version") == [(SCHEMA_VERSION - 1,)]
