"""What the tests of plans share: a large file without statistics and one with, and how SQLite plans a statement."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import memdb
from memdb.storage.transaction import Transaction

STATISTICS = ("without statistics", "with statistics")


def large_files(folder: Path, statements: Iterable[str]) -> dict[str, Path]:
    """Return two files by the names in STATISTICS, filled by statements; their texts are not indexed."""
    plain, counted = folder / "plain.db", folder / "counted.db"

    def rows(tx: Transaction) -> None:
        for sql in ("DROP TRIGGER record_search_ai", *statements):  # the plans look at no index over the texts
            tx.execute(sql)

    async def fill() -> None:
        async with memdb.open(plain, durability="normal") as db:
            await db.write(rows)

    asyncio.run(fill())
    with opened(plain) as shell:
        shell.execute("DROP TABLE IF EXISTS sqlite_stat1")
        shell.execute("VACUUM INTO ?", (str(counted),))
    with opened(counted) as shell:
        shell.execute("ANALYZE")
    return dict(zip(STATISTICS, (plain, counted), strict=True))


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file as a shell does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def plan_of(shell: sqlite3.Connection, sql: str, values: Mapping[str, object]) -> list[str]:
    """Return the steps of a statement's plan; a parameter without a value is 5."""
    bound = {name: values.get(name, 5) for name in re.findall(r":(\w+)", sql)}
    return [row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {sql}", bound)]
