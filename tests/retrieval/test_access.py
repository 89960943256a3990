"""One door to experience: what an agent needs within a budget, and what it tells; it never fails for want of memory."""

from __future__ import annotations

from typing import Any

import pytest

import memdb
from memdb import Memory, TokenCounter
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Live
from memdb.retrieval.experience.access import DEFAULT_BUDGET, UnifiedMemoryAccess
from memdb.retrieval.experience.budget import tokens_of
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.testing import FrozenClock


@pytest.fixture
def engine(memory: Memory[Live]) -> MemoryEngine[Live]:
    return MemoryEngine(memory.scope, memory._home)


@pytest.fixture
def access(engine: MemoryEngine[Live]) -> UnifiedMemoryAccess:
    return UnifiedMemoryAccess(engine, session_id="s1")


async def lived(engine: MemoryEngine[Live]) -> None:
    await engine.store_episode(EpisodeTrace(id="e", task_id="t", agent="coder", goal="fix the crash of the parser"))
    await engine.store_pattern(
        SemanticPattern(id="p", pattern="parsers need limits", category="c", correct_approach="count the depth")
    )
    await engine.store_pattern(
        SemanticPattern(
            id="a",
            pattern="Avoid: a recursive parser",
            category="anti-pattern",
            incorrect_approach="recursion",
            correct_approach="a stack",
        )
    )
    await engine.store_skill(ProceduralSkill(id="s", name="Parser", description="how to write a parser", steps=["1"]))


async def test_a_context_holds_each_kind_and_what_is_left_of_the_budget(
    engine: MemoryEngine[Live], access: UnifiedMemoryAccess
) -> None:
    await lived(engine)
    context = await access.get_relevant_context("debugging", "crash of the parser")
    assert [one["id"] for one in context.relevant_episodes] == ["e"]
    assert {one["id"] for one in context.applicable_patterns} == {"p", "a"}
    assert context.suggested_skills == []
    assert context.task_type == "debugging"
    memories = [*context.relevant_episodes, *context.applicable_patterns]
    used = sum(tokens_of(one, TokenCounter().count) for one in memories)
    assert context.token_budget == DEFAULT_BUDGET - used
    assert context.retrieval_stats == {
        "budget": DEFAULT_BUDGET, "tokens_used": used, "episodes": 1, "patterns": 2, "skills": 0,
    }  # fmt: skip
    assert context.to_dict()["task_type"] == "debugging"
    detected = await access.get_relevant_context("auto", "write a parser")
    assert (detected.task_type, [one["id"] for one in detected.suggested_skills]) == ("implementation", ["s"])


@pytest.mark.parametrize("budget", [None, 0])
async def test_no_budget_is_the_default(access: UnifiedMemoryAccess, budget: int | None) -> None:
    assert (await access.get_relevant_context("review", "x", budget)).token_budget == DEFAULT_BUDGET


async def test_a_small_budget_is_kept(engine: MemoryEngine[Live], access: UnifiedMemoryAccess) -> None:
    await lived(engine)
    context = await access.get_relevant_context("debugging", "parser", token_budget=150)
    assert 0 <= context.token_budget < 150
    assert len(context.relevant_episodes + context.applicable_patterns) == 1
    assert (await access.get_relevant_context("debugging", "parser", token_budget=1)).is_empty()


@pytest.mark.parametrize(
    ("task_type", "query", "budget"),
    [("debugging", 7, None), (["x"], "x", None), ("review", "x", -1), ("review", "x", "9")],
)
async def test_what_cannot_be_asked_gives_an_empty_context_that_says_why(
    access: UnifiedMemoryAccess, task_type: Any, query: Any, budget: Any
) -> None:
    context = await access.get_relevant_context(task_type, query, budget)
    assert context.is_empty()
    assert "must be" in context.retrieval_stats["error"]


async def test_a_closed_database_gives_an_empty_context_and_takes_no_episode() -> None:
    async with memdb.open(":memory:") as db:
        memory = db.memory("alice")
        access = UnifiedMemoryAccess(MemoryEngine(memory.scope, memory._home))
    context = await access.get_relevant_context("review", "x")
    assert context.is_empty()
    assert "closed" in context.retrieval_stats["error"]
    assert await access.record_episode("t", "coder", "goal", []) is None
    assert await access.get_suggestions("x") == []


