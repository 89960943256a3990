"""The plans of the conversation's statements: each goes straight to its session, with and without statistics."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdb.layers import conversation, cursor, jsonl, message, neighbours, stored_messages
from memdb.storage import sessions
from memdb.storage.statement import Statement
from tests.layers.plans import STATISTICS, large_files, opened, plan_of

MESSAGES, SESSIONS = 50_000, 1_000
VALUES = {
    "user_id": "alice", "layer": "message", "session_id": "s7", "key": "000000000005", "after": "000000000010",
    "before": ":", "upto": ":", "limit": 10, "ids": "[1, 2, 3]", "record_id": 30_000, "id": 5, "now": "2027",
    "rows": "[]",
    "places": json.dumps([{"user_id": "alice", "layer": "message", "session_id": "s7", "key": "000000000005"}]),
}  # fmt: skip


def statements() -> dict[str, str]:
    """Every statement by name."""
    found = {
        f"{module.__name__.rpartition('.')[2]}.{name}": value.sql
        for module in (conversation, cursor, jsonl, neighbours, stored_messages)
        for name, value in vars(module).items()
        if isinstance(value, Statement)
    }
    found |= {f"message.{name}": getattr(message.MESSAGE, name).sql for name in ("by_key", "by_id", "by_ids")}
    found |= {f"sessions.{name}": getattr(sessions, name) for name in ("_HELD", "_KNOWN", "_COUNTS", "_ASIDE")}
    return found | {f"sessions._DELETE {n}": sql for n, sql in enumerate(sessions._DELETE)}


STATEMENTS = statements()
# Walk the scopes, the session rows or the quarantine of one user: some hundred small rows.
OF_A_USER = {"sessions._HELD", "sessions._KNOWN", "sessions._COUNTS", "sessions._ASIDE"} | {
    f"sessions._DELETE {n}" for n in range(len(sessions._DELETE))
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return large_files(tmp_path_factory.mktemp("plans"), (ONE_LONG_SESSION, MANY_SESSIONS, TURNS))


_COUNTING = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {}) "
_INSERT = "INSERT INTO record (user_id, layer, session_id, key, created_at, updated_at, content) "
ONE_LONG_SESSION = f"""{_INSERT}{_COUNTING.format(MESSAGES)}
    SELECT 'alice', 'message', 'long', printf('%012d', n), printf('2026-%09d', n), '2026', 'x' FROM n"""
MANY_SESSIONS = f"""{_INSERT}{_COUNTING.format(SESSIONS * 5)}
    SELECT CASE n % 7 WHEN 0 THEN 'bob' ELSE 'alice' END, 'message', 's' || (n % {SESSIONS}),
           printf('%012d', n / {SESSIONS}), printf('2026-%09d', n), '2026', 'x' FROM n"""
TURNS = "INSERT INTO message (record_id, user_id, role) SELECT id, user_id, 'user' FROM record"


@pytest.fixture(params=STATISTICS)
def shell(request: pytest.FixtureRequest, files: dict[str, Path]) -> Iterator[sqlite3.Connection]:
    with opened(files[request.param]) as connection:
        yield connection


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_goes_straight_to_its_rows(shell: sqlite3.Connection, name: str) -> None:
    plan = plan_of(shell, STATEMENTS[name], VALUES)
    for step in plan:
        assert not step.startswith("SCAN") or "VIRTUAL TABLE" in step or step == "SCAN sqlite_sequence", (
            plan
        )  # of few rows
        assert "TEMP B-TREE" not in step, plan
        assert "ANY(" not in step, plan  # a skip-scan: through the index of all users
        if step.startswith("SEARCH") and " record " in f"{step} ":
            assert re.search(r"rowid=\?|session_id=\?", step), plan  # never the user's whole index
        if step.startswith("SEARCH") and name not in OF_A_USER:
            assert re.search(r"rowid=\?|session_id=\?", step), plan


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("stored_messages._NEWEST", "key>"),
        ("stored_messages.LAST_KEY", "key<"),
        ("cursor._COUNT", "key<"),
        ("cursor._ID", "key=?"),
        ("jsonl._PAGE", "key>"),
        ("neighbours._BY_PLACES", "key=?"),
        ("message.by_key", "key=?"),
        ("sessions._HELD", "created_at>"),
        ("sessions._DELETE 5", "session_id=?"),
    ],
)
def test_these_use_the_last_column_of_their_index_too(shell: sqlite3.Connection, name: str, column: str) -> None:
    sql = STATEMENTS[name]
    values = {param: VALUES.get(param, 5) for param in re.findall(r":(\w+)", sql)}
    assert any(column in row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {sql}", values))
