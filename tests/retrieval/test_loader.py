"""Progressive loading: topics, the timeline, whole records, as far as a query needs them and a budget allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memdb import Database, InvalidInput, Memory, TokenCounter
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Inside, Live
from memdb.retrieval.experience.access import UnifiedMemoryAccess
from memdb.retrieval.experience.budget import tokens_of
from memdb.retrieval.experience.clustering import extract_pattern
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.retrieval.experience.loader import ProgressiveLoader, asks_for_detail

Loader = ProgressiveLoader[Live]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def engine(memory: Memory[Live]) -> MemoryEngine[Live]:
    return MemoryEngine(memory.scope, memory._home)


@pytest.fixture
async def loader(memory: Memory[Live], engine: MemoryEngine[Live]) -> Loader:
    goals = ["fix the login of the shop", "paint the fence", "test the login", "deploy the shop"]
    await engine.episodic.store_many(
        EpisodeTrace(
            id=f"e{n}", task_id="t", agent="coder", goal=goal, phase="ACT", timestamp=NOON + timedelta(minutes=n)
        )
        for n, goal in enumerate(goals)
    )
    await engine.store_pattern(SemanticPattern(id="p", pattern="cookies expire", category="login", confidence=0.9))
    await engine.store_skill(ProceduralSkill(id="s", name="Login", description="how to log in", steps=["open", "type"]))
    return ProgressiveLoader(engine)


def layers(found: list[dict[str, Any]]) -> list[str]:
    return [one["_layer"] for one in found]


async def test_a_query_without_details_is_answered_by_topics_and_the_timeline(loader: Loader) -> None:
    found, metrics = await loader.load_relevant_context("the login")
    assert layers(found) == ["index", "timeline", "timeline"]
    assert found[0]["id"] == "login"
    assert [one["episode_id"] for one in found[1:]] == ["e2", "e0"], "newest first, and only what shares words"
    assert metrics.layer3_tokens == 0
    assert 0 < metrics.saved_percent < 100


@pytest.mark.parametrize("query", ["how exactly was the login fixed?", "show the steps of the login"])
async def test_a_query_for_details_is_answered_by_whole_records(loader: Loader, query: str) -> None:
    found, metrics = await loader.load_relevant_context(query)
    whole = {one["id"]: one for one in found if one["_layer"] == "full"}
    assert {"e0", "e2", "p", "s"} >= whole.keys() >= {"e2", "s"}
    assert whole["s"]["steps"] == ["open", "type"]
    assert metrics.layer3_tokens > 0


async def test_what_the_timeline_does_not_know_is_looked_for_in_whole_records(loader: Loader) -> None:
    found, _ = await loader.load_relevant_context("cookies")
    assert [(one["_layer"], one["id"]) for one in found] == [("index", "login"), ("full", "p")]


async def test_whole_records_count_as_recalled_and_titles_do_not(loader: Loader, engine: MemoryEngine[Live]) -> None:
    await loader.load_relevant_context("the login")
    assert await engine.episodic.recall_stats("e0") is None
    await loader.load_relevant_context("how was the login fixed")
    stats = await engine.episodic.recall_stats("e0")
    assert stats is not None
    assert stats.recall_count == 1


@pytest.mark.parametrize("budget", [0, 1, 50, 120, 200, 400, 2_000])
@pytest.mark.parametrize("query", ["the login", "how exactly was the login of the shop fixed"])
async def test_the_sum_never_exceeds_the_budget(loader: Loader, query: str, budget: int) -> None:
    count = TokenCounter().count
    found, metrics = await loader.load_relevant_context(query, budget)
    assert sum(tokens_of(one, count) for one in found) == metrics.total_tokens <= budget
    assert metrics.total_tokens == metrics.layer1_tokens + metrics.layer2_tokens + metrics.layer3_tokens
    assert metrics.to_dict()["max_tokens"] == budget


@pytest.mark.parametrize("query", ["", "zebra", '" OR', "🔥", "how"])
async def test_what_nothing_matches_gives_nothing(loader: Loader, query: str) -> None:
    found, metrics = await loader.load_relevant_context(query)
    assert (layers(found), metrics.total_tokens) in (([], 0), (["full"], metrics.layer3_tokens))


async def test_nobody_loads_what_is_not_theirs(db: Database, loader: Loader) -> None:
    other: Loader = ProgressiveLoader(db.memory("bob").engine)
    assert (await other.load_relevant_context("how was the login fixed"))[0] == []


@pytest.mark.parametrize(("query", "budget"), [(None, 10), (7, 10), ("x", -1), ("x", "10"), ("x", 1e3)])
async def test_what_cannot_be_asked_is_refused(loader: Loader, query: Any, budget: Any) -> None:
    with pytest.raises(InvalidInput):
        await loader.load_relevant_context(query, budget)


@pytest.mark.parametrize("made", [ProgressiveLoader, UnifiedMemoryAccess])
def test_anything_but_an_engine_is_refused_when_it_is_given(db: Database, memory: Memory[Live], made: Any) -> None:
    for wrong in (db, memory, memory.scope, db.engine, ".loki/memory", None):
        with pytest.raises(InvalidInput, match=rf"{made.__name__} takes .* not {type(wrong).__name__}: give db.memory"):
            made(wrong)
    made(memory.engine)


async def test_it_is_a_plain_call_inside_a_unit(memory: Memory[Live], loader: Loader) -> None:
    def unit(inside: Memory[Inside]) -> list[dict[str, Any]]:
        return ProgressiveLoader(inside.engine).load_relevant_context("the login")[0]

    assert await memory.atomic(unit) == (await loader.load_relevant_context("the login"))[0]


async def test_it_counts_as_its_engine_does(memory: Memory[Live], loader: Loader) -> None:
    class Characters:
        def count(self, text: str) -> int:
            return len(text)

    counting = MemoryEngine(memory.scope, memory._home, counter=Characters())
    for made in (ProgressiveLoader(counting), ProgressiveLoader(memory.engine, counter=Characters())):
        found, metrics = await made.load_relevant_context("the login", 5_000)
        assert metrics.total_tokens == sum(tokens_of(one, len) for one in found)


async def test_what_asks_for_detail_gets_a_whole_record_where_one_fits(engine: MemoryEngine[Live]) -> None:
    tools = [ActionEntry(tool="edit", input=f"login_{n}.py", output="changed the session") for n in range(8)]
    await engine.episodic.store_many(
        EpisodeTrace(id=f"e{n:02}", task_id="t", agent="a", goal=f"fix login {n}", phase="ACT", action_log=tools)
        for n in range(30)
    )
    for n in range(25):
        await engine.store_pattern(SemanticPattern(id=f"p{n}", pattern="the login", category=f"login {n}"))
    loader = ProgressiveLoader(engine)
    count = engine.count_tokens
    cost = tokens_of({**(await engine.retrieve_relevant({"goal": "fix login"}, 1))[0], "_layer": "full"}, count)
    for budget in (cost + 40, 600, 2_000, 4_000):
        found, metrics = await loader.load_relevant_context("how exactly did we fix the login", budget)
        assert "full" in layers(found), budget
        assert metrics.total_tokens <= budget
    assert {*layers(found)} == {"index", "timeline", "full"}, "and there is room for the others"
    assert "full" not in layers((await loader.load_relevant_context("fix the login", 600))[0])


async def test_topics_are_no_match_by_words_that_say_nothing(engine: MemoryEngine[Live]) -> None:
    lived = [EpisodeTrace(id=f"e{n}", task_id="t", agent="a", goal="debug the csv parser") for n in (1, 2)]
    await engine.store_pattern(extract_pattern("debugging", lived))
    await engine.store_pattern(SemanticPattern(id="p", pattern="why we wait for it", category="patience"))
    loader = ProgressiveLoader(engine)
    for query in ("what are the tasks about the shop", "why for it", "show exactly how we did it"):
        found, _ = await loader.load_relevant_context(query)
        assert "index" not in layers(found), query
    found, _ = await loader.load_relevant_context("what do we know about the CSV")
    assert [one["id"] for one in found if one["_layer"] == "index"] == ["debugging"]


def test_words_that_ask_for_detail() -> None:
    assert asks_for_detail("How did it work?")
    assert asks_for_detail("DETAILS, please")
    assert not asks_for_detail("somehow encoded")
