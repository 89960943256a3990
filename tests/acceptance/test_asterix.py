"""The Asterix document, sentence by sentence: memory blocks, archival memory, the tools, conversation search."""

from __future__ import annotations

from pathlib import Path

import pytest

import memdb
from memdb import Database, InvalidInput, Memory, NotFound, TokenCounter
from memdb.layers.blocks.config import BlockConfig, MemoryConfig
from memdb.layers.layer import Live
from memdb.llm.tools.toolset import MemoryTools, create_memory_tools
from memdb.testing import ScriptedModel

COUNTER = TokenCounter()
BLOCKS = {
    "task": BlockConfig(size=2000, priority=1, description="Current task context"),
    "user_prefs": BlockConfig(size=500, priority=5, description="User preferences and settings"),
    "notes": BlockConfig(size=1000, priority=2, description="Important notes and reminders"),
}


@pytest.fixture
async def agent(memory: Memory[Live]) -> Memory[Live]:
    """The agent of the document's example."""
    await memory.blocks.configure(BLOCKS)
    return memory


@pytest.fixture
def tools(agent: Memory[Live]) -> MemoryTools:
    return create_memory_tools(agent)


def of_tokens(many: int, word: str = "step") -> str:
    """Return a text of so many tokens."""
    text = f" {word}" * many
    assert COUNTER.count(text) == many
    return text


# -- Memory Blocks -----------------------------------------------------------------------------------------------------


async def test_each_block_has_name_size_priority_and_description(agent: Memory[Live]) -> None:
    assert await agent.blocks.block_configs() == BLOCKS
    assert {name: info[:4] for name, info in (await agent.blocks.get_block_info()).items()} == {
        "task": (0, 2000, 1, "Current task context"),
        "user_prefs": (0, 500, 5, "User preferences and settings"),
        "notes": (0, 1000, 2, "Important notes and reminders"),
    }


@pytest.mark.parametrize("fields", [{"size": 0}, {"size": -1}, {"size": 10, "priority": -1}])
def test_a_block_without_room_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        BlockConfig(**fields)


async def test_an_initial_value_is_there_and_counted(memory: Memory[Live]) -> None:
    await memory.blocks.configure({"persona": BlockConfig(size=1000, initial_value="You are helpful.")})
    assert await memory.blocks.get_memory() == {"persona": "You are helpful."}
    assert (await memory.blocks.get_block_info("persona"))["persona"].tokens == COUNTER.count("You are helpful.")


# -- Built-in Memory Tools ---------------------------------------------------------------------------------------------


async def test_the_five_tools_as_the_document_calls_them(agent: Memory[Live], tools: MemoryTools) -> None:
    for name, arguments in (
        ("core_memory_append", {"block": "user_prefs", "content": "User prefers Python over JavaScript"}),
        (
            "core_memory_replace",
            {"block": "user_prefs", "old_content": "User prefers Python", "new_content": "User prefers TypeScript"},
        ),
        ("archival_memory_insert", {"content": "Project X uses PostgreSQL database with 10M records"}),
        ("archival_memory_search", {"query": "database details", "k": 5}),
        ("conversation_search", {"query": "API key", "k": 3}),
    ):
        result = await tools.execute(name, **arguments)
        assert result.status == "success", result
    assert await agent.blocks.get_memory("user_prefs") == {"user_prefs": "User prefers TypeScript over JavaScript"}
    assert [one.content for one in await agent.archive.list()] == [
        "Project X uses PostgreSQL database with 10M records"
    ]


async def test_they_are_called_automatically(agent: Memory[Live], tools: MemoryTools) -> None:
    """A model asks for them in its answer, in the shape of the API it is behind."""
    call = {"block": "notes", "content": "Call Bob"}
    message = await tools.run(
        {"id": "call_1", "type": "function", "function": {"name": "core_memory_append", "arguments": call}}
    )
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_1")
    await tools.run({"type": "tool_use", "id": "toolu_1", "name": "core_memory_append", "input": call})
    assert await agent.blocks.get_memory("notes") == {"notes": "Call Bob\nCall Bob"}


