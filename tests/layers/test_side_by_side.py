"""Callers that wait side by side share statements: each gets what is its own, whatever the others do."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import memdb
from memdb import AgentCheckpoint, InvalidInput

# A shell's own trigger: it makes a record after each message, so that messages have no consecutive numbers.
BETWEEN = """
CREATE TRIGGER mine AFTER INSERT ON record WHEN new.layer = 'message' BEGIN
  INSERT INTO record (user_id, layer, key, created_at, updated_at, content)
    VALUES ('shell', 'item', new.session_id || new.key, new.created_at, new.updated_at, 'a note');
END
"""


async def test_messages_of_many_sessions_keep_their_own_fields(path: Path) -> None:
    async with memdb.open(path) as db:
        talks = [db.memory("alice", f"s{number % 5}").conversation for number in range(40)]
        given = [{"role": f"role{number}", "content": f"text {number}", "extra": number} for number in range(40)]
        await asyncio.gather(*(talk.add_message(message) for talk, message in zip(talks, given, strict=True)))
        for session in range(5):
            found = await talks[session].messages()
            assert [one.position for one in found] == [*range(1, 9)]
            expected = given[session::5]
            assert [(one.role, one.content, one.model_extra) for one in found] == [
                (message["role"], message["content"], {"extra": message["extra"]}) for message in expected
            ]
        assert (await db.check()).ok


async def test_messages_keep_their_fields_where_a_shell_makes_records_between_them(path: Path) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        await talk.add_message({"role": "user", "content": "first"})
        with closing(sqlite3.connect(path, isolation_level=None)) as shell:
            shell.execute(BETWEEN)
        await talk.add_messages([{"role": f"role{number}", "content": f"text {number}"} for number in range(5)])
        await talk.add_message({"role": "role5", "content": "text 5"})
        found = (await talk.messages())[1:]
        assert [(one.role, one.content) for one in found] == [(f"role{n}", f"text {n}") for n in range(6)]


async def test_a_row_that_cannot_be_read_is_left_out_and_the_others_are_read(path: Path) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        await talk.add_messages([{"role": "user", "content": text} for text in ("one", "two", "three")])
        with closing(sqlite3.connect(path, isolation_level=None)) as shell:
            shell.execute("UPDATE record SET content = CAST(x'FF' AS TEXT) WHERE content = 'two'")
        assert [one.content for one in await talk.get_history(20)] == ["one", "three"]


async def test_checkpoints_that_are_saved_at_once_are_counted_by_session_and_id(path: Path) -> None:
    async with memdb.open(path) as db:
        managers = [db.memory("alice", f"s{number}").manager for number in range(2)]
        saves = [
            managers[number % 2].save_checkpoint(
                AgentCheckpoint(id="ab"[number % 4 // 2], status="in_progress", payload={"at": number // 8})
            )
            for number in range(32)
        ]
        wrong = managers[0].save_checkpoint(AgentCheckpoint.model_construct(id="a", payload={"at": float("nan")}))
        *seqs, refused = await asyncio.gather(*saves, wrong, return_exceptions=True)
        assert seqs == [number // 4 + 1 for number in range(32)]
        assert isinstance(refused, InvalidInput)
        for manager in managers:
            for id in "ab":
                history = await manager.checkpoint_history(id)
                assert [(one.seq, one.payload) for one in history] == [
                    (n, {"at": (n - 1) // 2}) for n in range(8, 0, -1)
                ]
            assert sorted(one.id for one in await manager.checkpoints()) == ["a", "b"]
        assert (await db.check()).ok
