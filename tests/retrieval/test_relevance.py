"""How memories of several sources come into one order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.retrieval.experience.budget import fitting, text_of, tokens_of
from memdb.retrieval.experience.relevance import Matched, importance_factor, ranked, spread
from memdb.retrieval.experience.sources import id_of

GOAL = "add retry to the payment client"


def episode(id: str, goal: str, **fields: object) -> EpisodeTrace:
    return EpisodeTrace(id=id, task_id="t", agent="coder", goal=goal, **fields)


def pattern(id: str, text: str, **fields: object) -> SemanticPattern:
    return SemanticPattern(id=id, pattern=text, category="c", **fields)


def order(goal: str, *found: Matched) -> list[str]:
    return [id_of(one.memory) for one in ranked(goal, found)]


def test_the_very_episode_of_a_light_source_comes_before_a_pattern_that_shares_half_of_it() -> None:
    light = Matched("episodic", 0.15, [(episode("same", GOAL), 9.0)])
    heavy = Matched("semantic", 0.5, [(pattern("client", "the client of the payment is blue"), 2.0)])
    assert order(GOAL, heavy, light) == ["same", "client"]


def test_of_two_that_match_as_well_the_weightier_source_comes_first() -> None:
    light = Matched("episodic", 0.15, [(episode("episode", GOAL), 9.0)])
    heavy = Matched("semantic", 0.5, [(pattern("pattern", GOAL), 7.0)])
    assert order(GOAL, light, heavy) == ["pattern", "episode"]


def test_scores_of_different_sources_are_not_compared() -> None:
    """Long episodes have lower scores than short patterns that hold as much."""
    long = Matched("episodic", 0.4, [(episode("long", GOAL, files_read=["a"] * 50), 1.0)])
    short = Matched("semantic", 0.2, [(pattern("short", GOAL), 50.0)])
    assert order(GOAL, long, short) == ["long", "short"]


def test_within_a_source_the_order_of_the_search_stays() -> None:
    hits = [(episode(f"e{n}", GOAL if n == 3 else "retry"), 9.0 - n) for n in range(5)]
    assert order(GOAL, Matched("episodic", 0.4, hits)) == ["e0", "e1", "e2", "e3", "e4"]


@pytest.mark.parametrize(("less", "more"), [(0.4, 0.6), (0.0, 1.0), (-5.0, 1e9)])
def test_importance_decides_between_equals(less: float, more: float) -> None:
    hits = [(episode("less", GOAL, importance=less), 5.0), (episode("more", GOAL, importance=more), 5.0)]
    assert order(GOAL, Matched("episodic", 0.4, hits)) == ["more", "less"]


def test_importance_is_a_mild_factor() -> None:
    hits = [(episode("best", GOAL, importance=0.0), 5.0), (episode("other", GOAL, importance=1.0), 3.0)]
    assert order(GOAL, Matched("episodic", 0.4, hits)) == ["best", "other"]
    assert importance_factor(hits[0][0]) == pytest.approx(0.7)
    assert importance_factor(hits[1][0]) == pytest.approx(1.0)


def test_the_newer_of_equals_comes_first_and_one_without_a_time_last() -> None:
    old = episode("old", GOAL, timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    new = episode("new", GOAL, timestamp=datetime(2026, 1, 2, tzinfo=UTC))
    hits = [(episode("never", GOAL), 5.0), (old, 5.0), (new, 5.0)]
    assert order(GOAL, Matched("episodic", 0.4, hits)) == ["new", "old", "never"]


@pytest.mark.parametrize("goal", ["", "the of", "🔥", '"', "部署方案", "x" * 100_000])
def test_scores_and_relevance_are_from_0_to_1(goal: str) -> None:
    skill = ProceduralSkill(id="s", name="部署", description="方案", steps=["一"])
    found = ranked(
        goal, [Matched("procedural", 1.0, [(skill, 3.0)]), Matched("semantic", 0.5, [(pattern("p", ""), 1e-6)])]
    )
    assert [id_of(one.memory) for one in found][:1] == ["s"]
    assert all(0 < one.relevance <= 1 and 0 < one.score <= 1 for one in found)


def test_what_does_not_count_for_the_task_is_left_out() -> None:
    assert order(GOAL, Matched("procedural", 0.0, [(episode("e", GOAL), 5.0)]), Matched("semantic", 0.5, [])) == []


# -- what goes before the score ----------------------------------------------------------------------------------------


def places(*found: Matched) -> list[str]:
    return [id_of(one.memory) for one in spread(ranked(GOAL, found))]


def test_of_near_duplicates_two_keep_their_places() -> None:
    same = [(episode(f"same{n}", f"{GOAL}{'!' * n}".title()), 9.0 - n / 10) for n in range(5)]
    other = [(episode("other", "payment retry"), 2.0), (episode("more", "retry the client"), 1.0)]
    found = Matched("episodic", 0.4, [*same, *other])
    assert places(found) == ["same0", "same1", "other", "more", "same2", "same3", "same4"]
    assert places(Matched("episodic", 0.4, same)) == [f"same{n}" for n in range(5)]
    alike = [(pattern(f"p{n}", GOAL), 9.0 - n) for n in range(4)]
    assert places(Matched("semantic", 0.4, alike)) == ["p0", "p1", "p2", "p3"], "patterns are no repetitions"


@pytest.mark.parametrize(
    ("text", "place"),
    [("retry the payment client", 2), ("add the payment", 2), ("add it", 6)],
)
def test_a_source_that_is_relevant_has_one_of_the_first_three_places(text: str, place: int) -> None:
    heavy = Matched("episodic", 0.4, [(episode(f"e{n}", f"{GOAL} {n}"), 9.0 - n / 10) for n in range(6)])
    light = Matched("anti_pattern", 0.05, [(pattern("a", text, importance=0.0), 3.0)])
    assert places(heavy, light).index("a") == place
    assert places(light, heavy)[:2] == ["e0", "e1"]


# -- the budget --------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_left_out_and_the_next_is_tried() -> None:
    def count(text: str) -> int:
        return len(text)

    memories = [{"id": "a" * 10}, {"id": "b" * 500}, {"id": "c" * 20}, {"id": "d" * 20}]
    budget = tokens_of(memories[0], count) + tokens_of(memories[2], count)
    taken, spent = fitting(memories, 10, budget, lambda one: one, count)
    assert taken == [memories[0], memories[2]]
    assert spent == budget
    assert fitting(memories, 1, budget, lambda one: one, count)[0] == memories[:1]
    assert fitting(memories, 10, 0, lambda one: one, count) == ([], 0)
    assert fitting(memories, 10, None, lambda one: one, count) == (memories, 0)


def test_a_memory_is_counted_by_its_compact_json_in_its_own_script() -> None:
    assert text_of({"goal": "部署", "n": 1}) == '{"goal":"部署","n":1}'
