"""What a prompt is estimated to cost: everything that is sent, by the model's own count where it has one."""

from __future__ import annotations

import json

import pytest

from memdb import ConversationMemoryConfig, InvalidInput, TokenCounter
from memdb.layers.window import CompactConfig
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.testing import ScriptedModel
from tests.llm.consolidating import consolidator, tool_chain, turns

COUNTER = TokenCounter()
TOOLS = [{"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}]
SYSTEM = {"role": "system", "content": "You are an agent. " * 20}
TALK = [*turns(3), *tool_chain(2), {"role": "user", "name": "Ana", "content": [{"type": "text", "text": "hi"}]}]


async def estimate(memory, llm=None, **options):
    await memory.conversation.add_messages(TALK)
    return await MemoryConsolidator(memory, llm or ScriptedModel([]), **options).estimate_tokens()


async def test_calls_ids_names_and_frames_count(memory):
    assert await estimate(memory) == COUNTER.count_messages(TALK)


async def test_the_facts_count_where_nobody_builds_the_prompt(memory):
    await memory.facts.write_long_term("# Facts\n* tea")
    context = {"role": "system", "content": await memory.facts.get_memory_context()}
    assert await estimate(memory) == COUNTER.count_messages([context, *TALK])


async def test_only_what_is_sent_counts(memory):
    await memory.conversation.add_messages([{"role": "tool", "tool_call_id": "x", "content": "an orphan"}])
    await memory.conversation.add_messages(turns(1))
    await memory.conversation.compact(1)
    tokens = await estimate(memory)
    left, _ = await memory.conversation.unconsolidated()
    history = await memory.conversation.get_history()
    assert tokens == COUNTER.count_messages(history) < COUNTER.count_messages(left)


async def test_results_that_the_history_leaves_out_do_not_count(memory):
    compact = CompactConfig(context_window=200, reserved_tokens=0, keep_recent=1)
    talk = memory.conversation.configure(ConversationMemoryConfig(compact=compact))
    tokens = await estimate(memory)
    history = [message.to_dict() for message in await talk.get_history()]
    assert tokens == COUNTER.count_messages(history) < COUNTER.count_messages(TALK)


def built(history):
    return [SYSTEM, *history]


async def built_async(history):
    return [SYSTEM, *({**message} for message in history)]  # copies


def built_anew(history):
    for message in history:
        message["content"] = "other"
    return [SYSTEM, *history]


@pytest.mark.parametrize("build", [built, built_async])
async def test_the_real_prompt_counts_with_its_tools(memory, build):
    tokens = COUNTER.count_messages([SYSTEM, *TALK]) + COUNTER.count(json.dumps(TOOLS))
    assert await estimate(memory, build_messages=build, tools=TOOLS) == tokens


async def test_messages_that_a_builder_changes_count_as_they_are_sent(memory):
    changed = [{**message, "content": "other"} for message in TALK]
    assert await estimate(memory, build_messages=built_anew) == COUNTER.count_messages([SYSTEM, *changed])


@pytest.mark.parametrize("make", [list, None])
async def test_tools_may_be_made_at_each_estimate(memory, make):
    async def later():
        return TOOLS

    tools = (lambda: TOOLS) if make else later
    assert await estimate(memory, tools=tools) == COUNTER.count_messages(TALK) + COUNTER.count(json.dumps(TOOLS))


async def test_stored_messages_are_not_counted_again(memory, monkeypatch):
    await memory.conversation.add_messages(TALK)
    counted = []

    def note(self, messages):
        counted.extend(messages)
        return count_messages(self, messages)

    count_messages = TokenCounter.count_messages
    monkeypatch.setattr(TokenCounter, "count_messages", note)
    keeper = MemoryConsolidator(memory, ScriptedModel([]), build_messages=built, tools=TOOLS)
    assert await keeper.estimate_tokens() > 0
    assert counted == [SYSTEM]


async def test_another_counter_counts_everything_itself(memory):
    counter = TokenCounter("o200k_base")
    assert await estimate(memory, counter=counter) == counter.count_messages(TALK)


# -- the model's own count ---------------------------------------------------------------------------------------------


class Native(ScriptedModel):
    model = "m"

    def __init__(self, **methods):
        super().__init__([])
        self.asked = []
        for name, value in methods.items():
            setattr(self, name, self._method(name, value))

    def _method(self, name, value):
        def method(messages, *more):
            self.asked.append((name, len(messages), *more))
            if isinstance(value, Exception):
                raise value
            return value

        return method


async def test_a_model_that_counts_is_asked_first(memory):
    llm = Native(count_tokens=1_234)
    assert await estimate(memory, llm) == 1_234
    assert llm.asked == [("count_tokens", len(TALK))]


async def test_what_does_not_count_tools_has_them_added(memory):
    assert await estimate(memory, Native(count_tokens=1_000), tools=TOOLS) == 1_000 + COUNTER.count(json.dumps(TOOLS))


async def test_an_async_count_that_takes_tools_is_given_them(memory):
    class Asked(ScriptedModel):
        async def count_tokens(self, messages, *, tools=None):
            return 500 + 100 * len(tools)

    assert await estimate(memory, Asked([]), tools=TOOLS) == 600


async def test_an_estimate_of_the_prompt_comes_first_and_knows_the_tools(memory):
    llm = Native(estimate_prompt_tokens=(777, "server"), count_tokens=5)
    assert await estimate(memory, llm, tools=TOOLS) == 777
    assert llm.asked == [("estimate_prompt_tokens", len(TALK), TOOLS, "m")]


@pytest.mark.parametrize("bad", [RuntimeError("down"), 0, -5, None, "many", True, 3.5, (), (0, "none"), [None]])
async def test_a_count_that_fails_is_passed_over_and_said_once(memory, caplog, bad):
    llm = Native(estimate_prompt_tokens=bad, count_tokens=bad)
    keeper = MemoryConsolidator(memory, llm)
    await memory.conversation.add_messages(TALK)
    assert [await keeper.estimate_tokens() for _ in range(3)] == [COUNTER.count_messages(TALK)] * 3
    assert len([record for record in caplog.records if "tokens are counted by TokenCounter" in record.message]) == 2


# -- what an application gives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"build_messages": lambda history: None}, "what build_messages returned must be a list"),
        ({"build_messages": lambda history: "text"}, "what build_messages returned must be a list"),
        ({"build_messages": lambda history: ["text"]}, "a message must be a mapping"),
        ({"tools": lambda: None}, r"what tools\(\) returned must be a list"),
    ],
)
async def test_what_is_no_prompt_is_refused(memory, options, message):
    await memory.conversation.add_messages(TALK)
    with pytest.raises(InvalidInput, match=message):
        await consolidator(memory, **options)[0].maybe_consolidate_by_tokens()


async def test_a_builder_that_fails_is_not_hidden(memory):
    def broken(history):
        raise KeyError("template")

    await memory.conversation.add_messages(TALK)
    with pytest.raises(KeyError):
        await consolidator(memory, build_messages=broken)[0].maybe_consolidate_by_tokens()
