"""What MemoryEngine retrieves for a task, by likeness and by time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import InvalidInput, Memory, TokenCounter
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Live
from memdb.retrieval.experience.budget import tokens_of
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.testing import FrozenClock, HashingEmbedder

Engine = MemoryEngine[Live]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def engine_of(memory: Memory[Live]) -> Engine:
    return MemoryEngine(memory.scope, memory._home, hybrid=lambda: memory.hybrid)


@pytest.fixture
def engine(memory: Memory[Live]) -> Engine:
    return engine_of(memory)


def episode(id: str, goal: str, minute: int = 0, **fields: Any) -> EpisodeTrace:
    when = NOON + timedelta(minutes=minute)
    return EpisodeTrace(id=id, task_id="t", agent="coder", goal=goal, timestamp=when, **fields)


def pattern(id: str, text: str, category: str = "general", **fields: Any) -> SemanticPattern:
    return SemanticPattern(id=id, pattern=text, category=category, **fields)


async def stored(engine: Engine) -> Engine:
    """A little experience of every kind."""
    await engine.episodic.store_many(
        [
            episode("ep-old", "add retry to the payment client", 1),
            episode("ep-crash", "fix the crash at startup", 2, outcome="failure"),
            episode("ep-new", "write the release notes", 3),
        ]
    )
    await engine.semantic.store_many(
        [
            pattern("sem-client", "client settings are read once"),
            pattern("sem-retry", "retry with backoff", correct_approach="wait twice as long each time"),
            pattern("sem-weak", "payment client retry is broken", confidence=0.4),
            pattern(
                "anti-crash", "Avoid: crash at startup", "anti-pattern", incorrect_approach="read before it is there"
            ),
        ]
    )
    await engine.procedural.store_many(
        [
            ProceduralSkill(id="skill-retry", name="Retry", description="how a client retries", steps=["wrap"]),
            ProceduralSkill(id="skill-notes", name="Notes", description="release notes", steps=["list"]),
        ]
    )
    return engine


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in found]


# -- for a task --------------------------------------------------------------------------------------------------------


async def test_the_most_relevant_comes_first_though_its_source_counts_least(engine: Engine) -> None:
    await stored(engine)
    found = await engine.retrieve_relevant({"goal": "add retry to the payment client"}, top_k=3)
    assert ids(found)[0] == "ep-old"
    assert (found[0]["_source"], found[0]["_weight"]) == ("episodic", 0.15)
    assert found[0]["context"]["goal"] == "add retry to the payment client", "the document's form"
    assert [one["_score"] for one in found] == sorted((one["_score"] for one in found), reverse=True)
    assert "sem-weak" not in ids(await engine.retrieve_relevant({"goal": "retry payment client"}, top_k=50))


@pytest.mark.parametrize(
    ("task_type", "sources"),
    [
        ("exploration", {"episodic": 0.6, "semantic": 0.3, "procedural": 0.1}),
        ("implementation", {"episodic": 0.15, "semantic": 0.5, "procedural": 0.35}),
        ("debugging", {"episodic": 0.4, "semantic": 0.2, "anti_pattern": 0.4}),
        ("review", {"episodic": 0.3, "semantic": 0.5, "anti_pattern": 0.2}),
        ("refactoring", {"episodic": 0.25, "semantic": 0.45, "procedural": 0.3}),
        (None, {"episodic": 0.15, "semantic": 0.5, "procedural": 0.35}),
        ("gardening", {"episodic": 0.15, "semantic": 0.5, "procedural": 0.35}),
        ("auto", {"episodic": 0.4, "semantic": 0.2, "anti_pattern": 0.4}),
    ],
)
@pytest.mark.parametrize("mode", ["relevance", "weight"])
async def test_each_kind_of_task_has_its_sources(
    engine: Engine, task_type: str | None, sources: dict[str, float], mode: str
) -> None:
    await stored(engine)
    context = {"goal": "fix the crash: retry", "task_type": task_type}
    found = await engine.retrieve_relevant(context, top_k=50, mode=mode)
    assert {one["_source"]: one["_weight"] for one in found} == sources


async def test_the_documented_order(engine: Engine) -> None:
    """Of each source max(1, int(top_k * weight * 2)), the weightier first; the goal plays no part."""
    await stored(engine)
    assert ids(await engine.retrieve_relevant({"goal": "crash"}, top_k=5, mode="weight")) == [
        "sem-client",
        "sem-retry",
        "skill-retry",
        "skill-notes",
        "ep-new",
    ]
    assert ids(await engine.retrieve_relevant({"goal": "crash"}, top_k=1, mode="weight")) == ["sem-client"]
    debugging = {"goal": "notes", "task_type": "debugging"}
    assert ids(await engine.retrieve_relevant(debugging, top_k=5, mode="weight")) == [
        "ep-new",
        "ep-crash",
        "ep-old",
        "anti-crash",
        "sem-client",
    ]


@pytest.mark.parametrize("context", [{}, {"goal": None}, {"goal": ""}, {"goal": "  "}, {"goal": "zebra"}])
async def test_what_matches_nothing_is_answered_in_the_documented_order(
    engine: Engine, context: dict[str, Any]
) -> None:
    await stored(engine)
    found = await engine.retrieve_relevant(context)
    assert found == await engine.retrieve_relevant(context, mode="weight", look_only=True)
    assert {one["_score"] for one in found} == {0.0}


async def test_what_matches_stands_before_what_fills_up_and_nothing_twice(engine: Engine) -> None:
    await stored(engine)
    found = await engine.retrieve_relevant({"goal": "release notes", "task_type": "exploration"}, top_k=10)
    assert ids(found)[:2] == ["ep-new", "skill-notes"]
    assert [one["_score"] > 0 for one in found] == [True, True, *[False] * (len(found) - 2)]
    assert len(set(ids(found))) == len(found) == 7


async def test_a_light_source_may_fill_the_answer(engine: Engine) -> None:
    await engine.episodic.store_many([episode(f"e{n}", f"deploy service {n}", n) for n in range(9)])
    assert len(await engine.retrieve_relevant({"goal": "deploy service"}, top_k=5)) == 5


async def test_an_explanation_says_why_and_counts_nothing(engine: Engine) -> None:
    await stored(engine)
    context = {"goal": "fix the crash", "task_type": "auto"}
    found = await engine.retrieve_relevant(context, explain=True)
    told = found[0]["_explanation"]
    assert (told["task_type"], told["signals"]) == ("debugging", ["goal: fix", "goal: crash"])
    assert "relevance" in told["why"]
    assert 0 < told["relevance"] <= 1
    assert "fills up" in found[-1]["_explanation"]["why"]
    await engine.retrieve_relevant(context, look_only=True)
    assert await engine.episodic.recall_stats("ep-crash") is None
    without = await engine.retrieve_relevant(context, look_only=True)
    assert without == [{name: one[name] for name in one if name != "_explanation"} for one in found]


async def test_what_is_returned_counts_as_recalled_and_matters_more(engine: Engine) -> None:
    await stored(engine)
    await engine.retrieve_relevant({"goal": "crash at startup", "task_type": "debugging"}, top_k=2)
    for store, id in ((engine.episodic, "ep-crash"), (engine.semantic, "anti-crash")):
        stats = await store.recall_stats(id)
        assert stats is not None
        assert stats.recall_count == 1
    recalled = await engine.get_episode("ep-crash")
    assert recalled is not None
    assert recalled.importance == pytest.approx(0.55)
    assert recalled.access_count == 1
    assert await engine.episodic.recall_stats("ep-new") is None


@pytest.mark.parametrize("mode", ["relevance", "weight"])
async def test_a_budget_is_never_exceeded_and_what_is_too_large_is_left_out(engine: Engine, mode: str) -> None:
    count = TokenCounter().count
    large = episode("large", "deploy the service", 9, action_log=[ActionEntry(tool="shell", output="word " * 2_000)])
    await engine.episodic.store_many([large, *(episode(f"e{n}", "deploy", n) for n in range(4))])
    asked = {"goal": "deploy the service", "task_type": "exploration"}
    assert "large" in ids(await engine.retrieve_relevant(asked, mode=mode))
    found = await engine.retrieve_relevant(asked, token_budget=400, mode=mode)
    assert found
    assert "large" not in ids(found)
    assert sum(tokens_of(one, count) for one in found) <= 400
    assert await engine.retrieve_relevant(asked, token_budget=0, mode=mode) == []


@pytest.mark.parametrize(
    ("context", "options"),
    [
        (None, {}),
        ("fix it", {}),
        ({"goal": 7}, {}),
        ({"task_type": ["debugging"]}, {}),
        ({"goal": 7, "task_type": "auto"}, {}),
        ({}, {"mode": "best"}),
        ({}, {"mode": None}),
        ({}, {"top_k": -1}),
        ({}, {"top_k": "5"}),
        ({}, {"token_budget": -1}),
        ({}, {"token_budget": 1.5}),
    ],
)
async def test_what_cannot_be_asked_is_refused(engine: Engine, context: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await engine.retrieve_relevant(context, **options)


@pytest.mark.parametrize("goal", ['" OR *', "\x00", "\ud800", "NEAR(", "🔥" * 5_000, "a " * 50_000, "部署方案"])
async def test_any_text_is_a_goal(engine: Engine, goal: str) -> None:
    await stored(engine)
    assert len(await engine.retrieve_relevant({"goal": goal, "task_type": "auto"})) == 5
    for collection in ("episodic", "semantic", "procedural", "anti_patterns"):
        assert isinstance(await engine.retrieve_by_similarity(goal, collection), list)


async def test_nobody_finds_what_is_not_theirs(db: memdb.Database, engine: Engine) -> None:
    await stored(engine)
    other = engine_of(db.memory("bob"))
    for mode in ("relevance", "weight"):
        assert await other.retrieve_relevant({"goal": "crash", "task_type": "debugging"}, mode=mode) == []
    assert await other.retrieve_by_similarity("crash", "episodic") == []
    assert await other.retrieve_by_temporal(NOON - timedelta(days=1)) == []
    assert (await other.get_stats())["total_memories"] == 0
    assert (await other.get_index())["topics"] == (await other.get_timeline())["recent_actions"] == []


async def test_inside_a_unit_all_of_it_is_a_plain_call(memory: Memory[Live], engine: Engine) -> None:
    await stored(engine)

    def unit(m: Memory[Any]) -> tuple[Any, ...]:
        inside = MemoryEngine(m.scope, m._home)
        inside.store_episode(episode("ep-inside", "inspect the turbine"))
        found = inside.retrieve_relevant({"goal": "turbine"}, top_k=1)
        return (
            ids(found),
            ids(inside.retrieve_by_similarity("turbine", "episodic")),
            inside.get_stats()["episodic_count"],
        )

    assert await memory.atomic(unit) == (["ep-inside"], ["ep-inside"], 4)
    for name in ("consolidate", "apply_decay", "cleanup_old"):
        with pytest.raises(InvalidInput):
            await memory.atomic(lambda m, name=name: getattr(MemoryEngine(m.scope, m._home), name)())


# -- by likeness -------------------------------------------------------------------------------------------------------


async def test_each_collection_is_searched_with_the_query_as_it_is(engine: Engine) -> None:
    await stored(engine)
    expected = {
        "episodic": [("ep-crash", "episodic")],
        "semantic": [("anti-crash", "anti_pattern")],
        "procedural": [],
        "anti_patterns": [("anti-crash", "anti_pattern")],
        "everything": [],
        None: [],
    }
    for collection, wanted in expected.items():
        found = await engine.retrieve_by_similarity("crash", collection)
        assert [(one["id"], one["_source"]) for one in found] == wanted, collection
        assert all(one["_score"] > 0 for one in found)
    stats = await engine.episodic.recall_stats("ep-crash")
    assert stats is not None
    assert stats.recall_count == 1
    assert await engine.retrieve_by_similarity("crash", "episodic", top_k=0) == []


async def test_a_pattern_that_is_marked_as_an_anti_pattern_is_one_for_every_reader(engine: Engine) -> None:
    await engine.semantic.store(pattern("marked", "never deploy on friday", "habits"), kind="anti_pattern")
    for collection in ("semantic", "anti_patterns"):
        (found,) = await engine.retrieve_by_similarity("deploy", collection)
        assert found["_source"] == "anti_pattern"
    (found,) = await engine.retrieve_relevant({"goal": "deploy", "task_type": "debugging"})
    assert found["_source"] == "anti_pattern"
    assert await engine.retrieve_relevant({"goal": "deploy", "task_type": "implementation"}) == []


@pytest.mark.parametrize(("query", "top_k"), [(7, 5), (None, 5), ("x", -1), ("x", 2.0)])
async def test_what_is_no_query_is_refused(engine: Engine, query: Any, top_k: Any) -> None:
    with pytest.raises(InvalidInput):
        await engine.retrieve_by_similarity(query, "episodic", top_k)


class Synonyms(HashingEmbedder):
    """Knows that a boat is a ship."""

    async def embed(self, texts: list[str]) -> list[list[float]]:
        return await super().embed([text.replace("boat", "ship") for text in texts])


async def test_with_an_embedder_meaning_counts_too(path: Path, clock: FrozenClock) -> None:
    async with memdb.open(path, clock=clock, embedder=Synonyms()) as db:
        engine = engine_of(db.memory("alice"))
        await engine.store_episode(episode("ship", "paint the ship"))
        await engine.store_pattern(pattern("p", "ship first"))
        await engine.store_pattern(pattern("a", "a sinking ship", "anti-pattern"))
        await engine.store_skill(ProceduralSkill(id="s", name="Ship", description="a ship", steps=["go"]))
        for collection, wanted in (
            ("episodic", {"ship"}),
            ("semantic", {"p", "a"}),
            ("anti_patterns", {"a"}),
            ("procedural", {"s"}),
        ):
            found = await engine.retrieve_by_similarity("boat", collection)
            assert set(ids(found)) == wanted, collection
        assert ids(await engine.retrieve_by_similarity("boat", "semantic", top_k=1)) == ["p"]
        assert ids(await engine.retrieve_by_similarity("boat", "anti_patterns", top_k=1)) == ["a"]
        assert ids(await engine.retrieve_by_similarity("boat", "nothing")) == []
        stats = await engine.episodic.recall_stats("ship")
        assert stats is not None
        assert stats.recall_count == 1
        assert (await db.check()).ok


# -- by time -----------------------------------------------------------------------------------------------------------


async def test_a_range_of_time_is_exact_to_the_microsecond(engine: Engine) -> None:
    tick = timedelta(microseconds=1)
    for n in range(5):
        await engine.store_episode(episode(f"e{n}", "x").model_copy(update={"timestamp": NOON + n * tick}))
    found = await engine.retrieve_by_temporal(NOON + tick, NOON + 3 * tick)
    assert [(one["id"], one["_source"]) for one in found] == [(f"e{n}", "episodic") for n in (1, 2, 3)]
    assert ids(await engine.retrieve_by_temporal("2026-01-01T12:00:00.000004")) == ["e4"]
    assert await engine.retrieve_by_temporal(NOON + 3 * tick, NOON) == []
    assert await engine.episodic.recall_stats("e1") is None, "looking through a time is not recalling"
    with pytest.raises(InvalidInput):
        await engine.retrieve_by_temporal("yesterday")
