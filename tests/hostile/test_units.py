"""Units that misbehave: each hurts nobody but itself, and is told what it did wrong."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

import memdb
from memdb import Closed, InvalidInput, KnowledgePage, MemdbError, MemoryItem, StorageError
from memdb.storage.schema import record
from tests.processes.helpers import script

PUT = "INSERT INTO scope (user_id, layer, session_id) VALUES (?, '', '')"


@pytest.fixture
async def db(path: Path) -> Any:
    opened = await memdb.open(path)
    yield opened
    try:
        await asyncio.wait_for(opened.memory().items.save(MemoryItem(id="still", content="works")), 10)
        assert (await asyncio.wait_for(opened.check(), 10)).problems == []
    finally:
        await asyncio.wait_for(opened.close(), 10)


async def stored(db: memdb.Database) -> list[str]:
    return [name for (name,) in await db.read(lambda tx: tx.execute("SELECT user_id FROM scope WHERE layer = ''"))]


async def among_others(db: memdb.Database, unit: Any) -> Any:
    """Run a unit in one batch with forty good ones, which must all land; return its value or its error."""

    def good(n: int) -> Any:
        return lambda tx: tx.execute(PUT, (f"good{n}",))

    batch = [db.write(good(n)) for n in range(20)], [db.write(good(n)) for n in range(20, 40)]
    answers = await asyncio.wait_for(asyncio.gather(*batch[0], db.write(unit), *batch[1], return_exceptions=True), 10)
    own = answers.pop(20)
    assert answers == [[]] * 40
    assert sorted(name for name in await stored(db) if name.startswith("good")) == sorted(f"good{n}" for n in range(40))
    return own


class Odd(BaseException):
    """An error outside Exception."""


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), StopIteration(7), StopAsyncIteration(), Odd(), GeneratorExit(), asyncio.CancelledError(),
     MemoryError(), RecursionError("deep"), OSError(28, "full"), MemdbError("ours"), OverflowError("theirs")],
    ids=repr,
)  # fmt: skip
async def test_whatever_a_unit_raises_comes_to_its_caller_alone(db: memdb.Database, error: BaseException) -> None:
    def unit(tx: Any) -> None:
        tx.execute(PUT, ("bad",))
        raise error

    own = await among_others(db, unit)
    assert isinstance(own, type(error)) or isinstance(own.__cause__, type(error))
    assert "bad" not in await stored(db)
    with pytest.raises((type(error), RuntimeError)):
        await asyncio.wait_for(db.read(unit_that_raises(error)), 10)


def unit_that_raises(error: BaseException) -> Any:
    def unit(tx: Any) -> None:
        raise error

    return unit


async def test_a_unit_that_takes_the_first_of_nothing_does_not_stop_the_writer(db: memdb.Database) -> None:
    for call in (db.write, db.read):
        with pytest.raises((StopIteration, RuntimeError)):
            await asyncio.wait_for(call(lambda tx: next(iter(tx.execute("SELECT 1 WHERE 0")))), 10)


@pytest.mark.parametrize("verb", ["write", "read", "atomic"])
async def test_a_unit_must_be_a_plain_function(db: memdb.Database, verb: str) -> None:
    async def coroutine(tx: Any) -> int:
        return 1

    def generator(tx: Any) -> Iterator[int]:
        yield 1

    async def stream(tx: Any) -> Any:
        yield 1

    call = db.memory().atomic if verb == "atomic" else getattr(db, verb)
    for unit in (coroutine, generator, stream):
        with pytest.raises(InvalidInput, match="plain function"):
            await call(unit)


CONTROL = [
    "COMMIT", "commit;", "END", "  ROLLBACK", "BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT x", "RELEASE unit",
    "ROLLBACK TO unit", "/* a */ COMMIT", "-- a\nCOMMIT", ";COMMIT", "\ufeffCOMMIT", "/* a /* b */ COMMIT",
    "\x0cCOMMIT", "VACUUM", "DETACH x",
    "ATTACH ':memory:' AS x", sqlalchemy.text("COMMIT"), sqlalchemy.text("ROLLBACK"),
]  # fmt: skip


@pytest.mark.parametrize("statement", CONTROL, ids=str)
async def test_a_unit_that_would_end_its_transaction_is_refused_and_undone(db: memdb.Database, statement: Any) -> None:
    def unit(tx: Any) -> None:
        tx.execute(PUT, ("bad",))
        tx.execute(statement)
        tx.execute(PUT, ("worse",))

    assert isinstance(await among_others(db, unit), InvalidInput)
    assert not {"bad", "worse"} & set(await stored(db))


def test_a_statement_may_begin_with_many_comments(tmp_path: Path) -> None:
    """In a process of its own: a pattern that backtracks holds the interpreter, and no timeout could end it here."""
    done = script(
        """
        import asyncio, memdb
        async def main():
            async with memdb.open(":memory:") as db:
                print(await db.read(lambda tx: tx.execute("/**/" * 60 + "-- a\\n" * 60 + "SELECT 1")))
        asyncio.run(main())
        """,
        folder=tmp_path,
        timeout=20,
    )
    assert done.stdout == "[(1,)]\n"


async def test_a_unit_whose_transaction_is_rolled_back_under_it_stores_nothing_more(db: memdb.Database) -> None:
    def unit(tx: Any) -> None:
        tx.execute(PUT, ("bad",))
        try:
            tx.execute(PUT.replace("INSERT", "INSERT OR ROLLBACK"), ("bad",))
        except Exception:
            tx.execute(PUT, ("worse",))  # there is no transaction any more: this would commit by itself

    assert isinstance(await among_others(db, unit), MemdbError)
    assert not {"bad", "worse"} & set(await stored(db))


async def test_a_read_unit_cannot_write(db: memdb.Database) -> None:
    with pytest.raises(StorageError):
        await db.read(lambda tx: tx.execute(PUT, ("bad",)))
    with suppress(MemdbError):  # whether or not it is refused
        await db.read(lambda tx: (tx.execute("PRAGMA query_only = OFF"), tx.execute(PUT, ("bad",))))
    assert "bad" not in await stored(db)


async def test_a_transaction_kept_beyond_its_unit_is_of_no_use(db: memdb.Database) -> None:
    kept: list[Any] = []
    await db.memory().atomic(kept.append)
    await db.write(kept.append)
    await db.read(kept.append)
    for use in (
        lambda: kept[0].items.save(MemoryItem(id="late", content="x")),
        lambda: kept[0].items.get("late"),
        lambda: kept[1].execute(PUT, ("late",)),
        lambda: kept[2].execute("SELECT 1"),
    ):
        with pytest.raises((Closed, InvalidInput)):
            use()
    assert "late" not in await stored(db)
    assert await db.memory().items.get("late") is None


async def test_a_lazy_answer_is_not_run_after_its_transaction(db: memdb.Database) -> None:
    with pytest.raises(InvalidInput, match="plain function"):
        await db.memory().atomic(lambda m: (m.items.get(id) for id in "abc"))


async def test_an_overflow_of_the_unit_itself_is_its_own(db: memdb.Database) -> None:
    for call in (db.write, db.read):
        with pytest.raises(OverflowError, match="math range error"):
            await call(lambda tx: math.exp(10_000))


async def test_a_core_expression_is_run_as_sqlalchemy_would(db: memdb.Database) -> None:
    await db.memory().items.save_many([MemoryItem(id=id, content=id) for id in "abc"])
    keys = sqlalchemy.select(record.c.key).where(record.c.key.in_(["a", "c"])).order_by(record.c.key)
    assert await db.read(lambda tx: tx.execute(keys)) == [("a",), ("c",)]
    nothing = sqlalchemy.update(record).values(category=None).where(record.c.key == "a")
    assert await db.write(lambda tx: tx.execute(nothing)) == []
    named = sqlalchemy.select(record.c.key).where(record.c.key == sqlalchemy.bindparam("key"))
    assert await db.read(lambda tx: tx.execute(named, {"key": "b"})) == [("b",)]


async def test_a_unit_that_calls_the_live_memory_is_told(db: memdb.Database) -> None:
    memory = db.memory()
    with pytest.raises(InvalidInput, match="use the memory that the unit is given"):
        await memory.atomic(lambda m: memory.items.save(MemoryItem(id="a", content="x")))

    def forgets(m: Any) -> None:
        m.items.save(MemoryItem(id="b", content="x"))
        memory.items.save(MemoryItem(id="c", content="x"))  # never awaited, so it would be lost without a word

    with pytest.raises(InvalidInput, match="use the memory that the unit is given"):
        await memory.atomic(forgets)
    assert await memory.items.list() == []
    help_of = memory.items.save
    assert help_of.__doc__ == memdb.MemoryStore.save.__doc__
    assert list(inspect.signature(help_of).parameters) == ["item"]


@pytest.mark.parametrize("bad", [0, 1, 57, 299])
async def test_one_failing_unit_among_many_costs_nobody_else_anything(db: memdb.Database, bad: int) -> None:
    memory = db.memory()

    def unit(n: int) -> Any:
        def act(m: Any) -> int:
            m.items.save(MemoryItem(id=str(n), content="x"))
            m.pages.add_page(KnowledgePage(id=str(n), title="x"))
            return 1 // (n != bad)

        return act

    answers = await asyncio.gather(*(memory.atomic(unit(n)) for n in range(300)), return_exceptions=True)
    assert [n for n, answer in enumerate(answers) if answer != 1] == [bad]
    assert isinstance(answers[bad], ZeroDivisionError)
    assert len(await memory.items.list()) == len(await memory.pages.get_index()) == 299


async def test_a_full_disk_refuses_what_does_not_fit_and_stores_the_rest(db: memdb.Database) -> None:
    items = db.memory().items
    await items.save(MemoryItem(id="before", content="x"))

    def limit(tx: Any) -> None:
        pages = tx.execute("PRAGMA page_count")[0][0]
        tx.execute(f"PRAGMA max_page_count = {pages + 60}")

    await db.write(limit)
    small = [MemoryItem(id=f"small{n}", content="fits") for n in range(10)]
    huge = MemoryItem(id="huge", content="word " * 500_000)
    answers = await asyncio.gather(*map(items.save, [*small[:5], huge, *small[5:]]), return_exceptions=True)
    assert [answer for answer in answers if answer is not None] == [answers[5]]
    assert isinstance(answers[5], StorageError)
    assert "the disk is full" in str(answers[5])
    assert await items.get("huge") is None
    assert len(await items.search("fits", limit=50)) == 10
    for _ in range(3):
        with pytest.raises(StorageError, match="the disk is full"):
            await items.save(huge)
    await db.write(lambda tx: tx.execute("PRAGMA max_page_count = 1000000"))
    await items.save(huge)
    assert len(await items.list()) == 12
