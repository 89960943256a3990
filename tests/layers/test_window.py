"""The sliding window of memory.conversation: what goes, what stays, and when (agcore document, 3.3 and 4.4)."""

from __future__ import annotations

import asyncio

import pytest

import memdb
from memdb import InvalidInput
from memdb.layers.window import ConversationMemoryConfig, MemoryStrategy


def window(**limits):
    return ConversationMemoryConfig(strategy=MemoryStrategy.SLIDING_WINDOW, **limits)


def user(text="u"):
    return {"role": "user", "content": text}


def said(text="a"):
    return {"role": "assistant", "content": text}


def call(*ids):
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "function": {"name": "f"}} for id in ids]}


def result(id):
    return {"role": "tool", "tool_call_id": id, "content": "r"}


def claude_call(*ids):
    parts = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "let me look"}, *parts]}


def claude_result(*ids, first=()):
    parts = [{"type": "tool_result", "tool_use_id": id, "content": "r"} for id in ids]
    return {"role": "user", "content": [*first, *parts]}


async def positions(talk):
    return [message.position for message in await talk.messages()]


async def test_ConversationMemory_supports_sliding_window_and_full(memory, db):  # noqa: N802
    sliding = memory.conversation.configure(window(max_items=3))
    full = db.memory("alice", "full").conversation.configure(
        ConversationMemoryConfig(strategy=MemoryStrategy.FULL, max_items=3, max_turns=1)
    )
    untouched = db.memory("alice", "untouched").conversation
    for talk in (sliding, full, untouched):
        for n in range(10):
            assert await talk.add_message(user(str(n))) == n + 1
    assert [message.content for message in await sliding.messages()] == ["7", "8", "9"]
    assert [len(await talk.messages()) for talk in (full, untouched)] == [10, 10]


async def test_sliding_window_deletes_the_oldest_messages_at_the_limit(memory, db):
    talk = memory.conversation.configure(window(max_items=4))
    await talk.add_messages([user("okapi"), *(said(str(n)) for n in range(3))])
    assert await positions(talk) == [1, 2, 3, 4]
    assert await talk.add_message(said("zebra")) == 5
    assert await positions(talk) == [2, 3, 4, 5]
    assert await talk.search("okapi") == []
    assert (await talk.search("zebra"))[0].message.position == 5
    assert await talk.add_messages([said(str(n)) for n in range(600)]) == 600
    assert await positions(talk) == [602, 603, 604, 605]
    for table in ("record", "message", "record_search"):
        assert await db.read(lambda tx, table=table: tx.execute(f"SELECT count(*) FROM {table}")) == [(4,)]
    assert [info.messages for info in await db.sessions("alice")] == [4]


async def test_whole_turns_go_when_a_new_one_begins(memory):
    talk = memory.conversation.configure(window(max_turns=2))
    await talk.add_messages([said("hello"), user("1"), said(), call("a"), result("a"), said(), user("2"), said()])
    assert await positions(talk) == [1, 2, 3, 4, 5, 6, 7, 8]
    await talk.add_message(user("3"))
    assert await positions(talk) == [7, 8, 9]
    await talk.add_messages([said(), claude_call("b"), claude_result("b"), said()])
    assert await positions(talk) == [7, 8, 9, 10, 11, 12, 13]
    await talk.add_messages([user(["part"]), user(None), user({"type": "tool_result"})])
    assert await positions(talk) == [15, 16]


@pytest.mark.parametrize(
    ("message", "begins"),
    [
        (user("tool_result"), True),
        (user([{"type": "text", "text": '"tool_result"'}]), True),
        (user([{"type": "tool_reference", "x": "tool_result"}]), True),
        (user({"part": {"type": "tool_result"}}), True),
        (user([["tool_result", {"type": "tool_result"}]]), True),
        (claude_result("x"), False),
        (claude_result("x", first=[{"type": "text", "text": "here"}]), False),
        (user([{"tool_use_id": "x", "type": "tool_result"}]), False),
        (user([1, None, "tool_result", {"a": "\ud800", "type": "tool_result"}]), False),
        (user("x") | {"tool_call_id": "x"}, False),
        (said("x"), False),
    ],
)
async def test_a_turn_begins_with_a_users_own_message_only(memory, message, begins):
    talk = memory.conversation.configure(window(max_turns=1))
    await talk.add_messages([user("1"), said(), message])
    assert await positions(talk) == ([3] if begins else [1, 2, 3])
    await talk.add_messages([user("2"), message, said()])
    assert (await positions(talk))[0] == (5 if begins else 4)
    talk.configure(window(max_turns=2))  # the same, found in the file
    await talk.add_message(user("3"))
    assert (await positions(talk))[0] == (5 if begins else 4)


