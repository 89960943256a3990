"""The blocks of a session as `memdb state` prints them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memdb
from memdb.cli import main
from memdb.testing import FrozenClock


@pytest.fixture
def busy(path: Path) -> Path:
    """A file in which alice's agent keeps blocks in session s."""

    async def work() -> None:
        async with memdb.open(path, clock=FrozenClock(datetime(2026, 6, 11, 12, tzinfo=UTC))) as db:
            memory = db.memory("alice", "s")
            await memory.manager.update_state({"step": 1})
            await memory.blocks.configure(
                {"task": {"size": 1_500, "priority": 2, "description": "Now"}, "notes\n": {"size": 9}}
            )
            await memory.blocks.update_memory("task", "Fix the parser.\nThen rest.\n")

    asyncio.run(work())
    return path


def test_blocks_are_printed(busy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", str(busy), "--user", "alice", "--session", "s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("block  task"))
    assert lines[at] == "block  task, 7 of 1,500 tokens, priority 2, version 2, 2026-06-11 12:00"
    assert lines[at + 1 :] == [
        "Fix the parser.",
        "Then rest.",
        "block  notes, 0 of 9 tokens, priority 1, version 1, 2026-06-11 12:00",
    ]


def test_blocks_are_printed_as_json(busy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", str(busy), "--user", "alice", "--session", "s", "--json"]) == 0
    blocks = json.loads(capsys.readouterr().out)["blocks"]
    assert list(blocks) == ["task", "notes\n"]
    assert blocks["task"] == {
        "content": "Fix the parser.\nThen rest.\n",
        "tokens": 7,
        "size_limit": 1_500,
        "priority": 2,
        "description": "Now",
        "last_updated": "2026-06-11T12:00:00.000000Z",
        "version": 2,
    }
