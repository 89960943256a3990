"""The LightGrep document, sentence by sentence, where it is about sessions, their history and consolidation."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from memdb import Database, Memory, TokenCounter
from memdb.errors import ModelError
from memdb.layers.layer import Live
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.llm.consolidation.parts import session_lock
from memdb.llm.consolidation.save_memory import SAVE_MEMORY
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply
from tests.llm.consolidating import WINDOW, consolidator, saving, stored, talked, tool_call, tool_chain, turns

FACTS = "# User Information\n* Alice\n\n# Preferences\n* tea\n\n# Project Context\n* auth\n\n# Important Notes\n* none"

# -- 1. Every LLM call -------------------------------------------------------------------------------------------------


async def test_the_facts_are_injected_and_the_history_begins_after_the_cursor(memory: Memory[Live]) -> None:
    await talked(memory)
    assert await memory.facts.get_memory_context() == ""
    await consolidator(memory, saving("[2026-01-01 12:00] They talked.", FACTS))[0].maybe_consolidate_by_tokens()
    assert await memory.facts.get_memory_context() == f"## Long-term Memory\n{FACTS}"
    assert [message.to_dict() for message in await memory.conversation.get_history()] == turns(16)[20:]


async def test_a_document_without_options_works_as_written(memory: Memory[Live]) -> None:
    await talked(memory, 4)
    keeper = MemoryConsolidator(memory, ScriptedModel([]))
    assert not await keeper.maybe_consolidate_by_tokens()
    defaults = {name: each.default for name, each in inspect.signature(MemoryConsolidator).parameters.items()}
    assert defaults["context_window_tokens"] == 65_536
    assert (defaults["target_ratio"], defaults["rounds"], defaults["max_failures"]) == (0.5, 5, 3)


# -- 2. Data model -----------------------------------------------------------------------------------------------------


async def test_a_session_is_its_key_its_messages_and_its_cursor(db: Database, tmp_path: Path) -> None:
    talk = db.memory("alice", "telegram:42").conversation
    said = [
        {"role": "user", "content": "hi", "timestamp": "2026-03-21T12:40:00+00:00"},
        {"role": "assistant", "content": None, "tool_calls": tool_call("c")["tool_calls"]},
        {"role": "tool", "content": "r", "tool_call_id": "c", "name": "read_file"},
    ]
    await talk.add_messages(said)
    assert await talk.last_consolidated() == 0
    for given, kept in zip(said, await talk.messages(), strict=True):
        assert kept.to_dict() == {name: value for name, value in given.items() if name != "timestamp"}
    path = tmp_path / "session.jsonl"
    await talk.export_jsonl(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 1 + len(said)
    assert lines[0]["_type"] == "metadata"
    assert lines[0]["last_consolidated"] == 0
    other = db.memory("alice", "telegram_42").conversation
    assert await other.messages() == [], "keys that one file name would mix"


async def test_the_tool_is_that_of_the_document() -> None:
    function = SAVE_MEMORY["function"]
    assert function["name"] == "save_memory"
    assert list(function["parameters"]["properties"]) == ["history_entry", "memory_update"]


async def test_complete_replacement_on_each_consolidation(memory: Memory[Live]) -> None:
    await memory.facts.write_long_term("all that was known")
    await talked(memory)
    await consolidator(memory, saving("talked", FACTS))[0].maybe_consolidate_by_tokens()
    assert await memory.facts.read_long_term() == FACTS
    assert (await memory.facts.read_version(1)).content == "all that was known", "but every version can be read back"


# -- 4. Retrieval ------------------------------------------------------------------------------------------------------


async def test_history_is_found_by_grep(memory: Memory[Live]) -> None:
    await talked(memory)
    await consolidator(memory, saving("[2026-01-01 12:00] Mr Bassi mended the VIOLIN."))[
        0
    ].maybe_consolidate_by_tokens()
    assert [entry.content for entry in await memory.facts.grep_history("violin", ignore_case=True)] == [
        "[2026-01-01 12:00] Mr Bassi mended the VIOLIN."
    ]
    assert [hit.entry.number for hit in await memory.facts.search_history("who mended the violin")] == [1]


# -- 5. Store and update -----------------------------------------------------------------------------------------------


async def test_the_loop(memory: Memory[Live]) -> None:
    """Estimate, boundary, chunk, ask, append and overwrite, advance, again."""
    await talked(memory, 40)
    replies = [saving(f"[2026-01-01 12:00] Part {n}.", f"# Facts {n}") for n in range(5)]
    keeper, model = consolidator(memory, *replies)
    before = await keeper.estimate_tokens()
    done = await keeper.maybe_consolidate_by_tokens()
    asked = len(model.calls)
    assert 1 < asked == done.rounds <= 5
    assert (done.tokens_before, done.tokens_after) == (before, await keeper.estimate_tokens())
    assert done.tokens_after <= 750, "half of what there is room for"
    entries = [f"[2026-01-01 12:00] Part {n}." for n in range(asked)]
    assert await stored(memory) == (done.messages, entries, f"# Facts {asked - 1}")
    for number, call in enumerate(model.calls):
        system, user = call.messages
        assert system["content"].startswith("You are a memory consolidation agent")
        assert (f"# Facts {number - 1}" if number else "(empty)") in user["content"]


async def test_under_the_window_it_is_skipped(memory: Memory[Live]) -> None:
    await talked(memory, 8)
    assert not await consolidator(memory)[0].maybe_consolidate_by_tokens()


async def test_assistant_and_tool_call_groups_are_never_split(memory: Memory[Live]) -> None:
    for turn in range(8):
        await memory.conversation.add_messages([*turns(1, first=turn)[:1], *tool_chain(2), *turns(1, first=turn)[1:]])
    keeper, model = consolidator(memory, *[saving()] * 5)
    assert await keeper.maybe_consolidate_by_tokens()
    history = await memory.conversation.get_history()
    assert history[0].role == "user"
    left, _ = await memory.conversation.unconsolidated()
    assert history == left, "nothing of it has to be hidden from a model"
    assert model.calls


async def test_forced_tool_choice_with_fallback_to_auto(memory: Memory[Live]) -> None:
    await talked(memory)
    keeper, model = consolidator(memory, ChatReply("does not support forced tool_choice", [], "error"), saving())
    assert await keeper.maybe_consolidate_by_tokens()
    forced, auto = (call.tool_choice for call in model.calls)
    assert (forced, auto) == ({"type": "function", "function": {"name": "save_memory"}}, "auto")


async def test_after_three_consecutive_failures_the_messages_are_dumped_and_the_counter_resets(
    memory: Memory[Live],
) -> None:
    await talked(memory)
    keeper, _ = consolidator(memory, *[ModelError("down")] * 5)
    assert [bool(await keeper.maybe_consolidate_by_tokens()) for _ in range(3)] == [False, False, True]
    cursor, (entry,), facts = await stored(memory)
    assert "[RAW] 20 messages" in entry.splitlines()[0]
    assert (cursor, facts, await memory.conversation.failures()) == (20, "", 0)


async def test_direct_agent_writes(memory: Memory[Live]) -> None:
    await memory.facts.write_long_term("* I prefer dark mode")
    await talked(memory)
    keeper, model = consolidator(memory, saving("talked", "* prefers dark mode\n* tea"))
    await keeper.maybe_consolidate_by_tokens()
    assert "* I prefer dark mode" in model.calls[0].text


# -- 6. Lifecycle ------------------------------------------------------------------------------------------------------


async def test_session_level_locking(db: Database) -> None:
    one, same, other = (db.memory("alice", session) for session in ("s", "s", "t"))
    lock = session_lock(one)
    assert session_lock(same) is lock
    assert session_lock(other) is not lock
    await talked(one)
    model = ScriptedModel([saving()])
    keepers = [MemoryConsolidator(memory, model, WINDOW) for memory in (one, same)]
    done = await asyncio.gather(*(keeper.maybe_consolidate_by_tokens() for keeper in keepers))
    assert sorted(map(bool, done)) == [False, True]


# -- 7. Details --------------------------------------------------------------------------------------------------------


async def test_the_native_counter_comes_first_then_the_tokenizer(memory: Memory[Live]) -> None:
    class Native(ScriptedModel):
        def count_tokens(self, messages: Any) -> int:
            return 12_345

    await talked(memory, 2)
    assert await MemoryConsolidator(memory, Native([])).estimate_tokens() == 12_345
    assert await consolidator(memory)[0].estimate_tokens() == TokenCounter().count_messages(turns(2))


async def test_call_json_ids_and_names_are_counted(memory: Memory[Live]) -> None:
    keeper, _ = consolidator(memory)
    sizes = []
    for message in (
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "", "name": "Ana Maria"},
        {"role": "assistant", "content": "", "tool_calls": tool_call("a long id of a call")["tool_calls"]},
    ):
        plain = [{"role": "user", "content": "x"}, message, {"role": "user", "content": "x"}]
        found = keeper.pick_consolidation_boundary(plain, 1)
        assert found is not None
        sizes.append(found[1])
    assert sizes[0] < sizes[1] < sizes[2]


async def test_messages_are_append_only_and_never_mutated(memory: Memory[Live]) -> None:
    await talked(memory)
    before = await memory.conversation.messages()
    await consolidator(memory, saving())[0].maybe_consolidate_by_tokens()
    assert await memory.conversation.messages() == before


async def test_the_format_of_messages(memory: Memory[Live]) -> None:
    call = tool_call("c") | {"content": "I look.", "timestamp": "2026-03-21T12:41:59Z"}
    keeper, model = consolidator(memory, saving())
    await keeper.consolidate_messages([{"role": "user", "content": "hi", "timestamp": "2026-03-21T12:40:00"}, call])
    assert (
        "[2026-03-21T12:40] USER: hi\n[2026-03-21T12:41] ASSISTANT [tools: read_file]: I look." in model.calls[0].text
    )


@pytest.mark.parametrize("arguments", [dict, list, str])
async def test_any_provider_that_calls_tools_will_do(memory: Memory[Live], arguments: type) -> None:
    given: Any = {"history_entry": "talked", "memory_update": FACTS}
    given = [given] if arguments is list else json.dumps(given) if arguments is str else given
    await talked(memory)
    reply = ChatReply(None, [{"function": {"name": "save_memory", "arguments": given}}], "tool_calls")
    assert await consolidator(memory, reply)[0].maybe_consolidate_by_tokens()
    assert await stored(memory) == (20, ["talked"], FACTS)