async def test_both_limits_hold_when_both_are_given(memory):
    talk = memory.conversation.configure(window(max_turns=2, max_items=5))
    await talk.add_messages([user("1"), said(), user("2"), said()])
    await talk.add_message(user("3"))
    assert await positions(talk) == [3, 4, 5]
    await talk.add_messages([said() for _ in range(4)])
    assert await positions(talk) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("style", [(call, result), (claude_call, claude_result)])
async def test_a_call_is_never_parted_from_its_results(memory, style):
    calls, answer = style
    talk = memory.conversation.configure(window(max_items=3))
    await talk.add_messages([user("1"), calls("a", "b", "c"), answer("a"), answer("b")])
    assert await positions(talk) == [2, 3, 4]
    await talk.add_message(answer("c"))
    assert await positions(talk) == [2, 3, 4, 5]  # the newest group stays, whatever its size
    await talk.add_message(said())
    assert await positions(talk) == [6]  # it straddles the limit, so it goes whole
    await talk.add_messages([calls("a"), *(answer("a") for _ in range(40)), said(), said()])
    assert await positions(talk) == [48, 49]


async def test_results_without_a_call_go_one_by_one(memory):
    talk = memory.conversation.configure(window(max_items=2))
    await talk.add_messages([user(), *(result("lost") for _ in range(5))])
    assert await positions(talk) == [5, 6]
    await talk.add_message(result("lost"))
    assert await positions(talk) == [6, 7]


async def test_what_is_not_consolidated_stays_once_the_cursor_is_used(memory):
    talk = memory.conversation
    await talk.add_messages([user(str(n)) for n in range(10)])
    assert await talk.compact(6) == 4
    talk.configure(window(max_items=3, max_turns=2))
    await talk.add_message(user("10"))
    assert await positions(talk) == [*range(5, 12)]  # those that the consolidator has passed, no more
    assert await talk.last_consolidated() == 0
    await talk.add_messages([user("11"), said("12")])
    assert await positions(talk) == [*range(5, 14)]
    assert len(await talk.get_history()) == 9
    assert await talk.compact(1) == 8
    await talk.add_message(user("13"))
    assert await positions(talk) == [12, 13, 14]
    assert [message.content for message in await talk.get_history()] == ["13"]


async def test_after_clear_the_cursor_counts_as_never_used(memory):
    talk = memory.conversation.configure(window(max_items=2))
    await talk.add_messages([user(), user()])
    await talk.compact(0)
    await talk.clear()
    await talk.add_messages([user() for _ in range(5)])
    assert await positions(talk) == [4, 5]


async def test_a_group_that_the_cursor_cuts_stays(memory, db):
    await memory.conversation.add_messages([user(), call("a", "b"), result("a"), result("b"), user(), user(), user()])
    await db.write(  # as an import of another program's session may leave it
        lambda tx: tx.execute(
            "INSERT INTO session SELECT user_id, session_id, '', '', 3, '{}' FROM record WHERE id = 3"
        )
    )
    talk = memory.conversation.configure(window(max_items=2))
    await talk.add_message(user())
    assert await positions(talk) == [*range(2, 9)]


async def test_the_first_add_after_configuring_deletes_all_that_is_beyond(memory, db):
    await memory.conversation.add_messages([user() for _ in range(1_500)])
    assert await memory.conversation.configure(window(max_items=10)).add_message(said()) == 1_501
    assert await positions(memory.conversation) == [*range(1_492, 1_502)]
    other = db.memory("alice", "other").conversation
    await other.add_messages([user() if n % 3 == 0 else said() for n in range(1_500)])
    await other.configure(window(max_turns=2)).add_message(user())
    assert await positions(other) == [1_498, 1_499, 1_500, 1_501]


