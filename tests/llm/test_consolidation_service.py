"""ConsolidationService: sessions that are noticed are consolidated in the background, and the rest at the end."""

from __future__ import annotations

import asyncio

import pytest

from memdb import InvalidInput, StorageError
from memdb.errors import ModelError
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.llm.consolidation.service import ConsolidationService
from memdb.testing import ScriptedModel
from tests.llm.consolidating import WINDOW, saving, talked


class Counting:
    """A model that always answers, and knows how many wait for it at once."""

    def __init__(self):
        self.calls = self.waiting = self.most = 0

    async def chat(self, messages, **options):
        self.calls += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0.01)
        self.waiting -= 1
        return saving()


async def full_sessions(db, count, user="alice"):
    memories = [db.memory(user, f"s{n}") for n in range(count)]
    for memory in memories:
        await talked(memory)
    return memories


async def test_what_is_noticed_is_consolidated_before_it_ends(db):
    memories = await full_sessions(db, 5)
    model = Counting()
    async with ConsolidationService(db, model, context_window_tokens=WINDOW) as service:
        for memory in memories * 3:
            service.notice(memory)
        assert model.calls == 0, "noticing returns at once"
    assert [await memory.conversation.last_consolidated() for memory in memories] == [20] * 5
    assert (model.calls, model.most, service.problems) == (5, 1, {}), "one user's sessions take turns"


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_so_many_at_once_and_no_session_twice(db, concurrency):
    memories = [(await full_sessions(db, 1, user=f"u{n}"))[0] for n in range(6)]
    model = Counting()
    async with ConsolidationService(db, model, concurrency=concurrency, context_window_tokens=WINDOW) as service:
        for memory in memories:
            service.notice(memory)
        await service.drained()
        assert (model.calls, model.most) == (6, concurrency)
        await talked(memories[0])
        service.notice(memories[0])
        await service.drained()
        assert model.calls > 6


async def test_a_session_noticed_while_it_is_consolidated_is_looked_at_again(db):
    (memory,) = await full_sessions(db, 1)
    looks = []

    class Noted(MemoryConsolidator):
        async def maybe_consolidate_by_tokens(self):
            looks.append(self)
            for _ in range(2 if len(looks) == 1 else 0):
                service.notice(memory)
            return await super().maybe_consolidate_by_tokens()

    async with ConsolidationService(lambda noticed: Noted(noticed, Counting(), WINDOW)) as service:
        service.notice(memory)
        await service.drained()
    assert len(looks) == 2


async def test_what_goes_wrong_with_one_session_stops_nobody(db, caplog):
    memories = await full_sessions(db, 3)
    model = ScriptedModel([ModelError("down"), saving(), saving(), saving()])
    async with ConsolidationService(db, model, concurrency=1, context_window_tokens=WINDOW) as service:
        for memory in memories:
            service.notice(memory)
        await service.drained()
        assert service.problems == {("alice", "s0"): "ScriptedModel failed: down"}
        assert [await memory.conversation.last_consolidated() for memory in memories] == [0, 20, 20]
        service.notice(memories[0])
        await service.drained()
        assert service.problems == {}


@pytest.mark.parametrize("error", [StorageError("the disk is full"), ZeroDivisionError()])
async def test_errors_are_logged_and_kept(db, memory, caplog, error):
    class Broken(MemoryConsolidator):
        async def maybe_consolidate_by_tokens(self):
            raise error

    async with ConsolidationService(lambda noticed: Broken(noticed, Counting())) as service:
        service.notice(memory)
    problem = str(error) or "ZeroDivisionError"
    assert service.problems == {("alice", "default"): problem}
    assert f"messages of user 'alice' session 'default' were not consolidated: {problem}" in caplog.text


async def test_a_raw_archive_is_a_problem_too(db):
    (memory,) = await full_sessions(db, 1)
    options = {"context_window_tokens": WINDOW, "max_failures": 1}
    async with ConsolidationService(db, ScriptedModel([ModelError("down")]), **options) as service:
        service.notice(memory)
    (problem,) = service.problems.values()
    assert problem == "the model failed, and 20 messages went into the history as they are"


async def test_a_cancelled_end_cancels_what_is_under_way(db):
    (memory,) = await full_sessions(db, 1)

    class Hanging:
        async def chat(self, messages, **options):
            asked.set()
            await asyncio.Event().wait()

    asked = asyncio.Event()

    async def run():
        async with ConsolidationService(db, Hanging(), context_window_tokens=WINDOW) as service:
            service.notice(memory)

    task = asyncio.create_task(run())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await memory.conversation.last_consolidated() == 0


async def test_it_may_be_started_again_but_not_twice(db, memory):
    service = ConsolidationService(db, Counting())
    with pytest.raises(InvalidInput, match="does not run"):
        service.notice(memory)
    for _ in range(2):
        async with service:
            with pytest.raises(InvalidInput, match="runs already"):
                await service.start()
            service.notice(memory)
        await service.stop()
    with pytest.raises(InvalidInput, match="does not run"):
        service.notice(memory)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((None,), {}, "source must be a database or a function"),
        (("db",), {}, "llm must be given with a database"),
        (("db", str), {}, "llm must be an object with the method chat"),
        (("db", Counting()), {"concurrency": 0}, "concurrency must be a whole number from 1"),
        (("db", Counting()), {"context_window_tokens": -1}, "context_window_tokens must be"),
        (
            ("db", Counting()),
            {"context_window": 1},
            "there is no option 'context_window'; the options are concurrency, con",
        ),
        (("db", Counting()), {"memory": 1}, "there is no option 'memory'"),
        ((MemoryConsolidator, Counting()), {}, "llm and options are the function's own"),
    ],
)
async def test_arguments_are_checked(db, arguments, options, message):
    given = [db if argument == "db" else argument for argument in arguments]
    with pytest.raises(InvalidInput, match=message):
        ConsolidationService(*given, **options)


async def test_only_memories_are_noticed(db):
    async with ConsolidationService(db, Counting()) as service:
        with pytest.raises(InvalidInput, match=r"memory must be a memdb\.Memory, not str"):
            service.notice("alice")