# -- Automatic Memory Management ---------------------------------------------------------------------------------------


async def test_the_eviction_process(agent: Memory[Live]) -> None:
    await agent.blocks.configure({}, MemoryConfig(summary_token_limit=500))
    original, added, summary = of_tokens(1950), of_tokens(200, "next"), of_tokens(500, "done").strip()
    await agent.blocks.update_memory("task", original)
    model = ScriptedModel([summary])
    tools = create_memory_tools(agent, llm=model)
    result = await tools.execute("core_memory_append", block="task", content=added)

    assert result.metadata["eviction_triggered"] is True
    assert result.metadata["old_tokens"] == 1950
    assert original.strip() in model.calls[0].text, "summarizes the content using the LLM"
    text = (await agent.blocks.get_memory())["task"]
    assert text == f"{summary}\n{added.strip()}", "replaces the block with the summary, appends the new tokens"
    assert 690 <= result.metadata["new_tokens"] == COUNTER.count(text) <= 710, "block now has 700 tokens"
    (passage,) = await agent.archive.list()
    assert passage.content == original, "archives the full content"
    assert (passage.source, passage.source_id) == ("block", "task")
    found = await tools.execute("archival_memory_search", query="step")
    assert found.metadata["results"][0]["id"] == passage.id, "makes it searchable via archival_memory_search"


@pytest.mark.parametrize(
    ("strategy", "archives", "asks"),
    [
        ("summarize_and_archive", True, True),
        ("archive_only", True, False),
        ("discard", False, False),
        ("truncate", True, False),
    ],
)
async def test_the_strategies(agent: Memory[Live], strategy: str, archives: bool, asks: bool) -> None:
    await agent.blocks.configure({}, MemoryConfig(eviction_strategy=strategy))
    await agent.blocks.update_memory("notes", "\n".join(f"note {n}" for n in range(240)))
    model = ScriptedModel(["240 notes."])
    tools = create_memory_tools(agent, llm=model)
    result = await tools.execute("core_memory_append", block="notes", content="the newest " + of_tokens(200, "note"))
    assert result.metadata["eviction_triggered"] is True
    assert result.metadata["new_tokens"] <= 1000
    assert bool(model.calls) is asks
    assert bool(await agent.archive.list()) is archives


def test_the_defaults_and_what_is_allowed() -> None:
    config = MemoryConfig()
    assert (config.eviction_strategy, config.context_window_threshold) == ("summarize_and_archive", 0.85)
    assert (config.summary_token_limit, config.extraction_enabled) == (220, True)
    with pytest.raises(ValueError):
        MemoryConfig(eviction_strategy="forget")


async def test_lower_priority_blocks_are_evicted_first(agent: Memory[Live]) -> None:
    await agent.blocks.configure({}, MemoryConfig(total_size=1200))
    await agent.blocks.update_memory("user_prefs", of_tokens(400))
    await agent.blocks.update_memory("task", of_tokens(600))
    await agent.blocks.update_memory("notes", of_tokens(400))
    sizes = {name: info.tokens for name, info in (await agent.blocks.get_block_info()).items()}
    assert sum(sizes.values()) <= 1200
    assert (sizes["user_prefs"], sizes["notes"]) == (400, 400)
    assert sizes["task"] < 600, "lower = evicted first"


# -- Direct Memory Access ----------------------------------------------------------------------------------------------


