"""Messages that are consolidated on request: those of a session that is closed, and those that one has in hand."""

from __future__ import annotations

import pytest

from memdb import InvalidInput
from memdb.errors import ModelError
from memdb.testing import ScriptedModel
from tests.llm.consolidating import consolidator, saving, stored, talked, tool_call, turns

DOWN = ModelError("down")


async def raw(memory):
    return [entry.content for entry in await memory.facts.history() if entry.origin == "raw"]


# -- archive_messages ------------------------------------------------------------------------------------------------


async def test_what_a_session_leaves_behind_is_consolidated_and_passed(memory):
    await memory.conversation.add_messages([*turns(3), tool_call("open")])
    keeper, _ = consolidator(memory, saving("talked", "# Facts"))
    assert await keeper.archive_messages()
    assert await stored(memory) == (7, ["talked"], "# Facts")
    assert await memory.conversation.get_history() == []
    assert await keeper.archive_messages(), "there is nothing left, and nobody is asked"


async def test_the_model_has_three_attempts(memory):
    await talked(memory, 2)
    keeper, model = consolidator(memory, DOWN, DOWN, saving("talked"))
    assert await keeper.archive_messages()
    assert (await raw(memory), (await stored(memory))[:2], model.left) == ([], (4, ["talked"]), 0)


@pytest.mark.parametrize("failed_before", [0, 1, 2])
async def test_then_they_go_in_as_they_are(memory, failed_before):
    await talked(memory, 2)
    for _ in range(failed_before):
        await memory.conversation.record_failure("down")
    keeper, model = consolidator(memory, *[DOWN] * (3 - failed_before))
    assert await keeper.archive_messages()
    (entry,) = await raw(memory)
    assert entry.startswith("[2026-01-01 12:00] [RAW] 4 messages\n[2026-01-01T12:00] USER: u0. word")
    assert (model.left, await memory.conversation.failures()) == (0, 0)
    assert await memory.conversation.last_consolidated() == 4


async def test_even_where_more_failures_are_borne(memory):
    await talked(memory, 2)
    keeper, _ = consolidator(memory, *[DOWN] * 3, max_failures=100)
    assert await keeper.archive_messages()
    assert len(await raw(memory)) == 1


async def test_a_long_session_is_archived_in_chunks(memory):
    await talked(memory, 40)
    keeper, model = consolidator(memory, *(saving(f"part {n}") for n in range(20)))
    assert await keeper.archive_messages()
    parts = 20 - model.left
    assert parts >= 5
    assert (await stored(memory))[:2] == (80, [f"part {n}" for n in range(parts)])
    shown = "".join(call.text for call in model.calls)
    assert all(shown.count(f": u{n}. word") == 1 for n in range(40))


async def test_messages_of_a_session_that_was_cleared_already(memory):
    await talked(memory, 3)
    left, _ = await memory.conversation.unconsolidated()
    await memory.conversation.clear()
    keeper, _ = consolidator(memory, saving("talked"), saving("again"))
    assert await keeper.archive_messages(left)
    assert await keeper.archive_messages(left), "after a crash it may be called again"
    (entry,) = await memory.facts.history()
    assert (entry.content, entry.first_position, entry.last_position) == ("talked", 1, 6)


@pytest.mark.parametrize("model", [[saving("talked")], [DOWN] * 3])
async def test_dicts_are_archived_whatever_they_hold(memory, model):
    given = [{"role": "user", "content": "hi"}, {}, {"content": None, "timestamp": {}}, {"role": 5, "content": {1}}]
    assert await consolidator(memory, *model)[0].archive_messages(given)
    assert len(await memory.facts.history()) == 1
    assert await memory.conversation.last_consolidated() == 0


@pytest.mark.parametrize("given", [[], [{"role": "user", "content": ""}]])
async def test_without_words_nobody_is_asked(memory, given):
    keeper, _ = consolidator(memory)
    assert await keeper.archive_messages(given)
    assert await keeper.consolidate_messages(given)
    assert await stored(memory) == (0, [], "")


async def test_a_session_of_messages_without_words_is_passed_in_silence(memory):
    await memory.conversation.add_messages([{"role": "user", "content": ""}] * 3)
    assert await consolidator(memory)[0].archive_messages()
    assert await stored(memory) == (3, [], "")


@pytest.mark.parametrize("given", ["text", 5, {"role": "user"}, ["text"], [None]])
async def test_messages_are_checked(memory, given):
    keeper, _ = consolidator(memory)
    for call in (keeper.archive_messages, keeper.consolidate_messages):
        with pytest.raises(InvalidInput, match=r"messages? must be"):
            await call(given)


# -- consolidate_messages and FactStore.consolidate ------------------------------------------------------------------


async def test_messages_in_hand_move_no_cursor(memory):
    await talked(memory, 2)
    keeper, model = consolidator(memory, saving("talked", "# Facts"))
    assert await keeper.consolidate_messages([{"role": "user", "content": "I like tea."}])
    assert "[?] USER: I like tea." in model.calls[0].text
    assert await stored(memory) == (0, ["talked"], "# Facts")


async def consolidated(memory, *replies, messages=({"role": "user", "content": "tea"},)):
    return await memory.facts.consolidate(list(messages), ScriptedModel(replies))


async def test_the_document_s_own_method(memory):
    assert await consolidated(memory, messages=()), "an empty list is true, and nobody is asked"
    assert await consolidated(memory, saving("one", "# One"))
    assert await consolidated(memory, saving("two", ""))
    assert await stored(memory) == (0, ["one", "two"], "# One")


async def test_it_counts_its_failures_and_archives_at_the_third(memory):
    assert [await consolidated(memory, DOWN) for _ in range(2)] == [False, False]
    assert await stored(memory) == (0, [], "")
    assert await consolidated(memory, DOWN)
    assert await raw(memory) == ["[2026-01-01 12:00] [RAW] 1 message\n[?] USER: tea"]
    assert await memory.conversation.failures() == 0
    assert not await consolidated(memory, DOWN)


@pytest.mark.parametrize("llm", [None, str, "model"])
async def test_its_model_is_checked(memory, llm):
    with pytest.raises(InvalidInput, match="llm must be an object with the method chat"):
        await memory.facts.consolidate([{"role": "user", "content": "x"}], llm)
