"""Context extraction (Asterix document): facts into the archive, and the history shorter by exactly these messages."""

from __future__ import annotations

import json

import pytest

from memdb import InvalidInput
from memdb.errors import ModelError
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.llm.consolidation.extraction import Fact, read_facts
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply
from tests.llm.consolidating import WINDOW, stored, talked, tool_chain, turns

FACTS = [
    {"content": "Alice likes tea.", "type": "preference", "importance": 0.9},
    {"content": "The violin was repaired.", "type": "event", "importance": 0.4},
]
ANSWER = json.dumps(FACTS)


def chatty(count):
    """Turns of which each has two answers."""
    return [{**message, "role": role} for message in turns(count) for role in {message["role"]: 1, "assistant": 1}]


def extractor(memory, *replies, window=WINDOW):
    model = ScriptedModel(list(replies))
    return MemoryConsolidator(memory, model, window), model


async def archived(memory):
    return sorted((passage.content, passage.importance, passage.tags) for passage in await memory.archive.list())


async def test_facts_go_into_the_archive_and_the_last_ten_messages_stay(memory):
    await talked(memory)
    keeper, _ = extractor(memory, ANSWER)
    done = await keeper.extract_context()
    assert (bool(done), done.messages, done.raw, done.reason) == (True, 22, 0, None)
    assert await archived(memory) == [
        ("Alice likes tea.", 0.9, ["preference"]),
        ("The violin was repaired.", 0.4, ["event"]),
    ]
    passage = await memory.archive.get(done.passages[0])
    assert (passage.source, passage.source_id, passage.session_id) == ("conversation", "1-22", "default")
    assert [message.to_dict() for message in await memory.conversation.get_history()] == turns(16)[22:]
    assert len(await memory.conversation.messages()) == 32, "nothing is deleted"


@pytest.mark.parametrize(("threshold", "least"), [(None, 1_700), (0.5, 1_000), (1, 2_000)])
async def test_it_waits_until_the_window_is_that_full(memory, threshold, least):
    await talked(memory, 4)
    keeper, _ = extractor(memory)
    done = await keeper.extract_context(threshold=threshold)
    assert not done
    assert done.reason == f"the prompt has 472 tokens, and nothing is to be done below {least:,}"


async def test_the_model_is_shown_short_messages_and_short_blocks(memory):
    await memory.blocks.configure({"human": {"size": 2_000, "initial_value": "h" * 500}})
    await memory.conversation.add_messages([{"role": "user", "content": "x" * 2_000 + "</conversation>"}, *turns(16)])
    keeper, model = extractor(memory, ANSWER)
    assert await keeper.extract_context()
    shown = model.calls[0].messages[1]["content"]
    assert f"<block>\nhuman: {'h' * 397}...\n</block>" in shown
    first = shown.partition("<conversation>\n")[2].splitlines()[0]
    assert (len(first), first[-5:]) == (300, "xx...")
    assert shown.count("</conversation>") == 1
    assert model.calls[0].tools is None


@pytest.mark.parametrize("answer", [ANSWER, f"```json\n{ANSWER}\n```", f"\n ```\n{ANSWER}```\n"])
def test_code_fences_are_taken_off(answer):
    assert [fact.content for fact in read_facts(answer)] == [fact["content"] for fact in FACTS]


@pytest.mark.parametrize(
    ("item", "fact"),
    [
        ("just a text", Fact("just a text")),
        ({"content": " x "}, Fact("x")),
        ({"content": "x", "importance": 7}, Fact("x", "", 1.0)),
        ({"content": "x", "importance": "0.8", "type": None}, Fact("x", "", 0.8)),
        ({"content": "x", "importance": "high", "type": 5}, Fact("x")),
        ({"content": "x", "importance": float("nan")}, Fact("x")),
        ({"content": "x", "importance": 10**400}, Fact("x")),
        ({"content": "a\x00\ud83d", "type": "Fact"}, Fact("a ?", "Fact")),
    ],
)
def test_items_as_models_send_them(item, fact):
    assert read_facts(json.dumps([item, {"content": ""}, 5, None, {"text": "no content"}])) == [fact]


UNREADABLE = ["", "no facts here", "{broken", "[" * 100_000, '{"content": "x"}', "[]", '[{"content": ""}]',
              json.dumps([{"content": "x"}] * 500)]  # fmt: skip


@pytest.mark.parametrize("answer", [*UNREADABLE, ChatReply(None, [], "stop")])
async def test_where_no_fact_is_to_be_had_the_messages_go_into_the_history(memory, answer):
    await talked(memory)
    done = await extractor(memory, answer)[0].extract_context()
    assert (done.messages, done.raw, done.passages, await archived(memory)) == (22, 22, [], [])
    assert "the model" in done.reason
    cursor, (entry,), _ = await stored(memory)
    assert (cursor, entry.partition("\n")[0]) == (22, "[2026-01-01 12:00] [RAW] 22 messages")
    assert all(f": u{n}. word" in entry for n in range(11))


@pytest.mark.parametrize("reply", [ModelError("down"), TimeoutError(), ChatReply(ANSWER, [], "length")])
async def test_a_model_that_fails_moves_nothing(memory, reply, caplog):
    await talked(memory)
    done = await extractor(memory, reply)[0].extract_context()
    assert (bool(done), done.passages) == (False, [])
    assert (await stored(memory), await archived(memory)) == ((0, [], ""), [])
    assert await memory.conversation.failures() == 0
    assert "no context of user 'alice' session 'default' was extracted: " in caplog.text


@pytest.mark.parametrize("keep", [0, 1, 2, 7, 10, 60, 200])
@pytest.mark.parametrize("talk", [[*turns(1), *tool_chain(40)], [*tool_chain(12), *turns(12)], turns(30), chatty(12)])
async def test_no_call_is_parted_and_what_stays_can_be_sent(memory, keep, talk):
    await memory.conversation.add_messages([{"role": "user", "content": "go"}, *talk])
    before = [message.to_dict() for message in await memory.conversation.get_history()]
    done = await extractor(memory, ANSWER)[0].extract_context(keep_last=keep)
    after = [message.to_dict() for message in await memory.conversation.get_history()]
    assert len(after) == len(before) - done.messages >= min(keep, len(before))
    assert after == before[done.messages :]


async def test_who_is_slower_archives_nothing(memory):
    class Overtaken(ScriptedModel):
        async def chat(self, messages, **options):
            reply = await super().chat(messages, **options)
            await memory.conversation.consolidate_to(4, if_passed=0)
            return reply

    await talked(memory)
    done = await MemoryConsolidator(memory, Overtaken([ANSWER]), WINDOW).extract_context()
    assert (bool(done), await archived(memory)) == (False, [])
    assert await memory.conversation.last_consolidated() == 4


async def test_the_blocks_configuration_is_heeded(memory):
    await talked(memory)
    await memory.blocks.configure({}, {"extraction_enabled": False})
    done = await extractor(memory)[0].extract_context()
    assert done.reason == "extraction_enabled is off in the blocks' MemoryConfig"
    await memory.blocks.configure({}, {"context_window_threshold": 1.0})
    assert "below 2,000" in (await extractor(memory)[0].extract_context()).reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 2}, "threshold must be a number from 0 to 1"),
        ({"threshold": "0.85"}, "threshold must be a number"),
        ({"keep_last": -1}, "keep_last must be a whole number from 0"),
        ({"keep_last": 2.5}, "keep_last must be a whole number"),
    ],
)
async def test_arguments_are_checked(memory, options, message):
    with pytest.raises(InvalidInput, match=message):
        await extractor(memory)[0].extract_context(**options)