async def test_direct_access(agent: Memory[Live], tools: MemoryTools) -> None:
    await agent.blocks.update_memory("task", "New task: Build user authentication system")
    await agent.blocks.update_memory("notes", "Ask Bob")
    memory = await agent.blocks.get_memory()
    assert memory["task"] == "New task: Build user authentication system"
    assert memory["notes"] == "Ask Bob"
    assert memory.get("task", "") == memory["task"]
    await agent.blocks.update_memory("notes", "")
    assert (await agent.blocks.get_memory())["notes"] == "", "clear a memory block"
    await agent.archive.insert("User preferences: dark mode")
    tool_result = await tools.execute("archival_memory_search", query="user preferences", k=5)
    assert "User preferences: dark mode" in str(tool_result), "print(tool_result)"


async def test_a_block_that_is_not_there(agent: Memory[Live], tools: MemoryTools) -> None:
    for call in (agent.blocks.get_memory("nope"), agent.blocks.update_memory("nope", "x")):
        with pytest.raises((NotFound, InvalidInput), match="nope"):
            await call
    result = await tools.execute("core_memory_append", block="nope", content="x")
    assert str(result).startswith("Error: there is no memory block 'nope'")
    assert (await tools.execute("no_such_tool")).status == "error"


# -- Archival Memory ---------------------------------------------------------------------------------------------------


class ConceptEmbedder:
    """An embedder that knows what a few words mean, as a model would."""

    model = "concepts"
    dimensions = 3
    meanings = (
        ("python", "programming", "language", "typescript", "code"),
        ("prefers", "preference", "favorite", "likes"),
        ("food", "pizza", "dinner"),
    )

    async def embed(self, texts: list[str]) -> list[list[float]]:
        found = [[sum(word in text.lower() for word in words) for words in self.meanings] for text in texts]
        return [[float(n) or 0.01 for n in one] for one in found]


async def test_semantic_search_understands_meaning(path: Path) -> None:
    async with memdb.open(path, embedder=ConceptEmbedder()) as db:
        memory = db.memory("alice")
        await memory.archive.insert("User prefers Python for data analysis")
        for n in range(5):
            await memory.archive.insert(f"Dinner number {n}: the pizza was cold")
        tools = create_memory_tools(memory)
        found = await tools.execute("archival_memory_search", query="programming language preference")
        assert "User prefers Python for data analysis" in str(found), "finds the memory (semantically similar)"
        found = await tools.execute("archival_memory_search", query="favorite food")
        assert "Python" not in str(found), "doesn't find it (not semantically related)"


async def test_what_is_archived_persists(db: Database, tools: MemoryTools) -> None:
    await tools.execute("archival_memory_insert", content="The build server is called Idefix")
    later = create_memory_tools(db.memory("alice", "a later session"))
    assert "Idefix" in str(await later.execute("archival_memory_search", query="build server"))
    assert "Idefix" not in str(
        await create_memory_tools(db.memory("bob")).execute("archival_memory_search", query="build")
    )


# -- Conversation Search -----------------------------------------------------------------------------------------------


async def test_conversation_search(agent: Memory[Live], tools: MemoryTools) -> None:
    await agent.conversation.add_messages(
        [
            {"role": "user", "content": "The API key lies in /etc/gateway/key.pem"},
            {"role": "assistant", "content": "Noted."},
            *({"role": "user", "content": f"Now something else, number {n}"} for n in range(20)),
            {"role": "user", "content": "Please always answer in French"},
        ]
    )
    result = await tools.execute("conversation_search", query="API key location", k=3)
    assert 1 <= len(result.metadata["results"]) <= 3, "the 3 most relevant conversation turns"
    assert "/etc/gateway/key.pem" in str(result), "find mentioned file paths"
    assert "French" in str(await tools.execute("conversation_search", query="answer in which language: French?"))


async def test_the_conversation_is_a_complete_record(agent: Memory[Live], tools: MemoryTools) -> None:
    await agent.conversation.add_messages([{"role": "user", "content": f"turn {n} of Getafix"} for n in range(40)])
    await agent.conversation.compact(keep_last=6)
    result = await tools.execute("conversation_search", query='"turn 3"', k=1)
    assert "turn 3 of Getafix" in str(result), "what no longer stands in the prompt is found"
