"""Any JSON comes back equal in a message, and any text is a query of conversations."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import Database, Message
from memdb.retrieval.find import find
from memdb.scope import Scope
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME, any_text, instants, plain, queries, texts

# What is JSON to Python: texts of any kind, integers of any size.
_leaves = (
    st.none() | st.booleans() | st.integers() | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False) | any_text | plain
)  # fmt: skip
any_json = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4), max_leaves=10
)
_OURS = ("role", "content", "name", "tool_calls", "tool_call_id", "created_at", "timestamp", "position", "tokens")
_keys = any_text.filter(lambda key: key not in _OURS and key.isprintable()) | st.sampled_from(
    ["_type", "key", "id", "metadata", "model_config", "model_extra", "self", "cls", "copy", "json", "", "__dict__",
     "extra", "to_dict", "trusted", "user_id", "record_id", "body", "a.b", "$.x", "é", "部署"]
)  # fmt: skip
names = st.none() | plain.filter(bool)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "image_url"])},
    optional=dict.fromkeys(["text", "content", "id", "tool_use_id", "input", "name"], any_json),
)  # fmt: skip
calls = st.fixed_dictionaries(
    {}, optional={"id": any_json, "function": any_json, "name": any_json, "arguments": any_json}
)
given_messages = st.builds(
    lambda fields, extra: extra | fields,
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | plain.filter(bool),
         "content": any_json | st.lists(parts, max_size=3)},
        optional={
            "tool_calls": st.none() | st.lists(any_json | calls, max_size=3),
            "tool_call_id": names,
            "name": names,
            "timestamp": st.none() | instants.map(lambda moment: moment.isoformat()),
        },
    ),
    st.dictionaries(_keys, any_json, max_size=3),
)  # fmt: skip


def exactly(value: Any) -> str:
    """A value with its types: 1, 1.0 and True differ, and -0.0 from 0.0."""
    return repr(value)


def as_given(message: dict[str, Any]) -> tuple[str, ...]:
    extra = {name: value for name, value in message.items() if name not in _OURS}
    return (
        *(exactly(message.get(name)) for name in ("role", "content", "tool_calls", "tool_call_id", "name")),
        exactly(extra),
    )


def as_stored(message: Message) -> tuple[str, ...]:
    return (
        *(exactly(getattr(message, name)) for name in ("role", "content", "tool_calls", "tool_call_id", "name")),
        exactly(message.model_extra),
    )


@settings(SAME_EVERY_TIME, max_examples=120)
@given(st.lists(given_messages, min_size=1, max_size=4))
def test_any_message_comes_back_as_it_was(messages: list[dict[str, Any]]) -> None:
    async def example(db: Database) -> None:
        first, second, third = (db.memory("alice", name).conversation for name in ("1", "2", "3"))
        for message in messages:
            await first.add_message(message)
        await second.add_messages(messages)
        with tempfile.TemporaryDirectory() as folder:
            await second.export_jsonl(Path(folder) / "a")
            report = await third.import_jsonl(Path(folder) / "a")
        assert (report.messages, report.problems) == (len(messages), [])
        for talk in (first, second, third):
            found = await talk.messages()
            assert [as_stored(message) for message in found] == [as_given(message) for message in messages]
            await talk.get_history()
            await talk.compact(1)
        times = [[message.created_at for message in await talk.messages()] for talk in (second, third)]
        assert times[0] == times[1]
        await first.add_messages(await second.messages())  # and once more from the models
        assert [as_stored(message) for message in await first.messages(len(messages))] == [*map(as_given, messages)]

    run(example)


@settings(SAME_EVERY_TIME, max_examples=150)
@given(st.lists(texts, min_size=4, max_size=12), queries, st.integers(0, 20), st.booleans())
def test_any_text_is_a_query_and_a_score_says_what_it_is_made_of(
    said: list[str], query: str, k: int, all_sessions: bool
) -> None:
    async def example(db: Database) -> None:
        whose = [("alice", "s"), ("alice", "t"), ("bob", "s")]
        for number, text in enumerate([*said, query.replace("\x00", " ").encode("utf-8", "replace").decode()]):
            await db.memory(*whose[number % 3]).conversation.add_message({"role": "user", "content": text})
        talk = db.memory("alice", "s").conversation
        hits = await talk.search(query, k, all_sessions=all_sessions)
        assert len(hits) <= k
        assert {hit.session_id for hit in hits} <= ({"s", "t"} if all_sessions else {"s"})
        places = [(hit.session_id, hit.message.position) for hit in hits]
        assert len(set(places)) == len(places)
        for hit in hits:
            assert hit.score > 0
            assert hit.own >= 0
            assert abs(hit.score - hit.own - sum(hit.lent.values())) <= 1e-9 * hit.score
            assert all(0 < abs(distance) <= 3 and share > 0 for distance, share in hit.lent.items())
            assert hit.message in await db.memory("alice", hit.session_id).conversation.messages()
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert await talk.search(query, k, all_sessions=all_sessions) == hits
        longer = await talk.search(query, k + 5, all_sessions=all_sessions)
        assert longer[: len(hits)] == hits
        for hit in await db.read(find, Scope("alice", "s"), query, k):
            hit.snippet.text.encode()  # can be shown
            assert hit.score >= 0

    run(example)


@settings(SAME_EVERY_TIME, max_examples=60)
@given(given_messages, queries)
def test_any_message_can_be_found_and_shown(message: dict[str, Any], query: str) -> None:
    async def example(db: Database) -> None:
        await db.memory("alice").conversation.add_messages([{"role": "user", "content": query}, message])
        for words in (query, str(message.get("tool_calls")), str(message["content"]), message["role"]):
            await db.memory("alice").conversation.search(words)
            for hit in await db.read(find, Scope("alice", "default"), words):
                (hit.snippet.text + hit.title).encode()

    run(example)


def test_the_public_names_are_there() -> None:
    assert {"Message", "ScoredMessage"} <= set(dir(memdb))
