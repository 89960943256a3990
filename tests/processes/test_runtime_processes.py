"""Several processes change one session's memory: no patch is lost, no summary overwritten, each save has a place."""

from __future__ import annotations

import asyncio
from pathlib import Path

import memdb
from memdb.layers.runtime.checkpoints import AgentCheckpoint
from tests.processes.helpers import in_processes

PROCESSES = ("a", "b", "c", "d")
PATCHES = 25


def patch_on(path: Path, name: str) -> None:
    """Patch different keys, all at once."""

    async def go() -> None:
        async with memdb.open(path) as db:
            manager = db.memory().manager
            await asyncio.gather(*(manager.update_state({f"{name}{n}": n, "last": name}) for n in range(PATCHES)))

    asyncio.run(go())


def summarise_on(path: Path, name: str) -> list[int]:
    """Write summaries by compare-and-set; return the revisions whose text was replaced by one of ours."""

    async def go() -> list[int]:
        written = []
        async with memdb.open(path) as db:
            manager = db.memory().manager
            while len(written) < 10:
                before = await manager.working_memory()
                text = f"{before.content}{name}"
                if await manager.store_summary(text, if_revision=before.revision, current_task=text):
                    written.append(before.revision)
        return written

    return asyncio.run(go())


def save_on(path: Path, name: str) -> list[int]:
    """Save checkpoints under one id and the same large result under ids of our own; return the places."""

    async def go() -> list[int]:
        async with memdb.open(path) as db:
            manager = db.memory().manager
            checkpoint = AgentCheckpoint(id="r", status="in_progress", payload={"same": True})
            seqs = await asyncio.gather(*(manager.save_checkpoint(checkpoint) for _ in range(PATCHES)))
            await manager.save_tool_result(name, {"content": "the same\n" * 20_000})
            return seqs

    return asyncio.run(go())


async def test_patches_of_several_processes_all_survive(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        await asyncio.to_thread(in_processes, patch_on, [(path, name) for name in PROCESSES])
        state = await db.memory().manager.get_state()
        assert state.pop("last") in PROCESSES
        assert state == {f"{name}{n}": n for name in PROCESSES for n in range(PATCHES)}
        assert (await db.check()).problems == []


async def test_no_summary_is_overwritten_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        written = await asyncio.to_thread(in_processes, summarise_on, [(path, name) for name in PROCESSES])
        manager = db.memory().manager
        assert sorted(revision for one in written for revision in one) == [*range(40)]
        text = await manager.get_working_memory()
        assert {name: text.count(name) for name in PROCESSES} == dict.fromkeys(PROCESSES, 10)
        assert await manager.get_state() == {"current_task": text}


async def test_saves_of_several_processes_each_have_a_place(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        seqs = await asyncio.to_thread(in_processes, save_on, [(path, name) for name in PROCESSES])
        assert sorted(seq for one in seqs for seq in one) == [*range(1, 101)]
        manager = db.memory().manager
        assert [one.seq for one in await manager.checkpoint_history("r", 1000)] == [*range(100, 0, -1)]
        assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM blob")) == [(2,)]
        for name in PROCESSES:
            assert (await manager.load_tool_result(name))["content"] == "the same\n" * 20_000
        assert (await db.check()).problems == []
