"""The plans of the window's statements: each goes straight to its rows, and an append costs the same in any session."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import memdb
from memdb.layers import reading, window
from memdb.storage.statement import Statement
from tests.layers.test_conversation_plans import MANY_SESSIONS, ONE_LONG_SESSION

STATEMENTS = {name: value for name, value in vars(window).items() if isinstance(value, Statement)}
STATEMENTS |= {"_HELD": reading._HELD}  # how many messages a session holds
VALUES = {
    "user_id": "alice", "layer": "message", "session_id": "s8", "key": "000000000005", "limit": 8, "before": 3,
    "after": 3,
}  # fmt: skip
# Every tenth message is a user's own; the others are results in a user's name, calls, and results.
MIXED = """INSERT INTO message (record_id, user_id, role, tool_call_id, body)
  SELECT id, user_id, CASE id % 5 WHEN 0 THEN 'user' WHEN 1 THEN 'tool' ELSE 'assistant' END,
         CASE id % 5 WHEN 1 THEN 'c' END,
         CASE WHEN id % 10 = 5 THEN '[{"tool_use_id":"c","type":"tool_result","content":"r"}]' END
    FROM record"""


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "a.db"
    _fill(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TABLE IF EXISTS sqlite_stat1")
    if request.param == "with statistics":
        connection.execute("ANALYZE")
    yield connection
    connection.close()


def _fill(path: Path) -> None:
    """Rows without an index over their text: the plans look at none."""
    import asyncio

    async def fill() -> None:
        async with memdb.open(path, durability="normal") as db:

            def rows(tx: memdb.storage.transaction.Transaction) -> None:
                tx.execute("DROP TRIGGER record_search_ai")
                for sql in (ONE_LONG_SESSION, MANY_SESSIONS, MIXED):
                    tx.execute(sql)

            await db.write(rows)

    asyncio.run(fill())


def _bound(statement: Statement) -> dict[str, object]:
    names = re.findall(r":(\w+)", statement.sql)
    return dict(statement.bind({name: VALUES[name] for name in names if name in VALUES}))


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_goes_straight_to_its_rows(shell: sqlite3.Connection, name: str) -> None:
    sql, values = STATEMENTS[name].sql, _bound(STATEMENTS[name])
    plan = [row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    for step in plan:
        assert not step.startswith("SCAN") or "VIRTUAL TABLE" in step, plan
        assert "TEMP B-TREE" not in step, plan
        assert "ANY(" not in step, plan  # a skip-scan: through the index of all users
        if step.startswith("SEARCH"):
            assert re.search(r"rowid=\?|session_id=\?", step), plan


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("_AFTER", "key>? AND key<?"),
        ("_BEFORE", "key<"),
        ("_TURNS", "key<"),
        ("_EVICT", "key<"),
        ("_STRAY", "key>"),
        ("_OLDEST", "COVERING INDEX sqlite_autoindex_record_1"),
        ("_CURSOR", "COVERING INDEX sqlite_autoindex_record_1"),
        ("_HELD", "session_id=?"),
    ],
)
def test_these_use_the_last_column_of_their_index_too(shell: sqlite3.Connection, name: str, column: str) -> None:
    sql, values = STATEMENTS[name].sql, _bound(STATEMENTS[name])
    assert any(column in row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {sql}", values))


class Steps:
    """Counts what SQLite does, in hundreds of its instructions."""

    def __init__(self, shell: sqlite3.Connection) -> None:
        self.count = 0
        shell.set_progress_handler(self._one, 100)

    def _one(self) -> None:
        self.count += 1


def test_turns_are_walked_back_no_further_than_the_window(shell: sqlite3.Connection) -> None:
    steps, costs = Steps(shell), []
    turns = STATEMENTS["_TURNS"]
    for after in (10, 100, 1_000):
        before, values = steps.count, _bound(turns) | {"session_id": "long", "after": after}
        assert len(shell.execute(turns.sql, values).fetchall()) == 2
        costs.append(steps.count - before)
    shell.set_progress_handler(None, 0)
    assert costs[0] < 100  # of the 50,000 messages of this session
    assert costs[2] < 150 * costs[0]


async def _a_long_session(memory: memdb.Memory, messages: int) -> memdb.ConversationMemory:
    talk = memory.conversation
    for _ in range(messages // 2_000):
        await talk.add_messages({"role": "user" if n % 2 else "assistant", "content": "x"} for n in range(2_000))
    return talk


async def test_an_append_costs_the_same_in_a_session_of_any_size(memory: memdb.Memory, db: memdb.Database) -> None:
    """What the consolidator has not passed stays, so the session is far larger than its window."""
    talk = await _a_long_session(memory, 12_000)
    small = await _a_long_session(db.memory("alice", "small"), 2_000)
    for one, rest in ((talk, 10_000), (small, 100)):
        await one.compact(rest)
        one.configure(window.ConversationMemoryConfig(strategy="sliding_window", max_items=10, max_turns=5))
        await one.add_message({"role": "user", "content": "x"})
        assert len(await one.messages()) in (10_001, 101)
    costs: dict[object, list[float]] = {talk: [], small: []}
    for _ in range(40):
        for one, times in costs.items():
            start = time.perf_counter()
            await one.add_message({"role": "user", "content": "x"})  # type: ignore[attr-defined]
            times.append(time.perf_counter() - start)
    large, little = (sorted(times)[5] for times in costs.values())
    assert large < 5 * little
