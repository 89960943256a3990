"""What was broken by hand, in units and under writes; damage that hides nothing, and damage in some chunks only."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import MissingFile
from memdb.layers.runtime.checkpoints import AgentCheckpoint
from tests.hostile.runtime_edits import (
    BORNE,
    CHECKPOINT,
    NO_UTF8,
    RESULT_BLOB,
    SAVE,
    STATE,
    TOOL_RESULT,
    WORKING,
    at_work,
    kept,
    use_all,
)
from tests.hostile.shell import shell


@pytest.fixture
async def db(path: Path) -> AsyncIterator[memdb.Database]:
    async with at_work(path) as opened:
        yield opened


async def absent(call: Awaitable[Any]) -> None:
    with pytest.raises(MissingFile):
        await call


ALL = [
    *(("state", edit) for edit in STATE.values()),
    *(("working_memory", edit) for edit in WORKING.values()),
    *(("checkpoint", edit) for edit in CHECKPOINT.values()),
    *(("tool_result", edit) for edit in TOOL_RESULT.values()),
]


@pytest.mark.parametrize(("layer", "edit"), [case for case in ALL if case[0] in ("state", "working_memory")])
async def test_writing_over_what_cannot_be_read_loses_nothing(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture, layer: str, edit: str
) -> None:
    shell(path, edit, careless=True)
    await use_all(db.memory("alice", "s").manager)
    assert [row[0] for row in kept(path)] == [layer]
    assert sum("MEMORY_CORRUPT" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(("layer", "edit"), ALL)
async def test_inside_a_unit(db: memdb.Database, path: Path, layer: str, edit: str) -> None:
    shell(path, edit, careless=True)

    def unit(m: Any, fails: bool) -> Any:
        seen = (m.manager.get_state(), m.manager.working_memory().content)
        saves = [(one.id, one.seq) for one in m.manager.checkpoints()]
        saves += [(one.id, one.seq) for one in m.manager.checkpoint_history("bad")]
        results = [info.id for info in m.manager.tool_results() if m.manager.tool_result_envelope(info.id)]
        if fails:
            raise ZeroDivisionError
        m.manager.update_state({"a": 1})
        m.manager.store_summary("new", if_revision=m.manager.working_memory_revision(), current_task="t")
        return seen, saves, results

    with pytest.raises(ZeroDivisionError):
        await db.memory("alice", "s").atomic(lambda m: unit(m, True))
    assert [row[0] for row in kept(path)] == [layer]
    seen, saves, results = await db.memory("alice", "s").atomic(lambda m: unit(m, False))
    assert seen == ({} if layer == "state" else {"current_task": "bad"}, "" if layer == "working_memory" else "bad")
    two = layer != "checkpoint"
    assert saves == (
        [("bad", 2), ("good", 1), ("first", 1), ("bad", 2), ("bad", 1)]
        if two
        else [("good", 1), ("bad", 1), ("first", 1), ("bad", 1)]
    )
    assert sorted(results) == (["good"] if layer == "tool_result" else ["bad", "good"])
    assert [row[0] for row in kept(path)] == [layer]
    assert await db.memory("alice", "s").manager.get_working_memory() == "new"


@pytest.mark.parametrize("how", BORNE)
async def test_what_is_only_for_people_to_read_hides_nothing(db: memdb.Database, path: Path, how: str) -> None:
    shell(path, BORNE[how], careless=True)
    manager = db.memory("alice", "s").manager
    assert (await manager.state_envelope() or {})["state"] == {"current_task": "bad"}
    assert await manager.load_plan("bad") == {"n": 2}
    assert (await manager.load_tool_result("bad"))["content"] == "bad\nlines\n"
    assert len({one.id for one in await manager.checkpoints()}) == len(await manager.checkpoints())
    assert kept(path) == []
    await use_all(manager)


@pytest.mark.parametrize("column", ["user_id", "session_id", "id"])
@pytest.mark.parametrize("value", ["x'62ff'", NO_UTF8, "'elsewhere'"])
@pytest.mark.parametrize("table", ["state", "working_memory", "checkpoint"])
async def test_rows_moved_out_of_reach_are_as_if_they_were_not(
    db: memdb.Database, path: Path, table: str, column: str, value: str
) -> None:
    if column == "id" and table != "checkpoint":
        return
    which = f"user_id = 'alice' AND {SAVE}" if table == "checkpoint" else "user_id = 'alice'"
    shell(path, f"UPDATE {table} SET {column} = {value} WHERE {which}", careless=True)
    manager = db.memory("alice", "s").manager
    assert await manager.get_state() == ({} if table == "state" else {"current_task": "bad"})
    assert await manager.get_working_memory() == ("" if table == "working_memory" else "bad")
    await manager.checkpoints()
    assert await manager.load_plan("bad") == {"n": 1 if table == "checkpoint" else 2}
    await use_all(manager)


@pytest.mark.parametrize("edit", ["line = 9", "line = -1"])
async def test_a_chunk_that_counts_its_lines_wrong(db: memdb.Database, path: Path, edit: str) -> None:
    manager = db.memory("alice", "s").manager
    text = "".join(f"line {n}\n" for n in range(20_000))
    await manager.save_tool_result("bad", {"content": text})
    shell(path, f"UPDATE blob_chunk SET {edit} WHERE blob_id = {RESULT_BLOB} AND start > 0 AND start < 40000")
    assert await manager.load_tool_result("bad") == {"content": text}
    await absent(manager.search_tool_result("bad", "line 19999"))
    await absent(manager.load_tool_result("bad"))
    ((_, _, raw),) = kept(path)
    assert bytes.fromhex("".join(json.loads(raw)["tool_result"]["payload"])) == text.encode()


async def test_a_page_of_a_result_whose_chunk_is_broken(db: memdb.Database, path: Path) -> None:
    manager = db.memory("alice", "s").manager
    for at, call in enumerate(
        (
            lambda: manager.read_tool_result("bad", start=70_000),
            lambda: manager.read_tool_result_lines("bad", first=7_000),
            lambda: manager.search_tool_result("bad", "absent"),
        ),
        1,
    ):
        await manager.save_tool_result("bad", {"content": "0123456789\n" * 10_000})
        assert (await manager.read_tool_result("bad", start=70_000)).text
        shell(path, f"DELETE FROM blob_chunk WHERE blob_id = {RESULT_BLOB} AND start > 60000 AND start < 90000")
        assert (await manager.read_tool_result("bad")).text.startswith("0123456789")  # what is whole is read
        await absent(call())
        await absent(manager.read_tool_result("bad"))
        assert len(kept(path)) == at


async def test_many_damaged_saves_leave_the_older_ones(db: memdb.Database, path: Path) -> None:
    manager = db.memory("alice", "t").manager
    for n in range(250):
        await manager.save_checkpoint(AgentCheckpoint(id=f"r{n % 2}", status="completed", payload={"n": n}))
    shell(path, "UPDATE checkpoint SET saved_at = '?' WHERE session_id = 't' AND seq > 10")
    assert [one.payload["n"] for one in await manager.checkpoints(status="completed")] == [19, 18]
    assert len(kept(path)) == 230
    assert [one.seq for one in await manager.checkpoint_history("r0")] == [*range(10, 0, -1)]
    assert await manager.save_checkpoint(AgentCheckpoint(id="r0")) == 11


async def test_a_payload_that_is_stored_again_is_whole_again(path: Path) -> None:
    """Payloads are stored once by their hash: a damaged one must not be what a new save refers to."""
    async with memdb.open(path) as db:
        await db.memory("alice", "s1").manager.save_tool_result("a", {"content": "x" * 100_000})
    shell(path, "UPDATE blob_chunk SET data = 'other' WHERE start = 0")
    async with memdb.open(path) as db:
        manager = db.memory("alice", "s1").manager
        await manager.save_tool_result("b", {"content": "x" * 100_000})
        assert await manager.load_tool_result("b") == {"content": "x" * 100_000}
        assert await manager.load_tool_result("a") == {"content": "x" * 100_000}
        assert (await db.check()).ok
