"""The agent's tools for blocks, archive, conversation and history: what each does, and what a model reads of it."""

from __future__ import annotations

import pytest

from memdb.layers.blocks.config import MemoryConfig
from memdb.llm.tools.toolset import create_memory_tools
from memdb.testing import ScriptedModel
from tests.llm.toolbox import BLOCKS, COUNTER, failed, said


@pytest.fixture
async def tools(memory):
    await memory.blocks.configure(BLOCKS)
    return create_memory_tools(memory)


# -- blocks -----------------------------------------------------------------------------------------------------------


async def test_append_and_replace(memory, tools):
    added = await tools.execute("core_memory_append", block="user_prefs", content="  User prefers Python\n")
    assert "user_prefs" in said(added)
    tokens = COUNTER.count("User prefers Python")
    assert (
        added.metadata.items()
        >= {
            "block": "user_prefs",
            "operation": "append",
            "content_added": "User prefers Python",
            "old_tokens": 0,
            "new_tokens": tokens,
            "eviction_triggered": False,
            "block_priority": 5,
        }.items()
    )
    await tools.execute("core_memory_append", {"block": " user_prefs", "content": "Python 3.11, not Python 2"})
    text = "User prefers Python\nPython 3.11, not Python 2"
    assert await memory.blocks.get_memory("user_prefs") == {"user_prefs": text}

    replaced = await tools.execute(
        "core_memory_replace", '{"block": "user_prefs", "old_content": " Python ", "new_content": " Rust "}'
    )
    assert "3 occurrences" in said(replaced)
    assert replaced.metadata["occurrences_replaced"] == 3
    assert replaced.metadata["operation"] == "replace"
    assert await memory.blocks.get_memory("user_prefs") == {"user_prefs": text.replace("Python", "Rust")}
    gone = await tools.execute("core_memory_replace", block="user_prefs", old_content="Rust", new_content="")
    assert "Rust" not in (await memory.blocks.get_memory())["user_prefs"]
    assert gone.metadata["old_tokens"] > gone.metadata["new_tokens"]


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("core_memory_append", {"block": "nope", "content": "x"}, "'nope': the blocks are 'task', 'user_prefs'"),
        ("core_memory_append", {"block": "task", "content": " \n "}, "content is blank"),
        ("core_memory_append", {"block": "task"}, "content is missing"),
        ("core_memory_append", {"content": "x"}, "block is missing"),
        ("core_memory_replace", {"block": "nope", "old_content": "a", "new_content": "b"}, "the blocks are 'task'"),
        ("core_memory_replace", {"block": "task", "old_content": " ", "new_content": "b"}, "old_content is blank"),
        ("core_memory_replace", {"block": "task", "old_content": "a"}, "new_content is missing"),
        ("core_memory_replace", {"block": "task", "old_content": "absent", "new_content": "b"}, "'task' does not hold"),
    ],
)
async def test_a_block_that_cannot_be_edited(memory, tools, name, arguments, sentence):
    assert sentence in failed(await tools.execute(name, **arguments))
    assert await memory.blocks.get_memory() == {"task": "", "user_prefs": ""}


async def test_without_blocks_the_model_is_sent_to_the_archive(memory):
    result = await create_memory_tools(memory).execute("core_memory_append", block="task", content="x")
    assert "archival_memory_insert" in failed(result)


@pytest.mark.parametrize("llm", [None, ScriptedModel(["They refactor auth.", "They refactor auth."] * 2)])
async def test_a_block_over_its_size_is_archived_first(memory, tools, llm):
    tools = create_memory_tools(memory, llm=llm)
    old = "We refactor the auth module step by step. " * 6
    await tools.execute("core_memory_append", block="task", content=old)
    result = await tools.execute("core_memory_append", block="task", content="The tests of the gateway pass.")
    assert "archival_memory_search" in said(result)
    assert result.metadata["eviction_triggered"] is True
    assert result.metadata["new_tokens"] <= 60
    text = (await memory.blocks.get_memory())["task"]
    assert COUNTER.count(text) <= 60
    assert ("They refactor auth." in text) is (llm is not None)
    found = await tools.execute("archival_memory_search", query="We refactor")
    archived = [one["content"] for one in found.metadata["results"]]
    assert archived[0] in old, "without a model, what was cut"
    assert llm is None or archived == [old.strip()]


# -- archive ----------------------------------------------------------------------------------------------------------


