"""The calls of a model's answer, in the shape of either API, and what a tool answers when the storage fails."""

from __future__ import annotations

import json

import pytest

import memdb
from memdb.errors import StorageError
from memdb.llm.tools.result import ToolResult
from memdb.llm.tools.toolset import create_memory_tools
from tests.llm.toolbox import failed, said


@pytest.fixture
def tools(memory):
    return create_memory_tools(memory)


# -- calls ------------------------------------------------------------------------------------------------------------


class Dumped:
    """A call as the clients of the APIs give it."""

    def __init__(self, fields):
        self.fields = fields

    def model_dump(self):
        return self.fields


@pytest.mark.parametrize("arguments", [{"query": "x"}, '{"query": "x"}', [{"query": "x"}]])
@pytest.mark.parametrize("wrap", [dict, Dumped])
async def test_a_call_in_the_openai_shape(memory, tools, arguments, wrap):
    call = {"id": "c1", "type": "function", "function": {"name": "conversation_search", "arguments": arguments}}
    message = await tools.run(wrap(call))
    assert message == {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "conversation_search",
        "content": str(await tools.execute("conversation_search", query="x")),
    }
    await memory.conversation.add_messages([{"role": "assistant", "content": None, "tool_calls": [call]}, message])


async def test_a_call_in_the_anthropic_shape(tools):
    call = {"type": "tool_use", "id": "t1", "name": "conversation_search", "input": {"query": "x"}}
    message = await tools.run(call)
    content = str(await tools.execute("conversation_search", query="x"))
    assert message == {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}],
    }
    (block,) = (await tools.run(call | {"input": {}}))["content"]
    assert block["is_error"] is True
    assert block["content"].startswith("Error: query is missing")


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c1", "function": {"name": "forget_all", "arguments": "{}"}},
        {"id": "c1", "function": {"name": "forget_all"}},
        {"name": "forget_all", "arguments": {}},
        {"function": {"name": None}},
        {"function": "save_memory"},
        {"type": "tool_use", "id": 5, "name": ["save_memory"]},
        {},
        None,
        "save_memory",
        5,
        [],
    ],
)
async def test_a_call_of_no_tool_names_those_there_are(tools, call):
    message = await tools.run(call)
    text = json.dumps(message)
    assert "Error: " in text
    assert "core_memory_append" in text
    assert failed(await tools.execute("forget_all")).startswith(
        "there is no tool 'forget_all': the tools are load_tool_result"
    )


CALL = {"id": "c1", "type": "function", "function": {"name": "history_search", "arguments": '{"query": "x"}'}}


@pytest.mark.parametrize(
    "several",
    [
        [CALL],
        (CALL, CALL),
        memdb.ChatReply(tool_calls=[CALL]),
        memdb.ChatReply("no call"),
        {"role": "assistant", "tool_calls": [CALL]},
        Dumped({"role": "assistant", "tool_calls": [CALL]}),
    ],
)
async def test_several_calls_at_once_are_told_to_be_given_one_by_one(tools, several):
    message = await tools.run(several)
    assert message == {
        "role": "tool",
        "content": "Error: give one call at a time: [await tools.run(call) for call in reply.tool_calls]",
    }


# -- when the storage fails -------------------------------------------------------------------------------------------


async def test_a_closed_file_is_a_result(path):
    async with memdb.open(path) as db:
        tools = create_memory_tools(db.memory("alice"))
    for tool in tools:
        arguments = dict.fromkeys(tool.parameters["required"], "x") or {"query": "x"}
        assert "closed" in failed(await tool.execute(arguments)).lower()


async def test_a_file_that_is_only_read(path):
    async with memdb.open(path) as db:
        memory = db.memory("alice")
        await memory.archive.insert("the auth passage")
        await memory.conversation.add_message({"role": "user", "content": "the auth message"})
    async with memdb.open(path, read_only=True) as db:
        tools = create_memory_tools(db.memory("alice"))
        assert "the auth passage" in said(await tools.execute("archival_memory_search", query="auth"))
        assert "the auth message" in said(await tools.execute("conversation_search", query="auth"))
        assert "read" in failed(await tools.execute("archival_memory_insert", content="x"))


async def test_a_memory_that_breaks_is_a_result(memory, tools, caplog):
    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("\ud800 no\x00 luck")

    class Breaks:
        manager = conversation = facts = blocks = archive = Broken()

        async def atomic(self, unit):
            raise StorageError("the disk is full")

    broken = create_memory_tools(Breaks())
    for tool in broken:
        sentence = failed(await tool.execute(dict.fromkeys(tool.parameters["required"], "x") or {"query": "x"}))
        assert sentence == "the disk is full" if tool.name == "save_memory" else "RuntimeError: ? no  luck" in sentence
    assert "the tool load_tool_result failed" in caplog.text


async def test_a_counter_that_breaks_is_a_result(memory):
    class Counter:
        def count(self, text):
            raise RuntimeError("no table")

    tools = create_memory_tools(memory, counter=Counter())
    assert "could not be measured" in failed(await tools.execute("archival_memory_insert", content="x"))
    assert "Error: " in (await tools.run({}))["content"]


def test_results_as_text():
    assert str(ToolResult("success", "done")) == "done"
    assert str(ToolResult("partial", "some")) == "some"
    assert str(ToolResult("error", error="no")) == "Error: no"
