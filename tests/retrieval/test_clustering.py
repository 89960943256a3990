"""Episodes into patterns: clusters, confidences, merging, links, and that a second run changes nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry, ErrorEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.retrieval.experience.clustering import (
    KIND_WORDS,
    anti_patterns_of,
    cluster_by_error_type,
    cluster_by_task_type,
    infer_task_type,
    patterns_of,
)
from memdb.retrieval.experience.consolidating import Consolidated, consolidated
from memdb.retrieval.experience.linking import MAX_LINKS, links_of
from memdb.retrieval.experience.merging import Known, merged, similarity
from memdb.retrieval.experience.subjects import cluster_by_subject
from memdb.text.similarity import jaccard, telling_words
from tests.strategies import SAME_EVERY_TIME

DAY = datetime(2026, 11, 30, tzinfo=UTC)


def episode(
    id: str, goal: str, *tools: str, errors: Sequence[str] = (), resolution: str = "", **fields: Any
) -> EpisodeTrace:
    return EpisodeTrace(
        id=id,
        task_id="t",
        agent=fields.pop("agent", "coder"),
        goal=goal,
        timestamp=fields.pop("timestamp", DAY),
        action_log=[ActionEntry(tool=tool) for tool in tools],
        errors_encountered=[ErrorEntry(error_type=one, message="m", resolution=resolution) for one in errors],
        outcome=fields.pop("outcome", "failure" if errors else "success"),
        **fields,
    )


def pattern(id: str, text: str, category: str = "debugging", **fields: Any) -> SemanticPattern:
    return SemanticPattern(id=id, pattern=text, category=category, **fields)


TWO = [
    episode(
        "e1", "Implement the login API", "read_file", "edit_file", "edit_file", phase="ACT", files_modified=["a.py"]
    ),
    episode("e2", "Create an API for login", "read_file", "edit_file", phase="ACT", files_read=["b.py", "c.md"]),
]
FAILED = [
    episode("f1", "Deploy it", "build", "push", "run", errors=["TimeoutError", "TimeoutError", " "], resolution="wait"),
    episode("f2", "Deploy again", "push", errors=["TimeoutError "]),
]


@pytest.mark.parametrize(
    ("goal", "agent", "expected"),
    [
        ("Implement the login", "x", "implementation"), ("Fix the bug", "x", "debugging"),
        ("Add tests", "x", "testing"),
        ("Fix the failing test", "x", "debugging"), ("Write documentation", "x", "documentation"),
        ("Releasing 2.0", "x", "deployment"), ("Look around", "review-agent", "review"),
        ("Look around", "x", "general"),
        ("Change the address of the prefix", "", "general"), ("实现搜索接口", "", "general"), ("", "", "general"),
    ],
)  # fmt: skip
def test_what_kind_of_work_an_episode_was(goal, agent, expected):
    assert infer_task_type(episode("e", goal, agent=agent)) == expected


def test_two_successes_of_one_kind_are_a_pattern():
    [found] = patterns_of(TWO)
    assert found.pattern == "Implementation tasks about api, login"
    assert (found.category, found.confidence, found.source_episodes) == ("implementation", 0.7, ["e1", "e2"])
    assert found.conditions == ["During the ACT phase", "When working with .py files"]
    assert found.correct_approach == "read_file, then edit_file"
    assert found.validate() == []


def test_one_success_is_no_pattern_and_a_partial_one_is_none():
    alone = [TWO[0], episode("e3", "Fix it"), episode("e4", "Fix it", outcome="partial"), *FAILED]
    assert list(patterns_of(alone)) == []
    assert list(patterns_of([TWO[0], TWO[0]])) == []  # one episode, given twice


@pytest.mark.parametrize(("size", "sure", "anti"), [(2, 0.7, 0.6), (4, 0.9, 0.8), (5, 0.95, 0.8), (40, 0.95, 0.8)])
def test_how_sure_a_pattern_is(size, sure, anti):
    [found] = patterns_of(episode(f"e{number}", "Fix it") for number in range(size))
    [avoid] = anti_patterns_of(episode(f"f{number}", "Fix it", errors=["E"]) for number in range(size))
    assert (found.confidence, avoid.confidence) == (sure, anti)


def test_failures_are_grouped_by_the_type_of_their_errors():
    assert {kind: [one.id for one in ones] for kind, ones in cluster_by_error_type(FAILED).items()} == {
        "TimeoutError": ["f1", "f2"]
    }
    [found] = anti_patterns_of([*FAILED, episode("e", "Deploy", errors=["Other"], outcome="success")])
    assert (found.pattern, found.category) == ("Avoid: TimeoutError", "anti-pattern")
    assert found.is_anti_pattern
    assert (found.confidence, found.source_episodes) == (0.6, ["f1", "f2"])
    assert found.conditions == ["When encountering: TimeoutError"]
    assert found.correct_approach == "wait"
    assert found.incorrect_approach == "Last done before it failed: push, build, run"
    [alone] = anti_patterns_of(FAILED[1:])
    assert (alone.confidence, alone.correct_approach) == (0.5, "")


def test_what_goals_have_in_common_in_a_script_without_spaces():
    [found] = patterns_of([episode("a", "实现搜索接口"), episode("b", "优化搜索接口 v2"), episode("c", "搜索接口报错")])
    assert found.pattern == "General tasks about 搜索接口"


def test_goals_without_words_of_their_own_are_told_by_the_first():
    [found] = patterns_of([episode("b", "Fixed it"), episode("a", "Fix it")])
    assert found.pattern == "Debugging tasks such as: Fix it"
    assert found.correct_approach == ""


BUGS = {
    "parser": ["Fix the parser crash on empty csv lines", "Fix empty lines in the csv parser", "Bug: csv parsers"],
    "payment": ["Fix the payment API timeout", "Debug timeouts of the payment API", "Payment API timed out: fix"],
    "alone": ["Fix the umlauts in invoices"],
}


def test_different_bugs_are_different_patterns():
    """Of one kind of work, too, those are joined whose goals share words: without endings, numbers and boilerplate."""
    lived = [
        episode(f"{name}-{number}", goal, timestamp=DAY + timedelta(hours=7 * number % 5))
        for name, goals in BUGS.items()
        for number, goal in enumerate(goals)
    ]
    found = [{id.split("-")[0] for id in one.source_episodes} for one in patterns_of(lived)]
    assert sorted(map(sorted, found)) == [["parser"], ["payment"]]
    assert sorted(len(one.source_episodes) for one in patterns_of(lived)) == [3, 3]
    assert [one.category for one in patterns_of(lived)] == ["debugging", "debugging"]
    first = consolidated(lived, [])
    assert first.result.patterns_created == 2
    assert consolidated(lived[::-1], first.created).changed == consolidated(lived, first.created).created == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Fix the login", "Fix login bug 17 of the app", True), ("Fix alpha", "Fix beta", False),
        ("Fix run 17", "Fix test 17", False), ("Fix processes of lines", "Fix a line of the process", True),
        ("修复搜索接口", "修复搜索接口 v2", True), ("搜索接口", "部署方案", False), ("Fix it", "Fix alpha", False),
        ("Fix payment API timeout", "Fix user API login", False), ("", "", True),
    ],
)  # fmt: skip
def test_what_is_about_the_same(one, other, same):
    clusters = cluster_by_subject([episode("a", one), episode("b", other)], KIND_WORDS["debugging"])
    assert len(clusters) == (1 if same else 2)


def test_similarity():
    one = pattern("a", "login timeout redis", conditions=["X", "y"])
    assert similarity(one, one) == 1.0
    assert similarity(one, pattern("b", "login timeout redis")) == 0.8
    assert similarity(one, pattern("b", "login timeout redis", "review", conditions=["x", "Y"])) == 0.7
    assert similarity(one, pattern("b", "login postgres", conditions=["x"])) == pytest.approx(0.5 / 4 + 0.3 + 0.1)
    assert similarity(one, pattern("b", "something else", "review")) == 0.0
    leads = ("Debugging tasks about login", "Debugging tasks about parser")  # what all say makes none alike
    assert similarity(pattern("a", leads[0]), pattern("b", leads[1])) == 0.3
    assert telling_words("The 搜索 of it") == {"搜索", "索"}
    assert telling_words("of it") == {"of", "it"}
    assert jaccard(set(), set()) == 0.0


def test_merging_adds_what_is_new_and_only_new_episodes_make_surer():
    known = pattern(
        "k", "login", conditions=["X"], confidence=0.7, source_episodes=["e1"], usage_count=3, importance=0.2
    )
    found = pattern("f", "other", conditions=["x", "Y"], correct_approach="do", source_episodes=["e1", "e2"])
    made = merged(known, found)
    assert (made.id, made.pattern, made.usage_count, made.confidence) == ("k", "login", 3, 0.75)
    assert (made.conditions, made.source_episodes) == (["X", "Y"], ["e1", "e2"])
    assert (made.correct_approach, made.importance) == ("do", 0.5)
    assert merged(made, found) is made
    assert (known.source_episodes, known.conditions) == (["e1"], ["X"])
    assert merged(known.model_copy(update={"confidence": 0.97}), found).confidence == 0.99
    assert merged(known.model_copy(update={"confidence": 1.0}), found).confidence == 1.0
    told = merged(known, pattern("f", "x", conditions=["Z"], source_episodes=["e1"]))
    assert (told.confidence, told.importance, told.conditions) == (0.7, 0.2, ["X", "Z"])


def test_a_first_run_and_a_second():
    first = consolidated([*TWO, *FAILED], [])
    assert first.result.to_dict() == {
        "patterns_created": 1, "patterns_merged": 0, "anti_patterns_created": 1, "links_created": 0,
        "episodes_processed": 4, "duration_seconds": 0.0, "vector_index_stale": False,
    }  # fmt: skip
    second = consolidated(reversed([*TWO, *FAILED]), first.created)
    assert (second.created, second.changed) == ([], [])
    assert (second.result.patterns_merged, second.result.links_created) == (2, 0)
    third = consolidated([*TWO, *FAILED, episode("e3", "Build the login API")], first.created)
    assert third.created == []
    [grown] = third.changed
    assert (grown.confidence, grown.source_episodes) == (0.75, ["e1", "e2", "e3"])


def test_what_a_user_wrote_is_merged_into_if_it_is_the_same():
    own = pattern("mine", "API, login", "implementation", conditions=["During the ACT phase"], confidence=0.9)
    run = consolidated(TWO, [own])
    assert run.created == []
    [changed] = run.changed
    assert (changed.id, changed.pattern, changed.confidence) == ("mine", "API, login", 0.95)
    assert consolidated(TWO, [changed]).changed == []
    for other in (pattern("mine", "API, login", "review"), pattern("mine", "logout", "implementation")):
        assert len(consolidated(TWO, [other]).created) == 1


def test_what_was_merged_once_is_known_even_where_it_is_no_longer_alike():
    conditions = ["During the ACT phase", "When working with .py files"]
    own = pattern("mine", "API, login, tokens", "implementation", conditions=conditions)
    [grown] = consolidated(TWO, [own]).changed
    edited = grown.model_copy(update={"conditions": [*conditions, *(f"more {number}" for number in range(8))]})
    assert (consolidated(TWO, [edited]).created, consolidated(TWO, [edited]).changed) == ([], [])
    for other in ({"source_episodes": ["e1"]}, {"category": "review"}, {"conditions": conditions[:1]}):
        assert len(consolidated(TWO, [edited.model_copy(update=other)]).created) == 1


def test_errors_that_are_alike_are_one_anti_pattern_and_others_are_not():
    alike = [
        episode(id, "x", errors=[f"connection timeout error{more}"]) for id, more in (("f1", ""), ("f2", " again"))
    ]
    run = consolidated(alike, [])
    [made] = run.created
    assert (made.pattern, made.source_episodes) == ("Avoid: connection timeout error", ["f1", "f2"])
    assert (made.confidence, run.result.patterns_merged) == (0.55, 1)
    assert consolidated(alike, [made]).changed == []
    failures = [episode("f1", "x", errors=["TypeError", "KeyError", "database locked", "database timeout"])]
    assert consolidated(failures, []).result.anti_patterns_created == 4
    own = pattern("a", "Avoid: connection refused by the host", "anti-pattern", confidence=0.5)
    run = consolidated([episode("f1", "x", errors=["connection refused host"])], [own])
    assert [one.id for one in run.changed] == ["a"]


def test_links_of_a_new_pattern():
    known = Known(
        [
            pattern("new", "login timeout redis", correct_approach="raise the limit", source_episodes=["e1", "e2"]),
            pattern("alike", "login timeout", source_episodes=["e1"]),
            pattern("supports", "timeout elsewhere", correct_approach="raise limit"),
            pattern("avoid", "Avoid: login timeout", "anti-pattern"),
            pattern("wrong", "timeout of sessions", "review", incorrect_approach="raise the limit"),
            pattern("shared", "something else", "review", source_episodes=["e2"]),
            pattern("none", "nothing", "review"),
            pattern("category", "nothing of it"),
            pattern("few", "nothing of it", source_episodes=["e2", "x1", "x2", "x3", "x4"]),
        ]
    )
    number = [one.id for one in known.patterns].index("new")
    links = [(link.to_id, link.relation, link.strength) for link in links_of(number, known)]
    assert links == [
        ("avoid", "contradicts", 0.8), ("wrong", "contradicts", 0.8), ("supports", "supports", 0.7),
        ("alike", "related_to", 0.633), ("shared", "related_to", 0.5),
        ("few", "related_to", 0.2),
    ]  # fmt: skip
    many = Known([pattern(f"p{n:02}", f"login word{n}") for n in range(30)])
    assert [link.to_id for link in links_of(5, many)] == [f"p{n:02}" for n in range(11) if n != 5]
    assert len(links_of(5, many)) == MAX_LINKS


def test_a_new_pattern_is_linked_to_those_that_are_known():
    run = consolidated(FAILED, [pattern("old", "TimeoutError of the proxy", "review", correct_approach="wait")])
    [made] = run.created
    assert [(link.to_id, link.relation) for link in made.links] == [("old", "contradicts")]
    assert run.result.links_created == 1
    assert consolidated(FAILED, [made]).changed == []


WORDS = ["login", "cache", "parser", "retry", "搜索接口"]
goals = st.tuples(
    st.sampled_from(["Fix", "Implement", "Test", "Look at"]), st.sampled_from(WORDS), st.sampled_from(WORDS)
)
episodes = st.lists(
    st.builds(
        episode,
        st.integers(0, 30).map(str),
        goals.map(" ".join),
        st.sampled_from(["read", "edit", "run"]),
        errors=st.lists(
            st.sampled_from(["Timeout of login", "Timeout of cache", "Timeout of login cache", "E"]), max_size=2
        ),
        timestamp=st.integers(0, 5).map(lambda days: DAY + timedelta(days=days)),
        phase=st.sampled_from(["", "ACT", "VERIFY"]),
        files_read=st.lists(st.sampled_from(["a.py", "b.md"]), max_size=1),
    ),
    max_size=12,
)


def stored(run: Consolidated, patterns: list[SemanticPattern]) -> list[SemanticPattern]:
    return list(({one.id: one for one in patterns} | {one.id: one for one in (*run.created, *run.changed)}).values())


@settings(SAME_EVERY_TIME, max_examples=200)
@given(episodes, episodes, st.randoms())
def test_the_order_does_not_matter_and_again_changes_nothing(before: list, now: list, order: random.Random) -> None:
    known = stored(consolidated(before, []), [])
    run = consolidated(now, known)
    shuffled = consolidated(sorted(now, key=lambda one: (one.id, order.random())) if unique(now) else now, known[::-1])
    assert shuffled == run
    after = stored(run, known)
    again = consolidated(now, after)
    assert (again.created, again.changed) == ([], [])
    assert len({one.id for one in after}) == len(after)
    for one in after:
        assert one.validate() == []
        assert one.confidence <= 0.99
        assert len(one.links) <= MAX_LINKS


def unique(found: list[EpisodeTrace]) -> bool:
    return len({one.id for one in found}) == len(found)


def test_ids_stand_for_what_a_pattern_is_about():
    ids = {one.id for one in (*patterns_of(TWO), *anti_patterns_of(FAILED))}
    assert {id.partition("-")[0] for id in ids} == {"sem", "anti"}
    later = [one.model_copy(update={"id": f"x{one.id}"}) for one in (*TWO, *FAILED)]
    assert {one.id for one in (*patterns_of(later), *anti_patterns_of(later))} == ids
    assert list(cluster_by_task_type(reversed(TWO))) == ["implementation"]
