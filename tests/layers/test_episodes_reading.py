"""Episodes read: by time, by words, in the timeline; nobody sees those of others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import memdb
from memdb import Database, InvalidInput, Memory
from memdb.layers.experience.episodes import EpisodicMemory, TimelineEntry
from memdb.layers.layer import Inside, Live
from memdb.testing.clock import NOON
from tests.layers.traces import MICROSECOND, WHOLE, inside, trace


@pytest.fixture
def episodes(memory: Memory[Live]) -> EpisodicMemory[Live]:
    return EpisodicMemory(memory.scope, memory._home)


async def test_recent_goes_by_time_not_by_name_or_order(episodes: EpisodicMemory[Live]) -> None:
    for id, minutes in (("b", 2), ("c", 0), ("a", 1), ("d", 1)):
        await episodes.store(trace(id, NOON + timedelta(minutes=minutes)))
    assert [one.id for one in await episodes.get_recent()] == ["b", "d", "a", "c"]
    assert [one.id for one in await episodes.get_recent(limit=2)] == ["b", "d"]
    assert await episodes.get_recent(0) == []


@pytest.mark.parametrize("limit", [-1, 10_001, 1.5, True, "5", None])
async def test_limits_are_checked(episodes: EpisodicMemory[Live], limit: Any) -> None:
    for call in (episodes.get_recent, episodes.timeline, lambda limit: episodes.search("x", limit)):
        with pytest.raises(InvalidInput, match="must be a whole number"):
            await call(limit)


LATER = NOON + timedelta(hours=1)


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (NOON, None, "abcd"),
        (NOON + MICROSECOND, None, "bcd"),
        (NOON, LATER, "abc"),
        (NOON, LATER - MICROSECOND, "ab"),
        (NOON.replace(tzinfo=None), LATER.isoformat(), "abc"),
        ("2026-01-01T14:00:00+02:00", "2026-01-01T13:00:00", "abc"),
        ("2026-01-01", "2026-01-02", "abcd"),
        (LATER, NOON, ""),
    ],
)
async def test_a_date_range_is_exact_to_the_microsecond(
    episodes: EpisodicMemory[Live], since: Any, until: Any, found: str
) -> None:
    times = {"d": LATER + MICROSECOND, "b": NOON + MICROSECOND, "a": NOON, "c": LATER}
    await episodes.store_many(trace(id, at) for id, at in times.items())
    assert "".join(one.id for one in await episodes.get_by_date_range(since, until)) == found


@pytest.mark.parametrize("bad", ["yesterday", 5, "", None, b"2026-01-01"])
async def test_what_is_no_time_is_refused(episodes: EpisodicMemory[Live], bad: Any) -> None:
    with pytest.raises(InvalidInput, match="since"):
        await episodes.get_by_date_range(bad)
    if bad is not None:
        with pytest.raises(InvalidInput, match="until"):
            await episodes.get_by_date_range(NOON, bad)


@pytest.mark.parametrize(
    "query",
    [
        "login",
        "grep",
        "core.py",
        "3 hits",
        "TimeoutError",
        "waited",
        "partial",
        "report.md",
        "ログイン",
        '"Check that"',
    ],
)
async def test_it_is_found_by_all_that_it_says(episodes: EpisodicMemory[Live], query: str) -> None:
    await episodes.store_many([WHOLE, trace("other", goal="cook some rice")])
    [hit] = await episodes.search(query)
    assert hit.episode == WHOLE
    assert hit.score > 0


async def test_search_ranks_limits_and_keeps_to_its_layer(episodes: EpisodicMemory[Live], memory: Memory[Live]) -> None:
    await memory.items.save(memdb.MemoryItem(id="i", content="tea tea tea"))
    await episodes.store_many(
        [trace("a", goal="tea and cake and coffee and milk"), trace("b", goal="tea"), trace("c", goal="x")]
    )
    assert [hit.episode.id for hit in await episodes.search("tea")] == ["b", "a"]
    assert [hit.episode.id for hit in await episodes.search("tea", top_k=1)] == ["b"]
    assert await episodes.search("tea", 0) == await episodes.search("") == []
    long = trace("long", goal=f"{'x ' * 5_000}zebra")
    await episodes.store(long)
    [hit] = await episodes.search("zebra")
    assert hit.episode == long


async def test_the_timeline_tells_the_newest_first(episodes: EpisodicMemory[Live]) -> None:
    await episodes.store_many(trace(f"{n:02}", NOON + timedelta(minutes=n)) for n in range(60))
    await episodes.store(trace("new", LATER, goal="g" * 200, phase="ACT", outcome="failure", agent="a", task_id="9"))
    lines = await episodes.timeline()
    assert lines[0] == TimelineEntry(LATER, "g" * 100, "failure", "ACT", "a", "9", "new")
    assert [line.id for line in lines[1:]] == [f"{n:02}" for n in range(59, 10, -1)]
    assert lines[1].topic_id == "general"
    assert len(await episodes.timeline(3)) == 3


async def test_delete_takes_all_that_belongs_to_it(episodes: EpisodicMemory[Live], db: Database) -> None:
    await episodes.store(WHOLE)
    assert await episodes.delete(WHOLE.id)
    assert not await episodes.delete(WHOLE.id)
    assert await episodes.get(WHOLE.id) is None
    assert await episodes.search("login") == []
    left = "SELECT (SELECT count(*) FROM record), (SELECT count(*) FROM episode), (SELECT count(*) FROM recall)"
    assert await db.read(lambda tx: tx.execute(left)) == [(0, 0, 0)]
    for act in (episodes.get, episodes.delete):
        with pytest.raises(InvalidInput, match="must not be empty"):
            await act("")


async def test_nobody_sees_the_episodes_of_others(db: Database, episodes: EpisodicMemory[Live]) -> None:
    bob = EpisodicMemory(db.memory("bob").scope, db.engine)
    await episodes.store(WHOLE)
    await bob.store(trace(WHOLE.id, NOON, goal="of bob"))
    assert (await bob.get(WHOLE.id)).goal == "of bob"
    assert await bob.search("login") == []
    assert len(await bob.get_recent()) == len(await bob.timeline()) == 1
    assert await bob.cleanup_old(0) == 0
    assert await bob.delete(WHOLE.id)
    assert await episodes.get(WHOLE.id) == WHOLE


async def test_in_a_unit_all_of_it_lands_or_nothing(memory: Memory[Live], episodes: EpisodicMemory[Live]) -> None:
    def unit(m: Memory[Inside]) -> list[str]:
        inside(m).store_many([trace("a"), trace("b", NOON + MICROSECOND)])
        assert inside(m).get("a") == trace("a")
        return [one.id for one in inside(m).get_recent()]

    def fails(m: Memory[Inside]) -> None:
        inside(m).store(trace("c"))
        raise RuntimeError("no")

    assert await memory.atomic(unit) == ["b", "a"]
    with pytest.raises(RuntimeError):
        await memory.atomic(fails)
    assert await episodes.get("c") is None
