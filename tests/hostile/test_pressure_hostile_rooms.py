"""Blocks, the archive, tools, contexts and states under careless callers, failing models and files that are none."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import ContextBuilder, Database, GraphEntity, InvalidInput, KnowledgePage, Memory, MemoryItem, NotFound
from memdb.layers.layer import Live
from memdb.testing import ScriptedModel
from memdb.text.packing import closed


def given(*texts: str) -> Iterator[str]:
    """Texts that can be read once."""
    yield from texts


# -- arguments that can be read once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["items", "pages", "entities", "messages", "passages", "tags", "chunk"])
async def test_an_iterator_survives_that_a_neighbour_fails(memory: Memory[Live], kind: str) -> None:
    """Calls side by side share a transaction; where one fails, the others are run again."""
    told: dict[str, Any] = {"origin": "raw", "chunk": "c", "session_id": "s", "first_position": 1, "last_position": 2}
    save, stored = {
        "items": (
            lambda: memory.items.save_many(MemoryItem(id=id, content=id) for id in given("a", "b")),
            lambda: memory.items.list(),
        ),
        "pages": (
            lambda: memory.pages.add_pages(KnowledgePage(id=id, title=id, content=id) for id in given("a", "b")),
            lambda: memory.pages.get_index(),
        ),
        "entities": (
            lambda: memory.graph.add_entities(
                GraphEntity(id=id, name=id, entity_type="drink", tags=[id]) for id in given("a", "b")
            ),
            lambda: memory.graph.find_by_keywords(["a", "b"]),
        ),
        "messages": (
            lambda: memory.conversation.add_messages({"role": "user", "content": id} for id in given("a", "b")),
            lambda: memory.conversation.messages(),
        ),
        "passages": (lambda: memory.archive.insert_many(given("a", "b")), lambda: memory.archive.list()),
        "tags": (lambda: memory.archive.insert("a", tags=given("a", "b")), lambda: tags_of(memory)),
        "chunk": (lambda: memory.facts.append_chunk(given("a", "b"), **told), lambda: memory.facts.history()),
    }[kind]
    first = memory.items.delete("nothing")  # the next ones wait for it, together
    results = await asyncio.gather(first, save(), memory.facts.append_history(""), return_exceptions=True)
    assert isinstance(results[2], InvalidInput)
    assert not isinstance(results[1], BaseException), results[1]
    assert len(await stored()) == 2


async def tags_of(memory: Memory[Live]) -> list[str]:
    [passage] = await memory.archive.list()
    return list(passage.tags)


@pytest.mark.parametrize("tags", [5, {"a": 1}, count()], ids=["number", "dict", "without end"])
async def test_tags_that_are_no_list_are_refused(memory: Memory[Live], tags: Any) -> None:
    with pytest.raises(InvalidInput, match="tags"):
        await asyncio.wait_for(memory.archive.insert("tea", tags=tags), 20)
    assert await memory.archive.list() == []


# -- models and counters that fail ------------------------------------------------------------------------------------


class Mute(Exception):
    """An error that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")


