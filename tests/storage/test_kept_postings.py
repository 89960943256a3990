"""Postings in memory: when they are used, and how much is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import KnowledgePage
from memdb.storage import fulltext, plan
from memdb.storage.fulltext import search
from memdb.storage.own_counts import SAMPLED_ROWS
from memdb.storage.postings import connections
from memdb.storage.postings.kept import KeptPostings
from memdb.storage.within import Within
from memdb.text.query import parse
from tests.hostile.shell import NOW, shell

pytest.importorskip("numpy")

QUERY = "memory agent1 rare7 walrus"


async def filled(db: memdb.Database, count: int = 2_000) -> None:
    pages = [KnowledgePage(id=f"{n}", title="", content=f"memory agent{n % 4} rare{n} walrus") for n in range(count)]
    await db.memory("alice").pages.add_pages(pages)


def kept(tx: Any) -> KeptPostings | None:
    return connections.kept_by(tx)


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


async def test_common_words_come_into_memory_and_what_is_written_later_is_found(path: Path) -> None:
    async with memdb.open(path, readers=1) as db, memdb.open(path) as other:
        await filled(db)
        pages = db.memory("alice").pages
        for _ in range(9):
            await pages.search(QUERY)
        held = await db.read(kept)
        assert held is not None
        assert held.bytes > 2_000 * 4
        await other.memory("alice").pages.add_page(KnowledgePage(id="new", title="rare7 agent1", content="walrus"))
        assert [page.id for page in await pages.search(QUERY, 1)] == ["new"]
        await other.memory("alice").pages.delete_page("new")
        assert "new" not in [page.id for page in await pages.search(QUERY, 3)]


async def test_a_record_that_comes_back_under_its_old_number_is_found(path: Path) -> None:
    async with memdb.open(path, readers=1) as db:
        await filled(db)
        pages = db.memory("alice").pages
        await pages.delete_page("9")
        for _ in range(9):
            await pages.search(QUERY)
        fields = "id, user_id, layer, session_id, key, created_at, updated_at, title, content"
        values = ("alice", "page", "", "back", NOW, NOW, "rare7", "agent1 walrus")
        shell(path, (f"INSERT INTO record ({fields}) VALUES (10, ?, ?, ?, ?, ?, ?, ?, ?)", values))
        assert [page.id for page in await pages.search(QUERY, 1)] == ["back"]


async def test_a_process_that_searches_once_keeps_nothing(path: Path) -> None:
    async with memdb.open(path, readers=1) as db:
        await filled(db, 50)
        await db.memory("alice").pages.search(QUERY)
        assert await db.read(lambda tx: tx.keeper.postings) is None


async def test_no_more_is_kept_than_all_connections_may(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_BYTES", 30_000)
    async with memdb.open(path, readers=1) as db:
        await filled(db)
        for n in range(40):
            await db.memory("alice").pages.search(f"agent{n % 4} walrus rare{n}")
        held = await db.read(kept)
        assert held is not None
        assert held.bytes <= 30_000


async def test_without_numpy_the_answers_are_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with memdb.open(path, readers=1) as db:
        await filled(db)
        pages = db.memory("alice").pages
        with_numpy = [await pages.search_scored(QUERY) for _ in range(9)][-1]
        monkeypatch.setattr(fulltext, "kept_by", lambda tx: None)
        without = await pages.search_scored(QUERY)
        assert [hit.page.id for hit in with_numpy] == [hit.page.id for hit in without]
        assert [hit.score for hit in with_numpy] == pytest.approx([hit.score for hit in without], abs=1e-5)


async def test_a_unit_that_writes_sees_its_own_writes(path: Path) -> None:
    async with memdb.open(path, readers=1) as db:
        await filled(db)
        for _ in range(9):
            await db.memory("alice").pages.search(QUERY)

        def write_and_search(tx: Any) -> list[tuple[int, float]]:
            tx.execute("UPDATE record SET content = 'okapi' WHERE key = '9'")
            return search(tx, parse("okapi"), Within("alice", "page"), 5)

        assert len(await db.write(write_and_search)) == 1


async def test_an_index_that_is_made_anew_is_read_anew(path: Path) -> None:
    """While a trigger was missing the index and what was kept of it were both wrong; a repair mends both."""
    async with memdb.open(path, readers=1) as db:
        await filled(db)
        pages = db.memory("alice").pages
        for _ in range(9):
            await pages.search(QUERY)
        shell(path, "DROP TRIGGER record_search_au", "DROP TRIGGER index_change_au")
        shell(path, "UPDATE record SET content = 'walrus agent1 rare7', title = 'rare7' WHERE key = '8'")
        assert await db.read(kept) is not None
        assert (await pages.search(QUERY, 1))[0].id == "7"
        assert (await db.check(repair=True)).repaired
        assert (await pages.search(QUERY, 1))[0].id == "8"


async def test_a_user_whose_newest_records_are_empty_is_found_by_either_way(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "IN_MEMORY_US", -1e9)
    async with memdb.open(path, readers=1) as db:
        await filled(db)
        mine = db.memory("bob").pages
        await mine.add_page(KnowledgePage(id="old", title="walrus", content="rare7"))
        await mine.add_pages([KnowledgePage(id=f"{n}", title="", content="") for n in range(SAMPLED_ROWS)])
        in_memory = [await mine.search_scored(QUERY) for _ in range(3)][-1]
        monkeypatch.setattr(fulltext, "kept_by", lambda tx: None)
        assert [hit.page.id for hit in in_memory] == ["old"]
        assert in_memory[0].score == pytest.approx((await mine.search_scored(QUERY))[0].score)
