"""MemoryEngine: the names of the document, what there is at a glance, consolidation, decay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memdb import Busy, Database, InvalidInput, Memory
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry, ErrorEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Live
from memdb.retrieval.experience import learning, overview
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.testing import FrozenClock

Engine = MemoryEngine[Live]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def engine(memory: Memory[Live]) -> Engine:
    return MemoryEngine(memory.scope, memory._home)


def episode(id: str, goal: str = "add a test", at: datetime = NOON, **fields: Any) -> EpisodeTrace:
    return EpisodeTrace(id=id, task_id="t", agent="coder", goal=goal, timestamp=at, **fields)


def successes(many: int, at: datetime = NOON) -> list[EpisodeTrace]:
    steps = [ActionEntry(tool="read_file"), ActionEntry(tool="edit_file", output="x" * 1_000)]
    return [
        episode(f"ok-{n}", f"implement the payment endpoint {n}", at, phase="ACT", action_log=steps)
        for n in range(many)
    ]


def failure(id: str, at: datetime = NOON) -> EpisodeTrace:
    error = ErrorEntry(error_type="TimeoutError", message="no answer", resolution="retry with backoff")
    return episode(id, "call the payment service", at, outcome="failure", errors_encountered=[error])


# -- the names of the document -----------------------------------------------------------------------------------------


async def test_each_kind_is_stored_and_read_by_the_documents_names(engine: Engine) -> None:
    assert await engine.initialize() is await engine.initialize() is True
    skill = ProceduralSkill.create("Add a test", "how", ["write", "run"])
    pattern = SemanticPattern.create("tests come first", "habits")
    assert await engine.store_episode(episode("e")) == "e"
    assert await engine.store_pattern(pattern) == pattern.id
    assert await engine.store_skill(skill) == "skill-add-a-test"
    assert await engine.get_episode("e") == episode("e")
    assert await engine.get_recent_episodes() == [episode("e")]
    assert await engine.find_patterns("habits") == [await engine.get_pattern(pattern.id)] == [pattern]
    assert await engine.list_skills() == [await engine.get_skill(skill.id)] == [skill]
    assert await engine.increment_pattern_usage(pattern.id) is True
    assert await engine.increment_pattern_usage("unknown") is False
    used = await engine.get_pattern(pattern.id)
    assert used is not None
    assert used.usage_count == 1
    assert await engine.get_episode("x") is await engine.get_pattern("x") is await engine.get_skill("x") is None


async def test_episodes_that_are_stored_side_by_side_are_all_there(engine: Engine, db: Database) -> None:
    other: Engine = MemoryEngine(db.memory("bob").scope, db.engine)
    both = [(engine, "a"), (other, "b")]
    ids = await asyncio.gather(*(one.store_episode(episode(f"{name}{n}")) for n in range(20) for one, name in both))
    assert ids == [f"{name}{n}" for n in range(20) for _, name in both]
    assert (await engine.get_stats())["episodic_count"] == (await other.get_stats())["episodic_count"] == 20
    with pytest.raises(InvalidInput):
        await engine.store_episode("no episode")


async def test_cleanup_keeps_what_patterns_refer_to_and_mends_index_and_timeline(engine: Engine) -> None:
    old = NOON - timedelta(days=31)
    await engine.episodic.store_many([episode("kept", at=old), episode("gone", at=old), episode("new")])
    await engine.store_pattern(SemanticPattern(id="p", pattern="x", category="c", source_episodes=["kept"]))
    assert await engine.cleanup_old() == 1
    assert await engine.get_episode("gone") is None
    assert [one["episode_id"] for one in (await engine.get_timeline())["recent_actions"]] == ["new", "kept"]
    (topic,) = [one for one in (await engine.get_index())["topics"] if one["type"] == "episode"]
    assert topic["episode_count"] == 2
    assert await engine.rebuild_index() is True
    assert await engine.cleanup_old(30) == 0


# -- what there is -----------------------------------------------------------------------------------------------------


async def test_an_empty_memory_has_the_documents_form(engine: Engine) -> None:
    assert await engine.get_index() == {
        "version": "1.1.0", "last_updated": None, "topics": [], "total_memories": 0, "total_tokens_available": 0,
    }  # fmt: skip
    assert await engine.get_timeline() == {
        "version": "1.1.0", "last_updated": None, "recent_actions": [], "key_decisions": [], "active_context": {},
    }  # fmt: skip
    assert await engine.get_stats() == {
        "episodic_count": 0, "semantic_pattern_count": 0, "anti_pattern_count": 0, "skill_count": 0,
        "total_memories": 0, "total_tokens": 0, "last_updated": None,
    }  # fmt: skip
    assert await engine.rebuild_index() is True


async def test_topics_are_the_phases_and_the_categories(engine: Engine) -> None:
    later = NOON + timedelta(hours=1)
    await engine.episodic.store_many(
        [
            episode("e1", "first", phase="ACT", tokens_used=10),
            episode("e2", "second " * 50, later, phase="act", tokens_used=5),
            episode("e3", "third", later),
        ]
    )
    await engine.store_pattern(SemanticPattern(id="p1", pattern="one", category="Habits", confidence=0.6))
    await engine.store_pattern(SemanticPattern(id="p2", pattern="two", category="Habits", confidence=0.9))
    await engine.store_skill(ProceduralSkill.create("s", "d", ["x"]))
    index = await engine.get_index()
    assert index["total_memories"] == 6
    assert index["total_tokens_available"] > 0
    by_id = {(one["type"], one["id"]): one for one in index["topics"]}
    assert set(by_id) == {("episode", "act"), ("episode", "general"), ("pattern", "habits")}
    act, habits = by_id["episode", "act"], by_id["pattern", "habits"]
    assert (act["episode_count"], act["total_tokens"], act["relevance_score"]) == (2, 15, 0.5)
    assert act["summary"] == ("second " * 50)[:200]
    assert (act["first_seen"], act["last_accessed"]) == ("2026-01-01T12:00:00.000000Z", "2026-01-01T13:00:00.000000Z")
    assert (habits["pattern_count"], habits["relevance_score"], habits["summary"]) == (2, 0.9, "two")


async def test_a_timeline_shows_each_episode_once_and_the_newest_50(engine: Engine) -> None:
    await engine.episodic.store_many(
        episode(f"e{n}", f"goal {n} " * 30, NOON + timedelta(seconds=n)) for n in range(60)
    )
    await engine.store_episode(episode("e59", "goal again", NOON + timedelta(seconds=59), phase="VERIFY"))
    actions = (await engine.get_timeline())["recent_actions"]
    assert [one["episode_id"] for one in actions] == [f"e{n}" for n in range(59, 9, -1)]
    assert actions[0] == {
        "timestamp": "2026-01-01T12:00:59.000000Z", "action": "goal again", "outcome": "success",
        "topic_id": "VERIFY", "episode_id": "e59",
    }  # fmt: skip
    assert (len(actions[1]["action"]), actions[1]["topic_id"]) == (100, "general")
    assert len((await engine.get_timeline(3))["recent_actions"]) == 3
    with pytest.raises(InvalidInput):
        await engine.get_timeline(-1)


async def test_counts_tell_patterns_from_anti_patterns(engine: Engine) -> None:
    await engine.store_pattern(SemanticPattern(id="p", pattern="x", category="c"))
    await engine.store_pattern(SemanticPattern(id="a", pattern="y", category="anti-pattern"))
    await engine.semantic.store(SemanticPattern(id="b", pattern="z", category="c"), kind="anti_pattern")
    stats = await engine.get_stats()
    assert (stats["semantic_pattern_count"], stats["anti_pattern_count"], stats["total_memories"]) == (1, 2, 3)


async def test_a_row_that_a_shell_took_away_is_seen(engine: Engine, db: Database) -> None:
    await engine.store_episode(episode("e"))
    await db.write(lambda tx: tx.execute("DELETE FROM episode"))
    assert await engine.rebuild_index() is False
    assert (await engine.get_timeline())["recent_actions"][0]["outcome"] == ""
    assert (await db.check(repair=True)).repaired


# -- decay -------------------------------------------------------------------------------------------------------------


async def test_decay_is_a_true_half_life_and_once_a_day(engine: Engine, clock: FrozenClock) -> None:
    await engine.store_episode(episode("e", importance=0.8))
    await engine.store_skill(ProceduralSkill(id="s", name="s", description="d", steps=["x"], importance=1.0))
    clock.forward(days=30)
    assert await engine.apply_decay() == 2
    assert await engine.apply_decay() == 0
    aged, skill = await engine.get_episode("e"), await engine.get_skill("s")
    assert aged is not None
    assert skill is not None
    assert (aged.importance, skill.importance) == pytest.approx((0.4, 0.5))


async def test_the_documents_rate_leaves_905_of_1000(engine: Engine, clock: FrozenClock) -> None:
    await engine.store_episode(episode("e", importance=1.0))
    clock.forward(days=30)
    await engine.apply_decay(0.1, 30)
    aged = await engine.get_episode("e")
    assert aged is not None
    assert aged.importance == pytest.approx(0.9048, abs=1e-4)


@pytest.mark.parametrize("arguments", [(-1,), (0.1, 0), ("x",), (float("nan"),), (0.1, float("inf"))])
async def test_a_decay_without_a_half_life_is_refused(engine: Engine, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput):
        await engine.apply_decay(*arguments)


# -- consolidation -----------------------------------------------------------------------------------------------------


async def test_consolidation_makes_patterns_once(engine: Engine) -> None:
    await engine.episodic.store_many([*successes(3), failure("bad")])
    first = await engine.consolidate()
    assert (first.patterns_created, first.anti_patterns_created, first.episodes_processed) == (1, 1, 4)
    assert first.duration_seconds > 0
    (learnt,) = await engine.find_patterns()
    assert learnt.source_episodes == ["ok-0", "ok-1", "ok-2"]
    assert learnt.correct_approach == "read_file, then edit_file"
    (avoid,) = await engine.semantic.anti_patterns()
    assert (avoid.pattern, avoid.correct_approach) == ("Avoid: TimeoutError", "retry with backoff")

    again = await engine.consolidate()
    assert (again.patterns_created, again.anti_patterns_created, again.patterns_merged) == (0, 0, 2)
    assert await engine.find_patterns() == [learnt]
    assert await engine.semantic.anti_patterns() == [avoid]


async def test_new_episodes_make_a_known_pattern_surer_and_keep_its_uses(engine: Engine) -> None:
    await engine.episodic.store_many(successes(2))
    await engine.consolidate()
    (before,) = await engine.find_patterns()
    await engine.increment_pattern_usage(before.id)
    await engine.semantic.record_recall(before.id, 1.0)
    await engine.episodic.store_many(successes(3))
    await engine.consolidate()
    (after,) = await engine.find_patterns()
    assert after.id == before.id
    assert after.confidence == pytest.approx(before.confidence + 0.05)
    assert (after.usage_count, after.access_count) == (1, 1)
    assert len(after.source_episodes) == 3


async def test_only_the_episodes_of_the_last_hours_are_looked_at(engine: Engine, clock: FrozenClock) -> None:
    await engine.episodic.store_many(successes(2, NOON - timedelta(hours=25)))
    assert (await engine.consolidate()).episodes_processed == 0
    assert (await engine.consolidate(25)).patterns_created == 1
    assert (await engine.consolidate(1e12)).episodes_processed == 2
    for hours in (-1, "day", None, float("nan")):
        with pytest.raises(InvalidInput):
            await engine.consolidate(hours)  # type: ignore[arg-type]


async def test_of_very_many_episodes_the_newest_are_taken(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MAX_EPISODES", 7)
    monkeypatch.setattr(learning, "PAGE", 3)
    await engine.episodic.store_many(
        successes(1) + [episode(f"e{n}", at=NOON - timedelta(minutes=n)) for n in range(9)]
    )
    assert (await engine.consolidate()).episodes_processed == 7


@pytest.mark.parametrize("statement", [learning._SIZES.sql, overview._TIMELINE])
async def test_what_is_newest_is_read_along_the_index_of_times(db: Database, statement: str) -> None:
    names = ("user_id", "layer", "session_id", "since", "before", "before_id", "limit", "param_1")
    plan = await db.read(lambda tx: tx.rows(f"EXPLAIN QUERY PLAN {statement}", dict.fromkeys(names, "")))
    steps = [row[3] for row in plan]
    assert any("record_by_time (user_id=? AND layer=? AND session_id=?" in step for step in steps), steps
    assert "USE TEMP B-TREE FOR ORDER BY" not in steps


async def test_the_index_that_is_kept_is_never_out_of_step(engine: Engine) -> None:
    await engine.episodic.store_many([episode("first")])
    (await engine.get_index())["topics"].clear()  # what a caller does with it is his own
    first = await engine.get_index()
    assert first == await engine.get_index()
    assert [one["episode_count"] for one in first["topics"]] == [1]
    await engine.episodic.store_many([episode("second")])
    assert [one["episode_count"] for one in (await engine.get_index())["topics"]] == [2]
    await engine.episodic.delete("first")
    assert (await engine.get_index())["total_memories"] == 1


@pytest.mark.parametrize(("bound", "value"), [("PAGE", 4), ("PAGE_CHARS", 1), ("PAGE_CHARS", 1_000)])
async def test_every_page_is_read_where_times_are_equal(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(learning, bound, value)
    await engine.episodic.store_many(successes(12))
    await engine.consolidate()
    (learnt,) = await engine.find_patterns()
    assert len(learnt.source_episodes) == 12


@pytest.mark.parametrize(("changes", "is_done"), [(1, True), (2, True), (3, False)])
async def test_who_changes_the_patterns_meanwhile_is_not_overwritten(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, changes: int, is_done: bool
) -> None:
    """Between reading and writing somebody else stores a pattern: it is compared again."""
    await engine.episodic.store_many(successes(2))
    read, left = learning._known, iter(range(changes))

    def meddled(tx: Any, user_id: str) -> Any:
        return read(tx, user_id)

    think = learning.consolidated

    def slow(*given: Any) -> Any:
        if (n := next(left, None)) is not None:
            racing.append(n)
        return think(*given)

    racing: list[int] = []
    write = engine._home.write  # type: ignore[union-attr]

    async def racy(unit: Any, *given: Any, **options: Any) -> Any:
        if unit is learning._store and racing:
            n = racing.pop()
            await engine.store_pattern(SemanticPattern(id=f"theirs-{n}", pattern=f"theirs {n}", category="c"))
        return await write(unit, *given, **options)

    monkeypatch.setattr(learning, "_known", meddled)
    monkeypatch.setattr(learning, "consolidated", slow)
    monkeypatch.setattr(engine._home, "write", racy)
    if is_done:
        assert (await engine.consolidate()).patterns_created == 1
    else:
        with pytest.raises(Busy):
            await engine.consolidate()
    assert len(await engine.find_patterns()) == changes + is_done


async def test_two_that_consolidate_at_once_learn_it_once(engine: Engine) -> None:
    await engine.episodic.store_many([*successes(3), failure("bad")])
    both = await asyncio.gather(*(engine.consolidate() for _ in range(4)))
    assert sum(one.patterns_created for one in both) == sum(one.anti_patterns_created for one in both) == 1
    assert len(await engine.find_patterns()) == len(await engine.semantic.anti_patterns()) == 1


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE record SET category = x'ff00'",
        "UPDATE record SET category = 7, title = 8",
        "UPDATE record SET title = CAST(x'ff41' AS TEXT)",
        "UPDATE record SET created_at = 'never'",
        "UPDATE record SET metadata = '[1]', title = ''",
        "UPDATE episode SET tokens_used = 'many', outcome = x'00', duration_seconds = 'long'",
        "UPDATE pattern SET confidence = 'very', usage_count = 1e300, last_used = 'once'",
        "DELETE FROM pattern",
    ],
)
async def test_what_a_shell_has_spoilt_stops_nothing(engine: Engine, db: Database, edit: str) -> None:
    await engine.episodic.store_many([*successes(2), failure("bad")])
    await engine.store_pattern(SemanticPattern(id="p", pattern="payment", category="c"))
    await engine.store_skill(ProceduralSkill(id="s", name="payment", description="d", steps=["x"]))
    await db.write(lambda tx: tx.execute(edit))
    for mode in ("relevance", "weight"):
        await engine.retrieve_relevant({"goal": "payment", "task_type": "debugging"}, mode=mode)
    for collection in ("episodic", "semantic", "procedural", "anti_patterns"):
        await engine.retrieve_by_similarity("payment", collection)
    assert (await engine.get_stats())["total_memories"] >= 0
    assert isinstance((await engine.get_index())["topics"], list)
    assert isinstance((await engine.get_timeline())["recent_actions"], list)
    await engine.consolidate()
    await engine.apply_decay()
    await db.check(repair=True)


async def test_an_episode_that_cannot_be_read_stops_nobody(engine: Engine, db: Database) -> None:
    await engine.episodic.store_many([*successes(3), episode("torn")])
    await db.write(lambda tx: tx.execute("UPDATE record SET metadata = '[]' WHERE key = 'torn'"))
    assert (await engine.consolidate()).episodes_processed == 3
    assert [one.id for one in await engine.get_recent_episodes()] == ["ok-2", "ok-1", "ok-0"]
