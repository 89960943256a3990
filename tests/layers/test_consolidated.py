"""memory.conversation: what is not consolidated, the cursor by compare-and-set, and the count of failures."""

from __future__ import annotations

import re
import sqlite3

import pytest

import memdb
from memdb import ConversationMemoryConfig, InvalidInput
from memdb.layers import consolidated, cursor
from memdb.storage.statement import Statement

CALL = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}


async def say(memory, *contents):
    await memory.conversation.add_messages([{"role": "user", "content": content} for content in contents])


async def test_unconsolidated_are_the_messages_after_the_cursor_as_they_were_stored(memory):
    talk = memory.conversation
    assert await talk.unconsolidated() == ([], 0)
    await say(memory, "a", "b")
    await talk.add_messages([CALL, {"role": "tool", "tool_call_id": "stranger", "content": "r"}])
    found, passed = await talk.unconsolidated()
    assert (found, passed) == (await talk.messages(), 0)
    assert await talk.consolidate_to(1, if_passed=0)
    assert await talk.unconsolidated() == (found[1:], 1)
    assert await talk.unconsolidated(2) == (found[1:3], 1)
    assert await talk.unconsolidated(0) == ([], 1)


async def test_the_cursor_moves_only_from_where_it_was_read(memory):
    talk = memory.conversation
    await say(memory, *"abcdef")
    assert await talk.consolidate_to(2, if_passed=0)
    assert not await talk.consolidate_to(4, if_passed=0)
    assert not await talk.consolidate_to(4, if_passed=3)
    assert await talk.last_consolidated() == 2
    assert await talk.consolidate_to(4, if_passed=2)
    assert not await talk.consolidate_to(7, if_passed=4), "there is no such message"
    assert await talk.last_consolidated() == 4
    await talk.clear()
    assert not await talk.consolidate_to(5, if_passed=4)


async def test_of_two_units_that_read_the_same_one_moves_it(memory, db):
    await say(memory, *"abcd")
    other = db.memory("alice")
    moved = [await talk.consolidate_to(2, if_passed=0) for talk in (memory.conversation, other.conversation)]
    assert moved == [True, False]


async def test_a_window_that_took_the_message_it_stood_at_is_no_other_cursor(memory):
    talk = memory.conversation.configure(ConversationMemoryConfig(max_items=4))
    await say(memory, *"abcd")
    assert await talk.consolidate_to(2, if_passed=0)
    await say(memory, *"ef")
    found, passed = await talk.unconsolidated()
    assert [message.content for message in found] == [*"cdef"]
    assert passed == 0
    assert await talk.consolidate_to(4, if_passed=2), "the same messages were unconsolidated all the time"
    assert [message.content for message in (await talk.unconsolidated()).messages] == [*"ef"]


async def test_a_session_is_its_own(db):
    for session in ("s", "t"):
        await say(db.memory("alice", session), *"ab")
    await say(db.memory("bob", "s"), *"ab")
    talk = db.memory("alice", "s").conversation
    assert await talk.consolidate_to(1, if_passed=0)
    assert await talk.record_failure("down") == 1
    for other in (db.memory("alice", "t"), db.memory("bob", "s")):
        assert await other.conversation.last_consolidated() == 0
        assert await other.conversation.failures() == 0


@pytest.mark.parametrize(
    ("position", "passed", "message"),
    [
        (0, 0, "position must be a whole number from 1"),
        ("2", 0, "position must be a whole number"),
        (True, 0, "position must be a whole number"),
        (2, -1, "if_passed must be a whole number from 0"),
        (2, 2, r"position must be after if_passed \(2\), not 2"),
        (10**12, 0, "position must be a whole number from 1"),
    ],
)
async def test_positions_are_checked(memory, position, passed, message):
    with pytest.raises(InvalidInput, match=message):
        await memory.conversation.consolidate_to(position, if_passed=passed)


async def test_failures_are_counted_until_they_are_cleared(memory, db):
    talk = memory.conversation
    assert await talk.failures() == 0
    assert [await talk.record_failure(reason) for reason in ("down", "a\x00\ud83d" * 2_000, "")] == [1, 2, 3]
    assert await talk.failures() == 3
    rows = await db.read(lambda tx: tx.execute("SELECT failures, reason FROM consolidation"))
    assert rows == [(3, "")]
    await talk.clear_failures()
    await talk.clear_failures()
    assert await talk.failures() == 0
    with pytest.raises(InvalidInput, match="reason must be text"):
        await talk.record_failure(None)


@pytest.mark.parametrize("value", ["'many'", "-3", "1e99", "x'00'"])
async def test_a_count_that_a_shell_has_edited_is_none(memory, db, value):
    await memory.conversation.record_failure("down")
    await db.write(lambda tx: tx.execute(f"UPDATE consolidation SET failures = {value}"))
    assert await memory.conversation.failures() == 0
    assert await memory.conversation.record_failure("down") == 1


async def test_failures_survive_reopening_and_go_with_their_session(path):
    async with memdb.open(path) as db:
        await db.memory("alice", "s").conversation.record_failure("down")
    async with memdb.open(path) as db:
        assert await db.memory("alice", "s").conversation.failures() == 1
        await db.delete_session("s", "alice")
        assert await db.memory("alice", "s").conversation.failures() == 0


async def test_a_unit_that_fails_leaves_cursor_and_count(memory):
    await say(memory, *"ab")

    def unit(m):
        assert m.conversation.consolidate_to(1, if_passed=0)
        assert m.conversation.unconsolidated().passed == 1
        m.conversation.record_failure("down")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        await memory.atomic(unit)
    assert (await memory.conversation.last_consolidated(), await memory.conversation.failures()) == (0, 0)


async def test_a_message_that_cannot_be_read_is_passed_over(memory, db):
    await say(memory, *"abc")
    spoil = "UPDATE message SET role = x'ff' WHERE record_id = (SELECT id FROM record WHERE content = 'b')"
    await db.write(lambda tx: tx.execute(spoil))
    found, _ = await memory.conversation.unconsolidated()
    assert [message.content for message in found] == ["a", "c"]
    assert await memory.conversation.consolidate_to(3, if_passed=0)
    assert (await memory.conversation.unconsolidated()).messages == []


STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value.sql
    for module in (consolidated, cursor)
    for name, value in vars(module).items()
    if isinstance(value, Statement)
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_every_statement_goes_straight_to_its_rows(path, name):
    async with memdb.open(path) as db:
        await say(db.memory("alice", "s"), *"abc")
    shell = sqlite3.connect(path)
    values = dict.fromkeys(re.findall(r":(\w+)", STATEMENTS[name]), 5)
    plan = [row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", values)]
    shell.close()
    for step in plan:
        assert step == "SCAN sqlite_sequence" or not step.startswith("SCAN"), plan  # of one row
        assert "TEMP B-TREE" not in step, plan
        if step.startswith("SEARCH"):
            assert re.search(r"session_id=\?|rowid=\?", step), plan
