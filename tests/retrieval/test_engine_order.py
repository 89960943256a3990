"""The one order of what is retrieved for a task: its beginning does not depend on how much of it is asked for."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memdb import Memory, TokenCounter
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Live
from memdb.retrieval.experience import said_once
from memdb.retrieval.experience.budget import tokens_of
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.retrieval.experience.sources import SHOWN_SOURCES

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def engine(memory: Memory[Live]) -> MemoryEngine[Live]:
    return memory.engine


def episode(id: str, goal: str, minute: int = 0, **fields: Any) -> EpisodeTrace:
    when = NOON + timedelta(minutes=minute)
    return EpisodeTrace(id=id, task_id="t", agent="coder", goal=goal, timestamp=when, **fields)


async def retrieved(engine: MemoryEngine[Live], goal: str, top_k: int, task_type: str = "debugging") -> list[str]:
    context = {"goal": goal, "task_type": task_type}
    return [one["id"] for one in await engine.retrieve_relevant(context, top_k, look_only=True)]


@pytest.mark.parametrize("many", [12, 130, 600])
async def test_the_newest_of_equals_comes_first_whatever_is_asked_for(engine: MemoryEngine[Live], many: int) -> None:
    """130 are more than a small pool holds; the newest are stored last, where the index gives the first stored."""
    await engine.episodic.store_many(episode(f"e{n}", "fix the login crash", n) for n in range(many))
    await engine.episodic.store_many([episode(f"x{n}", f"login of {n} crash", n) for n in range(3)])
    whole = await retrieved(engine, "login crash", 40)
    for top_k in (1, 2, 3, 7, 15):
        assert await retrieved(engine, "login crash", top_k) == whole[:top_k]
    of_equals = [id for id in whole if id.startswith("e")]
    assert of_equals[:3] == [f"e{many - 1}", f"e{many - 2}", f"e{many - 3}"]


async def test_importance_counts_among_more_than_are_asked_for(engine: MemoryEngine[Live]) -> None:
    episodes = [episode(f"e{n}", "fix the login crash", n, importance=0.9 if n == 5 else 0.5) for n in range(150)]
    await engine.episodic.store_many(episodes)
    assert await retrieved(engine, "login crash", 1) == ["e5"]
    assert await retrieved(engine, "login crash", 3) == ["e5", "e149", "e148"]


@pytest.mark.parametrize("task_type", ["debugging", "implementation", "review"])
async def test_a_shorter_answer_is_the_beginning_of_a_longer_one(engine: MemoryEngine[Live], task_type: str) -> None:
    words = ("login", "cache", "parser", "retry", "payment")
    goals = [f"{words[n % 5]} {words[n % 4]} {words[n % 3]} {'of it ' * (n % 7)}" for n in range(90)]
    await engine.episodic.store_many(
        episode(f"e{n}", goal, n % 11, importance=n % 10 / 10) for n, goal in enumerate(goals)
    )
    await engine.semantic.store_many(
        SemanticPattern(
            id=f"p{n}",
            pattern=goal,
            category="anti-pattern" if n % 3 == 0 else "c",
            confidence=n % 10 / 10,
            last_used=NOON if n % 2 else None,
        )
        for n, goal in enumerate(goals)
    )
    await engine.procedural.store_many(
        ProceduralSkill(id=f"s{n}", name=goal, description="d", steps=["x"]) for n, goal in enumerate(goals[:30])
    )
    whole = await retrieved(engine, "login cache of the parser", 120, task_type)
    assert len(set(whole)) == 120
    for top_k in (1, 2, 3, 4, 5, 8, 20, 60, 75):
        assert await retrieved(engine, "login cache of the parser", top_k, task_type) == whole[:top_k]


async def test_near_duplicates_leave_room_for_other_sources(engine: MemoryEngine[Live]) -> None:
    await engine.episodic.store_many(episode(f"e{n}", "fix TimeoutError of the payment API", n) for n in range(40))
    await engine.episodic.store_many(episode(f"o{n}", f"payment API slow {n}", n) for n in range(3))
    await engine.store_pattern(SemanticPattern(id="anti", pattern="Avoid: TimeoutError", category="anti-pattern"))
    found = await retrieved(engine, "TimeoutError payment API", 5)
    assert "anti" in found
    assert len([id for id in found if id.startswith("e")]) == 2
    assert "anti" in (await retrieved(engine, "TimeoutError payment", 3))


async def test_a_pattern_of_many_episodes_costs_no_more_than_what_it_says(engine: MemoryEngine[Live]) -> None:
    sources = [f"ep-2026-01-01-{n:08x}" for n in range(500)]
    known = SemanticPattern(id="p", pattern="login tokens expire", category="c", source_episodes=sources)
    await engine.store_pattern(known)
    count = TokenCounter().count
    context = {"goal": "login tokens", "task_type": "implementation"}
    (found,) = await engine.retrieve_relevant(context, token_budget=400)
    assert found["source_episodes"] == sources[-SHOWN_SOURCES:]
    assert found["source_episode_count"] == 500
    assert tokens_of(found, count) <= 400 < tokens_of(known.to_dict(), count)
    (alike,) = await engine.retrieve_by_similarity("login", "semantic")
    assert (alike["source_episodes"], alike["source_episode_count"]) == (sources[-SHOWN_SOURCES:], 500)
    assert (await engine.get_pattern("p")).source_episodes == sources  # type: ignore[union-attr]


# -- what looks like a mistake -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("episodic", "episode", "episodes"), ["e"]),
        (("semantic", "pattern", "patterns"), ["p", "a"]),
        (("procedural", "skill", "skills"), ["s"]),
        (("anti_patterns", "anti_pattern"), ["a"]),
        (("memories", "", "Episodic", None, 7), []),
    ],
)
async def test_collections_by_other_names(engine: MemoryEngine[Live], names: tuple[Any, ...], found: list[str]) -> None:
    await engine.store_episode(episode("e", "crash"))
    await engine.semantic.store_many(
        [SemanticPattern(id=id, pattern="crash", category=kind) for id, kind in (("p", "c"), ("a", "anti-pattern"))]
    )
    await engine.store_skill(ProceduralSkill(id="s", name="crash", description="d", steps=["x"]))
    for name in names:
        assert {one["id"] for one in await engine.retrieve_by_similarity("crash", name)} == set(found), name


async def test_what_looks_like_a_mistake_is_logged_once(
    engine: MemoryEngine[Live], caplog: pytest.LogCaptureFixture
) -> None:
    said_once.warn_once.cache_clear()
    caplog.set_level(logging.WARNING, logger="memdb")
    good: dict[Any, Any] = {"goal": "x", "task_type": "auto", "phase": None, "files": [], "user": "u", 7: 7}
    await engine.retrieve_relevant(good)
    assert caplog.messages == []
    for _ in range(3):
        await engine.retrieve_relevant({"gaol": "fix it", "query": "fix it", "task_type": "gardening"})
        assert await engine.retrieve_by_similarity("x", "memories") == []
    assert caplog.messages == [
        "the key 'gaol' of a context is not looked at; there are goal, task_type, action_type, phase",
        "the key 'query' of a context is not looked at; there are goal, task_type, action_type, phase",
        "there is no task_type 'gardening', so implementation is taken; there are exploration, implementation, "
        "debugging, review, refactoring, auto",
        "there is no collection 'memories' of experience; there are episodic, semantic, procedural, anti_patterns",
    ]