async def test_an_episode_is_recorded(
    engine: MemoryEngine[Live], access: UnifiedMemoryAccess, clock: FrozenClock
) -> None:
    actions = ["read_file", {"action": "edit_file", "target": "a.py"}, ActionEntry(tool="run_test", output="ok")]
    id = await access.record_episode("task-1", "coder", "add a limit", actions, "failure", "VERIFY", 12.5)
    assert id is not None
    assert id.startswith("ep-2026-01-01-")
    episode = await engine.get_episode(id)
    assert episode is not None
    assert (episode.timestamp, episode.phase, episode.outcome) == (clock.now, "VERIFY", "failure")
    assert episode.duration_seconds == 12.5
    assert [(one.tool, one.input, one.output) for one in episode.action_log] == [
        ("read_file", "", ""),
        ("edit_file", "a.py", ""),
        ("run_test", "", "ok"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"goal": None},
        {"goal": "a\x00b\ud800"},
        {"actions": "read_file"},
        {"actions": [7]},
        {"actions": None},
        {"duration_seconds": "long"},
    ],
)
async def test_what_is_no_episode_is_not_recorded(
    engine: MemoryEngine[Live], access: UnifiedMemoryAccess, given: dict[str, Any]
) -> None:
    whole = {"task_id": "t", "agent": "coder", "goal": "x", "actions": [], **given}
    assert await access.record_episode(**whole) is None
    assert await engine.get_recent_episodes() == []


async def test_an_interaction_stands_in_the_timeline_and_teaches_nothing(
    engine: MemoryEngine[Live], access: UnifiedMemoryAccess
) -> None:
    assert await access.record_interaction("cli", "opened the editor") is not None
    assert await access.record_interaction("api", {"action": "pressed a key", "key": "q"}, "success") is not None
    assert await access.record_interaction("api", {"key": "q"}) is not None
    actions = [(one["action"], one["outcome"]) for one in (await access.get_timeline())["recent_actions"]]
    assert actions == [
        ('{"key":"q"}', "partial"),
        ("pressed a key", "success"),
        ("opened the editor", "partial"),
    ]
    assert {one.task_id for one in await engine.get_recent_episodes()} == {"s1"}
    assert (await engine.consolidate()).patterns_created == 0
    for action in (None, 7, {"action": 7}, {"key": object()}, "\ud800"):
        assert await access.record_interaction("api", action) is None  # type: ignore[arg-type]


async def test_suggestions_are_sentences_best_first(engine: MemoryEngine[Live], access: UnifiedMemoryAccess) -> None:
    await lived(engine)
    assert await access.get_suggestions({"goal": "recursive parser", "task_type": "debugging"}, 3) == [
        "Avoid: a recursive parser (recursion); instead: a stack",
        "See episode e (success): fix the crash of the parser",
        "parsers need limits: count the depth",
    ]
    assert "Use the skill Parser: how to write a parser" in await access.get_suggestions("write a parser")
    assert await access.get_suggestions("zebra") == []
    assert await access.get_suggestions("parser", 0) == await access.get_suggestions("parser", -1) == []
    assert await access.get_suggestions(7) == []  # type: ignore[arg-type]


async def test_what_there_is(engine: MemoryEngine[Live], access: UnifiedMemoryAccess) -> None:
    await lived(engine)
    assert (await access.get_stats()) == {**await engine.get_stats(), "session_id": "s1"}
    assert await access.get_index() == await engine.get_index()
    await access.save_session()
    with pytest.raises(memdb.InvalidInput):
        UnifiedMemoryAccess(engine, session_id=7)  # type: ignore[arg-type]


async def test_a_suggestion_tells_how_an_error_was_resolved(
    engine: MemoryEngine[Live], access: UnifiedMemoryAccess
) -> None:
    errors = [
        {"type": "RecursionError", "message": "too deep", "resolution": "count the depth"},
        {"type": "RecursionError", "message": "again", "resolution": "count the depth"},
        {"type": "KeyError", "message": "x", "resolution": " "},
    ]
    await engine.store_episode(
        {"id": "e", "task_id": "t", "agent": "a", "context": {"goal": "fix the parser"}, "errors_encountered": errors}
    )
    (told,) = await access.get_suggestions("the parser crashes: fix it")
    assert told == "See episode e (success): fix the parser; RecursionError was resolved by: count the depth"
