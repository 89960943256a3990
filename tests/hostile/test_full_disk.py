"""A disk that is full at any act: one sentence, nothing half there, and all that was acknowledged before."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import MemdbError, MemoryItem
from memdb.storage.schema import SCHEMA_VERSION
from tests.hostile.hostile_values import complaint
from tests.hostile.shell import shell
from tests.processes.helpers import in_process

LARGE = "word " * 400_000  # 2 MB
KEPT = 50
ROOM = 64 * 1024  # bytes that any file may have while the disk is full

OLDER = (
    f"PRAGMA user_version = {SCHEMA_VERSION - 1}",
    f"UPDATE alembic_version SET version_num = '{SCHEMA_VERSION - 1:04}'",
)

Act = Callable[[memdb.Database, Any, Path], Awaitable[object]]


async def _sync(db: memdb.Database, m: Any, folder: Path) -> object:
    return await memdb.sync_folder(db, folder / "notes", user_id="a")


async def _turn(db: memdb.Database, m: Any, folder: Path) -> object:
    def unit(inside: Any) -> None:
        inside.items.save(MemoryItem(id="turn", content="x"))
        inside.conversation.add_message({"role": "user", "content": LARGE})

    return await m.atomic(unit)


ACTS: dict[str, Act] = {
    "save": lambda db, m, folder: m.items.save(MemoryItem(id="large", content=LARGE)),
    "save_many": lambda db, m, folder: m.items.save_many([MemoryItem(id=f"n{n}", content=LARGE) for n in range(3)]),
    "page": lambda db, m, folder: m.pages.add_page(memdb.KnowledgePage(id="large", title="x", content=LARGE)),
    "message": lambda db, m, folder: m.conversation.add_message({"role": "user", "content": LARGE}),
    "tool result": lambda db, m, folder: m.manager.save_tool_result("large", {"content": LARGE}),
    "checkpoint": lambda db, m, folder: m.manager.save_plan("large", {"text": LARGE[:900_000]}),
    "fact": lambda db, m, folder: m.facts.write_long_term(LARGE),
    "turn": _turn,
    "sync": _sync,
    "import": lambda db, m, folder: m.import_state(folder / "state.jsonl"),
    "backup": lambda db, m, folder: db.backup(folder / "copy.db"),
    "export": lambda db, m, folder: m.export_state(folder / "new.jsonl"),
    "export_jsonl": lambda db, m, folder: m.conversation.export_jsonl(folder / "talk.jsonl"),
    "notes": lambda db, m, folder: memdb.export_folder(db, folder / "out", user_id="a"),
}
LEFT = {"backup": "copy.db", "export": "new.jsonl", "export_jsonl": "talk.jsonl"}  # what must not be there afterwards


async def prepared(folder: Path) -> None:
    """Make a file with something that was acknowledged, and what the acts read."""
    async with memdb.open(folder / "a.db") as db:
        m = db.memory("a")
        await m.items.save_many([MemoryItem(id=str(n), content=f"kept {n} " * 300) for n in range(KEPT)])
        await m.conversation.add_message({"role": "user", "content": "kept " * 30_000})
        await m.pages.add_page(memdb.KnowledgePage(id="p", title="kept", content="kept " * 30_000))
    async with memdb.open(folder / "other.db") as other:
        await other.memory("a").items.save(MemoryItem(id="large", content=LARGE))
        await other.memory("a").export_state(folder / "state.jsonl")
    (folder / "notes").mkdir()
    (folder / "notes" / "large.md").write_text(LARGE)


def on_a_full_disk(folder: Path, name: str) -> list[str]:
    """Do an act where no file may grow beyond ROOM; return what came of it, and of a small save afterwards."""

    async def go() -> list[str]:
        said = []
        async with memdb.open(folder / "a.db") as db:
            m = db.memory("a")
            await m.items.get("0")
            resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
            try:
                await ACTS[name](db, m, folder)
                said.append("done")
            except MemdbError as error:
                said.append(f"{type(error).__name__}: {complaint(error) or error}")
            found = len(await m.items.search("kept", limit=100))
            said.append(f"{found} found")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return said

    return asyncio.run(go())


@pytest.mark.parametrize("name", ACTS)
async def test_a_full_disk_is_told_of_in_one_sentence(tmp_path: Path, name: str) -> None:
    await prepared(tmp_path)
    said, found = await asyncio.to_thread(in_process, on_a_full_disk, tmp_path, name)
    if name == "notes":  # each file by itself: the report tells of those that could not be written
        assert said == "done"
    else:
        assert said.startswith("StorageError: "), said
        assert "nothing" in said or "cannot write" in said or "full" in said, said
    assert found == f"{KEPT} found"
    assert not (tmp_path / LEFT.get(name, "nothing")).exists()
    assert not [path.name for path in tmp_path.rglob("*") if "unfinished" in path.name]
    async with memdb.open(tmp_path / "a.db") as db:
        m = db.memory("a")
        assert sorted(int(item.id) for item in await m.items.list()) == list(range(KEPT))
        assert len(await m.conversation.messages()) == 1
        assert (await db.check()).problems == []
        await m.items.save(MemoryItem(id="after", content="there is room again"))


async def test_a_full_disk_leaves_an_older_file_as_it_was(tmp_path: Path) -> None:
    await prepared(tmp_path)
    path = tmp_path / "a.db"
    shell(path, *OLDER)
    before = path.read_bytes()
    said = await asyncio.to_thread(in_process, _open_on_a_full_disk, path)
    assert said.startswith("StorageError: "), said
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.bak"))


def _open_on_a_full_disk(path: Path) -> str:
    async def go() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
        try:
            async with memdb.open(path):
                return "opened"
        except MemdbError as error:
            return f"{type(error).__name__}: {complaint(error) or error}"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return asyncio.run(go())


async def test_what_was_acknowledged_survives_a_close_on_a_full_disk(tmp_path: Path) -> None:
    """The log holds it, and cannot be folded into the file: the next opening does that."""
    path = tmp_path / "a.db"
    await prepared(tmp_path)
    assert await asyncio.to_thread(in_process, _save_and_close, path) == "saved"
    async with memdb.open(path) as db:
        assert len(await db.memory("a").items.list()) == KEPT + 1
        assert (await db.check()).problems == []


def _save_and_close(path: Path) -> str:
    async def go() -> str:
        async with memdb.open(path) as db:
            await db.memory("a").items.get("0")
            resource.setrlimit(resource.RLIMIT_FSIZE, (4 * ROOM, resource.RLIM_INFINITY))
            await db.memory("a").items.save(MemoryItem(id="late", content="acknowledged"))
        return "saved"

    return asyncio.run(go())
