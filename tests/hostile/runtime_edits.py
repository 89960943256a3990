"""How states, working summaries, checkpoints and tool results can be broken by hand, and what to do with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import memdb
from memdb.layers.layer import Live
from memdb.layers.runtime.checkpoints import AgentCheckpoint
from memdb.layers.runtime.manager import MemoryManager
from tests.hostile.shell import shell

Manager = MemoryManager[Live]
NO_UTF8 = "CAST(x'ff41' AS TEXT)"
DEEP = f"'{'[' * 5000}{']' * 5000}'"
# The newest save of 'bad', and the tool result 'bad'.
SAVE = "(id, seq) = ('bad', 2)"
ITS_BLOB = f"(SELECT blob_id FROM checkpoint WHERE {SAVE})"
RESULT = "(SELECT id FROM record WHERE key = 'bad' AND layer = 'tool_result')"
RESULT_BLOB = f"(SELECT blob_id FROM tool_result WHERE record_id = {RESULT})"


def edits(table: str, where: str, **columns: str | tuple[str, ...]) -> dict[str, str]:
    """Return UPDATE statements, each breaking one column in one way."""
    return {
        f"{table}.{column} = {value[:40]}": f"UPDATE {table} SET {column} = {value} WHERE {where}"
        for column, values in columns.items()
        for value in ([values] if isinstance(values, str) else values)
    }


STATE = edits(
    "state",
    "1",
    updated_at=("'yesterday'", "x'32'", NO_UTF8),
    state=("'{'", "'[1]'", "'null'", "x'7b7d'", NO_UTF8, DEEP, "7"),
)
WORKING = edits(
    "working_memory",
    "1",
    revision=("'many'", "0", "-1", "x'01'", "9223372036854775807"),
    updated_at=("''", "x'32'", NO_UTF8),
    content=("x'00ff'", NO_UTF8),
)
CHECKPOINT = {
    **edits(
        "checkpoint",
        SAVE,
        seq=("'two'", "x'02'", "9223372036854775807", "2.5"),
        status=("'done'", "x'00'", NO_UTF8),
        saved_at=("'?'", "x'32'", NO_UTF8),
        blob_id=("'x'", "0", "x'01'", "(SELECT id FROM blob WHERE user_id = 'bob')"),
    ),
    **edits(
        "blob",
        f"id = {ITS_BLOB}",
        user_id=("'bob'", "x'00'", NO_UTF8),
        hash=("'x'", "x'00'", NO_UTF8),
        size=("'big'", "5", "x'00'"),
    ),
    **edits(
        "blob_chunk",
        f"blob_id = {ITS_BLOB}",
        blob_id="0",
        start=("'x'", "5", "x'00'"),
        line=("'x'", "x'00'"),
        data=("x'ff'", "'{}'", "''", "1.5"),
    ),
    "blob row deleted": f"DELETE FROM blob WHERE id = {ITS_BLOB}",
    "chunk deleted": f"DELETE FROM blob_chunk WHERE blob_id = {ITS_BLOB}",
}
TOOL_RESULT = {
    **edits(
        "record",
        f"id = {RESULT}",
        created_at=("'?'", "x'32'", NO_UTF8),
        updated_at=("'?'", "x'32'", NO_UTF8),
        expires_at=("'zzz'", NO_UTF8),
        title=("x'00'", NO_UTF8),
        summary=("x'00'", NO_UTF8),
        metadata=("x'00'", NO_UTF8),
    ),
    **edits(
        "tool_result",
        f"record_id = {RESULT}",
        form=("'other'", "x'00'", NO_UTF8),
        head=("'{'", "'[]'", "'{}'", "x'7b7d'", NO_UTF8, DEEP),
        blob_id=("'x'", "0"),
    ),
    **edits("blob", f"id = {RESULT_BLOB}", user_id="'bob'", hash="'x'", size=("'big'", "5"), lines=("'x'", "-1")),
    **edits("blob_chunk", f"blob_id = {RESULT_BLOB}", start=("'x'", "5"), data=("x'ff'", "''")),
    "tool_result row deleted": f"DELETE FROM tool_result WHERE record_id = {RESULT}",
    "blob row deleted": f"DELETE FROM blob WHERE id = {RESULT_BLOB}",
}
# What is only there for people to read, or kept by triggers: everything still comes.
BORNE = {
    **edits("state", "1", format_version=("'x'", "2", "x'00'")),
    **edits("checkpoint", SAVE, format_version=("'x'", "0"), superseded=("'x'", "7", "1", "x'00'")),
    **edits("blob", f"id = {ITS_BLOB}", lines=("'x'", "5")),
    **edits("tool_result", f"record_id = {RESULT}", user_id=("'bob'", "x'00'")),
    **edits("checkpoint", "(id, seq) = ('bad', 1)", superseded="0"),
}


@asynccontextmanager
async def at_work(path: Path) -> AsyncIterator[memdb.Database]:
    """Open a file in which two agents are at work; what will be broken is called 'bad'."""
    async with memdb.open(path) as opened:
        for user, session in (("alice", "s"), ("bob", "s")):
            manager = opened.memory(user, session).manager
            await manager.save_plan("first", {"of": user})
            await manager.save_checkpoint(AgentCheckpoint(id="bad", status="in_progress", payload={"n": 1}))
            await manager.save_plan("good", {"n": 0})
            await manager.save_tool_result("good", {"tool": "t", "content": "good"})
        manager = opened.memory("alice", "s").manager
        await manager.update_state({"current_task": "bad"})
        await manager.update_working_memory("bad")
        await manager.save_checkpoint(AgentCheckpoint(id="bad", status="in_progress", payload={"n": 2}))
        await manager.save_tool_result("bad", {"tool": "t", "content": "bad\nlines\n"})
        yield opened


async def use_all(manager: Manager) -> None:
    """Write over all of it: acknowledged writes are there."""
    assert (await manager.update_state({"a": 1}))["a"] == 1
    assert (await manager.get_state())["a"] == 1
    assert await manager.update_working_memory("new")
    assert await manager.get_working_memory() == "new"
    await manager.save_checkpoint(AgentCheckpoint(id="bad", status="interrupted", payload={"n": 3}))
    assert await manager.load_plan("bad") == {"n": 3}
    latest = await manager.latest_checkpoint("interrupted")
    assert latest is not None
    assert latest.payload == {"n": 3}
    await manager.save_tool_result("bad", {"content": "new"})
    assert await manager.load_tool_result("bad") == {"content": "new"}
    assert (await manager.prune_checkpoints(), await manager.delete_checkpoint("bad")) >= (0, 1)


def kept(path: Path) -> list[tuple[str, str, str]]:
    """Return the layer, key and raw columns of what is in the quarantine."""
    return shell(path, "SELECT layer, key, raw FROM quarantine")
