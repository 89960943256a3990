"""save_memory and load_tool_result: what is kept of a conversation, and a large result read in parts."""

from __future__ import annotations

import pytest

from memdb.llm.tools.toolset import create_memory_tools
from tests.llm.toolbox import COUNTER, failed, said


@pytest.fixture
def tools(memory):
    return create_memory_tools(memory)


# -- save_memory ------------------------------------------------------------------------------------------------------


async def test_save_memory_writes_both(memory, tools):
    result = await tools.execute(
        "save_memory", history_entry=" [2026-11-30 09:00] Met Bob. ", memory_update="# User\nBob"
    )
    assert "entry 1" in said(result)
    assert await memory.facts.read_long_term() == "# User\nBob"
    assert [entry.content for entry in await memory.facts.history()] == ["[2026-11-30 09:00] Met Bob."]
    for blank in ("", " \n"):
        await tools.execute("save_memory", history_entry="More.", memory_update=blank)
        assert await memory.facts.read_long_term() == "# User\nBob", "a blank update wipes nothing"
    assert len(await memory.facts.history()) == 3
    assert [version.content for version in await memory.facts.versions()] == ["# User\nBob"]


@pytest.mark.parametrize(
    ("arguments", "entry", "update"),
    [
        ('{"history_entry": "a", "memory_update": "b"}', "a", "b"),
        ('[{"history_entry": "a", "memory_update": "b"}, 1]', "a", "b"),
        ([{"history_entry": "a", "memory_update": "b", "more": 1}], "a", "b"),
        ({"history_entry": {"é": [1]}, "memory_update": 5}, '{"é":[1]}', "5"),
        ({"history_entry": {}, "memory_update": ""}, "{}", ""),
    ],
)
async def test_save_memory_takes_what_models_send(memory, tools, arguments, entry, update):
    said(await tools.execute("save_memory", arguments))
    assert [one.content.replace(" ", "") for one in await memory.facts.history()] == [entry]
    assert await memory.facts.read_long_term() == update


@pytest.mark.parametrize(
    "arguments",
    [
        {"history_entry": "a"},
        {"memory_update": "b"},
        {"history_entry": None, "memory_update": "b"},
        {"history_entry": " ", "memory_update": "b"},
        {"history_entry": "a", "memory_update": None},
        [],
        ["a", {"history_entry": "a", "memory_update": "b"}],
        '"text"',
        "{broken",
        7,
    ],
)
async def test_save_memory_saves_nothing_of_half_a_call(memory, tools, arguments):
    failed(await tools.execute("save_memory", arguments))
    assert await memory.facts.history() == []
    assert await memory.facts.read_long_term() == ""


async def test_save_memory_is_one_unit(memory, tools):
    failed(await tools.execute("save_memory", history_entry="kept?", memory_update="x" * (17 * 1024 * 1024)))
    assert await memory.facts.history() == []


# -- load_tool_result -------------------------------------------------------------------------------------------------


def page_of(result):
    return said(result).partition("\n\n")[2]


@pytest.mark.parametrize(
    "line", ["row {n}: a value of {n}\n", "数据库迁移的第{n}步已经完成。", "{n:032x}", "🔥\x00{n}\r\n"]
)
async def test_the_pages_of_a_result_are_the_whole_of_it(memory, tools, line):
    text = "".join(line.format(n=n) for n in range(3_000))
    reference = await memory.manager.externalize("read_file", text)
    result = await tools.execute("load_tool_result", result_id=reference.result_id)
    parts = []
    while True:
        assert COUNTER.count(str(result)) <= 2_000
        parts.append(page_of(result))
        following = result.metadata["next"]
        if not following:
            break
        ((name, value),) = following.items()
        assert f"Go on with {name}={value}." in result.content
        result = await tools.execute("load_tool_result", {"id": reference.result_id, name: str(value)})
    assert "".join(parts) == text.replace("\x00", " ")
    assert len(parts) > 3


async def test_lines_and_a_search_of_a_result(memory, tools):
    lines = [f"line {n} is quiet" for n in range(1, 2_001)]
    lines[1_233] = "An ERROR stands here"
    lines.append("x" * 100_000 + "needle" + "y" * 100_000)
    await memory.manager.save_tool_result("log", {"tool": "tail", "content": "\n".join(lines)})
    found = await tools.execute("load_tool_result", result_id="log", search="error stands")
    assert "line 1234 " in said(found)
    at = await tools.execute("load_tool_result", result_id="log", start_line=1_234)
    assert page_of(at).startswith("An ERROR stands here\nline 1235 is quiet\n")
    (match,) = (await tools.execute("load_tool_result", result_id="log", search="needle")).metadata["results"]
    around = await tools.execute("load_tool_result", result_id="log", start_byte=match["start"])
    assert page_of(around).startswith("needleyyy")
    many = await tools.execute("load_tool_result", result_id="log", search="quiet")
    assert (many.status, len(many.metadata["results"])) == ("partial", 20)
    assert "No line" in said(await tools.execute("load_tool_result", result_id="log", search="absent"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"result_id": "nope"}, "there is no tool result 'nope': the newest are log (tail)"),
        ({"result_id": "../etc"}, "A-Z"),
        ({"result_id": "log", "page": 9}, "ends before that: it has 3 bytes, 1 page"),
        ({"result_id": "log", "page": 10**12}, "ends before that"),
        ({"result_id": "log", "start_byte": 10**30}, "ends before that"),
        ({"result_id": "log", "start_line": 10**30}, "ends before line"),
        ({"result_id": "log", "search": "a\nb"}, "line feed"),
        ({}, "result_id is missing"),
    ],
)
async def test_what_cannot_be_loaded(memory, tools, arguments, sentence):
    await memory.manager.save_tool_result("log", {"tool": "tail", "content": "abc"})
    assert sentence in failed(await tools.execute("load_tool_result", arguments))


async def test_an_empty_result_has_one_page(memory, tools):
    await memory.manager.save_tool_result("empty", {"tool": "tail", "content": ""})
    for page in (None, 0, 1, "1"):
        assert "page 1 of 1, bytes 0 to 0 of 0." in said(await tools.execute("load_tool_result", id="empty", page=page))
    assert "this session has none" not in said(await tools.execute("load_tool_result", id="empty"))
