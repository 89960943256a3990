"""The plans of the statements on experience: each goes straight to its rows, with and without statistics."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdb.layers.experience import (
    aging,
    cleanup,
    episodes,
    found_patterns,
    patterns,
    skills,
    stored,
    stored_episodes,
    stored_patterns,
    stored_references,
)
from memdb.storage import recalls
from memdb.storage.statement import Statement
from tests.layers.plans import STATISTICS, large_files, opened, plan_of

KEY = {"user_id": "alice", "layer": "episode", "session_id": "", "key": f"{5:06}"}
VALUES = {
    **KEY, "ids": "[1, 2, 3]", "limit": 10, "now": "2027", "id": 5, "created_at": "2026-5", "category": "ACT",
    "since": "2026-5", "until": "2026-9", "rows": json.dumps([{**KEY, "position": 0}]), "aged_at": "", "rate": 0.1,
}  # fmt: skip
MODULES = (
    *(aging, cleanup, episodes, found_patterns, patterns, skills),
    *(stored, stored_episodes, stored_patterns, stored_references),
)
STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value.sql
    for module in (*MODULES, recalls)
    for name, value in vars(module).items()
    if isinstance(value, Statement)
}
STATEMENTS |= {f"find {asked}": statement.sql for asked, statement in found_patterns._CHOSEN.items()}
for module, beside in ((stored_episodes, "_BESIDE"), (stored_patterns, "_BESIDE"), (stored, "_WEIGHT")):
    for form in ("one", "many"):
        STATEMENTS[f"{module.__name__.rpartition('.')[2]}.{beside}.{form}"] = getattr(getattr(module, beside), form).sql
for what, columns in (("e", stored_episodes.EPISODES), ("p", stored_patterns.PATTERNS), ("s", skills.SKILLS)):
    STATEMENTS |= {f"{what} {name}": getattr(columns, name).sql for name in ("by_key", "by_id", "by_ids")}

# Those that look at all of a layer, or at what comes first of it in the order of time.
IN_TIME = (
    "aging._AGE_ALL",
    "cleanup._OLDEST",
    "episodes._",
    "patterns._NEWEST",
    "patterns._BEHIND",
    "skills._",
    "find",
)

RECORDS = """
INSERT INTO record (user_id, layer, session_id, key, category, created_at, updated_at, content)
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
SELECT CASE n % 7 WHEN 0 THEN 'bob' ELSE 'alice' END, CASE n % 50 WHEN 0 THEN 'pattern' ELSE 'episode' END, '',
       printf('%06d', n), CASE n % 3 WHEN 0 THEN 'ACT' END, printf('2026-%09d', n), '2026', 'x'
  FROM n
"""
OWN = (
    "INSERT INTO episode (record_id, user_id, task_id) SELECT id, user_id, key FROM record WHERE layer = 'episode'",
    "INSERT INTO pattern (record_id, user_id) SELECT id, user_id FROM record WHERE layer = 'pattern'",
    """INSERT INTO record_reference SELECT id, 0, user_id, 'episode', printf('%06d', id) FROM record
        WHERE layer = 'pattern'""",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return large_files(tmp_path_factory.mktemp("plans"), (RECORDS, *OWN))


@pytest.fixture(params=STATISTICS)
def shell(request: pytest.FixtureRequest, files: dict[str, Path]) -> Iterator[sqlite3.Connection]:
    with opened(files[request.param]) as connection:
        yield connection


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_goes_straight_to_its_rows(shell: sqlite3.Connection, name: str) -> None:
    plan = plan_of(shell, STATEMENTS[name], VALUES)
    for step in plan:
        assert not step.startswith("SCAN") or "VIRTUAL TABLE" in step, plan
        assert "TEMP B-TREE" not in step or name.startswith("find (True"), plan  # one category may be sorted
        assert "ANY(" not in step, plan  # a skip-scan: through the index of all users
        if step.startswith("SEARCH record "):
            straight = r"record_by_time|record_by_category" if name.startswith(IN_TIME) else r"rowid=\?|key=\?"
            assert re.search(rf"{straight}|key=\?", step), plan
        if step.startswith(("SEARCH episode ", "SEARCH pattern ", "SEARCH recall ")):
            assert "rowid=?" in step, plan
        if step.startswith("SEARCH kept "):
            assert "target_key=?" in step, plan
