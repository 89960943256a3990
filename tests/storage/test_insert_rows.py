"""Many rows by one INSERT, and reads of one statement."""

from __future__ import annotations

import asyncio

import pytest

from memdb import MemoryItem
from memdb.errors import StorageError
from memdb.layers import records
from memdb.layers.records import _PUT
from memdb.storage.statement import MOST_ROWS


@pytest.mark.parametrize("count", [1, 2, 3, 127, 128, 129, 300])
def test_statements_hold_powers_of_two_and_every_row_in_its_order(count):
    rows = [dict.fromkeys(records._WRITTEN, number) for number in range(count)]
    statements = list(_PUT.many(rows))
    width = len(records._WRITTEN)
    sizes = [len(values) // width for _, values in statements]
    assert [value for _, values in statements for value in values[::width]] == list(range(count))
    assert all(size <= MOST_ROWS and size & (size - 1) == 0 for size in sizes)
    assert [sql.count("?") for sql, _ in statements] == [size * width for size in sizes]


@pytest.mark.parametrize("count", [1, 2, 129, 700])
async def test_of_rows_with_one_id_the_last_stays_whatever_statement_it_is_in(memory, count):
    items = [MemoryItem(id=f"k{number}", content=f"first{number}") for number in range(count)]
    await memory.items.save_many([*items, MemoryItem(id="k0", content="ultimate")])
    assert len(await memory.items.list()) == count
    assert (await memory.items.get("k0")).content == "ultimate"
    assert [hit.item.id for hit in await memory.items.search("ultimate")] == ["k0"]
    assert await memory.items.search("first0") == []


async def test_large_contents_are_parted_and_all_stored(memory, monkeypatch):
    monkeypatch.setattr(records, "BULK_CHARS", 100)
    rows = [{"content": "x" * size} for size in (10, 200, 90, 10, 1, 300)]
    assert [len(part) for part in records._parts(rows)] == [1, 1, 2, 1, 1]
    assert list(records._parts([])) == []
    await memory.items.save_many([MemoryItem(id=f"{n}", content=f"{'y' * 60} {n}") for n in range(7)])
    assert [item.id for item in await memory.items.list()] == [f"{n}" for n in range(7)]


async def test_a_read_of_one_statement_is_refused_a_second_one(memory):
    engine = memory.items._home
    assert await engine.read_one(lambda tx: tx.execute("SELECT 1")) == [(1,)]
    with pytest.raises(StorageError):
        await engine.read_one(lambda tx: (tx.execute("SELECT 1"), tx.execute("SELECT 2")))
    with pytest.raises(StorageError):
        await engine.read_one(lambda tx: tx.execute("DELETE FROM record"))


async def test_a_read_of_one_statement_holds_no_snapshot_afterwards(memory):
    await memory.items.save(MemoryItem(id="a", content="one"))
    for content in ("two", "three"):
        assert (await memory.items.get("a")) is not None
        await memory.items.save(MemoryItem(id="a", content=content))
        assert {(await one).content for one in [memory.items.get("a") for _ in range(6)]} == {content}
    assert {item.content for item in await asyncio.gather(*(memory.items.get("a") for _ in range(9)))} == {"three"}
