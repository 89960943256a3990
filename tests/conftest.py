"""What all tests share. Layers see only `memory`, on a file and on :memory:, so the same suite runs on both."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import memdb
from memdb import Database, Memory
from memdb.layers.layer import Live
from memdb.testing import FrozenClock


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty file in WAL mode: a test copies it (0.4 ms) instead of making its own."""
    path = tmp_path_factory.mktemp("template") / "template.db"

    async def make() -> None:
        async with memdb.open(path):
            pass

    asyncio.run(make())
    return path


@pytest.fixture
def path(tmp_path: Path, template: Path) -> Path:
    """The path of a fresh memdb file."""
    return Path(shutil.copy(template, tmp_path / "agent.db"))


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest) -> Path | str:
    """Where a database lives: a file, or ":memory:"."""
    return request.getfixturevalue("path") if request.param == "file" else ":memory:"


@pytest.fixture
async def db(place: Path | str, clock: FrozenClock) -> AsyncIterator[Database]:
    """An open database, checked when the test is over."""
    async with memdb.open(place, clock=clock) as opened:
        yield opened
        report = await opened.check()
        assert report.ok, report.problems


@pytest.fixture
def memory(db: Database) -> Memory[Live]:
    return db.memory(user_id="alice")
