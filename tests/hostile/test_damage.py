"""A damaged file is told of with a StorageError; nothing crashes, hangs, or leaks another error."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import memdb
from memdb import KnowledgePage, MemoryItem, StorageError
from tests.hostile.shell import shell

FLIPS = 80


@pytest.fixture
async def good(path: Path) -> bytes:
    """The bytes of a file with something of everything in it."""
    async with memdb.open(path) as db:
        memory = db.memory()
        await memory.items.save_many([MemoryItem(id=str(n), content=f"word{n % 7} 部署方案 " * 20) for n in range(200)])
        await memory.pages.add_pages(
            [KnowledgePage(id=str(n), title=f"Page {n}", tags=["t"], references=["1"]) for n in range(100)]
        )
        await memory.items.record_recall("1", 0.5)
    return path.read_bytes()


async def use(path: Path) -> list[str]:
    """Do everything with a file; return the names of the errors that came of it."""
    errors: list[str] = []

    async def attempt(act: object) -> None:
        try:
            await asyncio.wait_for(act, 20)  # type: ignore[arg-type]
        except StorageError as error:
            errors.append(type(error).__name__)

    try:
        db = await asyncio.wait_for(memdb.open(path), 20)
    except StorageError as error:
        return [type(error).__name__]
    items, pages = db.memory().items, db.memory().pages
    for act in (
        items.get("1"), items.list(), items.search("word1 部署"), items.recall_stats("1"), pages.get_page("5"),
        pages.search("page"), pages.get_index(), pages.find_by_keywords(["page", "t"]), pages.referenced_by("1"),
        pages.categories(), items.save(MemoryItem(id="1", content="new")), items.delete("2"), db.stats(), db.check(),
        db.check(repair=True), db.backup(path.with_name("copy.db")), db.forget("default"), db.close(),
    ):  # fmt: skip
        await attempt(act)
    return errors


async def test_flipped_bits_are_errors_of_the_file(tmp_path: Path, good: bytes) -> None:
    chance = random.Random(4)
    met: set[str] = set()
    for n in range(FLIPS):
        damaged = bytearray(good)
        first = 0 if n % 4 else 4096 * chance.randrange(len(good) // 4096)  # three of four in the first pages
        for _ in range(chance.choice([1, 1, 8, 100])):
            at = first + chance.randrange(100 if n % 3 == 1 else 4096 * 3)
            damaged[min(at, len(good) - 1)] ^= 1 << chance.randrange(8)
        path = tmp_path / f"{n}.db"
        path.write_bytes(damaged)
        met.update(await use(path))
    assert "Corrupt" in met


async def test_overwritten_pages_are_errors_of_the_file(tmp_path: Path, good: bytes) -> None:
    chance = random.Random(5)
    for n in range(30):
        damaged = bytearray(good)
        at = 4096 * chance.randrange(len(good) // 4096)
        damaged[at : at + 4096] = chance.choice([bytes(4096), chance.randbytes(4096), good[:4096]])
        path = tmp_path / f"{n}.db"
        path.write_bytes(damaged)
        await use(path)


@pytest.mark.parametrize("kept", [1, 16, 99, 100, 512, 4095, 4096, 4097, 20_000, 0.5, 0.9])
async def test_a_truncated_file_is_an_error_of_the_file(tmp_path: Path, good: bytes, kept: float) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(good[: int(kept * len(good)) if kept < 1 else int(kept)])
    errors = await use(path)
    assert set(errors) & {"Corrupt", "NotAMemdbFile", "StorageError"}


async def test_a_file_cut_while_it_is_open_is_an_error_of_the_file(path: Path, good: bytes) -> None:
    async with memdb.open(path) as db:
        await db.memory().items.list()
        with path.open("rb+") as file:
            file.truncate(len(good) // 2)
        with pytest.raises(StorageError):
            await db.read(lambda tx: tx.execute("SELECT sum(length(content)) FROM record NOT INDEXED"))
        try:
            assert not (await db.check()).ok
        except StorageError:
            return


async def test_a_deleted_log_costs_what_was_in_it_and_no_more(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory().items.save_many([MemoryItem(id=str(n), content="kept") for n in range(50)])
    async with memdb.open(path) as db:
        await db.memory().items.save_many([MemoryItem(id=f"late{n}", content="lost") for n in range(50)])
        copy = path.with_name("copy.db")
        copy.write_bytes(path.read_bytes())  # a copy of the file alone, as cp makes it
    async with memdb.open(copy) as db:
        assert len(await db.memory().items.list()) in (50, 100)
        assert (await db.check()).problems == []
        await db.memory().items.save(MemoryItem(id="new", content="goes on"))
        assert (await db.check()).problems == []


@pytest.mark.parametrize(
    "harm",
    [
        "PRAGMA user_version = 0",
        "PRAGMA user_version = -1",
        "PRAGMA application_id = 0",
        "DROP TABLE record",
        "DROP TABLE record_search",
        "DROP TABLE scope",
        "DROP TABLE alembic_version",
        "DROP VIEW record_text",
        "DELETE FROM record_search_data WHERE id = 1",
        "DELETE FROM record_search_config",
        "UPDATE record_search_data SET block = x'ffffffffffffffffffff'",
        "DELETE FROM record_search_idx",
    ],
)
async def test_a_schema_taken_apart_is_told_of_with_an_error_of_ours(path: Path, good: bytes, harm: str) -> None:
    shell(path, harm)
    try:
        async with memdb.open(path) as db:
            if (await db.check(repair=True)).ok:
                assert len(await db.memory().items.search("word1", limit=1000)) == 29
                assert (await db.check()).problems == []
    except StorageError:
        return  # any other error fails the test
