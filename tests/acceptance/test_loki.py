"""The loki document, sentence by sentence: memory engine, the three wrappers, task-aware retrieval, index, timeline."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import memdb
from memdb import Database, InvalidInput, Memory
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ErrorEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Live
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.testing import FrozenClock, HashingEmbedder

Engine = MemoryEngine[Live]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def engine_of(memory: Memory[Live]) -> Engine:
    return MemoryEngine(memory.scope, memory._home, hybrid=lambda: memory.hybrid)


@pytest.fixture
def engine(memory: Memory[Live]) -> Engine:
    return engine_of(memory)


def ids(found: list[Any]) -> list[str]:
    return [one["id"] if isinstance(one, dict) else one.id for one in found]


def trace(id: str, goal: str = "implement the search", at: datetime = NOON, **fields: Any) -> EpisodeTrace:
    return EpisodeTrace(id=id, task_id="task-123", agent="coder-agent", goal=goal, timestamp=at, **fields)


# -- the examples of the document --------------------------------------------------------------------------------------


async def test_basic_initialization(engine: Engine) -> None:
    await engine.initialize()
    await engine.store_episode(trace("e"))
    await engine.initialize()
    assert ids(await engine.episodic.get_recent()) == ["e"], "calling it again destroys nothing"
    assert (engine.episodic.scope, engine.semantic.scope) == (engine.scope, engine.procedural.scope)


async def test_write_and_read_an_episode(engine: Engine, clock: FrozenClock) -> None:
    made = EpisodeTrace.create(task_id="task-123", agent="coder-agent", goal="实现搜索接口", phase="ACT", now=clock())
    episode_id = await engine.episodic.store(made)
    assert await engine.episodic.get(episode_id) == made
    assert await engine.episodic.get_recent(limit=5) == [made]
    assert episode_id.startswith("ep-2026-01-01-")
    assert [hit.episode.id for hit in await engine.episodic.search("搜索", top_k=3)] == [episode_id]


async def test_patterns_and_skills(engine: Engine) -> None:
    pattern = SemanticPattern.create("retry with backoff", "error-handling")
    skill = ProceduralSkill.create("Retry with backoff", "wait longer each time", ["try", "wait"])
    await engine.semantic.store(pattern)
    await engine.procedural.store(skill)
    assert await engine.semantic.find(category="error-handling", min_confidence=0.7) == [pattern]
    assert [hit.skill for hit in await engine.procedural.search("retry with backoff", top_k=3)] == [skill]
    assert await engine.procedural.list_all() == [await engine.procedural.get(skill.id)]
    context = await engine.retrieve_relevant({"goal": "修复生产报错", "task_type": "debugging"}, top_k=6)
    assert ids(context) == [pattern.id], "there is nothing else that a debugging task needs"


# -- episodes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compatible",
    [
        {"id": "e", "task_id": "t", "context": {"goal": "g", "phase": "ACT"}, "timestamp": "2026-01-01T12:00:00Z"},
        SimpleNamespace(id="e", task_id="t", goal="g", phase="ACT", timestamp=NOON),
        SimpleNamespace(to_dict=lambda: {"id": "e", "task_id": "t", "goal": "g", "phase": "ACT", "timestamp": NOON}),
    ],
)
async def test_a_compatible_object_is_an_episode_too(engine: Engine, compatible: Any) -> None:
    assert await engine.store_episode(compatible) == "e"
    stored = await engine.get_episode("e")
    assert stored is not None
    assert (stored.task_id, stored.goal, stored.phase, stored.timestamp) == ("t", "g", "ACT", NOON)


@pytest.mark.parametrize(
    "id", ["ep-2025-06-01-abc", "my-id-2026-01-06-001", "任务", "../../x", "a b", "task-1", "ep-task-1"]
)
async def test_an_episode_is_found_whatever_the_form_of_its_id(engine: Engine, id: str) -> None:
    """The document: an id without its date takes a scan; one that names another date was not found."""
    assert await engine.store_episode(trace(id)) == id
    assert ids([await engine.get_episode(id)]) == [id]


async def test_an_empty_id_becomes_a_new_one(engine: Engine) -> None:
    first, second = await engine.store_episode(trace("")), await engine.store_episode(trace(""))
    assert first != second
    assert first.startswith("ep-2026-01-01-")


async def test_recent_episodes_come_by_time(engine: Engine) -> None:
    """The real program went by file names, which within a day are in no order."""
    for name, minute in (("c", 1), ("a", 3), ("b", 2)):
        await engine.store_episode(trace(name, at=NOON + timedelta(minutes=minute)))
    assert ids(await engine.get_recent_episodes(limit=2)) == ["a", "b"]


async def test_storing_updates_the_timeline_which_keeps_50(engine: Engine) -> None:
    for number in range(55):
        await engine.store_episode(trace(f"e{number}", f"goal {number}", NOON + timedelta(seconds=number)))
    await engine.store_episode(trace("e54", "goal 54 again", NOON + timedelta(seconds=54)))
    actions = (await engine.get_timeline())["recent_actions"]
    assert len(actions) == 50
    assert [one["action"] for one in actions[:2]] == ["goal 54 again", "goal 53"], "storing again adds no second entry"


async def test_cleaning_up_keeps_what_patterns_and_skills_come_from(engine: Engine, clock: FrozenClock) -> None:
    for name in ("pattern", "anti", "skill", "nothing"):
        await engine.store_episode(trace(name))
    await engine.store_pattern(SemanticPattern(id="p", pattern="x", category="c", source_episodes=["pattern"]))
    await engine.store_pattern(SemanticPattern(id="a", pattern="x", category="anti-pattern", source_episodes=["anti"]))
    await engine.store_skill({"id": "s", "name": "s", "description": "d", "source_episodes": ["skill"]})
    clock.forward(days=30)
    assert await engine.cleanup_old(days=30) == 0, "30 days old is not older than 30 days"
    clock.forward(seconds=1)
    assert await engine.cleanup_old(days=30) == 1
    assert set(ids(await engine.get_recent_episodes())) == {"pattern", "anti", "skill"}
    assert (await engine.get_index())["total_memories"] == 6
    assert len((await engine.get_timeline())["recent_actions"]) == 3
    assert [hit.episode.id for hit in await engine.episodic.search("implement")] == ["pattern", "anti", "skill"]


# -- patterns ----------------------------------------------------------------------------------------------------------


async def test_a_pattern_of_the_same_id_is_replaced(engine: Engine) -> None:
    await engine.store_pattern(SemanticPattern(id="p", pattern="old", category="c"))
    await engine.store_pattern(SemanticPattern(id="p", pattern="new", category="c"))
    assert [one.pattern for one in await engine.find_patterns()] == ["new"]


async def test_finding_goes_by_category_and_confidence(engine: Engine) -> None:
    for name, category, confidence in (("a", "x", 0.5), ("b", "x", 0.49), ("c", "y", 0.9), ("d", "X", 0.9)):
        await engine.store_pattern(SemanticPattern(id=name, pattern="p", category=category, confidence=confidence))
    await engine.store_pattern({"id": "e", "pattern": "p", "category": "x", "confidence": None})
    assert ids(await engine.find_patterns("x")) == ["a"], "exactly this category, and the bound belongs to it"
    assert ids(await engine.find_patterns()) == ["a", "c", "d"]
    assert ids(await engine.find_patterns("x", min_confidence=0)) == ["a", "b", "e"]


async def test_usage_changes_nothing_but_its_count_and_time(engine: Engine, clock: FrozenClock) -> None:
    pattern = SemanticPattern.create("p", "c", now=NOON)
    await engine.store_pattern(pattern)
    later = clock.forward(hours=1)
    await engine.increment_pattern_usage(pattern.id)
    await engine.semantic.increment_usage(pattern.id)
    assert await engine.get_pattern(pattern.id) == pattern.model_copy(update={"usage_count": 2, "last_used": later})
    assert await engine.increment_pattern_usage("unknown") is False


# -- skills ------------------------------------------------------------------------------------------------------------


async def test_names_that_share_a_slug_are_two_skills_where_their_ids_are_two(engine: Engine, path: Path) -> None:
    for id, name in (("1", "A B"), ("2", "a_b"), ("3", "../../x")):
        await engine.store_skill(ProceduralSkill(id=id, name=name, description="d", steps=["s"]))
    assert [one.name for one in await engine.list_skills()] == ["A B", "a_b", "../../x"]
    assert not (path.parent.parent / "x.md").exists()


# -- retrieval ---------------------------------------------------------------------------------------------------------


async def everything(engine: Engine) -> None:
    for number in range(8):
        await engine.store_episode(trace(f"e{number}", f"work {number}", NOON + timedelta(minutes=number)))
        await engine.store_pattern(SemanticPattern(id=f"p{number}", pattern=f"work {number}", category="c"))
        await engine.store_skill(ProceduralSkill(id=f"s{number}", name=f"work {number}", description="d", steps=["x"]))
        anti = SemanticPattern(id=f"a{number}", pattern=f"work {number}", category="anti-pattern")
        await engine.store_pattern(anti)


@pytest.mark.parametrize(
    ("context", "counts"),
    [
        ({"task_type": "exploration"}, {"episodic": 6, "semantic": 3, "procedural": 1}),
        ({"task_type": "implementation"}, {"semantic": 5, "procedural": 3, "episodic": 1}),
        ({"task_type": "debugging"}, {"episodic": 4, "anti_pattern": 4, "semantic": 2}),
        ({"task_type": "review"}, {"semantic": 5, "episodic": 3, "anti_pattern": 2}),
        ({"task_type": "refactoring"}, {"semantic": 4, "procedural": 3, "episodic": 2}),
        ({}, {"semantic": 5, "procedural": 3, "episodic": 1}),
        ({"task_type": "auto", "goal": "clean up"}, {"semantic": 4, "procedural": 3, "episodic": 2}),
        ({"task_type": "auto", "action_type": "run_test"}, {"episodic": 4, "anti_pattern": 4, "semantic": 2}),
        ({"task_type": "auto", "phase": "research"}, {"episodic": 6, "semantic": 3, "procedural": 1}),
        ({"goal": "fix the crash"}, {"semantic": 5, "procedural": 3, "episodic": 1}),
    ],
)
async def test_the_task_decides_what_is_taken_of_each_source(
    engine: Engine, context: dict[str, Any], counts: dict[str, int]
) -> None:
    """Of each source max(1, int(top_k * weight * 2)), sorted by weight and cut."""
    await everything(engine)
    found = await engine.retrieve_relevant(context, top_k=5, mode="weight")
    assert len(found) == 5
    of_source = [one["_source"] for one in found]
    expected = [name for name, many in counts.items() for _ in range(many)][:5]
    assert of_source == expected
    assert [one["_weight"] for one in found] == sorted((one["_weight"] for one in found), reverse=True)


async def test_high_weight_does_not_drown_high_likeness(engine: Engine) -> None:
    """Limit 2 of the document: "high-weight collections may suppress low-weight ones with high semantic similarity"."""
    await everything(engine)
    await engine.store_episode(trace("e-match", "rotate the signing keys"))
    await engine.store_pattern(SemanticPattern(id="p-near", pattern="keys are read at startup", category="c"))
    found = await engine.retrieve_relevant({"goal": "rotate the signing keys", "task_type": "implementation"})
    assert ids(found)[:2] == ["e-match", "p-near"]
    heavy = await engine.retrieve_relevant({"goal": "rotate the signing keys"}, mode="weight")
    assert "e-match" not in ids(heavy)[:4]


async def test_results_are_dicts_that_change_nothing(engine: Engine) -> None:
    await everything(engine)
    found = await engine.retrieve_relevant({"goal": "work 3", "task_type": "debugging"}, look_only=True)
    assert {"_source", "_weight", "_score"} <= found[0].keys()
    found[0]["id"] = "changed"
    again = await engine.retrieve_relevant({"goal": "work 3", "task_type": "debugging"}, look_only=True)
    assert again[0]["id"] != "changed"


async def test_anti_patterns_that_consolidation_learnt_are_found_by_every_reader(engine: Engine) -> None:
    """The real program wrote them into one file and read them from another."""
    errors = [ErrorEntry(error_type="TimeoutError", message="no answer")]
    failed = trace("bad", "call the bank", outcome="failure", errors_encountered=errors)
    await engine.store_episode(failed)
    assert (await engine.consolidate()).anti_patterns_created == 1
    for query in ("TimeoutError", "timeouterror"):
        (found,) = await engine.retrieve_by_similarity(query, "anti_patterns")
        assert found["source_episodes"] == ["bad"]
    relevant = await engine.retrieve_relevant({"goal": "avoid a TimeoutError", "task_type": "debugging"})
    assert "anti_pattern" in {one["_source"] for one in relevant}
    assert len(await engine.find_patterns("anti-pattern", 0.0)) == 1
    assert (await engine.get_stats())["anti_pattern_count"] == 1


async def test_without_an_embedder_words_are_searched(engine: Engine) -> None:
    await everything(engine)
    for collection in ("episodic", "semantic", "procedural"):
        assert (await engine.retrieve_by_similarity("work 3", collection, top_k=1))[0]["id"].endswith("3")
    assert await engine.retrieve_by_similarity("work", "unknown") == []


async def test_with_an_embedder_the_query_is_not_lost(path: Path) -> None:
    """The real program fell back to a search for an empty text, which found nothing."""
    async with memdb.open(path, embedder=HashingEmbedder()) as db:
        engine = engine_of(db.memory("alice"))
        await everything(engine)
        (found,) = await engine.retrieve_by_similarity("work 3", "episodic", top_k=1)
        assert (found["id"], found["_source"]) == ("e3", "episodic")


async def test_time_ranges_are_no_whole_days(engine: Engine) -> None:
    await everything(engine)
    found = await engine.retrieve_by_temporal(NOON + timedelta(minutes=2), NOON + timedelta(minutes=4))
    assert ids(found) == ["e2", "e3", "e4"]
    assert ids(await engine.episodic.get_by_date_range(NOON + timedelta(minutes=7))) == ["e7"]


# -- index, namespaces, worth ------------------------------------------------------------------------------------------


async def test_the_index_needs_no_rebuilding(engine: Engine) -> None:
    await everything(engine)
    index = await engine.get_index()
    assert await engine.rebuild_index() is True
    assert await engine.get_index() == index
    assert index["total_memories"] == 32
    assert {one["id"] for one in index["topics"]} == {"general", "c", "anti-pattern"}


async def test_namespaces_are_users_that_see_nothing_of_each_other(db: Database, engine: Engine) -> None:
    await everything(engine)
    other = engine_of(db.memory("project-b"))
    await other.store_episode(trace("e1", "work elsewhere"))
    assert [one.goal for one in await other.get_recent_episodes()] == ["work elsewhere"]
    assert ids(await other.retrieve_relevant({"goal": "work 3"})) == ["e1"]
    assert (await engine.get_stats())["episodic_count"] == 8


async def test_use_strengthens_and_time_weakens(engine: Engine, clock: FrozenClock) -> None:
    """Limit 5 of the document: importance and access_count were kept by nobody."""
    await engine.store_episode(trace("used", "rotate the keys"))
    await engine.store_episode(trace("idle", "paint the fence"))
    await engine.retrieve_relevant({"goal": "rotate the keys", "task_type": "exploration"}, top_k=1)
    await engine.episodic.recall_stats("used")
    clock.forward(days=30)
    assert await engine.apply_decay() == 2
    used, idle = await engine.get_episode("used"), await engine.get_episode("idle")
    assert used is not None
    assert idle is not None
    assert (used.access_count, idle.access_count) == (1, 0)
    assert (used.importance, idle.importance) == pytest.approx((0.275, 0.25))
    assert await engine.apply_decay() == 0, "twice on one day is once"


async def test_stores_do_not_validate_but_refuse_what_cannot_be_kept(engine: Engine) -> None:
    odd = trace("odd", "", phase="DREAM", outcome="maybe", duration_seconds=-1, importance=7)
    assert odd.validate()
    await engine.store_episode(odd)
    assert await engine.get_episode("odd") == odd
    for wrong in (None, 7, "text", [1], {"id": "x", "timestamp": "yesterday"}):
        with pytest.raises(InvalidInput):
            await engine.store_episode(wrong)


async def test_a_shell_reads_it(path: Path) -> None:
    async with memdb.open(path) as db:
        await everything(engine_of(db.memory("alice")))
    with closing(sqlite3.connect(path)) as shell:
        views = ("v_episodes", "v_patterns", "v_skills", "v_timeline")
        rows = {name: shell.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in views}
    assert rows == {"v_episodes": 8, "v_patterns": 16, "v_skills": 8, "v_timeline": 8}
