"""memory.conversation: order, exactness, history, the cursor, search, clearing."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime

import pytest

from memdb import InvalidInput, Message

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "src/auth.py"}'}}


def texts(messages):
    return [message.content for message in messages]


async def test_messages_come_back_in_the_order_of_adding_whatever_their_times_say(memory, clock):
    talk = memory.conversation
    assert await talk.add_message({"role": "user", "content": "first"}) == 1
    clock.forward(days=-3)
    assert await talk.add_message({"role": "assistant", "content": "second"}) == 2
    assert await talk.add_messages([{"role": "user", "content": str(n)} for n in range(15)]) == 15
    assert texts(await talk.messages()) == ["first", "second", *map(str, range(15))]
    assert [message.position for message in await talk.messages()] == list(range(1, 18))
    assert texts(await talk.messages(2)) == ["13", "14"]
    assert texts(await talk.messages(2, before=3)) == ["first", "second"]
    assert texts(await talk.messages(before=1)) == []


@pytest.mark.parametrize(
    "content",
    [
        "plain", "", "a\x00b", "lone \ud83d half", "部署方案", None, [], {}, 0, False, 2**70, -0.0, 1.5e300,
        [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "42"}]}],
        {"deep": [{"er": [None, True, "ü", "\u2028"]}]}, "null", '{"a": 1}',
    ],
)  # fmt: skip
async def test_any_json_content_and_tool_calls_come_back_exactly(memory, content):
    calls = [CALL, {"id": 7, "args": content}, "not even an object"]
    given = {"role": "assistant", "content": content, "tool_calls": calls, "refusal": None, "logprobs": {"x": content}}
    await memory.conversation.add_message(given)
    (message,) = await memory.conversation.messages()
    assert (message.content, message.tool_calls) == (content, calls)
    assert type(message.content) is type(content)
    assert math.copysign(1, message.content) == math.copysign(1, content) if content == 0 else True
    assert message.model_extra == {"refusal": None, "logprobs": {"x": content}}
    assert message.to_dict() == {"role": "assistant", "content": content, "tool_calls": calls}
    await memory.conversation.add_message(message)  # and once more from the model
    assert (await memory.conversation.messages(1))[0].model_extra == message.model_extra


async def test_a_message_of_a_dict_and_of_a_model_are_the_same(memory):
    moment = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    await memory.conversation.add_messages(
        [
            {"role": "user", "content": "hi", "name": "Ana", "timestamp": "2024-05-06T07:08:09"},
            {"role": "user", "content": "hi", "name": "Ana", "timestamp": moment.timestamp()},
            Message(role="user", content="hi", name="Ana", created_at=moment),
            {"role": "user", "content": "hi", "name": "Ana", "created_at": moment},
        ]
    )
    found = await memory.conversation.messages()
    assert {message.model_copy(update={"position": 0}).model_dump_json() for message in found} == {
        found[0].model_copy(update={"position": 0}).model_dump_json()
    }
    assert found[0].created_at == moment


async def test_a_null_timestamp_is_the_time_of_adding(memory, clock):
    await memory.conversation.add_message({"role": "user", "content": "hi", "timestamp": None})
    assert (await memory.conversation.messages())[0].created_at == clock()


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"content": "x"}, "Message.role: field required"),
        ({"role": "", "content": "x"}, "Message.role: .*empty"),
        ({"role": None, "content": "x"}, "Message.role: .*text, not NoneType"),
        ({"role": "user"}, "no content"),
        ({"role": "assistant", "tool_calls": []}, "no content"),
        ({"role": "user", "content": math.nan}, "content holds nan"),
        ({"role": "user", "content": {1: 2}}, "keys must be text"),
        ({"role": "user", "content": {"a", "b"}}, "a set, which JSON has no form for"),
        ({"role": "user", "content": "x" * 50_000_000}, "content has 50,000,000 bytes; at most 16,777,216"),
        ({"role": "user", "content": ["x" * 20_000_000]}, "at most 16,777,216"),
        ({"role": "user", "content": "x", "tool_calls": {"id": 1}}, "tool_calls must be a list"),
        ({"role": "user", "content": "x", "timestamp": "yesterday"}, "timestamp 'yesterday' is no time"),
        ({"role": "user", "content": "x", "timestamp": 1e300}, "is no time"),
        ({"role": "user", "content": "x", "name": "n\x00"}, "Message.name: .*NUL"),
        ({"role": "user", "content": "x", "extra": math.inf}, "holds inf"),
        ("hi", "dictionary or instance of Message"),
        (None, "dictionary or instance of Message"),
    ],
)
async def test_bad_messages_get_one_clear_sentence_and_store_nothing(memory, message, complaint):
    for add in (
        memory.conversation.add_message,
        lambda bad: memory.conversation.add_messages([Message(role="a", content="b"), bad]),
    ):
        with pytest.raises(InvalidInput, match=complaint) as caught:
            await add(message)
        assert "\n" not in str(caught.value)
    assert await memory.conversation.messages() == []


async def test_one_bad_message_among_many_callers_costs_only_its_own(memory):
    calls = [memory.conversation.add_message({"role": "user", "content": str(n)} if n != 7 else {}) for n in range(40)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(value) for value in done].count(InvalidInput) == 1
    found = await memory.conversation.messages()
    assert sorted(int(message.content) for message in found) == [n for n in range(40) if n != 7]
    assert sorted(value for value in done if isinstance(value, int)) == list(range(1, 40))
    assert {message.position: message.content for message in found} == {
        value: str(n) for n, value in enumerate(done) if isinstance(value, int)
    }


async def test_appends_of_many_callers_stay_whole_and_apart(db):
    """Callers that wait side by side share one statement: each one's messages stand together, in its own session."""
    talks = [db.memory("alice", f"s{n % 3}").conversation for n in range(24)]
    given = [[{"role": "user", "content": f"{n}:{at}"} for at in range(n % 4)] for n in range(24)]
    given[7] = [{"role": "user", "content": "fine"}, {}]
    calls = [talk.add_messages(iter(messages)) for talk, messages in zip(talks, given, strict=True)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(done.pop(7), InvalidInput)
    assert done == [n % 4 for n in range(24) if n != 7]
    for session in range(3):
        found = [message.content for message in await talks[session].messages()]
        assert found == [f"{n}:{at}" for n in range(session, 24, 3) if n != 7 for at in range(n % 4)]


async def test_sessions_named_alike_do_not_meet(db):
    names = ["a:b", "a_b", "A:b", "a:B", "a b", "a:b ", "á:b", "a\u0301:b", "a/b", "a%b"]
    for name in names:
        await db.memory("alice", name).conversation.add_message({"role": "user", "content": f"I am {name}"})
    for name in names:
        assert texts(await db.memory("alice", name).conversation.messages()) == [f"I am {name}"]
    assert sorted(info.session_id for info in await db.sessions("alice")) == sorted(names)
    assert await db.memory("alice", "a:b").conversation.clear() == 1
    assert sum(info.messages for info in await db.sessions("alice")) == 9


async def test_the_history_begins_after_the_cursor_and_is_legal(memory):
    talk = memory.conversation
    await talk.add_messages(
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "three"},
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "four"},
            {"role": "assistant", "content": "five"},
        ]
    )
    assert len(await talk.get_history()) == 6
    assert texts(await talk.get_history(2)) == ["five"]  # its window begins with a result whose call is not in it
    assert texts(await talk.get_history(3)) == [None, "four", "five"]
    assert await talk.get_history(0) == []
    assert await talk.compact(2) == 3  # the call stays with its result
    assert texts(await talk.get_history()) == [None, "four", "five"]
    assert await talk.last_consolidated() == 3
    assert await talk.compact(100) == 3  # it never goes back
    assert len(await talk.messages()) == 6  # nothing is deleted
    await talk.add_message({"role": "user", "content": "six"})
    assert texts(await talk.get_history()) == ["six"]
    assert await talk.compact(0) == 7
    assert await talk.get_history() == []


