"""Episodes that the tests of the store share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from memdb import Memory
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.parts import ActionEntry, ErrorEntry
from memdb.layers.layer import Inside
from memdb.testing.clock import NOON

MICROSECOND = timedelta(microseconds=1)


def inside(memory: Memory[Inside]) -> EpisodicMemory[Inside]:
    return EpisodicMemory(memory.scope, memory._home)


def trace(id: str = "e1", at: datetime = NOON, **fields: Any) -> EpisodeTrace:
    given = {"task_id": "t", "agent": "coder", "goal": f"goal of {id}"} | fields
    return EpisodeTrace(id=id, timestamp=at, **given)


WHOLE = trace(
    id="ep-2026-01-01-0123abcd",
    task_id="task-7",
    agent="reviewer",
    phase="VERIFY",
    goal="Check that the login works",
    duration_seconds=12.5,
    action_log=[ActionEntry(tool="grep", input={"path": "src/core.py", "n": [1, None]}, output="3 hits", timestamp=2)],
    outcome="partial",
    errors_encountered=[ErrorEntry(error_type="TimeoutError", message="gave up", resolution="waited longer")],
    artifacts_produced=["report.md"],
    git_commit="abc123",
    tokens_used=2**60 + 1,
    files_read=["src/core.py"],
    files_modified=["src/ログイン.py"],
    importance=0.75,
    access_count=4,
    last_accessed=NOON + MICROSECOND,
    extra={"context": {"constraints": ["no network"]}, "namespace": "x"},
)
