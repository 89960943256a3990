"""States, working summaries, checkpoints and tool results broken by hand: the documented default comes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import MissingFile
from tests.hostile.runtime_edits import (
    CHECKPOINT,
    STATE,
    TOOL_RESULT,
    WORKING,
    Manager,
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


async def read_state(manager: Manager) -> None:
    assert await manager.get_state() == {}
    assert await manager.state_envelope() is None


async def read_working(manager: Manager) -> None:
    assert await manager.get_working_memory() == ""
    assert await manager.working_memory_revision() == 0


async def read_checkpoint(manager: Manager) -> None:
    assert await manager.load_plan("bad") == {"n": 1}
    latest = await manager.latest_checkpoint("in_progress")
    assert latest is not None
    assert (latest.id, latest.payload) == ("bad", {"n": 1})
    assert [(one.id, one.seq) for one in await manager.checkpoints()] == [("good", 1), ("bad", 1), ("first", 1)]
    assert [one.seq for one in await manager.checkpoint_history("bad")] == [1]


async def list_checkpoints(manager: Manager) -> None:
    """The other way round: met first where all ids are looked through."""
    assert [(one.id, one.seq) for one in await manager.checkpoints()] == [("good", 1), ("bad", 1), ("first", 1)]
    await read_checkpoint(manager)


async def read_result(manager: Manager) -> None:
    await absent(manager.load_tool_result("bad"))
    assert [info.id for info in await manager.tool_results()] == ["good"]
    assert await manager.search_tool_result("good", "good") != []


async def list_results(manager: Manager) -> None:
    await manager.tool_results()
    await read_result(manager)


CASES: list[tuple[str, str, Callable[[Manager], Awaitable[None]], str, bytes]] = [
    *((how, edit, read_state, "state", b'{"current_task":"bad"}') for how, edit in STATE.items()),
    *((how, edit, read_working, "working_memory", b"bad") for how, edit in WORKING.items()),
    *((how, edit, read_checkpoint, "checkpoint", b'{"n":2}') for how, edit in CHECKPOINT.items()),
    *((f"list {how}", edit, list_checkpoints, "checkpoint", b'{"n":2}') for how, edit in CHECKPOINT.items()),
    *((how, edit, read_result, "tool_result", b"bad\nlines\n") for how, edit in TOOL_RESULT.items()),
    *((f"list {how}", edit, list_results, "tool_result", b"bad\nlines\n") for how, edit in TOOL_RESULT.items()),
]
DAMAGE = pytest.mark.parametrize(
    ("edit", "read", "layer", "raw"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)


@DAMAGE
async def test_what_cannot_be_read_is_set_aside(
    db: memdb.Database,
    path: Path,
    caplog: pytest.LogCaptureFixture,
    edit: str,
    read: Callable[[Manager], Awaitable[None]],
    layer: str,
    raw: bytes,
) -> None:
    shell(path, edit, careless=True)
    manager = db.memory("alice", "s").manager
    await read(manager)
    ((where, key, columns),) = kept(path)
    assert where == layer
    assert key == ("bad" if layer in ("checkpoint", "tool_result") else "")
    if not any(part in edit for part in ("DELETE", "UPDATE blob", "SET state", "SET content", "SET blob_id")):
        assert _holds(json.loads(columns), raw)  # what was not broken itself
    assert sum("MEMORY_CORRUPT" in record.message for record in caplog.records) == 1
    await read(manager)  # and once more: nothing new
    assert len(kept(path)) == 1
    other = db.memory("bob", "s").manager
    assert await other.load_plan("bad") == {"n": 1}
    assert (await other.load_tool_result("good"))["content"] == "good"
    await use_all(manager)


def _holds(columns: Any, raw: bytes) -> bool:
    """Whether bytes are somewhere in what the quarantine keeps of a row."""
    if isinstance(columns, dict):
        return any(_holds(value, raw) for value in columns.values())
    if isinstance(columns, list):
        return bytes.fromhex("".join(columns)) == raw
    return isinstance(columns, str) and bytes.fromhex(columns) == raw


@DAMAGE
async def test_a_handle_that_may_not_write_only_logs(
    db: memdb.Database,
    path: Path,
    caplog: pytest.LogCaptureFixture,
    edit: str,
    read: Callable[[Manager], Awaitable[None]],
    layer: str,
    raw: bytes,
) -> None:
    shell(path, edit, careless=True)
    async with memdb.open(path, read_only=True) as looking:
        manager = looking.memory("alice", "s").manager
        for _ in range(2):
            if layer == "checkpoint":
                assert await manager.load_plan("bad") == {"n": 1}
                assert [(one.id, one.seq) for one in await manager.checkpoints()] == [
                    ("good", 1),
                    ("bad", 1),
                    ("first", 1),
                ]
            elif layer == "tool_result":
                await absent(manager.load_tool_result("bad"))
                assert (await manager.tool_results())[0].id in ("good", "bad")
            else:
                await read(manager)
    assert kept(path) == []
    assert any("MEMORY_CORRUPT" in record.message for record in caplog.records)
