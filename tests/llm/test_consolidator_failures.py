"""MemoryConsolidator and models that fail: nothing is written, and at the third failure in a row nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

import memdb
from memdb import StorageError
from memdb.errors import ModelError
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.text.reply import ChatReply
from tests.llm.consolidating import calling, consolidator, saving, stored, talked, tool_chain

FAILURES = [
    (ModelError("asked m: it is down"), "ScriptedModel failed: asked m: it is down"),
    (TimeoutError(), "ScriptedModel failed: TimeoutError"),
    (asyncio.CancelledError("the client's own"), "ScriptedModel failed: CancelledError: the client's own"),
    (ChatReply("I am a model.", [], "stop"), "the model called no tool instead of save_memory"),
    (ChatReply(None, [], "stop"), "no tool"),
    (ChatReply("503", [], "error"), "ScriptedModel failed: 503"),
    (ChatReply(None, saving().tool_calls, "length"), "cut short by the limit of tokens"),
    (calling({"history_entry": "x", "memory_update": "y"}, name="other"), "called other"),
    (calling("{"), "no JSON"),
    (saving(" "), "blank"),
    (saving(None), "lack history_entry"),
    (saving("x", None), "lack memory_update"),
]


@pytest.mark.parametrize(("reply", "reason"), FAILURES)
async def test_a_model_that_fails_changes_nothing_but_the_count(memory, caplog, reply, reason):
    await memory.facts.write_long_term("as it was")
    await talked(memory)
    done = await consolidator(memory, reply)[0].maybe_consolidate_by_tokens()
    assert (bool(done), done.rounds, done.failed) == (False, 0, True)
    assert reason in done.reason
    assert await stored(memory) == (0, [], "as it was")
    assert await memory.conversation.failures() == 1
    assert (
        f"messages of user 'alice' session {memory.scope.session_id!r} were not consolidated (1 of 3): " in caplog.text
    )


async def test_what_is_no_reply_is_a_failure(memory):
    class Wrong:
        async def chat(self, messages, **options):
            return {"tool_calls": saving().tool_calls}

    await talked(memory)
    done = await MemoryConsolidator(memory, Wrong(), 2_000).maybe_consolidate_by_tokens()
    assert done.reason == "Wrong returned a dict, not a ChatReply"


async def test_a_test_that_runs_out_of_replies_fails(memory):
    await talked(memory)
    with pytest.raises(AssertionError, match="once more"):
        await consolidator(memory)[0].maybe_consolidate_by_tokens()


# -- failures in a row ------------------------------------------------------------------------------------------------


async def test_at_the_third_failure_the_messages_go_in_as_they_are(memory, caplog):
    await memory.facts.write_long_term("as it was")
    await talked(memory)
    keeper, _ = consolidator(memory, *[ModelError("down")] * 4)
    assert [bool(await keeper.maybe_consolidate_by_tokens()) for _ in range(2)] == [False, False]
    assert await stored(memory) == (0, [], "as it was")
    done = await keeper.maybe_consolidate_by_tokens()
    assert (done.rounds, done.messages, done.raw, done.reason) == (1, 20, 20, None)
    cursor, (entry,), facts = await stored(memory)
    assert (cursor, facts, await memory.conversation.failures()) == (20, "as it was", 0)
    lines = entry.splitlines()
    assert lines[0] == "[2026-01-01 12:00] [RAW] 20 messages"
    assert lines[1].startswith("[2026-01-01T12:00] USER: u0. word")
    assert lines[20].startswith("[2026-01-01T12:00] ASSISTANT: a9. word")
    assert (await memory.facts.history())[0].origin == "raw"
    assert (
        f"20 messages of user 'alice' session {memory.scope.session_id!r} went into the history as they are: "
        in caplog.text
    )


async def test_a_success_begins_the_count_anew(memory):
    await talked(memory, 40)
    down = ModelError("down")
    keeper, model = consolidator(memory, down, down, saving("talked"), down, down)
    for _ in range(4):
        await keeper.maybe_consolidate_by_tokens()
    assert not any(entry.origin == "raw" for entry in await memory.facts.history())
    assert model.left == 0


async def test_the_failures_of_one_session_are_not_those_of_another(db):
    for session in ("s", "t"):
        await talked(db.memory("alice", session))
    for _ in range(2):
        await consolidator(db.memory("alice", "s"), ModelError("down"))[0].maybe_consolidate_by_tokens()
    done = await consolidator(db.memory("alice", "t"), ModelError("down"))[0].maybe_consolidate_by_tokens()
    assert (done.raw, await db.memory("alice", "t").conversation.failures()) == (0, 1)


async def test_the_count_survives_a_restart(path):
    for attempt in range(3):
        async with memdb.open(path) as db:
            memory = db.memory("alice")
            if attempt == 0:
                await talked(memory)
            done = await consolidator(memory, ModelError("down"))[0].maybe_consolidate_by_tokens()
    assert done.raw == 20


async def test_a_raw_archive_is_split_and_loses_nothing(memory, clock):
    long = "".join(f"{n} " for n in range(20_000)).strip()
    said = [{"role": "user", "content": long}, *tool_chain(1), {"role": "user", "content": "last"}]
    await memory.conversation.add_messages(said)
    keeper, _ = consolidator(memory, ModelError("down"), max_failures=1)
    assert (await keeper.maybe_consolidate_by_tokens()).raw == 3
    entries = [entry.content for entry in await memory.facts.history()]
    assert all(len(entry) <= 16_100 for entry in entries)
    heads = [entry.partition("\n")[0] for entry in entries]
    assert heads == [f"[2026-01-01 12:00] [RAW] 3 messages, part {n} of 7" for n in range(1, 8)]
    kept = "".join(entry.partition("\n")[2] for entry in entries)
    assert long in kept
    assert "ASSISTANT [tools: read_file]: read_file" in kept
    assert "TOOL: r0. word" in kept


async def test_a_cancelled_caller_is_cancelled_and_nothing_is_counted(memory):
    class Slow:
        async def chat(self, messages, **options):
            asked.set()
            await asyncio.sleep(60)

    asked = asyncio.Event()
    await talked(memory)
    task = asyncio.create_task(MemoryConsolidator(memory, Slow(), 2_000).maybe_consolidate_by_tokens())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await stored(memory), await memory.conversation.failures()) == ((0, [], ""), 0)
    assert await consolidator(memory, saving())[0].maybe_consolidate_by_tokens(), "the lock is free again"


async def test_a_file_that_fails_is_not_hidden(memory):
    async def full(unit):
        raise StorageError("the disk is full")

    await talked(memory)
    memory.atomic = full
    with pytest.raises(StorageError):
        await consolidator(memory, saving())[0].maybe_consolidate_by_tokens()