class Failing:
    """A counter that fails, or counts nothing that is a number."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def count(self, text: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("reply", "counter"),
    [
        (asyncio.CancelledError(), None),
        (Mute(), None),
        ("A summary.", Failing(ValueError("no count"))),
        ("A summary.", Failing("five")),
    ],
    ids=["cancels its own work", "cannot be shown", "counter fails", "counter gives text"],
)
async def test_an_edit_never_fails_for_the_models_sake(memory: Memory[Live], reply: Any, counter: Any) -> None:
    await memory.blocks.configure({"task": {"size": 60, "initial_value": "start of things " * 10}})
    change = await memory.blocks.with_llm(ScriptedModel([reply]), counter).append_to_memory("task", "word " * 40)
    assert change.evicted
    assert len(change.archived) == 1
    assert (await memory.blocks.get_memory("task"))["task"].endswith("word " * 40)


async def test_a_cancelled_caller_is_cancelled(memory: Memory[Live]) -> None:
    class Hanging:
        async def chat(self, *args: Any, **options: Any) -> Any:
            await asyncio.Event().wait()

    await memory.blocks.configure({"task": {"size": 60, "initial_value": "start of things " * 10}})
    before = await memory.blocks.get_memory()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await memory.blocks.with_llm(Hanging()).append_to_memory("task", "word " * 40)
    assert await memory.blocks.get_memory() == before


# -- what says that nothing was stored --------------------------------------------------------------------------------


async def test_too_many_blocks_leave_the_configuration_as_it_was_in_a_unit_that_goes_on(memory: Memory[Live]) -> None:
    def unit(inside: Any) -> None:
        with pytest.raises(InvalidInput, match="at most 1,000"):
            inside.blocks.configure({str(n): {"size": 5} for n in range(1_001)}, {"retrieval_k": 77})

    await memory.atomic(unit)
    assert (await memory.blocks.config()).retrieval_k == 5


# -- contexts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["=", "-", "*", " "])
@pytest.mark.parametrize("max_tokens", [50, 200, 400])
async def test_no_text_is_cut_without_a_word(memory: Memory[Live], fill: str, max_tokens: int) -> None:
    """A row of one character costs a token in 64: what fits into the tokens is not all that there is."""
    await memory.facts.write_long_term(f"begin{fill * 20_000}\nThe end.")
    context = await ContextBuilder(memory).build(max_tokens=max_tokens)
    assert context.tokens <= max_tokens
    if "The end." not in json.dumps(context.messages):
        assert [(one.section, one.reason) for one in context.left_out] in ([("facts", "cut")], [("facts", "budget")])


def test_a_fence_that_is_cut_in_its_closing_line_is_closed() -> None:
    """A reader of Markdown takes "```…" for code."""
    assert closed("```\ncode\n```…") == "```\ncode\n```…\n```"
    assert closed("```\ncode\n```") == "```\ncode\n```"


# -- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [" task ", "the\n\ntask", "task\u200b\u2028of today"])
async def test_a_block_is_found_by_the_name_that_its_heading_shows(memory: Memory[Live], name: str) -> None:
    await memory.blocks.configure({name: {"size": 50}, "other": {"size": 5}})
    shown = next(line for line in (await memory.blocks.render()).splitlines() if line.startswith("## "))[3:]
    result = await memdb.create_memory_tools(memory).execute("core_memory_append", block=shown, content="tea")
    assert result.status == "success", result.error
    assert (await memory.blocks.get_memory(name)) == {name: "tea"}


@pytest.mark.parametrize("name", ["\ud800", "a\x00b", "", "x" * 1_001], ids=ascii)
async def test_a_choice_that_can_be_no_block_is_refused(memory: Memory[Live], name: str) -> None:
    with pytest.raises(InvalidInput, match="blocks"):
        memdb.create_memory_tools(memory, blocks=["task", name])


async def test_numbers_that_are_none_are_the_models_fault(memory: Memory[Live]) -> None:
    sent = '{"history_entry": NaN, "memory_update": "x"}'
    result = await memdb.create_memory_tools(memory).execute("save_memory", sent)
    assert (result.status, result.metadata["error_type"]) == ("error", "InvalidInput")
    assert "history_entry must be a text" in str(result)


# -- states -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
async def test_a_pipe_is_no_state(memory: Memory[Live], tmp_path: Path) -> None:
    """Opening one waits for its other end, in a thread that nothing can stop."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="no regular file"):
        await memory.import_state(tmp_path / "pipe")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="the system has no file that refuses to be read")
async def test_a_file_that_cannot_be_read_is_a_storage_error(memory: Memory[Live]) -> None:
    with pytest.raises(memdb.StorageError, match="cannot read /proc/self/mem"):
        await memory.import_state("/proc/self/mem")


async def test_a_narrow_search_finds_what_stands_far_down(db: Database) -> None:
    """One passage of a source among many that match as well."""
    archive = db.memory("alice", "s").archive
    await archive.insert_many([f"tea number {n}" for n in range(2_000)])
    await archive.insert("tea " + "and much else besides " * 50, source="tool", tags=["far"])
    for wanted in ({"source": "tool"}, {"tags": ["far"]}):
        [found] = await archive.search("tea", 5, threshold=0, **wanted)  # type: ignore[arg-type]
        assert found.passage.source == "tool"
    assert await archive.search("tea", 5, threshold=0, source="nothing") == []
    with pytest.raises(NotFound):
        await archive.list(before="nothing")