async def test_configuring_is_of_one_object_and_may_be_undone(memory, db):
    talk = memory.conversation
    assert talk.configure(window(max_items=2)) is talk
    assert db.memory("alice").conversation is not talk
    await talk.add_messages([user(), user()])
    await db.memory("alice").conversation.add_messages([user(), user()])
    assert await positions(talk) == [1, 2, 3, 4]
    talk.configure(ConversationMemoryConfig())
    await talk.add_message(user())
    assert await positions(talk) == [1, 2, 3, 4, 5]


async def test_inside_a_unit_the_window_lands_with_the_rest(memory):
    def turn(inside):
        talk = inside.conversation.configure(window(max_items=2))
        for n in range(5):
            talk.add_message(user(str(n)))
        assert [message.content for message in talk.messages()] == ["3", "4"]
        if inside.items.get("stop"):
            raise RuntimeError
        return talk.add_messages([said()])

    assert await memory.atomic(turn) == 1
    assert await positions(memory.conversation) == [5, 6]
    await memory.items.save(memdb.MemoryItem(id="stop", content="x"))
    with pytest.raises(RuntimeError):
        await memory.atomic(turn)
    assert await positions(memory.conversation) == [5, 6]


async def test_a_bad_message_deletes_nothing(memory):
    talk = memory.conversation.configure(window(max_items=2))
    await talk.add_messages([user(), user()])
    with pytest.raises(InvalidInput):
        await talk.add_messages([user(), user(), {"role": "user"}])
    assert await positions(talk) == [1, 2]
    assert await talk.add_messages([]) == 0


