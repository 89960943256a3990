"""Other programs do what they should not while a file is open: it goes on or says so, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import MemdbError, MemoryItem, StorageError
from tests.hostile.hostile_values import complaint
from tests.processes.helpers import in_process

BEFORE, AFTER = 20, 10


def _sql(*statements: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        for statement in statements:
            connection.execute(statement).fetchall()
        connection.close()

    return run


# What leaves the file where it is: every acknowledged write must be there afterwards.
GENTLE: dict[str, tuple[str, ...]] = {
    "checkpoint": ("PRAGMA wal_checkpoint(TRUNCATE)",),
    "restart the log": ("PRAGMA wal_checkpoint(RESTART)",),
    "vacuum": ("VACUUM",),
    "vacuum and checkpoint": ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"),
    "analyze": ("ANALYZE",),
    "reindex": ("REINDEX",),
    "optimize": ("INSERT INTO record_search (record_search) VALUES ('optimize')",),
    "rebuild": ("INSERT INTO record_search (record_search) VALUES ('rebuild')",),
    "integrity check": ("PRAGMA integrity_check",),
    "another index": ("CREATE INDEX theirs ON record (content)",),
    "page size": ("PRAGMA page_size = 8192", "VACUUM"),
    "auto vacuum": ("PRAGMA auto_vacuum = FULL", "VACUUM"),
    "delete other rows": ("DELETE FROM record WHERE user_id = 'other'",),
}


def meddle(path: Path, name: str) -> None:
    """Do it, in a process of its own."""
    _sql(*GENTLE[name])(path)


async def begun(path: Path) -> memdb.Database:
    db = await memdb.open(path, busy_timeout=10)
    await db.memory("other").items.save_many([MemoryItem(id=str(n), content="theirs") for n in range(BEFORE)])
    for n in range(BEFORE):
        await db.memory().items.save(MemoryItem(id=str(n), content=f"acknowledged {n}"))
    return db


@pytest.mark.parametrize("name", GENTLE)
async def test_nothing_acknowledged_is_lost(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.db"
    db = await begun(path)
    items = db.memory().items

    async def write() -> None:
        for n in range(AFTER):
            await items.save(MemoryItem(id=f"late{n}", content="acknowledged late"))
            await items.search("acknowledged")

    await asyncio.gather(asyncio.to_thread(in_process, meddle, path, name), write())
    await write()  # once more, after it
    assert len(await items.list()) == BEFORE + AFTER
    assert len(await items.search("acknowledged", limit=100)) == BEFORE + AFTER
    report = await db.check(repair=True)
    assert report.ok, report.problems
    await db.close()
    async with memdb.open(path) as again:
        assert len(await again.memory().items.list()) == BEFORE + AFTER
        assert (await again.check()).problems == []


# What takes the file away, or what it is made of.
ROUGH: dict[str, Callable[[Path], object]] = {
    "delete": lambda path: path.unlink(),
    "delete the log": lambda path: Path(f"{path}-wal").unlink(),
    "delete the index of the log": lambda path: Path(f"{path}-shm").unlink(),
    "delete all of it": lambda path: [found.unlink() for found in path.parent.glob("a.db*")],
    "delete the lock": lambda path: Path(f"{path}-lock").unlink(missing_ok=True),
    "rename": lambda path: path.rename(path.with_name("b.db")),
    "replace by a text": lambda path: _replaced(path, b"Dear diary, " * 500),
    "replace by nothing": lambda path: _replaced(path, b""),
    "overwrite with a text": lambda path: path.write_bytes(b"Dear diary, " * 500),
    "empty": lambda path: os.truncate(path, 0),
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty the log": lambda path: os.truncate(f"{path}-wal", 0),
    "cut the log": lambda path: os.truncate(f"{path}-wal", Path(f"{path}-wal").stat().st_size // 2),
    "noise in the log": lambda path: _noise(Path(f"{path}-wal")),
    "drop a trigger": _sql("DROP TRIGGER record_search_ai"),
    "drop a table": _sql("PRAGMA foreign_keys = OFF", "DROP TABLE record"),
    "drop the index": _sql("DROP TABLE record_search"),
    "a column more": _sql("ALTER TABLE record ADD COLUMN mood TEXT"),
    "another version": _sql("PRAGMA user_version = 99"),
    "another journal": lambda path: _sql("PRAGMA journal_mode = DELETE")(path),
}


def _replaced(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    other.replace(path)


def _noise(path: Path) -> None:
    with path.open("rb+") as file:
        file.seek(path.stat().st_size // 2)
        file.write(os.urandom(500))


ASKED: dict[str, Callable[[Any], Any]] = {
    "save": lambda db: db.memory().items.save(MemoryItem(id="late", content="late")),
    "get": lambda db: db.memory().items.get("1"),
    "search": lambda db: db.memory().items.search("acknowledged"),
    "message": lambda db: db.memory().conversation.add_message({"role": "user", "content": "x"}),
    "check": lambda db: db.check(),
    "stats": lambda db: db.stats(),
    "save again": lambda db: db.memory().items.save(MemoryItem(id="later", content="late")),
    "backup": lambda db: db.backup(db.path + ".copy"),
}


@pytest.mark.parametrize("name", ROUGH)
async def test_what_takes_the_file_away_is_told_of_or_survived(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.db"
    db = await begun(path)
    with suppress(sqlite3.OperationalError, FileNotFoundError):  # some cannot be done while the file is open
        ROUGH[name](path)
    wrong = []
    for asked, call in ASKED.items():
        try:
            await asyncio.wait_for(call(db), 30)
        except BaseException as error:
            if fault := complaint(error):
                wrong.append(f"{asked}: {fault}: {error!r:.200}")
    await asyncio.wait_for(db.close(), 30)
    assert wrong == []
    try:
        async with memdb.open(path) as again:  # it opens, or says in a sentence why not
            await again.memory().items.list()
    except MemdbError as error:
        assert complaint(error) is None  # noqa: PT017 - both are fine


@pytest.mark.parametrize("name", ["delete", "delete all of it", "rename", "replace by a text", "replace by nothing"])
async def test_a_file_that_is_gone_takes_no_writes(tmp_path: Path, name: str) -> None:
    """They would be acknowledged, and lost with the file that has no name any more."""
    path = tmp_path / "a.db"
    db = await begun(path)
    ROUGH[name](path)
    before = {found.name: found.read_bytes() for found in tmp_path.iterdir() if found.suffix == ".db"}
    for asked in ("save", "message", "save again"):
        with pytest.raises(StorageError, match="deleted, renamed or replaced"):
            await ASKED[asked](db)
    await db.close()
    if name != "rename":  # there the log is folded in
        assert {found.name: found.read_bytes() for found in tmp_path.iterdir() if found.suffix == ".db"} == before
