"""Consolidation against models, callers and texts that mean no good: nothing is lost, nobody waits for long."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import memdb
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.llm.consolidation.service import ConsolidationService
from memdb.llm.consolidation.wording import raw_entries
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply
from tests.llm.consolidating import WINDOW, consolidator, saving, talked, tool_call, tool_chain

_QUICK = """
from memdb.llm.consolidation.extraction import read_facts
from memdb.llm.consolidation.prompts import consolidating
from memdb.llm.summary_prompts import _TAG
from memdb.text.keywords import _HINT_OF_CAMEL
def answer(text):
    try:
        read_facts(text)
    except ValueError:
        pass
{call}
"""


@pytest.mark.parametrize(
    "call",
    [
        "answer('```json' + chr(10) * 100_000 + 'x')",
        "consolidating('', '<' + ' ' * 300_000)",
        "consolidating('<' + ' ' * 300_000, '')",
        "_TAG.sub('', '<' + ' ' * 300_000)",
        "_HINT_OF_CAMEL.search('A' * 300_000)",
    ],
)
def test_no_text_takes_more_than_its_length(call):
    # Each takes milliseconds; where the cost is the square of the length, it is minutes to hours.
    subprocess.run([sys.executable, "-c", _QUICK.format(call=call)], timeout=60, check=True)


@pytest.mark.parametrize("answer", ['```json\n\n["tea"]\n\n```', '  ```\n["tea"]```  ', '["tea"]'])
async def test_a_fence_may_stand_among_blank_lines(memory, answer):
    await talked(memory)
    keeper, _ = consolidator(memory, ChatReply(answer))
    assert len((await keeper.extract_context(threshold=0)).passages) == 1


async def test_a_turn_that_was_cut_by_force_is_never_out_of_prompt_and_memory(memory):
    await memory.conversation.add_message({"role": "user", "content": "do it"})
    await memory.conversation.add_messages(tool_chain(40))
    keeper, _ = consolidator(memory, *(saving(f"entry {n}") for n in range(9)))
    assert await keeper.maybe_consolidate_by_tokens()
    await memory.conversation.add_message({"role": "assistant", "content": "done"})
    await memory.conversation.add_message({"role": "user", "content": "thanks"})
    await keeper.maybe_consolidate_by_tokens()
    waiting = (await memory.conversation.unconsolidated()).messages
    assert await memory.conversation.get_history() == waiting


@pytest.mark.parametrize("cut", ["compact", "extract"])
async def test_a_call_that_is_not_answered_yet_stays_even_when_nothing_is_to_be_kept(memory, cut):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": "do it"}, tool_call("a")])
    if cut == "compact":
        await talk.compact(0)
    else:
        await consolidator(memory, ChatReply('["a fact"]'))[0].extract_context(threshold=0, keep_last=0)
    await talk.add_message({"role": "tool", "tool_call_id": "a", "content": "result"})
    assert [message.role for message in await talk.get_history()][-2:] == ["assistant", "tool"]


@pytest.mark.parametrize("source", ["database", "function"])
async def test_a_service_outlives_what_cancels_itself(db, source):
    first, second = db.memory("alice", "s"), db.memory("bob", "s")
    await talked(first)
    await talked(second)
    calls = []

    def build(history):
        calls.append(1)
        if len(calls) == 1:
            raise asyncio.CancelledError
        return history

    options = {"context_window_tokens": WINDOW, "build_messages": build}
    model = ScriptedModel([saving()] * 9)
    made = (db, model) if source == "database" else (lambda noticed: MemoryConsolidator(noticed, model, **options),)
    async with ConsolidationService(*made, concurrency=1, **(options if source == "database" else {})) as service:
        service.notice(first)
        service.notice(second)
        await asyncio.wait_for(service.drained(), 10)
        assert service.problems == {("alice", "s"): "CancelledError"}
    assert await second.conversation.last_consolidated()


async def test_a_service_tells_the_sessions_of_two_databases_apart(tmp_path):
    async with memdb.open(tmp_path / "a.db") as one, memdb.open(tmp_path / "b.db") as two:
        memories = [db.memory("alice", "s") for db in (one, two)]
        for memory in memories:
            await talked(memory)
        async with ConsolidationService(lambda noticed: consolidator(noticed, *[saving()] * 9)[0]) as service:
            for memory in memories:
                service.notice(memory)
        assert all([await memory.conversation.last_consolidated() for memory in memories])


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": object()}}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {(1, 2): 3}}}]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "assistant", "tool_calls": ({"function": {"name": "f", "arguments": "{}"}},)},
    ],
)
def test_raw_lines_name_every_call_and_raise_nothing(message):
    (entry,) = raw_entries([message], "2026-01-01T12:00:00")
    assert "[tools: f]" in entry


@pytest.mark.parametrize("content", [None, "I look."])
def test_a_raw_archive_leaves_out_no_argument_of_a_call(content):
    arguments = '{"path": "' + "a" * 20_000 + 'needle"}'
    call = {"id": "c", "function": {"name": "write", "arguments": arguments}}
    entries = raw_entries([{"role": "assistant", "content": content, "tool_calls": [call]}], "2026-01-01T12:00:00")
    assert "needle" in entries[-1]


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("reply", [_Unprintable(), ChatReply(None, None, "error")])
async def test_a_broken_client_is_a_failure_like_any_other(memory, reply):
    await talked(memory)
    keeper, _ = consolidator(memory, reply)
    assert (await keeper.maybe_consolidate_by_tokens()).failed
    assert await memory.conversation.failures() == 1


@pytest.mark.parametrize("wrong", [None, "5", True, 1.5, 2**70])
def test_how_many_tokens_go_is_a_whole_number(memory, wrong):
    with pytest.raises(memdb.InvalidInput, match="tokens_to_remove must be a whole number"):
        consolidator(memory)[0].pick_consolidation_boundary([{"role": "user", "content": "x"}], wrong)
