"""Runtime memory under hostile use: runs that are stopped, payloads that come again, numbers at their ends."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import AgentCheckpoint, ContextBuilder, InvalidInput, Memory
from memdb.layers.layer import Live
from memdb.storage.transfer import export_user, import_user

BLOCKED = """
import asyncio, memdb, time
async def main():
    async with memdb.open(":memory:") as db:
        async with db.memory().manager.run("r"):
            print("begun", flush=True)
            for _ in range(200):
                time.sleep(0.1)
asyncio.run(main())
"""
STEPPING = """
import asyncio, memdb, sys
async def main():
    async with memdb.open(sys.argv[1]) as db:
        async with db.memory().manager.run("r") as run:
            print("begun", flush=True)
            for number in range(1_000_000):
                await run.step({"n": number})
asyncio.run(main())
"""


def _edit(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def _begun(program: str, *args: str) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", program, *args], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline()
    return child


def _wait(begun: Any) -> None:
    begun.set()
    time.sleep(30)


def test_a_second_signal_ends_a_process_whose_loop_is_blocked() -> None:
    with _begun(BLOCKED) as child:
        for _ in range(2):
            child.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        try:
            assert child.wait(timeout=5) == -signal.SIGTERM
        finally:
            child.kill()


async def test_a_fork_inside_a_run_can_be_terminated(memory: Memory[Live]) -> None:
    async with memory.manager.run("r"):
        context = multiprocessing.get_context("fork")
        begun = context.Event()
        child = context.Process(target=_wait, args=(begun,))
        child.start()
        await asyncio.to_thread(begun.wait, 5)
        child.terminate()
        await asyncio.to_thread(child.join, 5)
        ended = child.exitcode
        child.kill()
    assert ended == -signal.SIGTERM


async def test_a_run_that_is_told_to_stop_between_two_steps_is_interrupted(path: Path) -> None:
    with _begun(STEPPING, os.fspath(path)) as child:
        child.send_signal(signal.SIGTERM)
        await asyncio.to_thread(child.wait, 30)
    async with memdb.open(path) as db:
        last = await db.memory().manager.latest_checkpoint()
    assert last is not None
    assert last.status == "interrupted"


async def test_a_run_that_is_cancelled_while_its_end_is_saved_has_ended(memory: Memory[Live]) -> None:
    async def run() -> None:
        async with memory.manager.run("r"):
            begun.set()

    begun = asyncio.Event()
    task = asyncio.create_task(run())
    await begun.wait()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    last = await memory.manager.latest_checkpoint()
    assert last is not None
    assert last.status == "completed"


async def test_replacing_a_result_whose_payload_stays(db: memdb.Database, memory: Memory[Live], tmp_path: Path) -> None:
    await memory.manager.save_tool_result("t", {"tool": "old", "content": "x" * 50_000})
    await export_user(db.engine, "alice", tmp_path / "old.jsonl")
    await memory.manager.save_tool_result("t", {"tool": "new", "content": "x" * 50_000})
    done = await import_user(db.engine, tmp_path / "old.jsonl", replace=True)
    assert done.replaced == 1
    assert (await memory.manager.load_tool_result("t"))["tool"] == "old"


async def test_older_saves_that_are_imported_supersede_nothing(
    db: memdb.Database, memory: Memory[Live], tmp_path: Path
) -> None:
    for number in range(3):
        await memory.manager.save_checkpoint(AgentCheckpoint(id="c", status="in_progress", payload={"n": number}))
    await export_user(db.engine, "alice", tmp_path / "old.jsonl")
    await memory.manager.save_checkpoint(AgentCheckpoint(id="c", status="completed", payload={"n": 3}))
    await memory.manager.prune_checkpoints()
    await import_user(db.engine, tmp_path / "old.jsonl")
    last = await memory.manager.latest_checkpoint()
    assert last is not None
    assert (last.seq, last.status) == (4, "completed")
    assert [one.seq for one in await memory.manager.checkpoint_history("c")] == [4, 3, 2, 1]


async def test_an_import_makes_a_damaged_payload_whole(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory("alice").manager.save_plan("c", {"text": "x" * 50_000})
        await export_user(db.engine, "alice", tmp_path / "whole.jsonl")
    _edit(path, "UPDATE blob_chunk SET data = x'7b7d' WHERE start = 0")
    async with memdb.open(path) as db:
        await import_user(db.engine, tmp_path / "whole.jsonl")
        assert await db.memory("alice").manager.load_plan("c") == {"text": "x" * 50_000}
        assert (await db.check()).ok


@pytest.mark.parametrize("edit", ["blob SET size = 5", "blob SET lines = 7", "blob_chunk SET line = line + 1"])
async def test_what_is_saved_again_is_whole_whatever_was_said_of_it(path: Path, edit: str) -> None:
    async with memdb.open(path) as db:
        await db.memory("alice").manager.save_tool_result("t", {"content": "a\n" * 50_000})
    _edit(path, f"UPDATE {edit}")
    async with memdb.open(path) as db:
        manager = db.memory("alice").manager
        await manager.save_tool_result("again", {"content": "a\n" * 50_000})
        assert (await manager.load_tool_result("again"))["content"] == "a\n" * 50_000
        lines = await manager.read_tool_result_lines("again", first=40_000, count=1)
        assert (lines.text, lines.start, lines.lines) == ("a\n", 79_998, 50_000)


async def test_saves_after_the_highest_number_are_read_again(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory("alice").manager.save_plan("c", {"n": 1})
        await db.memory("alice").manager.update_working_memory("one")
    _edit(path, f"UPDATE checkpoint SET seq = {2**62 - 1}")
    _edit(path, f"UPDATE working_memory SET revision = {2**62 - 1}")
    async with memdb.open(path) as db:
        manager = db.memory("alice").manager
        await manager.save_plan("c", {"n": 2})
        await manager.update_working_memory("two")
        assert (await manager.load_plan("c"), await manager.get_working_memory()) == ({"n": 2}, "two")


class _Priming:
    """Counts as the guides to chat APIs do: a few tokens for the call itself."""

    calls = 0

    def count(self, text: str) -> int:
        return len(text) // 4 + 1

    def count_messages(self, messages: Any) -> int:
        self.calls += 1
        assert self.calls < 1_000, "it would go on for ever"
        return 3 + sum(
            4 + self.count(str(one["content"] if isinstance(one, dict) else one.content)) for one in messages
        )


@pytest.mark.parametrize("budget", [1, 2, 3, 10])
async def test_a_budget_below_what_a_call_costs_ends(memory: Memory[Live], budget: int) -> None:
    await memory.conversation.add_message({"role": "user", "content": "hello there"})
    context = await asyncio.wait_for(ContextBuilder(memory, _Priming()).build("hello", max_tokens=budget), 10)
    assert context.tokens <= budget


HUGE = 10**5_000


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.manager.read_tool_result("t", start=HUGE),
        lambda memory: memory.manager.tool_results(HUGE),
        lambda memory: memory.manager.externalize("t", "x" * 9_999, ttl=HUGE),
        lambda memory: memory.manager.update_working_memory("x", if_revision=HUGE),
        lambda memory: ContextBuilder(memory, memdb.TokenCounter()).build(max_tokens=HUGE),
        lambda memory: ContextBuilder(memory, memdb.TokenCounter(), sections=5).build(),  # type: ignore[arg-type]
    ],
    ids=["start", "limit", "ttl", "if_revision", "max_tokens", "sections"],
)
async def test_numbers_of_thousands_of_digits_and_no_lists_are_refused(memory: Memory[Live], call: Any) -> None:
    with pytest.raises(InvalidInput):
        await call(memory)


async def test_a_state_without_room_for_the_task_costs_the_agent_nothing(memory: Memory[Live]) -> None:
    await memory.manager.update_state({"all": "x" * (1024 * 1024 - 30)})
    model = memdb.testing.ScriptedModel(["# Current Goal\nA goal that has no room in that state any more"])
    compressor = memdb.WorkingMemoryCompressor(memory, model, memdb.TokenCounter())
    done = await compressor.update_summary([{"role": "user", "content": "hello"}])
    assert not done.written
    assert "the state would have" in str(done.reason)
