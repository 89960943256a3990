"""Episodes that are old and that nothing refers to go, step by step, with all that belongs to them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import memdb
from memdb import Database, InvalidInput, Memory
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.parts import Link
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Live
from memdb.testing import FrozenClock
from memdb.testing.clock import NOON
from tests.layers.traces import inside, trace


@pytest.fixture
def episodes(memory: Memory[Live]) -> EpisodicMemory[Live]:
    return EpisodicMemory(memory.scope, memory._home)


async def filled(episodes: EpisodicMemory[Live], memory: Memory[Live], clock: FrozenClock) -> None:
    """Ten episodes of ten days up to now; 0 is a pattern's, 1 is linked to, 2 a skill's, 3 an anti-pattern's."""
    clock.forward(days=9)
    await episodes.store_many(trace(f"{n}", NOON + timedelta(days=n), access_count=1) for n in range(10))
    patterns = SemanticMemory(memory.scope, memory._home)
    await patterns.store(SemanticPattern(id="p", pattern="x", category="c", source_episodes=["0", "gone", ""]))
    await patterns.store(
        SemanticPattern(id="l", pattern="x", category="c", links=[Link(to_id="1", relation="supports")])
    )
    await patterns.store(SemanticPattern(id="a", pattern="x", category="anti-pattern", source_episodes=["3"]))
    skills = ProceduralMemory(memory.scope, memory._home)
    await skills.store(ProceduralSkill(id="s", name="s", description="", extra={"source_episodes": ["2", 5]}))


@pytest.mark.parametrize("at_once", [1, 2, 3, 500])
async def test_cleanup_keeps_what_is_referred_to(
    episodes: EpisodicMemory[Live], memory: Memory[Live], clock: FrozenClock, db: Database, at_once: int
) -> None:
    await filled(episodes, memory, clock)
    assert await episodes.cleanup_old(2, at_once=at_once) == 3  # 4, 5 and 6: that of just two days ago is not older
    assert sorted(one.id for one in await episodes.get_recent()) == list("0123789")
    assert len(await episodes.timeline()) == len(await episodes.search("goal", 20)) == 7
    rows = "SELECT (SELECT count(*) FROM episode), (SELECT count(*) FROM recall)"
    assert await db.read(lambda tx: tx.execute(rows)) == [(7, 7)]
    assert await episodes.cleanup_old(2, at_once=at_once) == 0


async def test_what_is_no_longer_referred_to_goes(
    episodes: EpisodicMemory[Live], memory: Memory[Live], clock: FrozenClock
) -> None:
    await filled(episodes, memory, clock)
    await SemanticMemory(memory.scope, memory._home).store(SemanticPattern(id="p", pattern="x", category="c"))
    await ProceduralMemory(memory.scope, memory._home).delete("s")
    assert await episodes.cleanup_old(2) == 5
    assert sorted(one.id for one in await episodes.get_recent()) == list("13789")


@pytest.mark.parametrize(
    ("days", "left"), [(0, "01239"), (0.5, "01239"), (30, "0123456789"), (10**9, "0123456789"), (1e300, "0123456789")]
)
async def test_how_old_is_old(
    episodes: EpisodicMemory[Live], memory: Memory[Live], clock: FrozenClock, days: float, left: str
) -> None:
    await filled(episodes, memory, clock)
    gone = await episodes.cleanup_old(days)
    assert "".join(sorted(one.id for one in await episodes.get_recent())) == left
    assert gone == 10 - len(left)


@pytest.mark.parametrize(
    "wrong",
    [{"days": -1}, {"days": float("nan")}, {"days": float("inf")}, {"days": "30"}, {"days": True}, {"days": None},
     {"at_once": 0}, {"at_once": 10_001}, {"at_once": 1.5}],
)  # fmt: skip
async def test_cleanup_checks_its_arguments(episodes: EpisodicMemory[Live], wrong: dict[str, Any]) -> None:
    await episodes.store(trace(at=datetime(2000, 1, 1, tzinfo=UTC)))
    with pytest.raises(InvalidInput, match=r"days|at_once"):
        await episodes.cleanup_old(**wrong)
    assert len(await episodes.get_recent()) == 1


async def test_in_a_unit_cleanup_is_one_bounded_call(
    episodes: EpisodicMemory[Live], memory: Memory[Live], clock: FrozenClock
) -> None:
    await filled(episodes, memory, clock)
    assert await memory.atomic(lambda m: inside(m).cleanup_some(2, limit=2)) == 2
    assert sorted(one.id for one in await episodes.get_recent()) == list("01236789")  # the oldest first
    assert await episodes.cleanup_some(2, limit=2) == 1
    refused: list[Any] = []
    await memory.atomic(lambda m: refused.append(inside(m).cleanup_old(2)))  # type: ignore[misc]
    with pytest.raises(InvalidInput, match="cleanup_some"):
        await refused[0]


async def test_others_write_while_it_cleans_up(episodes: EpisodicMemory[Live], memory: Memory[Live]) -> None:
    await episodes.store_many(trace(f"{n}", NOON - timedelta(days=40)) for n in range(30))
    order: list[str] = []

    async def clean() -> None:
        await episodes.cleanup_old(at_once=1)
        order.append("cleaned")

    async def write() -> None:
        for n in range(5):
            await memory.items.save(memdb.MemoryItem(id=f"{n}", content="x"))
        order.append("written")

    await asyncio.gather(clean(), write())
    assert order == ["written", "cleaned"]
    assert await episodes.get_recent() == []
