"""Which kind of task a context is about: whole words, points, ties and defaults (loki document, TASK_STRATEGIES)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.errors import InvalidInput
from memdb.retrieval.experience.tasks import (
    POINTS,
    TASK_SIGNALS,
    TASK_STRATEGIES,
    Signal,
    detect_task_type,
    how_many,
    strategy_of,
    task_scores,
    task_signals,
    task_type_of,
)
from memdb.text.phrases import Phrases, endings


def found(**context):
    return [(signal.task_type, signal.phrase) for signal in task_signals(context)]


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("Fix the crash at start", "debugging"), ("Implement the search endpoint", "implementation"),
        ("What is the architecture?", "exploration"), ("Review the pull request", "review"),
        ("Clean up the parser", "refactoring"), ("cleaning up, renaming, moving", "refactoring"),
        ("Restructure the code", "refactoring"),  # "structure" stands in it
        ("investigate error 500", "debugging"), ("investigate the log", "exploration"),
        ("Refactoring the auth module", "refactoring"), ("Verified the bugs", "debugging"),
        ("FIX: ＣＲＡＳＨ", "debugging"), ("", "implementation"), ("修复生产报错", "implementation"),
        ("?!", "implementation"),
    ],
)  # fmt: skip
def test_goals(goal, expected):
    assert detect_task_type({"goal": goal}) == expected


@pytest.mark.parametrize(
    "goal",
    [
        "Change the address",
        "the prefix and the suffix",
        "remove it",
        "a splinter",
        "a prebuilt thing",
        "paddle",
        "tissue",
    ],
)
def test_words_within_words_do_not_count(goal):
    assert found(goal=goal) == []


@pytest.mark.parametrize(
    ("goal", "expected", "phrases"),
    [
        ("a TypeError in the parser", "debugging", ["error"]),
        ("java.lang.NullPointerException: null", "debugging", ["exception"]),
        ("investigate TypeErrors", "debugging", ["investigate", "error", "investigate error"]),
        ("the payment API timed out again", "debugging", ["time out"]),
        ("Timeouts of the bank", "debugging", ["timeout"]),
        ("read the stack trace", "debugging", ["stack trace"]),
        ("a traceback", "debugging", ["traceback"]),
        ("the app fails", "debugging", ["fail"]), ("it failed: a failure", "debugging", ["fail", "failure"]),
        ("failing", "debugging", ["failing"]),  # a word of the document's own counts once
        ("add a timeout", "implementation", ["add", "timeout"]),  # a tie, as the document decides ties
        ("add error handling for timeouts and failures", "implementation", ["add", "error"]),
        ("the failover of the ErrorHandler", "implementation", []),
        ("a terror of fails-afe, timeouter", "debugging", ["fail"]), ("Terrorists", "implementation", []),
    ],
)  # fmt: skip
def test_other_words_for_what_is_broken(goal, expected, phrases):
    assert detect_task_type({"goal": goal}) == expected
    assert [phrase for _, phrase in found(goal=goal)] == phrases
    assert found(action_type="fail_timeout") == found(phase="timeout") == []


def test_points_by_where_a_word_stands():
    context = {"goal": "fix it", "action_type": "run_test", "phase": "fixing"}
    assert task_signals(context) == [
        Signal("debugging", "goal", "fix", 2),
        Signal("debugging", "action_type", "run_test", 3),
        Signal("debugging", "phase", "fixing", 4),
    ]
    assert task_scores(task_signals(context)) == {
        "exploration": 0, "implementation": 0, "debugging": 9, "review": 0, "refactoring": 0,
    }  # fmt: skip
    assert detect_task_type({"goal": "fix", "action_type": "diff"}) == "review"
    assert detect_task_type({"goal": "fix", "action_type": "diff", "phase": "coding"}) == "implementation"
    assert detect_task_type({"goal": "fix a bug with an error", "phase": "coding"}) == "debugging"
    assert found(goal="fix fix fixed fixes fixing") == [("debugging", "fix")]  # each counts once


def test_every_word_of_the_table_is_found_by_itself():
    for kind, signals in TASK_SIGNALS.items():
        for where in POINTS:
            for phrase in signals[where]:
                assert (kind, phrase) in found(**{where: phrase}), phrase
                assert (kind, phrase) in found(**{where: f"x {phrase.upper()} y"}), phrase


def test_actions_are_found_in_the_names_of_tools():
    for name in ("readFile", "mcp__fs__read_file", "read-file", "READ_FILE", "read_files"):
        assert found(action_type=name) == [("exploration", "read_file")], name
    assert found(action_type="research") == found(action_type="tracer") == []


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("explore or implement", "exploration"), ("implement a fix", "implementation"), ("debug, review", "debugging"),
        ("review, refactor", "review"), ("move, check, fix, add, find", "exploration"),
    ],
)  # fmt: skip
def test_ties_go_by_the_order_of_the_document(goal, expected):
    assert detect_task_type({"goal": goal}) == expected


def test_a_named_kind_counts_and_only_auto_is_detected():
    goal = "fix the crash"
    assert task_type_of({"goal": goal}) == task_type_of({"goal": goal, "task_type": None}) == "implementation"
    assert task_type_of({"goal": goal, "task_type": "auto"}) == "debugging"
    assert task_type_of({"goal": goal, "task_type": "review"}) == "review"
    assert task_type_of({"task_type": "gardening"}) == "gardening"
    assert strategy_of("gardening") == strategy_of("implementation") == TASK_STRATEGIES["implementation"]


def test_what_sources_count_and_how_many_are_taken():
    assert list(TASK_STRATEGIES) == ["exploration", "implementation", "debugging", "review", "refactoring"]
    for weights in TASK_STRATEGIES.values():
        assert list(weights) == ["episodic", "semantic", "skills", "anti_patterns"]
        assert sum(weights.values()) == pytest.approx(1)
    assert strategy_of("debugging") == {"episodic": 0.4, "semantic": 0.2, "skills": 0.0, "anti_patterns": 0.4}
    assert [how_many(5, weight) for weight in (0.6, 0.3, 0.1, 0.0)] == [6, 3, 1, 0]
    assert how_many(1, 0.15) == 1


@pytest.mark.parametrize("bad", [{"goal": 5}, {"phase": ["x"]}, {"action_type": b"x"}, {"task_type": 5}])
def test_what_is_no_text_is_refused(bad):
    with pytest.raises(InvalidInput, match=f"{next(iter(bad))} of the context must be text"):
        task_type_of({"task_type": "auto"} | bad)
    for none in (None, "goal", [("goal", "x")]):
        with pytest.raises(InvalidInput, match="the context must be a dict"):
            task_type_of(none)
        with pytest.raises(InvalidInput, match="the context must be a dict"):
            task_signals(none)


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=50))
def test_any_text_is_some_kind_of_task(goal, action, phase):
    assert detect_task_type({"goal": goal, "action_type": action, "phase": phase}) in TASK_STRATEGIES


def test_regular_endings():
    assert {"move", "moves", "moved", "moving"} <= endings("move")
    assert {"verifies", "verified", "verifying"} <= endings("verify")
    assert {"stopped", "stopping"} <= endings("stop")
    assert {"fixes", "fixed", "fixing"} <= endings("fix")
    assert "fixxed" not in endings("fix")
    phrases = Phrases(["new feature", "is", "+", "new"])
    assert phrases.found("The NEW features") == ["new feature", "new"]
    assert phrases.found("ising a new, old feature") == ["new"]
    assert phrases.found("") == Phrases([]).found("new") == []
