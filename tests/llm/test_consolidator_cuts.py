"""MemoryConsolidator: where it cuts, what others write meanwhile, and what stays the same between two cuts."""

from __future__ import annotations

import asyncio
import json

import pytest

from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.testing import ScriptedModel
from tests.llm.consolidating import consolidator, saving, stored, talked, tool_chain, turns

# -- a turn that fills the window -------------------------------------------------------------------------------------


async def test_one_long_turn_is_cut_after_a_call_with_its_results(memory):
    await memory.conversation.add_messages([{"role": "user", "content": "go"}, *tool_chain(30)])
    keeper, _ = consolidator(memory, saving(), saving())
    done = await keeper.maybe_consolidate_by_tokens()
    assert done
    left = await memory.conversation.get_history()
    assert len(left) == 61 - done.messages, "the history is legal, and nothing of it is hidden"
    assert left[0].tool_calls
    assert done.messages % 2 == 1


async def test_between_budget_and_window_one_turn_stays_whole(memory):
    await memory.conversation.add_messages([{"role": "user", "content": "go"}, *tool_chain(18)])
    keeper, _ = consolidator(memory)
    done = await keeper.maybe_consolidate_by_tokens()
    assert 1_500 <= done.tokens_before <= 2_000
    assert done.reason == "there is no place to cut: one turn makes up the history"


@pytest.mark.parametrize("first", [tool_chain(40), tool_chain(40, words=5), turns(30), turns(3, words=900)])
@pytest.mark.parametrize("last", [[], tool_chain(1), tool_chain(1)[:1], turns(1)])
async def test_history_is_legal_after_every_cut(memory, first, last):
    talk = memory.conversation
    await talk.add_messages([{"role": "user", "content": "go"}, *first, *last])
    keeper, _ = consolidator(memory, *[saving()] * 9, context_window_tokens=1_000)
    before = [message.to_dict() for message in await talk.get_history()]
    await keeper.maybe_consolidate_by_tokens()
    after = [message.to_dict() for message in await talk.get_history()]
    assert after == before[len(before) - len(after) :], "what is left is the end of what was there"
    open_calls = [call["id"] for message in after for call in message.get("tool_calls") or ()]
    assert open_calls == [message["tool_call_id"] for message in after if message["role"] == "tool"]


# -- others that write meanwhile --------------------------------------------------------------------------------------


class Interrupted(ScriptedModel):
    """A model during whose answers something else happens."""

    def __init__(self, replies, meanwhile):
        super().__init__(replies)
        self.meanwhile = list(meanwhile)

    async def chat(self, messages, **options):
        reply = await super().chat(messages, **options)
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        return reply


async def test_facts_that_changed_meanwhile_are_shown_to_the_model_again(memory):
    await talked(memory)
    model = Interrupted(
        [saving("lost", "lost"), saving("kept", "# Facts\n* both")],
        [lambda: memory.facts.write_long_term("* just now")],
    )
    assert await MemoryConsolidator(memory, model, 2_000).maybe_consolidate_by_tokens()
    assert "* just now" in model.calls[1].text
    assert await stored(memory) == (20, ["kept"], "# Facts\n* both")
    assert (await memory.facts.long_term()).version == 2


async def test_it_gives_up_after_three_tries_and_counts_no_failure(memory):
    await talked(memory)
    writes = [lambda n=n: memory.facts.write_long_term(f"version {n}") for n in range(3)]
    done = await MemoryConsolidator(memory, Interrupted([saving()] * 3, writes), 2_000).maybe_consolidate_by_tokens()
    assert (bool(done), done.reason) == (False, "others wrote the facts 3 times meanwhile")
    assert await stored(memory) == (0, [], "version 2")
    assert await memory.conversation.failures() == 0


async def test_who_is_slower_writes_nothing_and_counts_no_failure(db, memory):
    await talked(memory)
    quicker = consolidator(db.memory("alice"), saving("the winner's", "# Facts of the winner"))[0]

    async def win():
        left, passed = await memory.conversation.unconsolidated()
        assert (await quicker._writer.consolidate(left[:20], passed)).done  # as another process, which has its own lock

    model = Interrupted([saving("the loser's", "# Facts of the loser")], [win])
    done = await MemoryConsolidator(memory, model, 2_000).maybe_consolidate_by_tokens()
    assert (bool(done), done.failed) == (False, False)
    assert await stored(memory) == (20, ["the winner's"], "# Facts of the winner")
    assert await memory.conversation.failures() == 0


@pytest.mark.parametrize("again", [0, 5, 16])
async def test_a_session_that_was_cleared_meanwhile_is_another_one(memory, again):
    await talked(memory)

    async def clear():
        await memory.conversation.clear()
        await memory.conversation.add_messages(turns(again, words=10, first=100))

    model = Interrupted([saving("of what is gone")], [clear])
    assert not await MemoryConsolidator(memory, model, 2_000).maybe_consolidate_by_tokens()
    assert (await stored(memory))[:2] == (0, [])


async def test_messages_that_come_meanwhile_stay(memory):
    await talked(memory)
    late = turns(3, first=50)
    model = Interrupted([saving()], [lambda: memory.conversation.add_messages(late)])
    assert await MemoryConsolidator(memory, model, 2_000).maybe_consolidate_by_tokens()
    history = [message.to_dict() for message in await memory.conversation.get_history()]
    assert history == turns(16)[20:] + late


async def test_a_session_is_consolidated_by_one_at_a_time(db, memory):
    await talked(memory)
    model = ScriptedModel([saving()])
    keepers = [MemoryConsolidator(db.memory("alice"), model, 2_000) for _ in range(4)]
    done = await asyncio.gather(*(keeper.maybe_consolidate_by_tokens() for keeper in keepers))
    assert sorted(map(bool, done)) == [False, False, False, True]


async def test_what_was_consolidated_once_is_told_once(memory, db):
    await talked(memory)
    await consolidator(memory, saving("first"))[0].maybe_consolidate_by_tokens()
    await db.write(lambda tx: tx.execute("UPDATE session SET consolidated_id = 0"))  # a shell, an old copy
    assert await consolidator(memory, saving("second", "# New"))[0].maybe_consolidate_by_tokens()
    assert await stored(memory) == (20, ["first"], "# New")


# -- the prompt cache -------------------------------------------------------------------------------------------------


async def test_between_consolidations_history_only_grows_at_its_end(memory):
    """What a provider has cached of a prompt stays its prefix, byte for byte, until a consolidation."""
    talk = memory.conversation
    keeper, _ = consolidator(memory, *[saving()] * 9)
    before = ""
    grown = cut = 0
    for turn in range(60):
        call = tool_chain(1) if turn % 3 == 0 else []
        await talk.add_messages([*turns(1, first=turn)[:1], *call, *turns(1, first=turn)[1:]])
        moved = await keeper.maybe_consolidate_by_tokens()
        history = [message.to_dict() for message in await talk.get_history()]
        everything = [message.to_dict() for message in await talk.messages()]
        assert history == everything[len(everything) - len(history) :]
        after = json.dumps(history, ensure_ascii=False)
        if moved:
            cut += 1
        else:
            grown += 1
            assert after.startswith(before[:-1])
        before = after
    assert (grown > 40, cut > 3) == (True, True)
    assert len(everything) == 60 * 2 + 20 * 2, "no stored message is changed or deleted"
