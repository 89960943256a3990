"""Episodes in their store: what is stored comes back, once, whatever form it came in."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from memdb import Database, InvalidInput, Memory
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.layer import Live
from memdb.testing import FrozenClock
from memdb.testing.clock import NOON
from tests.layers.traces import MICROSECOND, WHOLE, trace


@pytest.fixture
def episodes(memory: Memory[Live]) -> EpisodicMemory[Live]:
    return EpisodicMemory(memory.scope, memory._home)


async def test_all_of_an_episode_comes_back(episodes: EpisodicMemory[Live]) -> None:
    assert await episodes.store(WHOLE) == WHOLE.id
    got = await episodes.get(WHOLE.id)
    assert got == WHOLE
    assert got.to_dict() == WHOLE.to_dict()


@pytest.mark.parametrize(
    "odd",
    [
        {"duration_seconds": -1, "tokens_used": -(2**63) + 1, "access_count": -3, "importance": -2.5},
        {"duration_seconds": 2**62 + 1, "tokens_used": 2**63 - 1, "access_count": 2**63 - 1, "importance": 9.0},
        {"outcome": "", "phase": "", "agent": "", "task_id": "", "goal": ""},
        {"phase": "SLEEP", "outcome": "unknown", "goal": "x" * 10_000 + " behind it"},
        {"goal": "İ 部署方案 🔥 \n\t \x01", "files_read": ["", "a" * 5_000]},
        {"timestamp": datetime(1, 1, 1, tzinfo=UTC)},
        {"timestamp": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)},
    ],
    ids=["negative", "huge", "empty", "unknown", "letters", "first year", "last year"],
)
async def test_what_validate_finds_is_stored_as_it_is(episodes: EpisodicMemory[Live], odd: dict[str, Any]) -> None:
    given = trace().model_copy(update=odd)
    await episodes.store(given)
    assert await episodes.get("e1") == given
    assert (await episodes.store_many([given, trace("e2")])) == ["e1", "e2"]
    assert await episodes.get("e1") == given


def forms() -> dict[str, Any]:
    whole = WHOLE.to_dict()
    return {
        "a dict": whole,
        "to_dict": SimpleNamespace(to_dict=lambda: whole),
        "__dict__": SimpleNamespace(**whole),
        "another class": SimpleNamespace(**{name: value for name, value in WHOLE if name != "extra"}),
    }  # fmt: skip


@pytest.mark.parametrize("form", forms())
async def test_any_form_is_taken(episodes: EpisodicMemory[Live], form: str) -> None:
    assert await episodes.store(forms()[form]) == WHOLE.id
    got = await episodes.get(WHOLE.id)
    assert got is not None
    expected = WHOLE if form != "another class" else WHOLE.model_copy(update={"extra": {}})
    assert got == expected


@pytest.mark.parametrize(
    "given", ["ep-1", b"x", None, 5, [], object(), {"goal": "a\x00b"}, {"goal": "\ud800"}, {"id": 5.5j}]
)
async def test_what_is_no_episode_is_refused(episodes: EpisodicMemory[Live], given: Any) -> None:
    with pytest.raises(InvalidInput):
        await episodes.store(given)
    with pytest.raises(InvalidInput):
        await episodes.store_many([trace(), given])
    assert await episodes.get_recent() == []


@pytest.mark.parametrize(
    "given", [{"goal": "x"}, SimpleNamespace(to_dict=lambda: {"goal": "x", "id": "", "timestamp": None})]
)
async def test_without_id_and_time_it_gets_both(episodes: EpisodicMemory[Live], given: Any) -> None:
    id = await episodes.store(given)
    assert id.startswith("ep-2026-01-01-")
    got = await episodes.get(id)
    assert (got.id, got.timestamp, got.goal) == (id, NOON, "x")
    assert await episodes.store(given) != id


async def test_a_model_without_a_time_begins_when_it_is_stored(episodes: EpisodicMemory[Live]) -> None:
    await episodes.store(EpisodeTrace(id="a", task_id="t", agent="x", goal="g"))
    assert (await episodes.get("a")).timestamp == NOON


async def test_store_again_replaces_and_keeps_the_recalls(
    episodes: EpisodicMemory[Live], db: Database, clock: FrozenClock
) -> None:
    await episodes.store(trace(phase="ACT", access_count=2))
    number = await db.read(lambda tx: tx.execute("SELECT id FROM record"))
    await episodes.record_recall("e1", 0.5)
    clock.forward(hours=1)
    changed = trace(at=NOON + timedelta(days=1), goal="another goal", outcome="failure")
    assert await episodes.store(changed) == "e1"
    got = await episodes.get("e1")
    assert (got.goal, got.outcome, got.phase, got.timestamp) == ("another goal", "failure", "", changed.timestamp)
    assert (got.access_count, got.last_accessed, got.importance) == (3, NOON, 0.55)
    assert [entry.action for entry in await episodes.timeline()] == ["another goal"]
    assert await episodes.search("e1") == []  # a word of the first goal
    assert await db.read(lambda tx: tx.execute("SELECT id FROM record")) == number


@pytest.mark.parametrize(
    ("again", "count", "importance"),
    [
        ({}, 5, 0.9),
        ({"importance": 0.2}, 5, 0.2),
        ({"importance": 0.5}, 5, 0.5),
        ({"access_count": 1}, 5, 0.9),
        ({"access_count": 9}, 9, 0.9),
    ],
)
async def test_importance_is_what_was_given_last_and_counts_never_go_down(
    episodes: EpisodicMemory[Live], again: dict[str, Any], count: int, importance: float
) -> None:
    await episodes.store(trace(importance=0.9, access_count=5))
    for store in (episodes.store, lambda one: episodes.store_many([one, trace("e2")])):
        await store(trace(**again))
        got = await episodes.get("e1")
        assert (got.access_count, got.importance) == (count, importance)
    stats = await episodes.recall_stats("e1")
    assert (stats.recall_count, stats.last_recall_at) == (count, NOON)


async def test_defaults_need_no_row_of_recalls(episodes: EpisodicMemory[Live], db: Database) -> None:
    await episodes.store(trace())
    await episodes.store_many([trace(f"{n}", importance=0.5) for n in range(3)])
    assert await db.read(lambda tx: tx.execute("SELECT * FROM recall")) == []
    assert await episodes.recall_stats("e1") is None


DRAWN = "ep-2026-01-01-0123abcd"


async def test_a_drawn_id_of_another_episode_is_drawn_again(episodes: EpisodicMemory[Live]) -> None:
    first, second = trace(DRAWN), trace(DRAWN, NOON + MICROSECOND, task_id="u", goal="second")
    assert await episodes.store(first) == DRAWN
    new = await episodes.store(second)
    assert new != DRAWN
    assert new.startswith("ep-2026-01-01-")
    assert await episodes.store(second) == new  # the same again, as a call that is repeated
    assert await episodes.store_many([second, first, trace("a")]) == [new, DRAWN, "a"]
    assert {one.id: one.goal for one in await episodes.get_recent()} == {
        DRAWN: first.goal, new: "second", "a": "goal of a",
    }  # fmt: skip


async def test_drawn_ids_that_meet_in_one_call(episodes: EpisodicMemory[Live]) -> None:
    several = [trace(DRAWN, NOON + n * MICROSECOND, task_id=f"t{n}") for n in range(4)]
    ids = await episodes.store_many(several)
    assert len({*ids}) == 4
    assert await episodes.store_many(several) == ids
    assert await asyncio.gather(*map(episodes.store, several)) == ids
    assert len(await episodes.get_recent()) == 4


@pytest.mark.parametrize(
    "other",
    [
        trace(DRAWN, NOON, task_id="u", goal="new"),  # the same time
        trace(DRAWN, NOON + MICROSECOND, task_id="t", goal="new"),  # the same task
        trace("named", NOON + MICROSECOND, task_id="u", goal="new"),  # an id of somebody's own
        trace("named-2026-01-01-0123ABCD", NOON + MICROSECOND, task_id="u", goal="new"),
    ],
    ids=["time", "task", "name", "capitals"],
)
async def test_the_same_episode_is_replaced(episodes: EpisodicMemory[Live], other: EpisodeTrace) -> None:
    await episodes.store(trace(other.id))
    assert await episodes.store(other) == other.id
    assert [one.goal for one in await episodes.get_recent()] == ["new"]


async def test_many_callers_side_by_side(db: Database) -> None:
    stores = [EpisodicMemory(db.memory(user).scope, db.engine) for user in ("alice", "bob")]
    calls = [store.store(trace(f"{n % 40}", goal=f"{n}")) for n in range(100) for store in stores]
    assert await asyncio.gather(*calls) == [f"{n % 40}" for n in range(100) for _ in stores]
    for store in stores:
        got = {one.id: one.goal for one in await store.get_recent(1000)}
        assert got == {f"{n % 40}": f"{n}" for n in range(100)}


async def test_one_that_cannot_be_stored_costs_the_others_nothing(episodes: EpisodicMemory[Live]) -> None:
    calls = [episodes.store(trace(f"{n}") if n != 5 else {"goal": "\x00"}) for n in range(10)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [one for one in results if isinstance(one, BaseException)] == [results[5]]
    assert isinstance(results[5], InvalidInput)
    assert len(await episodes.get_recent()) == 9


async def test_store_many_is_all_or_none_and_takes_more_than_a_statement(episodes: EpisodicMemory[Live]) -> None:
    ids = await episodes.store_many(trace(f"{n}", NOON + n * MICROSECOND) for n in range(1203))
    assert ids == [f"{n}" for n in range(1203)]
    assert [one.id for one in await episodes.get_recent(2)] == ["1202", "1201"]
    assert await episodes.store_many([]) == []
    assert await episodes.store_many([trace("x", goal="first"), trace("x", goal="second")]) == ["x", "x"]
    assert (await episodes.get("x")).goal == "second"
    with pytest.raises(InvalidInput, match="must be a list"):
        await episodes.store_many("episodes")
