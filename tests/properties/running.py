"""A database for one example of a property, and the coroutines of a test run to their end."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import memdb
from memdb.storage.schema import SCHEMA_VERSION
from tests.hostile.shell import shell

_empty: list[bytes] = []  # a fresh file, made once


@contextmanager
def a_file() -> Iterator[Path]:
    """Give the path of a fresh memdb file, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="memdb-") as folder:
        path = Path(folder) / "a.db"
        if not _empty:
            asyncio.run(_make(path))
            assert shell(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
            _empty.append(path.read_bytes())
        path.write_bytes(_empty[0])
        yield path


async def _make(path: Path) -> None:
    async with memdb.open(path):
        pass


def run(example: Callable[..., Awaitable[None]], *args: Any, on_file: bool = False, **options: Any) -> None:
    """Run example(db, *args) on a database of its own and check it afterwards."""

    async def go(place: Path | str) -> None:
        async with memdb.open(place, **options) as db:
            await example(db, *args)
            assert (await db.check()).problems == []

    if on_file:
        with a_file() as path:
            asyncio.run(go(path))
    else:
        asyncio.run(go(":memory:"))
