"""What the document calls invalid in an episode is stored all the same, and told once; times are the database's."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

import memdb
from memdb import Memory, UnifiedMemoryAccess
from memdb.layers.experience import stored_episodes
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.layer import Live
from memdb.testing import FrozenClock

DICT: dict[str, Any] = {"id": "e1", "task_id": "t", "agent": "a", "context": {"goal": "g"}}
LONG_AGO = datetime(2020, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(stored_episodes, "_logged", set())
    caplog.set_level(logging.WARNING, "memdb")
    return caplog


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"outcome": "failed"}, "EpisodeTrace.outcome must be one of success, failure, partial"),
        (
            {"errors_encountered": [{"error": "TypeError", "message": "x"}]},
            "ErrorEntry.error_type is required (its 'error' is unknown, and kept as it is)",
        ),
        ({"action_log": [{"name": "bash"}]}, "ActionEntry.tool is required (its 'name' is unknown"),
        ({"duration_seconds": -1}, "EpisodeTrace.duration_seconds must be at least 0"),
    ],
)
async def test_what_is_invalid_is_stored_and_told_once(
    memory: Memory[Live], told: pytest.LogCaptureFixture, given: dict[str, Any], sentence: str
) -> None:
    for n in (1, 2):
        assert await memory.engine.store_episode(DICT | given | {"id": f"e{n}"}) == f"e{n}"
    await memory.engine.episodic.store_many([EpisodeTrace.from_dict(DICT | given | {"id": "e3"})])
    assert [sentence in text for text in told.messages] == [True]
    stored = await memory.engine.get_episode("e2")
    assert stored is not None
    assert len(stored.validate()) == 1


async def test_a_sound_episode_is_no_news(memory: Memory[Live], told: pytest.LogCaptureFixture) -> None:
    access = UnifiedMemoryAccess(memory.engine)
    assert await access.record_episode("t", "a", "g", ["bash"])
    await memory.engine.store_episode(DICT)
    assert told.messages == []
    assert await access.record_episode("t", "a", "g", ["bash"], outcome="failed")
    assert [text.count("outcome") for text in told.messages] == [1]


@pytest.mark.parametrize(
    "given",
    [
        DICT,
        EpisodeTrace(id="e1", task_id="t", agent="a", goal="g"),
        SimpleNamespace(id="e1", task_id="t", agent="a", goal="g"),
        SimpleNamespace(to_dict=lambda: DICT),
    ],
    ids=["dict", "trace", "object", "object with to_dict"],
)
async def test_an_episode_without_a_time_gets_the_database_s(given: Any) -> None:
    async with memdb.open(":memory:", clock=FrozenClock(LONG_AGO)) as db:
        engine = db.memory("alice").engine
        stored = await engine.get_episode(await engine.store_episode(given))
    assert stored is not None
    assert stored.timestamp == LONG_AGO