async def test_the_cursor_survives_messages_that_a_shell_deletes(memory, db):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": str(n)} for n in range(10)])
    await talk.compact(4)
    await db.write(lambda tx: tx.execute("DELETE FROM record WHERE key IN ('000000000001', '000000000006')"))
    assert await talk.last_consolidated() == 4
    assert texts(await talk.get_history()) == ["6", "7", "8", "9"]


async def test_clear_empties_the_session_and_keeps_it(memory, db):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": "kiwi"}, {"role": "assistant", "content": "b"}])
    await talk.compact(0)
    assert await talk.clear() == 2
    assert (await talk.messages(), await talk.last_consolidated(), await talk.search("kiwi")) == ([], 0, [])
    assert [info.messages for info in await db.sessions("alice")] == [0]
    assert await talk.add_message({"role": "user", "content": "again"}) == 1
    assert len(await talk.get_history()) == 1
    assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM message")) == [(1,)]


async def test_tool_calls_and_the_day_are_found(memory):
    talk = memory.conversation
    await talk.add_messages(
        [
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "user", "content": "the blender broke", "timestamp": "2023-05-08T10:00:00Z"},
            {"role": "user", "content": "nothing of note", "timestamp": "2023-06-08T10:00:00Z"},
            {"role": "user", "content": [{"type": "text", "text": "a heron by the river"}]},
            {"role": "user", "name": "Caroline", "content": "me too"},
        ]
    )
    for query, content in (
        ("auth.py", None),
        ("what happened in May 2023", "the blender broke"),
        ("Caroline", "me too"),
    ):
        assert (await talk.search(query))[0].message.content == content
    assert (await talk.search("heron"))[0].message.position == 4
    assert len(await talk.search("8 2023", k=1)) == 1
    assert await talk.search("8 2023", k=0) == []


