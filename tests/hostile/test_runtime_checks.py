"""What a shell can break in runtime memory, the index of notes and vectors: check() says it and mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memdb
from memdb import AgentCheckpoint
from memdb.testing import HashingEmbedder
from tests.hostile.shell import shell

BROKEN = [
    ("DELETE FROM blob_chunk", "checkpoints have lost their payload"),
    ("UPDATE blob_chunk SET data = data || 'x'", "tool results have lost their content"),
    ("UPDATE blob SET user_id = 'bob'", "checkpoints have lost their payload"),
    ("DROP TRIGGER blob_checkpoint_ad; DELETE FROM checkpoint", "payloads belong to nothing"),
    ("DROP TRIGGER blob_ad; DELETE FROM tool_result", "have no row of their own"),
    ("PRAGMA ignore_check_constraints = ON; UPDATE state SET state = '{'", "states hold broken JSON"),
    ("PRAGMA ignore_check_constraints = ON; UPDATE tool_result SET head = '{'", "records hold broken JSON"),
    ("UPDATE checkpoint SET superseded = 1", "do not know whether a later one supersedes them"),
    ("DROP TRIGGER checkpoint_counted_ad; DELETE FROM checkpoint", "scopes count their records wrongly"),
    ("DROP TRIGGER state_counted_au; UPDATE state SET state = '{\"a\": 1}'", "scopes count their records wrongly"),
    ("UPDATE note_index SET user_id = 'bob'", "rows of the index of notes are of no page of their user"),
    ("UPDATE embedding SET user_id = 'bob'", "vectors are of no record of their user"),
    ("DELETE FROM embedding", "records do not wait for the vector that they lack"),
    ("UPDATE embedding SET vector = x'00'", "vectors are not as long as their model makes them"),
]


@pytest.mark.parametrize(("statement", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
async def test_a_check_names_and_mends_it(path: Path, statement: str, sentence: str) -> None:
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        memory = db.memory("alice", "s1")
        await memory.manager.update_state({"current_task": "x"})
        await memory.manager.save_tool_result("r", {"content": "result"})
        for step in range(2):
            await memory.manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"n": step}))
        await memory.notes.write_file("work/a.md", "# A\n\nText.")
        await memory.notes.refresh_stale_entries("alice")
        await memory.notes.hybrid_search("text")
        assert (await db.check()).ok
    shell(path, *statement.split("; "))
    async with memdb.open(path) as db:
        found = await db.check()
        assert not found.ok
        assert any(sentence in problem for problem in found.problems), found.problems
        mended = await db.check(repair=True)
        assert mended.ok, mended.problems
        assert (await db.check()).ok


async def test_forgetting_leaves_nothing(path: Path) -> None:
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        for user in ("alice", "bob"):
            memory = db.memory(user, "s1")
            await memory.manager.update_state({"secret": f"state of {user}"})
            await memory.manager.update_working_memory(f"summary of {user}")
            await memory.manager.save_tool_result("r", {"content": f"result of {user} " * 5_000})
            await memory.manager.save_plan("p", {"secret": f"plan of {user}"})
            await memory.notes.write_file("work/a.md", f"# A\n\nnote of {user}.")
            await memory.notes.hybrid_search("note")
        counts = await db.forget("alice")
        expected = {"state": 1, "working_memory": 1, "checkpoint": 1, "tool_result": 1, "page": 1, "payload": 2}
        assert counts == expected
        assert await db.memory("bob", "s1").manager.load_tool_result("r") == {"content": "result of bob " * 5_000}
        tables = await db.read(
            lambda tx: tx.rows("SELECT name FROM sqlite_master WHERE sql LIKE '%user_id%' AND type = 'table'")
        )
        for (table,) in tables:
            left = await db.read(lambda tx, t: tx.rows(f"SELECT count(*) FROM {t} WHERE user_id = 'alice'"), table)
            assert left == [(0,)], table
    assert b"of alice" not in path.read_bytes()
    assert b"of bob" in path.read_bytes()


async def test_a_deleted_session_takes_its_own(path: Path) -> None:
    async with memdb.open(path) as db:
        for session in ("s1", "s2"):
            manager = db.memory("alice", session).manager
            await manager.update_state({"n": session})
            await manager.update_working_memory(session)
            await manager.save_tool_result("r", {"content": "the same"})
            await manager.save_plan("p", {"of": session})
        assert {info.session_id for info in await db.sessions("alice")} == {"s1", "s2"}
        gone = await db.delete_session("s1", "alice")
        assert gone == {"state": 1, "working_memory": 1, "tool_result": 1, "checkpoint": 1}
        assert [info.session_id for info in await db.sessions("alice")] == ["s2"]
        manager = db.memory("alice", "s2").manager
        assert await manager.load_tool_result("r") == {"content": "the same"}, "one payload, two sessions"
        assert await manager.load_plan("p") == {"of": "s2"}
        assert (await db.check()).ok
        rows = {row.layer: (row.records, row.bytes) for row in (await db.stats()).layers}
        assert rows["payload"] == (2, len("the same") + len('{"of":"s2"}'))
