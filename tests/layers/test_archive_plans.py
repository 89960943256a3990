"""The plans of the archive's statements: each goes straight to its rows, with and without statistics."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdb.layers import passage, passage_search, passages
from memdb.storage.statement import Statement
from tests.layers.plans import STATISTICS, large_files, opened, plan_of

KEY = {"user_id": "alice", "layer": "archive", "session_id": "", "key": f"{5:064}"}
VALUES = {
    **KEY, "ids": "[1, 2, 3]", "tags": '["t"]', "tag": "t", "source": "tool", "limit": 10, "now": "2027", "id": 5,
    "created_at": "2026-5", "number": 5, "before": f"{5:064}", "rows": json.dumps([{**KEY, "importance": 0.5}]),
}  # fmt: skip
STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value.sql
    for module in (passages, passage_search)
    for name, value in vars(module).items()
    if isinstance(value, Statement)
}
STATEMENTS |= {f"list {chosen}": statement.sql for chosen, statement in passage_search._LISTS.items()}
STATEMENTS |= {name: getattr(passage.PASSAGE, name).sql for name in ("by_key", "by_id", "by_ids")}

RECORDS = """
INSERT INTO record (user_id, layer, session_id, key, created_at, updated_at, content, tags)
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
SELECT CASE n % 7 WHEN 0 THEN 'bob' ELSE 'alice' END, 'archive', '', printf('%064d', n), printf('2026-%09d', n), '2026',
       'x', CASE n % 50 WHEN 0 THEN '["t"]' ELSE '[]' END
  FROM n
"""
SOURCES = (
    "INSERT INTO passage SELECT id, user_id, CASE id % 100 WHEN 0 THEN 'tool' ELSE 'agent' END, NULL, NULL FROM record"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return large_files(tmp_path_factory.mktemp("plans"), (RECORDS, SOURCES))


@pytest.fixture(params=STATISTICS)
def shell(request: pytest.FixtureRequest, files: dict[str, Path]) -> Iterator[sqlite3.Connection]:
    with opened(files[request.param]) as connection:
        yield connection


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_goes_straight_to_its_rows(shell: sqlite3.Connection, name: str) -> None:
    plan = plan_of(shell, STATEMENTS[name], VALUES)
    narrow = name.startswith(("list (True", "list (False, True"))
    for step in plan:
        assert not step.startswith("SCAN") or "VIRTUAL TABLE" in step, plan
        assert "TEMP B-TREE" not in step or narrow, plan  # what has a tag or a source is sorted, and nothing else
        assert "ANY(" not in step, plan  # a skip-scan: through the index of all users
        if step.startswith("SEARCH record "):
            whole = name in ("list (False, False, False)", "list (False, False, True)")
            assert re.search(r"rowid=\?|key=\?" if not whole else r"record_by_time", step), plan
        if step.startswith("SEARCH record_tag "):
            assert re.search(r"tag=\?|record_id=\?", step), plan
        if step.startswith("SEARCH passage "):
            assert re.search(r"rowid=\?|source=\?", step), plan