async def test_many_callers_at_once_with_windows_of_their_own(db):
    limits = {"a": window(max_items=5), "b": window(max_turns=2), "c": None, "d": window(max_items=1, max_turns=1)}
    talks = {name: db.memory("alice", name).conversation for name in limits}
    for name, config in limits.items():
        if config is not None:
            talks[name].configure(config)
    await asyncio.gather(*(talks["abcd"[n % 4]].add_message(user(str(n // 4))) for n in range(400)))
    kept = {name: [message.content for message in await talk.messages()] for name, talk in talks.items()}
    assert kept == {
        "a": ["95", "96", "97", "98", "99"], "b": ["98", "99"], "c": [str(n) for n in range(100)], "d": ["99"]
    }  # fmt: skip
    assert (await db.check()).ok


async def test_the_limits_of_all_who_add_to_one_session_hold(db):
    talks = [db.memory("alice").conversation for _ in range(3)]
    talks[0].configure(window(max_items=5))
    talks[1].configure(window(max_items=3))
    await asyncio.gather(*(talk.add_message(user()) for _ in range(10) for talk in talks))
    await talks[1].add_message(user())
    assert await positions(talks[2]) == [29, 30, 31]


async def test_two_handles_on_one_file_keep_one_window(path):
    async with memdb.open(path) as one, memdb.open(path) as two:
        talks = [db.memory("alice").conversation.configure(window(max_items=7, max_turns=3)) for db in (one, two)]
        given = [user, said, lambda: call("a"), lambda: result("a")]
        added = await asyncio.gather(*(talks[n % 2].add_message(given[n % 4]()) for n in range(80)))
        assert sorted(added) == list(range(1, 81))
        assert await positions(talks[0]) == await positions(talks[1])
        held = await talks[1].messages()
        assert held[-1].position == 80
        assert len(held) <= 7 + 20  # all of the newest group may be results of one call
        assert (await two.check()).ok


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message SET role = x'FF' WHERE record_id {at}",
        "UPDATE message SET role = CAST(x'FF' AS TEXT) WHERE record_id {at}",
        "UPDATE message SET tool_call_id = CAST(x'FF' AS TEXT) WHERE record_id {at}",
        "UPDATE message SET tool_calls = '{{' WHERE record_id {at}",
        "UPDATE message SET tool_calls = '{{}}' WHERE record_id {at}",
        """UPDATE message SET body = '["tool_result"' WHERE record_id {at}""",
        """UPDATE message SET body = CAST(x'22746F6F6C5F726573756C7422FF' AS TEXT) WHERE record_id {at}""",
        "DELETE FROM message WHERE record_id {at}",
        "UPDATE record SET content = x'FF' WHERE id {at}",
        "UPDATE record SET key = 'stray' WHERE id {at}",
        "UPDATE record SET key = x'FF' WHERE id {at}",
        "UPDATE record SET key = key || 'x' WHERE id {at}",
        "DELETE FROM record WHERE id {at}",
    ],
)
@pytest.mark.parametrize("at", range(1, 9))
async def test_messages_that_cannot_be_read_do_not_break_it(memory, db, damage, at):
    talk = memory.conversation
    await talk.add_messages(
        [user(), call("a"), result("a"), user(), claude_call("b"), claude_result("b"), user(), said()]
    )

    def spoil(tx):
        tx.execute("PRAGMA ignore_check_constraints = ON")
        tx.execute(damage.format(at=f"= {at}"))

    await db.write(spoil)
    await db.write(lambda tx: tx.execute("PRAGMA ignore_check_constraints = OFF"))
    talk.configure(window(max_items=4, max_turns=3))
    await talk.add_message(user("new"))
    await talk.add_message(said("newer"))
    held = await talk.messages()
    assert [message.content for message in held[-2:]] == ["new", "newer"]
    assert len(held) <= 4
    assert len(held) >= 2
    assert (await db.check(repair=True)).ok


async def test_rows_that_are_no_messages_take_no_room(memory, db):
    talk = memory.conversation.configure(window(max_items=4))
    await talk.add_messages([user() for _ in range(4)])
    for _ in range(3):
        await db.write(lambda tx: tx.execute("UPDATE record SET key = 'stray' || id WHERE key GLOB '0*'"))
        await talk.add_messages([user() for _ in range(4)])
    assert await positions(talk) == [1, 2, 3, 4]
    await talk.add_message(user())
    assert await positions(talk) == [2, 3, 4, 5]
    assert (await db.check(repair=True)).ok


async def test_keys_that_a_shell_left_above_the_newest_position_cost_no_message(memory, db):
    talk = memory.conversation
    await talk.add_messages([user() for _ in range(30)])
    await db.write(lambda tx: tx.execute("UPDATE record SET key = '9stray' || id WHERE id > 5"))
    await talk.configure(window(max_items=4)).add_message(user())
    assert await positions(talk) == [1, 2, 3, 4, 5, 6]  # this read sets the others aside
    await talk.add_message(user())
    assert await positions(talk) == [4, 5, 6, 7]


async def test_a_unit_of_a_configured_memory_keeps_to_the_window(memory):
    memory.conversation.configure(ConversationMemoryConfig(strategy="sliding_window", max_items=2))

    def unit(m):
        for n in range(4):
            m.conversation.add_message({"role": "user", "content": f"message {n}"})
        return [message.content for message in m.conversation.messages()]

    assert await memory.atomic(unit) == ["message 2", "message 3"]


async def test_the_cursor_of_messages_that_are_all_gone_is_0(db, memory):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": f"message {n}"} for n in range(6)])
    await talk.compact(2)
    assert await talk.last_consolidated() == 4
    talk.configure(ConversationMemoryConfig(strategy="sliding_window", max_items=2))
    await talk.add_message({"role": "user", "content": "one more"})
    assert [message.position for message in await talk.messages()] == [5, 6, 7]
    assert await talk.last_consolidated() == 0
    assert [message.position for message in await talk.get_history()] == [5, 6, 7]


def test_a_limit_alone_means_a_window():
    assert ConversationMemoryConfig().strategy is MemoryStrategy.FULL
    assert ConversationMemoryConfig(max_turns=None, max_items=None).strategy is MemoryStrategy.FULL
    assert ConversationMemoryConfig(max_turns=2).strategy is MemoryStrategy.SLIDING_WINDOW
    assert ConversationMemoryConfig(strategy="full", max_items=2).strategy is MemoryStrategy.FULL
