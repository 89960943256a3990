"""What a memory is worth: the estimate, decay by whole days and the boost of a recall (loki document)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.errors import InvalidInput
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.importance import boosted, calculate_importance, decay_begins, decay_factor, decayed
from memdb.layers.experience.parts import ErrorEntry
from memdb.layers.experience.pattern import SemanticPattern

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ERRORS = [ErrorEntry(error_type="E", message="m")] * 5


@pytest.mark.parametrize(
    ("memory", "task_type", "expected"),
    [
        ({}, None, 0.5), ({"importance": None}, None, 0.5), ({"importance": "much"}, None, 0.5),
        ({"outcome": "success"}, None, 0.6), ({"outcome": "failure"}, None, 0.4), ({"outcome": "partial"}, None, 0.5),
        ({"outcome": "success", "errors_encountered": [{}]}, None, 0.65),
        ({"outcome": "success", "errors_encountered": [{}] * 9}, None, 0.75),
        ({"outcome": "failure", "errors_encountered": [{}] * 9}, None, 0.4),
        ({"access_count": 1}, None, 0.535), ({"access_count": -5}, None, 0.5),
        ({"confidence": 0.9}, None, 0.7), ({"confidence": 0.0}, None, 0.25), ({"confidence": None}, None, 0.5),
        ({"importance": 9}, None, 1.0), ({"importance": -9}, None, 0.0), ({"importance": 0.12345}, None, 0.123),
        ({}, "debugging", 0.5), ({"phase": "", "category": ""}, "debugging", 0.5),
        ({"context": {"phase": "debugging"}}, "debugging", 0.6), ({"phase": "DEBUG"}, "debugging", 0.6),
        ({"context": {"phase": "ACT"}}, "refactoring", 0.5),  # "act" stands in it, and does not name it
        ({"category": "error-handling"}, "error handling", 0.6),
        ({"category": "review", "phase": "review"}, "review", 0.7), ({"category": "review"}, "", 0.5),
        (EpisodeTrace(id="e", task_id="t", agent="a", goal="g", errors_encountered=ERRORS), "act", 0.75),
        (SemanticPattern(id="p", pattern="p", category="review", confidence=0.9), "review", 0.8),
    ],
)  # fmt: skip
def test_the_estimate(memory, task_type, expected):
    assert calculate_importance(memory, task_type) == expected


def test_a_half_life_is_one_and_the_documents_rate_can_be_had():
    assert decay_factor(30) == pytest.approx(0.5)
    assert decay_factor(7, half_life_days=7) == pytest.approx(0.5)
    assert decay_factor(30, decay_rate=0.1) == pytest.approx(0.905, abs=0.0005)
    assert decay_factor(0) == decay_factor(-3) == decay_factor(5, decay_rate=0) == 1


@pytest.mark.parametrize("bad", [{"half_life_days": 0}, {"half_life_days": float("nan")}, {"decay_rate": -1}])
def test_rates_that_are_none(bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        decay_factor(1, **bad)
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        decayed(0.5, NOW - DAY, NOW, **bad)


def test_a_second_run_on_one_day_changes_nothing():
    first = decayed(0.8, NOW - 30 * DAY, NOW)
    assert first.importance == pytest.approx(0.4)
    assert first.decayed_at == NOW
    for hours in (0, 1, 23):
        later = NOW + timedelta(hours=hours)
        assert decayed(first.importance, NOW - 30 * DAY, later, decayed_at=first.decayed_at) == first


@given(st.floats(0, 1), st.lists(st.floats(0, 5), max_size=30), st.floats(0, 20))
def test_after_any_gaps_it_is_what_one_run_gives(importance, gaps, until):
    since, at, worth, now = NOW, None, importance, NOW
    for gap in gaps:
        now += gap * DAY
        worth, at = decayed(worth, since, now, decayed_at=at)
    now += until * DAY
    assert decayed(worth, since, now, decayed_at=at).importance == pytest.approx(decayed(importance, since, now)[0])


def test_what_is_left_at_least_and_what_stays():
    assert decayed(0.8, NOW - 10_000 * DAY, NOW).importance == 0.01
    assert decayed(0.005, NOW - 10_000 * DAY, NOW).importance == 0.005  # never raised
    assert decayed(0.8, None, NOW) == (0.8, None)
    assert decayed(0.8, NOW + DAY, NOW) == (0.8, None)
    recalled = decayed(0.8, NOW - DAY, NOW, decayed_at=NOW - 20 * DAY)  # since the recall, not since the last run
    assert recalled.importance == pytest.approx(0.8 * decay_factor(1))


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ({}, None), ({"last_accessed": "broken", "timestamp": "2026-11-30T12:00:00Z"}, NOW),
        ({"last_accessed": NOW, "timestamp": NOW - DAY}, NOW), ({"last_used": "2026-11-30T12:00:00"}, NOW),
        ({"timestamp": NOW, "last_used": NOW - DAY}, NOW), ({"timestamp": 5}, None),
        (EpisodeTrace(id="e", task_id="t", agent="a", goal="g", timestamp=NOW), NOW),
        (SemanticPattern(id="p", pattern="p", category="c", last_used=NOW, last_accessed=NOW - DAY), NOW - DAY),
    ],
)  # fmt: skip
def test_where_decay_begins(memory, expected):
    assert decay_begins(memory) == expected


def test_a_recall_gives_a_share_of_what_is_missing():
    assert boosted(0.5) == pytest.approx(0.55)
    assert boosted(0.5, 1) == boosted(1.0) == 1.0
    assert boosted(0.5, 0) == 0.5
    for bad in (-0.1, 1.1, float("nan"), "much"):
        with pytest.raises(InvalidInput, match="boost"):
            boosted(0.5, bad)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_boost_never_leaves_the_range_and_never_takes(importance, boost):
    assert importance <= boosted(importance, boost) <= 1 or boosted(importance, boost) == pytest.approx(importance)
