"""Whatever a model sends, a tool answers with a result of bounded size that every API takes."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import memdb
from memdb.layers.blocks.config import BlockConfig
from memdb.llm.tools.result import ToolResult, beginning, bounded, listing
from memdb.llm.tools.toolset import create_memory_tools
from memdb.testing import ScriptedModel
from memdb.text.check import is_valid
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME, any_text, json_values, queries

COUNTER = memdb.TokenCounter()
LIMIT = 200
PARAMETERS = (
    *("result_id", "id", "page", "start_line", "start_byte", "search", "query", "pattern", "k", "score_threshold"),
    *("block", "content", "old_content", "new_content", "summary", "importance", "history_entry", "memory_update"),
)
NAMED = ("task", "notes", "r1", "the", "auth", "1", "0.5", "-3", "1e9", "nan", "[", "(a+)+$")


async def stocked(db, **options):
    """Return tools over a memory that holds something in every layer."""
    memory = db.memory("alice")
    await memory.blocks.configure({"task": BlockConfig(size=40), "notes": BlockConfig(size=10, priority=0)})
    await memory.blocks.update_memory("task", "the auth task")
    await memory.archive.insert_many(["the auth passage " * 50, "auth: short", "``` an open fence of auth"])
    await memory.conversation.add_messages(
        [{"role": "user", "content": "the auth message " * 50}, {"role": "user", "content": None}]
    )
    await memory.facts.append_history("[2026-11-30 09:00] auth " + "history " * 300)
    await memory.manager.save_tool_result("r1", {"tool": "t", "content": "the auth\x00\ud800 result\n" * 500})
    return create_memory_tools(memory, result_tokens=LIMIT, **options)


def check(result):
    text = str(result)
    assert isinstance(result, ToolResult)
    assert result.status in ("success", "error", "partial")
    assert (result.error is None) is (result.status != "error")
    assert text
    assert is_valid(text)
    assert COUNTER.count(text) <= LIMIT


values = json_values | queries | st.sampled_from(NAMED) | st.integers() | st.floats()
objects = st.dictionaries(st.sampled_from(PARAMETERS) | any_text, values, max_size=6)
arguments = (
    objects
    | values
    | st.lists(objects | values, max_size=3)
    | objects.map(lambda given: json.dumps(given, allow_nan=True))
    | any_text
)


@settings(SAME_EVERY_TIME, max_examples=120)
@given(st.lists(arguments, min_size=1, max_size=4))
@example([{"block": "task", "content": "word " * 500, "old_content": "auth", "new_content": "\ud800" * 9}])
@example([{name: "(a+)+$" for name in PARAMETERS if name not in ("query", "k")}])
@example([{"query": "auth", "k": 10**9, "score_threshold": 0, "content": "x", "history_entry": "```\n" * 900}])
def test_no_arguments_break_a_tool(sent):
    async def go(db):
        tools = await stocked(db)
        for given_arguments in sent:
            for tool in tools:
                check(await tool.execute(given_arguments))
                if isinstance(given_arguments, dict):
                    named = await tool.execute(**given_arguments)
                    check(named)
                call = {"id": "c", "function": {"name": tool.name, "arguments": given_arguments}}
                message = await tools.run(call)
                assert message["role"] == "tool"
                assert COUNTER.count(message["content"]) <= LIMIT

    run(go)


@settings(SAME_EVERY_TIME, max_examples=60)
@given(values | st.dictionaries(st.sampled_from(["id", "type", "name", "input", "function", "arguments"]), values))
@example({"type": "tool_use", "id": "\ud800", "name": "save_memory\x00", "input": None})
@example({"id": "x" * 100_000, "function": {"name": "y" * 100_000}})
def test_no_call_breaks_the_set(call):
    async def go(db):
        message = await create_memory_tools(db.memory(), result_tokens=LIMIT).run(call)
        assert message["role"] in ("tool", "user")
        json.dumps(message).encode()

    run(go)


HUGE = "word " * 10_000_000


@pytest.mark.parametrize("filled", [HUGE, "\ud800" * 1_000_000, "\x00" * 1_000_000, "`" * 1_000_000, "\n" * 1_000_000])
async def test_huge_arguments(db, filled):
    tools = await stocked(db)
    for tool in tools:
        given_arguments = dict.fromkeys(tool.parameters["required"], filled) or {"query": filled}
        if "block" in given_arguments:
            given_arguments["block"] = "task"
        check(await tool.execute(given_arguments))
    check(await tools.execute("core_memory_append", json.dumps({"block": "task", "content": filled})))


async def test_what_is_stored_may_be_huge(db):
    tools = await stocked(db)
    memory = db.memory("alice")
    big = "auth and " * 1_000_000
    await memory.archive.insert(big, summary="auth " * 1_900)
    await memory.archive.insert_many([f"auth {n} " * 40 for n in range(60)])
    await memory.conversation.add_messages([{"role": "user", "name": "n" * 1_000, "content": big}] * 3)
    await memory.facts.append_history(big)
    await memory.manager.save_tool_result("x" * 200, {"tool": "t" * 1_000, "content": "🔥" * 5_000_000})
    for name in ("archival_memory_search", "conversation_search", "history_search"):
        for k in (1, 3, 50):
            result = await tools.execute(name, query="auth", k=k)
            check(result)
            assert "1. " in result.content
    for given_arguments in ({}, {"page": 9_000}, {"start_line": 1}, {"start_byte": 77}, {"search": "🔥"}):
        result = await tools.execute("load_tool_result", result_id="x" * 200, **given_arguments)
        check(result)
        assert "🔥" in result.content


async def test_a_cancelled_call_is_cancelled(db):
    class Sleeping:
        async def chat(self, messages, **options):
            await asyncio.sleep(3_600)

    tools = await stocked(db, llm=Sleeping())
    task = asyncio.create_task(tools.execute("core_memory_append", block="task", content="word " * 60))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    blocks = await db.memory("alice").blocks.get_memory()
    assert COUNTER.count(blocks["task"]) <= 40


@pytest.mark.parametrize("reply", [RuntimeError("down"), "", "word " * 500])
async def test_a_model_that_fails_only_costs_the_summary(db, reply):
    tools = await stocked(db, llm=ScriptedModel([reply] * 5))
    result = await tools.execute("core_memory_append", block="task", content="word " * 60)
    check(result)
    assert result.metadata["eviction_triggered"] is True
    assert COUNTER.count((await db.memory("alice").blocks.get_memory())["task"]) <= 40


async def test_another_user_is_never_found(db):
    await stocked(db)
    strangers = create_memory_tools(db.memory("bob"))
    for name in ("archival_memory_search", "conversation_search", "history_search"):
        assert (await strangers.execute(name, query="auth")).metadata["results"] == []
    assert (await strangers.execute("load_tool_result", result_id="r1")).status == "error"
    assert "this session has none" in str(await strangers.execute("core_memory_append", block="task", content="x"))
    elsewhere = create_memory_tools(db.memory("alice", "another session"))
    assert (await elsewhere.execute("conversation_search", query="auth")).metadata["results"] == []
    assert (await elsewhere.execute("archival_memory_search", query="auth")).metadata["results"]


# -- cutting ----------------------------------------------------------------------------------------------------------


@settings(SAME_EVERY_TIME, max_examples=200)
@given(queries, st.integers(1, 300), st.integers(1, 40))
def test_a_beginning_is_one_to_the_letter(text, repeated, tokens):
    text *= repeated
    piece = beginning(text, tokens, COUNTER.count)
    assert text.startswith(piece)
    assert piece or not text
    assert len(piece) == 1 or COUNTER.count(piece) <= tokens


@settings(SAME_EVERY_TIME, max_examples=200)
@given(st.lists(st.builds(str.__mul__, queries, st.integers(0, 60)), max_size=60), st.integers(100, 400))
def test_a_list_stays_within_its_tokens(entries, tokens):
    content, cut = listing("Found:", entries, tokens, COUNTER.count)
    assert COUNTER.count(content) <= tokens
    if not cut:
        assert content == "\n".join(["Found:", *entries])


@settings(SAME_EVERY_TIME, max_examples=200)
@given(queries, st.integers(1, 500), st.sampled_from(["success", "error", "partial"]))
def test_results_are_bounded(text, repeated, status):
    text *= repeated
    given_result = ToolResult(status, error=text) if status == "error" else ToolResult(status, text)
    result = bounded(given_result, 50, COUNTER.count)
    assert COUNTER.count(str(result)) <= 50
    assert is_valid(str(result))
    if is_valid(str(given_result)) and COUNTER.count(str(given_result)) <= 50:
        assert result == given_result
