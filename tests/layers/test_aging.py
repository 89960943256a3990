"""What time takes from importance and what a recall gives back: once a day, right after any gap, path-independent."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from memdb import Database, InvalidInput, Memory, MemoryItem
from memdb.layers.experience import importance as models
from memdb.layers.experience.aging import age
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Inside, Live
from memdb.storage import aging
from memdb.storage.schema import aging as aging_table
from memdb.testing import FrozenClock
from memdb.testing.clock import NOON


@pytest.fixture
def episodes(memory: Memory[Live]) -> EpisodicMemory[Live]:
    return EpisodicMemory(memory.scope, memory._home)


async def aged(db: Database, *more: Any, user: str = "alice", **options: Any) -> int:
    return await db.write(lambda tx: age(tx, user, *more, **options))


async def worth(episodes: EpisodicMemory[Live], id: str = "e") -> float:
    await episodes.recall_stats(id)  # what was recalled before is written
    got = await episodes.get(id)
    assert got is not None
    return got.importance


def test_the_figures_are_those_of_the_models() -> None:
    for name in ("FIRST", "LEAST", "HALF_LIFE_DAYS", "BOOST"):
        assert getattr(aging, name) == getattr(models, name)
    a_day = float(aging_table.c.rate.server_default.arg.text)  # type: ignore[union-attr]
    assert math.exp(-a_day * 30) == pytest.approx(models.decay_factor(30))


@pytest.mark.parametrize("first", [0.5, 0.8, 1.0, 0.004, 0.0, -0.5, 3.0])
async def test_half_is_left_after_a_half_life(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock, first: float
) -> None:
    await episodes.store({"id": "e", "importance": first})
    clock.forward(days=30)
    assert await aged(db) == (1 if first > 0.01 else 0)
    assert await worth(episodes) == pytest.approx(first / 2 if first > 0.01 else first)
    clock.forward(days=10_000)
    await aged(db)
    assert await worth(episodes) == (0.01 if first > 0.01 else first)


async def test_on_one_day_the_second_time_changes_nothing(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock
) -> None:
    await episodes.store({"id": "e"})
    clock.forward(days=1)
    assert await aged(db) == 1
    once = await worth(episodes)
    for _ in range(3):
        clock.forward(hours=3)
        assert await aged(db) == 0
    assert await worth(episodes) == once < 0.5
    clock.forward(hours=3)  # midnight in UTC
    assert await aged(db) == 1


@pytest.mark.parametrize("hours", [[24 * 45], [24] * 45, [1] * 24 * 45, [24 * 3, 24 * 30, 5, 24 * 12 - 5]], ids=len)
async def test_however_often_it_is_called_the_same_is_left(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock, hours: list[int]
) -> None:
    await episodes.store({"id": "e", "importance": 0.9})
    for step in hours:
        clock.forward(hours=step)
        await aged(db)
    clock.forward(days=1)
    await aged(db)
    assert await worth(episodes) == pytest.approx(0.9 * 0.5 ** (46 / 30))


@pytest.mark.parametrize("ages", [[], [5], [5, 6, 12, 19]], ids=str)
async def test_recalls_and_decay_come_to_the_same_in_any_rhythm(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock, ages: list[int]
) -> None:
    await aged(db)  # from here on the user's memories age
    await episodes.store({"id": "e"})
    for day in range(1, 21):
        clock.forward(days=1)
        if day in ages:
            await aged(db)
        if day == 10:
            await episodes.record_recall("e", 0.5)
            await episodes.record_recall("e", 0.5)
            await episodes.recall_stats("e")
    await aged(db)
    at_recall = 1 - (1 - 0.5 * 0.5 ** (10 / 30)) * 0.9**2
    assert await worth(episodes) == pytest.approx(at_recall * 0.5 ** (10 / 30))


async def test_a_recall_boosts_and_nothing_ages_that_never_was_asked_to(
    episodes: EpisodicMemory[Live], clock: FrozenClock, memory: Memory[Live]
) -> None:
    await episodes.store({"id": "e", "importance": 0.6})
    clock.forward(days=300)
    for n in range(3):
        await episodes.record_recall("e", 1.0)
        assert await worth(episodes) == pytest.approx(1 - 0.4 * 0.9 ** (n + 1))
    got = await episodes.get("e")
    assert (got.access_count, got.last_accessed) == (3, clock.now)
    await memory.items.save(MemoryItem(id="e", content="x"))
    await memory.items.record_recall("e", 1.0)
    await memory.items.recall_stats("e")
    rows = "SELECT layer, importance FROM v_recall_stats ORDER BY layer"
    assert [row[0] for row in await memory._home.read(lambda tx: tx.execute(rows)) if row[1] is None] == ["item"]


@pytest.mark.parametrize(("first", "after"), [(1.0, 1.0), (0.0, 0.1), (-5.0, 0.0), (9.0, 1.0)])
async def test_a_boost_stays_between_0_and_1(
    episodes: EpisodicMemory[Live], memory: Memory[Live], first: float, after: float
) -> None:
    await episodes.store({"id": "e", "importance": first})

    def unit(m: Memory[Inside]) -> float:
        inside = EpisodicMemory(m.scope, m._home)
        inside.record_recall("e", 0.5)  # inside a unit at once
        return inside.get("e").importance

    assert await memory.atomic(unit) == pytest.approx(after)


async def test_patterns_and_skills_gain_by_recalls_too(memory: Memory[Live]) -> None:
    for store in (SemanticMemory(memory.scope, memory._home), ProceduralMemory(memory.scope, memory._home)):
        await store.store({"id": "x"})
        await store.record_recall("x", 0.5)
        assert (await store.recall_stats("x")).recall_count == 1
        assert (await store.get("x")).importance == pytest.approx(0.55)


async def test_each_user_and_layer_ages_by_itself(db: Database, clock: FrozenClock) -> None:
    stores = {}
    for user in ("alice", "bob"):
        scope = db.memory(user).scope
        for kind in (EpisodicMemory, SemanticMemory, ProceduralMemory):
            stores[user, kind.__name__] = kind(scope, db.engine)
            await stores[user, kind.__name__].store({"id": "x"})
    clock.forward(days=30)
    assert await aged(db, ["pattern"]) == 1
    assert await aged(db, "pattern") == 0
    left = {name: (await store.get("x")).importance for name, store in stores.items()}
    assert {name for name, value in left.items() if value < 0.3} == {("alice", "SemanticMemory")}
    assert await aged(db) == 2
    assert await aged(db, user="bob") == 3
    assert await aged(db, user="nobody") == 0


async def test_what_comes_from_the_future_does_not_age(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock
) -> None:
    await episodes.store({"id": "e", "timestamp": (NOON + timedelta(days=100)).isoformat()})
    clock.forward(days=50)
    assert await aged(db) == 0
    clock.forward(days=80)
    assert await aged(db) == 1
    assert await worth(episodes) == pytest.approx(0.5 * 0.5 ** (30 / 30))


async def test_a_clock_that_is_put_back_takes_nothing_and_stops_nothing(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock
) -> None:
    await episodes.store({"id": "e"})
    clock.forward(days=3650)
    await aged(db)
    before = await worth(episodes)
    clock.forward(days=-3640)
    assert await aged(db) == 0
    assert await worth(episodes) == before == 0.01
    await episodes.store({"id": "f"})
    clock.forward(days=30)
    assert await aged(db) == 1
    assert await worth(episodes, "f") == pytest.approx(0.25)


async def test_the_documents_rate(db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock) -> None:
    await episodes.store({"id": "e", "importance": 1.0})
    clock.forward(days=30)
    await aged(db, half_life_days=30, decay_rate=0.1)
    assert await worth(episodes) == pytest.approx(0.905, abs=0.0005)


@pytest.mark.parametrize(
    "wrong",
    [
        {"half_life_days": 0}, {"half_life_days": -1}, {"half_life_days": float("nan")}, {"half_life_days": "30"},
        {"decay_rate": -0.1}, {"decay_rate": float("inf")}, {"layers": ["item"]}, {"layers": "everything"},
    ],
    ids=str,
)  # fmt: skip
async def test_arguments_are_checked(
    db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock, wrong: dict[str, Any]
) -> None:
    await episodes.store({"id": "e"})
    clock.forward(days=5)
    with pytest.raises(InvalidInput):
        await aged(db, **wrong)
    assert await worth(episodes) == 0.5


async def test_storing_again_begins_anew(db: Database, episodes: EpisodicMemory[Live], clock: FrozenClock) -> None:
    given = {"id": "e", "importance": 0.8, "timestamp": NOON.isoformat()}
    await episodes.store(given)
    clock.forward(days=29)
    await episodes.store(given)
    clock.forward(days=1)
    await aged(db)
    assert await worth(episodes) == pytest.approx(0.8 * 0.5 ** (1 / 30))


async def test_forget_leaves_no_trace_of_ageing(db: Database, episodes: EpisodicMemory[Live]) -> None:
    await episodes.store({"id": "e"})
    await aged(db)
    await db.forget("alice")
    assert await db.read(lambda tx: tx.execute("SELECT * FROM aging")) == []
