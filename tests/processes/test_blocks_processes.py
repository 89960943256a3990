"""Several processes edit one session's blocks: no text is lost, no block outgrows its size."""

from __future__ import annotations

import asyncio
from pathlib import Path

import memdb
from memdb.layers.blocks.config import MemoryConfig
from memdb.testing import ScriptedModel
from tests.processes.helpers import in_processes

PROCESSES = ("a", "b", "c", "d")
NOTES = 25
SUMMARY = "There was more."


def append_on(path: Path, name: str) -> None:
    """Append notes, all at once."""

    async def go() -> None:
        async with memdb.open(path) as db:
            blocks = db.memory().blocks
            await asyncio.gather(*(blocks.append_to_memory("log", f"<{name}{n}>", author=name) for n in range(NOTES)))

    asyncio.run(go())


def summarise_on(path: Path, name: str) -> None:
    """Append notes one after the other, with a model that has to be asked again and again."""

    async def go() -> None:
        async with memdb.open(path) as db:
            blocks = db.memory().blocks.with_llm(ScriptedModel([SUMMARY] * 3 * NOTES))
            for n in range(NOTES):
                await blocks.append_to_memory("log", f"<{name}{n}>", author=name)

    asyncio.run(go())


async def test_no_text_of_several_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        blocks = db.memory().blocks
        await blocks.configure({"log": {"size": 10_000}})
        await asyncio.to_thread(in_processes, append_on, [(path, name) for name in PROCESSES])
        lines = (await blocks.get_memory("log"))["log"].split("\n")
        assert sorted(lines) == sorted(f"<{name}{n}>" for name in PROCESSES for n in range(NOTES))
        assert (await blocks.get_block_info("log"))["log"].version == 1 + len(PROCESSES) * NOTES
        assert (await db.check()).problems == []


async def test_what_is_summarised_by_several_processes_is_archived(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        blocks = db.memory().blocks
        await blocks.configure({"log": {"size": 40}, "other": {"size": 40}}, MemoryConfig(total_size=60))
        await asyncio.to_thread(in_processes, summarise_on, [(path, name) for name in PROCESSES])
        info = (await blocks.get_block_info("log"))["log"]
        assert info.tokens <= 40
        passages = await db.read(lambda tx: tx.execute("SELECT content FROM v_archive WHERE source_id = 'log'"))
        told = "\n".join([(await blocks.get_memory("log"))["log"], *(text for (text,) in passages)])
        assert [note for name in PROCESSES for n in range(NOTES) if (note := f"<{name}{n}>") not in told] == []
        assert len(set(passages)) == len(passages)
        assert (await db.check()).problems == []
