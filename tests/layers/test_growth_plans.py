"""No statement walks a whole table, whatever SQLite believes of its size.

A file that was closed has statistics of a sample: they say that every index finds 401 rows, even one over a session, so
that walking all records by their id can look cheaper than sorting those few. What an act costs must not grow so.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import memdb
from memdb.storage.statement import Statement

# As `PRAGMA optimize` left them in a file of 15,000 records of 1,000 sessions.
SAMPLED = (
    ("record", "record_by_title", "15336 401 401 1"),
    ("record", "record_by_time", "15123 401 401 401 401"),
    ("record", "record_by_category", "5760 401 401 401"),
    ("record", "sqlite_autoindex_record_1", "3600 401 401 401 1"),
)
SMALL = {"embedding_model", "scope", "sqlite_sequence"}  # a row a layer, or asked for as a whole


def _statements() -> dict[str, str]:
    found: dict[str, str] = {}
    for room in ("layers", "retrieval", "storage"):
        for module in pkgutil.walk_packages([str(Path(memdb.__file__).parent / room)], f"memdb.{room}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, Statement) and value.sql not in found.values():
                    found[f"{module.name}.{name}"] = value.sql
    return found


STATEMENTS = _statements()


@pytest.fixture(scope="module", params=["without statistics", "with statistics of a sample"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "memory.db"

    async def make() -> None:
        async with memdb.open(path):
            pass

    asyncio.run(make())
    if request.param != "without statistics":
        filler = sqlite3.connect(path)
        filler.execute("ANALYZE")
        filler.execute("DELETE FROM sqlite_stat1")
        filler.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", SAMPLED)
        filler.commit()
        filler.close()
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_walks_a_whole_table(shell: sqlite3.Connection, name: str) -> None:
    sql = STATEMENTS[name]
    tables = {row[0] for row in shell.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")} - SMALL
    plan = [row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {sql}", dict.fromkeys(re.findall(r":(\w+)", sql), ""))]
    walked = [step for step in plan if step.startswith("SCAN") and step.split()[1] in tables]
    assert not walked, plan
