"""Earlier texts: damaged ones are set aside and hide nothing; each statement goes straight to its rows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

import memdb
from memdb import NotFound
from memdb.layers import versions
from memdb.layers.facts import entries, mirror
from memdb.layers.facts.entry import ENTRY
from memdb.storage.statement import Statement
from tests.hostile.shell import shell

DAMAGE = [
    "UPDATE version SET content = CAST(x'ff' AS TEXT) WHERE number = 2",
    "UPDATE version SET content = x'00' WHERE number = 2",
    "UPDATE version SET written_at = 'yesterday' WHERE number = 2",
    "UPDATE version SET replaced_at = x'ff' WHERE number = 2",
    "UPDATE version SET metadata = '{' WHERE number = 2",
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("read_first", [False, True])
async def test_a_damaged_version_is_set_aside_and_the_others_are_read(
    path: Path, damage: str, read_first: bool
) -> None:
    async with memdb.open(path) as db:
        facts = db.memory().facts
        for n in range(1, 5):
            await facts.write_long_term(f"text {n}")
        shell(path, damage, careless=True)
        if read_first:
            with pytest.raises(NotFound, match="no version 2"):
                await facts.read_version(2)
            assert len(shell(path, "SELECT 1 FROM quarantine WHERE layer = 'version'")) == 1
        assert [one.number for one in await facts.versions()] == [4, 3, 1]
        kept = shell(path, "SELECT user_id, layer, key FROM quarantine")
        assert kept == [("default", "version", "MEMORY")]
        with pytest.raises(NotFound, match="no version 2"):
            await facts.read_version(2)
        assert (await facts.read_version(1)).content == "text 1"
        await facts.write_long_term("text 5")
        assert [one.number for one in await facts.versions()] == [5, 4, 3, 1]
        assert (await db.check()).problems == []


@pytest.mark.parametrize("metadata", ["[]", "7", '{"author": 7, "act": null}', "{}"])
async def test_who_wrote_a_text_may_be_unknown(path: Path, metadata: str) -> None:
    async with memdb.open(path) as db:
        facts = db.memory().facts
        await facts.write_long_term("one")
        shell(path, ("UPDATE record SET metadata = ? WHERE layer = 'fact'", (metadata,)))
        await facts.write_long_term("two")
        assert [(one.content, one.author, one.act) for one in await facts.versions()] == [
            ("two", "agent", "write"),
            ("one", "", ""),
        ]


async def test_a_thousand_versions_are_paged_through(memory) -> None:
    for n in range(1, 301):
        await memory.facts.write_long_term(f"text {n}")
    seen, before = [], None
    while page := await memory.facts.versions(70, before=before):
        seen += [(one.number, one.content) for one in page]
        before = page[-1].number
    assert seen == [(n, f"text {n}") for n in range(300, 0, -1)]


VALUES = {
    "user_id": "alice", "layer": "history", "session_id": "", "key": "000000000005", "before": ":", "from": "0",
    "first": "0", "last": ":", "limit": 10, "rows": "[]", "chunks": '["a", "b"]', "path": "/x", "ids": "[1]",
}  # fmt: skip
STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (entries, mirror, versions)
    for name, value in vars(module).items()
    if isinstance(value, Statement)
} | {f"entry.{name}": getattr(ENTRY, name) for name in ("by_key", "by_id", "by_ids")}
_COUNTING = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000) "
FILL = (
    "DROP TRIGGER record_search_ai",
    f"""INSERT INTO record (user_id, layer, key, created_at, updated_at, content) {_COUNTING}
        SELECT CASE n % 50 WHEN 0 THEN 'bob' ELSE 'alice' END, CASE n % 3 WHEN 0 THEN 'item' ELSE 'history' END,
               printf('%012d', n), '2026', '2026', 'x' FROM n""",
    "INSERT INTO history (record_id, user_id, chunk) SELECT id, user_id, id FROM record WHERE layer = 'history'",
    f"""INSERT INTO version (user_id, layer, key, number, written_at, replaced_at, content) {_COUNTING}
        SELECT 'alice', 'fact', 'MEMORY', n, '2026', '2026', 'x' FROM n""",
)


def asked(name: str, **more: object) -> tuple[str, Mapping[str, object]]:
    """Return a statement with values for its parameters."""
    statement = STATEMENTS[name]
    wanted = re.findall(r":(\w+)", statement.sql)
    return statement.sql, statement.bind(
        {param: VALUES.get(param, 5) for param in wanted} | dict(statement.bind({})) | more
    )


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def large(request, tmp_path_factory, template):
    import shutil

    file = shutil.copy(template, tmp_path_factory.mktemp("plans") / "large.db")
    connection = sqlite3.connect(file, isolation_level=None)
    for sql in FILL:
        connection.execute(sql)
    if request.param == "with statistics":
        connection.execute("ANALYZE")
    yield connection
    connection.close()


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_goes_straight_to_its_rows(large: sqlite3.Connection, name: str) -> None:
    sql, values = asked(name)
    plan = [row[3] for row in large.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    for step in plan:
        assert not step.startswith("SCAN") or "VIRTUAL TABLE" in step, plan
        assert "TEMP B-TREE" not in step, plan
        assert "ANY(" not in step, plan  # a skip-scan: through the index of all users
        if step.startswith("SEARCH") and re.search(r"\b(record|version|history)\b", step):
            assert re.search(r"rowid=\?|session_id=\?|chunk=\?", step), plan  # never the user's whole index


PAGES = {
    "entries._NEWEST": {"before": "000000000100", "limit": 5},
    "entries._SIZES_BEFORE": {"from": "000000000100"},
    "entries._SIZES_AFTER": {"from": "000000019900"},
    "entries._BETWEEN": {"first": "000000009900", "last": "000000009950"},
    "entries._LAST_KEY": {},
    "entries._ANY_CHUNK": {},
    "versions._NEWEST": {"key": "MEMORY", "layer": "fact", "before": 100, "limit": 5},
    "versions._PRESENT_NUMBER": {"key": "MEMORY", "layer": "fact"},
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_costs_the_same_wherever_it_stands(large: sqlite3.Connection, name: str) -> None:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    sql, values = asked(name, **PAGES[name])
    large.set_progress_handler(count, 100)
    try:
        large.execute(sql, values).fetchall()
    finally:
        large.set_progress_handler(None, 0)
    assert steps < 150  # 15,000 instructions; the 13,000 entries take over 100,000
