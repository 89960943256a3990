"""recall: what proved useful, in every order, and what never did."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import memdb
from memdb.cli.recall import Order
from memdb.retrieval.recalled import ORDERS, recalled
from memdb.scope import Scope
from tests.cli.command_line import Cli, Outcome

DAY = timedelta(days=1)
START = datetime.now(UTC) - 10 * DAY


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def used(path: Path) -> Path:
    """A file where alice recalled an item often, a page well, an entity lately, and two records never."""
    clock = Clock()

    async def fill() -> None:
        async with memdb.open(path, clock=clock) as db:
            memory = db.memory("alice")
            await memory.items.save(memdb.MemoryItem(id="often", content="a"))
            await memory.pages.add_page(memdb.KnowledgePage(id="well", title="Nightingales", content="They sing."))
            clock.now += timedelta(hours=1)
            await memory.items.save(memdb.MemoryItem(id="never\tonce", content="b"))
            await memory.graph.add_entities(
                [memdb.GraphEntity(id="lately", name="Owls"), memdb.GraphEntity(id="unasked", name="Unasked")]
            )
            for _ in range(5):
                await memory.items.record_recall("often", 0.25)
            clock.now += DAY
            assert (await memory.retriever.retrieve("nightingales")).items[0].source.id == "well"
            clock.now += 7 * DAY
            assert (await memory.retriever.retrieve("owls")).items[0].source.id == "lately"

    asyncio.run(fill())
    return path


def ids(done: Outcome) -> list[str]:
    return [one["id"] for one in done.json]


def test_the_most_useful_first(cli: Cli, used: Path) -> None:
    done = cli("recall", used)
    assert (done.status, done.err) == (0, "")
    head, *lines = (line.split("\t") for line in done.out.splitlines())
    assert head == ["value", "recalls", "mean score", "last recalled", "layer", "id"]
    assert {line[5]: (line[1], line[4]) for line in lines} == {
        "often": ("5", "item"),
        "well": ("1", "page"),
        "lately": ("1", "entity"),
    }
    values = [float(line[0]) for line in lines]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("order", ORDERS)
def test_orders(cli: Cli, used: Path, order: str) -> None:
    rows = cli("recall", used, "--order", order, "--json").json
    key = {"value": "value", "count": "recalls", "score": "mean_score", "last": "last_recall_at"}[order]
    keys = [row[key] for row in rows]
    assert len(keys) == 3
    assert keys == sorted(keys, reverse=True)
    first = {"count": "often", "last": "lately"}
    assert rows[0]["id"] == first.get(order, rows[0]["id"])


def test_the_orders_of_the_command_are_those_of_the_library() -> None:
    assert tuple(order.value for order in Order) == ORDERS


def test_the_value_is_the_one_that_eviction_goes_by(cli: Cli, used: Path) -> None:
    now = START + 20 * DAY

    async def read() -> None:
        async with memdb.open(used, read_only=True, clock=lambda: now) as db:
            rows = await db.read(recalled, Scope("alice"))
            stats = await db.memory("alice").items.recall_stats("often")
            often = next(one for one in rows if one.id == "often")
            assert stats is not None
            assert (often.stats, often.value) == (stats, stats.value(now))
            assert [one.value for one in rows] == sorted((one.value for one in rows), reverse=True)

    asyncio.run(read())


def test_as_json(cli: Cli, used: Path) -> None:
    row = cli("recall", used, "--layer", "items", "--json").json[0]
    assert set(row) == {"id", "layer", "created_at", "recalls", "mean_score", "last_recall_at", "value"}
    assert (row["id"], row["layer"], row["recalls"], row["mean_score"]) == ("often", "item", 5, 0.25)
    assert row["last_recall_at"].endswith("Z")


def test_layers_and_limit(cli: Cli, used: Path) -> None:
    assert ids(cli("recall", used, "--layer", "pages", "--json")) == ["well"]
    assert ids(cli("recall", used, "--layer", "graph", "--json")) == ["lately"]
    assert len(cli("recall", used, "--limit", 2, "--json").json) == 2
    assert ids(cli("recall", used, "--never", "--layer", "graph", "--json")) == ["unasked"]


def test_what_was_never_recalled_oldest_first(cli: Cli, used: Path) -> None:
    rows = [line.split("\t") for line in cli("recall", used, "--never").out.splitlines()]
    assert [row[:2] for row in rows] == [["id", "layer"], ["never once", "item"], ["unasked", "entity"]]
    row = cli("recall", used, "--never", "--json").json[0]
    assert (row["id"], row["recalls"], row["value"], row["last_recall_at"]) == ("never\tonce", 0, None, None)
    done = cli("recall", used, "--never", "--order", "last")
    assert (done.status, done.complaint) == (2, "--never lists the oldest first; leave out --order")


def test_looking_does_not_count_and_changes_no_file(cli: Cli, used: Path) -> None:
    before = used.read_bytes()
    used.chmod(0o444)
    used.parent.chmod(0o555)
    try:
        first = cli("recall", used, "--order", "count").out
        assert cli("recall", used, "--order", "count").out == first
    finally:
        used.parent.chmod(0o755)
    assert used.read_bytes() == before


def test_whose_memory(cli: Cli, used: Path, tmp_path: Path) -> None:
    for options in ([], ["--never"]):
        done = cli("recall", used, "--user", "bob", *options)
        assert (done.status, done.out) == (1, "")
        assert "holds nothing of user 'bob'" in done.complaint

    async def fill() -> None:
        async with memdb.open(used) as db:
            await db.memory("bob").items.save(memdb.MemoryItem(id="his", content="c"))

    asyncio.run(fill())
    assert cli("recall", used).complaint.endswith("--user: 'alice', 'bob'")
    assert cli("recall", used).status == 2
    assert ids(cli("recall", used, "--user", "bob", "--never", "--json")) == ["his"]
    assert cli("recall", used, "--user", "bob", "--json").json == []


def test_nothing_there(cli: Cli, path: Path, tmp_path: Path) -> None:
    done = cli("recall", path)
    assert (done.status, done.complaint) == (1, f"{path} holds nothing that was ever recalled")
    assert cli("recall", path, "--never", "--json").json == []
    assert cli("recall", tmp_path / "none.db").status == 2
    assert cli("recall", path, "--order", "age").status == 2
    assert cli("recall", path, "--layer", "messages").status == 2


def test_rows_that_a_hand_has_spoilt_are_left_out(cli: Cli, used: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(used)
    connection.execute(
        "UPDATE recall SET last_recall_at = 'soon' WHERE record_id = (SELECT id FROM record WHERE key = 'well')"
    )
    connection.commit()
    connection.close()
    assert set(ids(cli("recall", used, "--json"))) == {"often", "lately"}


def test_a_terminal_gets_columns(cli: Cli, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    out = cli("recall", used).out
    assert "\t" not in out
    assert "often" in out


def test_recalled_passages_are_listed(cli: Cli, path: Path) -> None:
    async def fill() -> None:
        async with memdb.open(path) as db:
            memory = db.memory("alice")
            await memory.archive.insert_many(["Owls sing at night.", "never asked for"])
            await memory.archive.recall("owls")

    asyncio.run(fill())
    [row] = cli("recall", path, "--layer", "archive", "--json").json
    assert (row["layer"], row["recalls"]) == ("archive", 1)
    assert 0 < row["mean_score"] <= 1
    assert len(cli("recall", path, "--layer", "archive", "--never", "--json").json) == 1
