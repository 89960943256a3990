"""Several processes compress one session: each one's merge is of what the last one wrote, and none is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import memdb
from memdb.llm.compressor import WorkingMemoryCompressor
from memdb.text.reply import ChatReply
from memdb.text.sections import parse_sections, render_sections
from tests.processes.helpers import in_processes, wait_until

PROCESSES, UPDATES = 3, 6


class Merging:
    """A model that keeps what the summary says and adds what the user said; it takes its time."""

    async def chat(self, messages, **options):
        asked = messages[-1]["content"]
        known = parse_sections(asked.partition("<summary>")[2].partition("</summary>")[0])
        said = [line.removeprefix("[user] ") for line in asked.splitlines() if line.startswith("[user] ")]
        await asyncio.sleep(0.01)
        return ChatReply(
            render_sections({**known, "Current Goal": said, "Completed": known.get("Completed", []) + said})
        )


def update(path: Path, name: int) -> list[str]:
    """Merge turn after turn, again when others were quicker; return what this process knows to be written."""

    async def go() -> list[str]:
        written: list[str] = []
        async with memdb.open(path) as db:
            keeper = WorkingMemoryCompressor(db.memory("alice", "s"), Merging(), memdb.TokenCounter(), 2_000)
            for n in range(UPDATES):
                said = f"step {name}.{n}"
                while not (await keeper.update_summary([{"role": "user", "content": said}])).written:
                    pass
                written.append(said)
        return written

    return asyncio.run(go())


def test_no_merge_is_lost(path: Path) -> None:
    written = in_processes(update, [(path, name) for name in range(PROCESSES)])

    async def kept() -> tuple[str, dict[str, object], int]:
        async with memdb.open(path) as db:
            manager = db.memory("alice", "s").manager
            found = await manager.get_working_memory(), await manager.get_state()
            assert (await db.check()).ok
            return *found, await manager.working_memory_revision()

    text, state, revision = asyncio.run(kept())
    sections = parse_sections(text)
    assert sorted(sections["Completed"]) == sorted(step for steps in written for step in steps)
    assert [state["current_task"]] == sections["Current Goal"]
    assert revision == PROCESSES * UPDATES


class Waiting(Merging):
    """Answers only once both processes have asked, so that both have read the same working memory."""

    def __init__(self, folder: Path, name: int) -> None:
        self.folder, self.name = folder, name

    async def chat(self, messages, **options):
        (self.folder / str(self.name)).touch()
        assert await asyncio.to_thread(wait_until, lambda: len(list(self.folder.iterdir())) == 2)
        return await super().chat(messages, **options)


def compress_once(path: Path, folder: Path, name: int) -> bool:
    async def go() -> bool:
        async with memdb.open(path) as db:
            keeper = WorkingMemoryCompressor(db.memory("alice", "s"), Waiting(folder, name), memdb.TokenCounter())
            return (await keeper.compress([{"role": "user", "content": f"said {name}"}])).written

    return asyncio.run(go())


def test_two_that_rebuild_at_once_do_not_overwrite_each_other(path: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "asked").mkdir()
    assert in_processes(compress_once, [(path, folder, name) for name in range(2)]) == [True, True]

    async def kept() -> str:
        async with memdb.open(path) as db:
            return await db.memory("alice", "s").manager.get_working_memory()

    assert sorted(parse_sections(asyncio.run(kept()))["Completed"]) == ["said 0", "said 1"]
