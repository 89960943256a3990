"""How much of a query a record holds: the same by both ways of looking, whatever the query."""

from __future__ import annotations

import pytest

from memdb import Database
from memdb.storage import coverage as module
from memdb.storage import fulltext
from memdb.storage.coverage import coverage
from memdb.storage.transaction import Transaction
from memdb.storage.within import Within
from memdb.text.query import parse

TEXTS = [
    "green tea from the east", "tea", "tea tea tea of 1852", "海辺の町で猫を飼っている。",
    "The StateGraph keeps state_graph",
    *(f"row {n} of the common words" for n in range(30)),
]  # fmt: skip
QUERIES = [
    "tea", "green tea", '"green tea" from nowhere', "猫", "海辺の町", "StateGraph", "1852 tea", "common words of rows",
    "xyzzy tea", "tea " * 20, " ".join(f"w{n}" for n in range(200)) + " tea",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
async def test_walking_and_looking_up_say_the_same(db: Database, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await db.memory("alice").archive.insert_many(TEXTS)
    await db.memory("bob").archive.insert_many(TEXTS[:3])

    def scored(tx: Transaction) -> list[tuple[int, float]]:
        terms = parse(query)
        return coverage(tx, terms, fulltext.search(tx, terms, Within("alice", "archive"), 10))

    answers = []
    for rows in (0, 10**9):
        monkeypatch.setattr(module, "_WALKED_ROWS", rows)
        answers.append(await db.read(scored))
    assert answers[0] == answers[1] != []
    assert all(0 < score <= 1 for _, score in answers[0])


async def test_nothing_found_is_nothing(db: Database) -> None:
    assert await db.read(lambda tx: coverage(tx, parse("tea"), [])) == []
    await db.memory("alice").archive.insert_many(TEXTS)
    assert await db.read(lambda tx: coverage(tx, parse("xyzzy"), [(1, 1.0)])) == [(1, 0.0)]


async def test_a_term_counts_as_often_as_it_is_asked(db: Database) -> None:
    await db.memory("alice").archive.insert_many(["tea leaves", "coffee beans", *TEXTS[5:]])

    def scores(tx: Transaction, query: str) -> dict[int, float]:
        terms = parse(query)
        return dict(coverage(tx, terms, fulltext.search(tx, terms, Within("alice"), 10)))

    once, twice = await db.read(scores, "tea coffee"), await db.read(scores, "tea tea tea coffee")
    assert once[1] == pytest.approx(once[2])
    assert twice[1] > once[1] > twice[2]
