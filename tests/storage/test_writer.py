"""Group commit: what callers see of it."""

from __future__ import annotations

import asyncio

import pytest

import memdb
from memdb import MemoryItem


async def insert(db, key, *, fail=False):
    def unit(tx):
        tx.execute(
            "INSERT INTO record (user_id, layer, key, created_at, updated_at) VALUES ('u', 'item', ?, '', '')", (key,)
        )
        if fail:
            raise RuntimeError(f"unit {key} gives up")
        return key

    return await db.write(unit)


def keys(tx):
    return [key for (key,) in tx.execute("SELECT key FROM record ORDER BY id")]


async def test_a_unit_returns_its_value_and_is_seen_by_the_next_read(db):
    assert await insert(db, "a") == "a"
    assert await db.read(keys) == ["a"]


async def test_waiting_units_share_a_transaction(db):
    await asyncio.gather(*(insert(db, f"k{n}") for n in range(300)))
    stamps = await db.read(lambda tx: tx.execute("SELECT count(*) FROM record"))
    assert stamps == [(300,)]


async def test_a_failing_unit_costs_nobody_else_anything(db):
    outcomes = await asyncio.gather(*(insert(db, f"k{n}", fail=n % 7 == 3) for n in range(100)), return_exceptions=True)
    failed = {f"k{n}" for n in range(100) if n % 7 == 3}
    assert {str(o).split()[1] for o in outcomes if isinstance(o, RuntimeError)} == failed
    assert set(await db.read(keys)) == {f"k{n}" for n in range(100)} - failed


async def test_a_unit_that_fails_alone_leaves_nothing(db):
    with pytest.raises(RuntimeError, match="gives up"):
        await insert(db, "a", fail=True)
    assert await db.read(keys) == []


async def test_a_unit_that_undoes_the_whole_transaction_takes_only_itself(db):
    def rude(tx):
        tx._connection.rollback()  # as SQLITE_FULL or an interrupt would

    others = [insert(db, f"k{n}") for n in range(10)]
    outcomes = await asyncio.gather(others[0], db.write(rude), *others[1:], return_exceptions=True)
    assert isinstance(outcomes[1], memdb.StorageError)
    assert len(await db.read(keys)) == 10


@pytest.mark.parametrize("statement", ["BEGIN", "commit", " /* x */ ROLLBACK", "-- x\nEND", "SAVEPOINT a", "VACUUM"])
async def test_a_unit_cannot_end_its_transaction(db, statement):
    with pytest.raises(memdb.InvalidInput, match="one transaction already"):
        await db.write(lambda tx: tx.execute(statement))


async def test_a_coroutine_is_no_unit(db):
    async def unit(tx):
        return 1

    with pytest.raises(memdb.InvalidInput, match="plain function"):
        await db.write(unit)


async def test_a_read_unit_cannot_write(db):
    with pytest.raises(memdb.StorageError, match="nothing was stored"):
        await db.read(lambda tx: tx.execute("DELETE FROM record"))


async def test_atomic_lands_whole(memory):
    def turn(m):
        m.items.save(MemoryItem(id="a", content="one"))
        m.pages.add_page(memdb.KnowledgePage(id="p", title="two"))
        return m.items.get("a").content

    assert await memory.atomic(turn) == "one"
    assert (await memory.pages.get_page("p")).title == "two"


async def test_atomic_lands_not_at_all(memory):
    def turn(m):
        m.items.save(MemoryItem(id="a", content="one"))
        m.pages.add_page(memdb.KnowledgePage(id="p", title="two"))
        m.pages.add_page(memdb.KnowledgePage(id="p", title="twice"))

    with pytest.raises(memdb.AlreadyExists):
        await memory.atomic(turn)
    assert await memory.items.get("a") is None
    assert await memory.pages.get_page("p") is None


async def test_sql_of_your_own_by_text_and_by_expression(db):
    from sqlalchemy import bindparam, select

    from memdb.storage.schema import record

    await db.memory("u").items.save(MemoryItem(id="a", content="mine"))
    expression = select(record.c.content).where(record.c.key == bindparam("key"))
    assert await db.read(lambda tx: tx.execute(expression, {"key": "a"})) == [("mine",)]
    assert await db.read(lambda tx: tx.execute("SELECT content FROM record WHERE key = ?", ("a",))) == [("mine",)]
    assert await db.read(lambda tx: tx.execute("SELECT content FROM record WHERE key = :k", {"k": "a"})) == [("mine",)]
    with pytest.raises(memdb.InvalidInput, match="no such table"):
        await db.read(lambda tx: tx.execute("SELECT * FROM nowhere"))
    with pytest.raises(memdb.InvalidInput, match="64 bits"):
        await db.write(lambda tx: tx.execute("SELECT ?", (2**70,)))


async def test_saves_side_by_side_land_in_their_order(memory, clock):
    await asyncio.gather(*(memory.items.save(MemoryItem(id=f"k{n % 10}", content=f"word{n}")) for n in range(200)))
    items = await memory.items.list()
    assert [item.content for item in items] == [f"word{n}" for n in range(190, 200)]
    assert await memory.items.search("word5") == []


async def test_of_saves_side_by_side_only_the_bad_one_is_refused(db):
    good = [db.memory(f"user{n % 3}").items.save(MemoryItem(id=f"k{n}", content="fine")) for n in range(60)]
    bad = db.memory("user1").items.save(MemoryItem.model_construct(id="", content="x"))
    outcomes = await asyncio.gather(*good[:30], bad, *good[30:], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [memdb.InvalidInput]
    for n in range(3):
        assert len(await db.memory(f"user{n}").items.list()) == 20