async def test_the_search_stays_in_its_session_unless_told(db):
    for session in ("s1", "s2"):
        await db.memory("alice", session).conversation.add_message({"role": "user", "content": f"pelican {session}"})
    await db.memory("bob", "s1").conversation.add_message({"role": "user", "content": "pelican of bob"})
    talk = db.memory("alice", "s1").conversation
    assert [hit.message.content for hit in await talk.search("pelican")] == ["pelican s1"]
    found = await talk.search("pelican", all_sessions=True)
    assert {(hit.session_id, hit.message.content) for hit in found} == {("s1", "pelican s1"), ("s2", "pelican s2")}


async def test_a_turn_leans_on_its_neighbours_and_says_so(memory):
    talk = memory.conversation
    await talk.add_messages(
        [
            {"role": "user", "content": "the weather is mild"},
            {"role": "user", "content": "Where did you buy the violin?"},
            {"role": "assistant", "content": "At the shop in Cremona."},
            {"role": "user", "content": "Lovely."},
            *({"role": "user", "content": f"filler {n}"} for n in range(20)),
            {"role": "user", "content": "A shop sells shoes."},
        ]
    )
    hits = await talk.search("which shop sold the violin", k=3)
    assert hits[0].message.content in ("Where did you buy the violin?", "At the shop in Cremona.")
    assert [hit.message.position for hit in hits[:2]] in ([2, 3], [3, 2])  # not the shop of shoes
    for hit in hits:
        assert hit.score == pytest.approx(hit.own + sum(hit.lent.values()))
    assert hits == await talk.search("which shop sold the violin", k=3)


async def test_tokens_are_kept_with_the_row(memory, db):
    from memdb import TokenCounter

    given = [{"role": "user", "content": "hello world"}, {"role": "assistant", "tool_calls": [CALL], "content": None}]
    await memory.conversation.add_messages(given)
    assert [message.tokens for message in await memory.conversation.messages()] == [
        TokenCounter().count_messages([message]) for message in given
    ]
    assert await db.read(lambda tx: tx.execute("SELECT sum(tokens) FROM v_messages")) == [
        (TokenCounter().count_messages(given),)
    ]
    assert TokenCounter().count_messages(await memory.conversation.messages()) == TokenCounter().count_messages(given)


async def test_a_turn_lands_whole_or_not_at_all(memory):
    def turn(m):
        m.conversation.add_message({"role": "user", "content": "question"})
        assert texts(m.conversation.get_history())[-1:] == ["question"]
        m.conversation.add_messages([{"role": "assistant", "content": "answer"}])
        if m.items.get("stop"):
            raise RuntimeError
        return m.conversation.add_message({"role": "user", "content": "thanks"})

    assert await memory.atomic(turn) == 3
    from memdb import MemoryItem

    await memory.items.save(MemoryItem(id="stop", content="x"))
    with pytest.raises(RuntimeError):
        await memory.atomic(turn)
    assert len(await memory.conversation.messages()) == 3


async def test_files_are_not_for_units(memory, tmp_path):
    with pytest.raises(InvalidInput, match="outside of it"):
        await memory.atomic(lambda m: m.conversation.export_jsonl(tmp_path / "x").send(None))


async def test_a_damaged_message_is_set_aside_with_its_parts(memory, db, caplog):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": "good"}, {"role": "user", "content": ["bad"]}])

    def damage(tx):
        tx.execute("UPDATE message SET role = x'FF' WHERE body IS NOT NULL")

    await db.write(damage)
    assert texts(await talk.messages()) == ["good"]
    ((raw,),) = await db.read(lambda tx: tx.execute("SELECT raw FROM quarantine"))
    assert '"role":"FF"' in raw
    assert bytes('["bad"]', "ascii").hex().upper() in raw
    assert await talk.add_message({"role": "user", "content": "next"}) in (2, 3)
    assert "MEMORY_CORRUPT" in caplog.text


async def test_a_message_without_its_row_is_set_aside(memory, db):
    await memory.conversation.add_message({"role": "user", "content": "lonely"})
    await db.write(lambda tx: tx.execute("DELETE FROM message"))
    assert not (await db.check()).ok
    assert await memory.conversation.messages() == []
    assert (await db.check()).ok


async def test_recalls_of_messages_are_counted_by_position(db, memory):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": f"message {n}"} for n in range(3)])
    for score in (0.5, 0.25):
        await talk.record_recall(2, score)
    stats = await talk.recall_stats(2)
    assert (stats.recall_count, stats.total_score) == (2, 0.75)
    for position in (1, 4, 0, -1, 10**15):
        await talk.record_recall(position, 1.0)
    assert (await talk.recall_stats(1)).recall_count == 1
    assert [await talk.recall_stats(position) for position in (3, 4, 0, -1, 10**15)] == [None] * 5
    assert await db.memory("alice", "another").conversation.recall_stats(2) is None
    shown = await db.read(lambda tx: tx.execute("SELECT position, recalls FROM v_messages ORDER BY position"))
    assert shown == [(1, 1), (2, 2), (3, 0)]
    with pytest.raises(InvalidInput, match="position"):
        await talk.record_recall("2", 0.5)