async def test_insert_and_search(memory, tools, clock):
    short = "Project X uses PostgreSQL with 10M records"
    stored = await tools.execute("archival_memory_insert", content=f" {short} ", importance="0.7")
    assert stored.metadata["id"] in said(stored)
    assert stored.metadata["importance"] == 0.7
    long = "The deployment runs on Kubernetes. " * 20 + "Its secret password is hunter2."
    await tools.execute("archival_memory_insert", content=long, importance=7)
    again = await tools.execute("archival_memory_insert", content=short)
    assert again.metadata["id"] == stored.metadata["id"], "stored once"

    found = await tools.execute("archival_memory_search", query="PostgreSQL records", k=5)
    lines = said(found).splitlines()
    today = clock().date().isoformat()
    assert lines[1].startswith("1. [")
    assert lines[1].endswith(f"] {short} (importance 0.70, stored {today})")
    assert found.metadata["results"][0]["content"] == short
    assert 0 <= found.metadata["results"][0]["score"] <= 1

    found = await tools.execute("archival_memory_search", query="secret password of the deployment")
    assert found.metadata["results"][0]["content"] == long.strip()
    assert f"{long[:97]}... (importance 1.00" in said(found)
    assert "hunter2" in found.content, "what answers the query is shown, though the summary lacks it"
    assert long not in found.content

    await tools.execute("archival_memory_insert", content=long.replace("Its", "The"), summary="Where it runs")
    found = await tools.execute("archival_memory_search", query="where does it run", k=1)
    assert "] Where it runs (importance 0.50" in said(found)
    assert "   The deployment runs on" in found.content, "its own summary does not hide the beginning"


@pytest.mark.parametrize("query", ["zebra", "the", "???", "\x00\ud800"])
async def test_nothing_found_is_no_failure(tools, query):
    await tools.execute("archival_memory_insert", content="Project X uses PostgreSQL")
    for name in ("archival_memory_search", "conversation_search", "history_search"):
        result = await tools.execute(name, query=query)
        assert "Try other words" in said(result)
        assert result.metadata["results"] == []


async def test_how_many_and_from_which_score_on(memory, tools):
    await memory.archive.insert_many([f"note {n} about the database" for n in range(60)])

    async def found(**arguments):
        result = await tools.execute("archival_memory_search", query="database", **arguments)
        return len(result.metadata["results"])

    assert [await found(), await found(k=0), await found(k="-3"), await found(k="2")] == [5, 5, 5, 2]
    assert await found(k=10**9) == 50
    assert await found(score_threshold=7) == await found(score_threshold=-1) == 5, "outside [0, 1]: the default"
    assert await found(score_threshold=0) == 5
    await memory.blocks.configure({}, MemoryConfig(retrieval_k=3))
    assert [await found(), await found(k=0), await found(k=4)] == [3, 3, 4]


@pytest.mark.parametrize("name", ["archival_memory_insert", "archival_memory_search", "conversation_search"])
async def test_blank_is_refused(memory, tools, name):
    key = "content" if name.endswith("insert") else "query"
    assert f"{key} is blank" in failed(await tools.execute(name, {key: " \n\t"}))
    assert f"{key} is missing" in failed(await tools.execute(name))


# -- conversation and history -----------------------------------------------------------------------------------------


async def test_conversation_search(memory, tools):
    long = "We met at the station and talked for hours. " * 10 + "The API key is in vault seven."
    await memory.conversation.add_messages(
        [
            {"role": "user", "content": "Where did we put the API key?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "find_key"}}]},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "an API key: vault"}]},
            {"role": "assistant", "content": long},
            *({"role": "user", "content": f"the API key {n}"} for n in range(80)),
        ]
    )
    result = await tools.execute("conversation_search", query="seven")
    assert 1 <= len(result.metadata["results"]) <= 3
    assert result.metadata["results"][0]["content"] == long
    line = said(result).splitlines()[1]
    assert line.startswith("1. [assistant, 20")
    assert "vault seven" in line, "what answers the query, not the beginning"
    assert len(line) < 150 + 60, "cut at 150 characters"
    for k, many in ((0, 3), (-1, 3), ("4", 4), (10**9, 50)):
        found = await tools.execute("conversation_search", query="API key", k=k)
        assert len(found.metadata["results"]) == many
    assert len((await tools.execute("conversation_search", query="find_key")).metadata["results"])


async def test_history_search_by_words_and_by_pattern(memory, tools):
    for n, entry in enumerate(
        (
            "[2026-11-28 10:00] Moved auth to OAuth.",
            "Deployed v1.2.3 to production.",
            "[2026-11-29 09:30] Fixed auth again.",
        )
    ):
        assert await memory.facts.append_history(entry) == n + 1
    by_words = await tools.execute("history_search", query="auth")
    first, second = said(by_words).splitlines()[1:]
    assert (first, second) == (
        "1. [2026-11-28 10:00] Moved auth to OAuth.",
        "2. [2026-11-29 09:30] Fixed auth again.",
    )
    by_pattern = await tools.execute("history_search", pattern=r"v\d+\.\d+")
    assert [one["content"] for one in by_pattern.metadata["results"]] == ["Deployed v1.2.3 to production."]
    assert said(by_pattern).splitlines()[1].startswith("1. [20"), "what has no date of its own is shown with one"
    assert len((await tools.execute("history_search", pattern="AUTH", k="1")).metadata["results"]) == 1
    for arguments in ({}, {"query": " "}, {"query": "a", "pattern": "b"}, {"pattern": "("}):
        assert failed(await tools.execute("history_search", arguments))
