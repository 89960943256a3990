"""Old tool results are left out of a history that is too long, and only there (agcore document, section 3.6)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdb import Message, TokenCounter
from memdb.layers.compaction import compacted, exact_counter
from memdb.layers.history import groups, legal
from memdb.layers.window import CompactConfig, ConversationMemoryConfig
from tests.layers.test_window import call, claude_call, said, user
from tests.strategies import SAME_EVERY_TIME

COUNT = exact_counter()
LONG = "the whole of a long file, line by line. " * 50
TIGHT = CompactConfig(context_window=100, reserved_tokens=10, keep_recent=1)
WIDE = CompactConfig(context_window=1_000_000, reserved_tokens=10, keep_recent=1)


def result(id, content=LONG, **more):
    return {"role": "tool", "tool_call_id": id, "content": content} | more


def claude_result(*pairs, first=()):
    parts = [{"type": "tool_result", "tool_use_id": id, "content": content} for id, content in pairs]
    return {"role": "user", "content": [*first, *parts]}


def compact_config(config):
    return ConversationMemoryConfig(compact=config)


async def contents(talk, config=TIGHT):
    return [message.content for message in await talk.configure(compact_config(config)).get_history()]


async def test_reuses_compaction_when_the_history_is_read_and_stores_nothing_of_it(memory, db):
    talk = memory.conversation
    given = [user("read both"), call("1", "2"), result("1"), result("2"), said("done")]
    await talk.add_messages(given)
    before = await db.read(lambda tx: tx.execute("SELECT * FROM record JOIN message ON record_id = id ORDER BY id"))
    history = await talk.configure(compact_config(TIGHT)).get_history()
    assert [message.content for message in history] == [
        "read both",
        None,
        "[the result of f was left out here: 2,000 characters; it is stored in full as message 3 of this session]",
        LONG,
        "done",
    ]
    assert [message.tokens for message in history] == [COUNT.count_messages([message]) for message in history]
    assert [message.content for message in await talk.messages()][2] == LONG
    assert before == await db.read(
        lambda tx: tx.execute("SELECT * FROM record JOIN message ON record_id = id ORDER BY id")
    )
    assert history == await talk.get_history()  # the same history gives the same text
    assert await contents(talk, WIDE) == [message.get("content") for message in given]
    assert [message.content for message in await talk.configure(ConversationMemoryConfig()).get_history()][2] == LONG


async def test_it_begins_at_the_token_after_the_last_that_fits(memory):
    talk = memory.conversation
    await talk.add_messages([user(), call("1"), result("1"), call("2"), result("2")])
    tokens = sum(message.tokens for message in await talk.get_history())
    for reserved in (0, 77):
        for spare in (1, 0, -1):
            config = CompactConfig(context_window=tokens + reserved + spare, reserved_tokens=reserved, keep_recent=1)
            assert ((await contents(talk, config))[2] == LONG) == (spare >= 0)


@pytest.mark.parametrize("keep", [1, 2, 3, 4, 5, 9])
async def test_the_newest_results_stay_whole_in_both_forms(memory, keep):
    talk = memory.conversation
    await talk.add_messages(
        [
            user(),
            call("1"),
            result("1"),
            claude_call("2", "3"),
            claude_result(("2", LONG), ("3", [{"type": "text", "text": LONG}]), first=[{"type": "text", "text": "so"}]),
            claude_call("4"),
            claude_result(("4", LONG)),
            said(),
        ]
    )
    _, _, one, _, two_three, _, four, _ = await contents(
        talk, CompactConfig(context_window=100, reserved_tokens=0, keep_recent=keep)
    )
    found = [one, two_three[1]["content"], two_three[2]["content"], four[0]["content"]]
    whole = [LONG, LONG, [{"type": "text", "text": LONG}], LONG]
    left_out = max(0, 4 - keep)
    assert found[left_out:] == whole[left_out:]
    assert all(isinstance(text, str) and "left out here" in text for text in found[:left_out])
    assert [part.get("tool_use_id") for part in two_three] == [None, "2", "3"]
    assert two_three[0] == {"type": "text", "text": "so"}
    assert "2,0" in str(found[2]) or keep >= 2  # a list counts as JSON


def replaced(given):
    messages = [*given, Message(**call("z")), Message(**result("z"))]
    return compacted(messages, TIGHT, COUNT)[: len(given)]


def messages_of(*given):
    return [Message(**message) for message in given]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([call("1"), result("1")], "the result of f was"),
        ([{"role": "assistant", "tool_calls": [{"id": "1", "name": "g"}]}, result("1")], "the result of g was"),
        ([claude_call("1"), claude_result(("1", LONG))], "the result of f was"),
        ([call("0"), result("1")], "a tool's result was"),
        ([call("0"), result("1", name="h")], "the result of h was"),
        ([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, {"role": "tool", "content": LONG}],
         "a tool's result was"),
        ([{"role": "assistant", "tool_calls": [7, {"id": "1", "function": 8, "name": ["x"]}]}, result("1")],
         "a tool's result was"),
        ([{"role": "assistant", "tool_calls": [{"id": 1, "function": {"name": "f"}}]}, result("1")], "of f was"),
        ([{"role": "assistant", "tool_calls": [{"id": "1", "name": "a\n]b " + "c" * 500}]}, result("1")],
         "the result of a ]b " + "c" * 75 + " was"),
        ([call("1"), result("1"), {"role": "assistant", "tool_calls": [{"id": "1", "name": "later"}]}],
         "the result of f was"),
        ([{"role": "function", "name": "old", "content": LONG}], "the result of old was"),
    ],
)  # fmt: skip
def test_the_text_names_the_tool_when_the_call_does(given, names):
    given = messages_of(*given)
    (changed,) = (new for new, old in zip(replaced(given), given, strict=True) if new != old)
    text = changed.content if isinstance(changed.content, str) else changed.content[0]["content"]
    assert names in text
    assert text.endswith(" 2,000 characters]")  # these are stored nowhere


@pytest.mark.parametrize("content", ["", "short", "x" * 50, None, [], 5, {"a": 1}, [{"type": "text", "text": "ok"}]])
def test_a_result_that_is_no_longer_than_the_text_stays(content):
    given = messages_of(call("1"), result("1", content), claude_call("2"), claude_result(("2", content)))
    assert replaced(given) == given


@pytest.mark.parametrize("content", ["y" * 120, ["y" * 120], {"text": "y" * 120}, [{"image": "y" * 120}, 2**70]])
def test_a_longer_one_goes_whatever_its_form(content):
    given = messages_of(call("1"), result("1", content, extra={"kept": True}), claude_call("2"),
                        claude_result(("2", content), ("3", None)))  # fmt: skip
    given[3].content[0]["is_error"] = True
    as_they_were = [message.model_dump_json() for message in given]
    _, first, _, second = replaced(given)
    size = len(content) if isinstance(content, str) else len(json.dumps(content))
    assert first.content == f"[the result of f was left out here: {size} characters]"
    assert (first.tool_call_id, first.role, first.model_extra) == ("1", "tool", {"extra": {"kept": True}})
    assert second.content[0] == {
        "type": "tool_result", "tool_use_id": "2", "is_error": True, "content": first.content,
    }  # fmt: skip
    assert second.content[1] == {"type": "tool_result", "tool_use_id": "3", "content": None}
    assert as_they_were == [message.model_dump_json() for message in given]


def test_tokens_that_are_not_known_are_counted():
    given = messages_of(user("x"), call("1"), result("1"), call("2"), result("2"))
    assert all(message.tokens is None for message in given)
    room = COUNT.count_messages(given)
    for window, changes in ((room, False), (room - 1, True)):
        config = CompactConfig(context_window=window, reserved_tokens=0, keep_recent=1)
        assert (compacted(given, config, TokenCounter()) != given) == changes


async def test_it_applies_to_the_part_that_is_asked_for(memory):
    talk = memory.conversation.configure(compact_config(TIGHT))
    await talk.add_messages([user("first"), call("1"), result("1"), said(), user("last"), call("2"), result("2")])
    assert [message.content for message in await talk.get_history(3)] == ["last", None, LONG]
    assert "left out" in (await talk.get_history())[2].content
    await talk.compact(3)
    assert [message.content for message in await talk.get_history()] == ["last", None, LONG]

    def unit(inside):
        return inside.conversation.configure(compact_config(TIGHT)).get_history()

    await talk.add_messages([call("3"), result("3")])
    assert "left out" in (await memory.atomic(unit))[2].content


async def test_a_history_without_results_and_an_empty_one_stay(memory):
    talk = memory.conversation.configure(compact_config(TIGHT))
    assert await talk.get_history() == []
    await talk.add_messages([user(LONG), said(LONG)])
    assert [message.content for message in await talk.get_history()] == [LONG, LONG]


texts = st.sampled_from(["", "ok", "部署方案 " * 40, "y" * 300, LONG])
turn = st.one_of(
    texts.map(lambda text: [user(text)]),
    texts.map(lambda text: [said(text)]),
    st.lists(texts, max_size=3).map(
        lambda found: [call(*map(str, range(len(found)))), *(result(str(n), text) for n, text in enumerate(found))]
    ),
    st.lists(texts, min_size=1, max_size=3).map(
        lambda found: [
            claude_call(*map(str, range(len(found)))),
            claude_result(*((str(n), text) for n, text in enumerate(found))),
        ]
    ),
)
configs = st.builds(
    CompactConfig, context_window=st.integers(200, 2_000), reserved_tokens=st.integers(0, 199),
    keep_recent=st.integers(1, 5),
)  # fmt: skip


def results_of(messages):
    """Return each tool result of a history, in order."""
    found = []
    for message in messages:
        parts = message.content if isinstance(message.content, list) else []
        found += [part["content"] for part in parts if part.get("type") == "tool_result"]
        found += [message.content] if message.role == "tool" else []
    return found


@settings(SAME_EVERY_TIME, max_examples=150)
@given(st.lists(turn, max_size=12), configs)
def test_whatever_the_history_only_old_results_change(turns: list[list[dict[str, object]]], config: CompactConfig):
    given = legal([Message(**message) for turn in turns for message in turn])
    found = compacted(given, config, COUNT)
    assert legal(found) == found
    assert [len(group) for group in groups(found)] == [len(group) for group in groups(given)]
    old, new = results_of(given), results_of(found)
    assert old[-config.keep_recent :] == new[-config.keep_recent :]
    too_long = COUNT.count_messages(given) > config.context_window - config.reserved_tokens
    for before, after in zip(old[: -config.keep_recent], new[: -config.keep_recent], strict=True):
        assert (before != after) == (too_long and len(before) > 60)
        assert len(after) <= len(before)
    for before, after in zip(given, found, strict=True):
        assert after.tokens in (None, COUNT.count_messages([after]))
        blank = {"content": None, "tokens": None}
        assert before.model_copy(update=blank) == after.model_copy(update=blank)
    assert found == compacted(given, config, COUNT)
    # What was left out once reads the same when the conversation has gone on.
    further = compacted([*given, *(Message(**message) for message in (call("z"), result("z")))], config, COUNT)
    changed = [(was, now) for was, now, full in zip(new, results_of(further), old, strict=False) if was != full]
    assert all(was == now for was, now in changed)
