"""A process whose file is migrated by a newer memdb while it has it open writes nothing any more."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import memdb
from memdb import MemoryItem, SchemaTooNew
from memdb.storage.schema import SCHEMA_VERSION

WRITES: dict[str, Callable[[memdb.Database], Awaitable[object]]] = {
    "save": lambda db: db.memory().items.save(MemoryItem(id="b", content="late")),
    "save_many": lambda db: db.memory().items.save_many([MemoryItem(id="b", content="late")]),
    "atomic": lambda db: db.memory().atomic(lambda m: m.items.delete("a")),
    "write": lambda db: db.write(lambda tx: tx.execute("DELETE FROM record")),
    "forget": lambda db: db.forget("default"),
    "repair": lambda db: db.check(repair=True),
}


def migrate_by_hand(path: Path) -> None:
    """Do what a newer memdb might: another trigger, another version."""
    shell = sqlite3.connect(path)
    shell.executescript(f"DROP TRIGGER record_search_au; PRAGMA user_version = {SCHEMA_VERSION + 1};")
    shell.close()


def content(path: Path) -> list[tuple[object, ...]]:
    shell = sqlite3.connect(path)
    rows = shell.execute("SELECT * FROM record").fetchall()
    rows += shell.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
    shell.close()
    return rows


@pytest.mark.parametrize("name", WRITES)
async def test_nothing_is_written_into_a_file_that_was_migrated_meanwhile(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        await db.memory().items.save(MemoryItem(id="a", content="early"))
        migrate_by_hand(path)
        before = content(path)
        with pytest.raises(SchemaTooNew, match="newer memdb"):
            await WRITES[name](db)
        assert content(path) == before
    assert content(path) == before, "closing wrote"


def test_a_newer_file_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def make() -> None:
        async with memdb.open(path) as db:
            await db.memory().items.save(MemoryItem(id="a", content="early"))

    async def refused(**options: bool) -> None:
        with pytest.raises(SchemaTooNew, match="install a newer memdb"):
            async with memdb.open(path, **options):
                pass

    asyncio.run(make())
    migrate_by_hand(path)
    before = path.read_bytes()
    for options in ({}, {"read_only": True}, {"migrate": False}, {"create": False}):
        asyncio.run(refused(**options))
    assert path.read_bytes() == before


async def test_closing_does_not_analyze_a_newer_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        await db.memory().items.save_many([MemoryItem(id=str(n), content="early") for n in range(3000)])
        await db.memory().items.list()
        migrate_by_hand(path)
        before = content(path)
    assert content(path) == before
