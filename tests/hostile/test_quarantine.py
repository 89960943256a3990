"""Rows that cannot be read go to the quarantine with their raw bytes; the call returns its default, the others come."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import KnowledgePage, MemoryItem
from memdb.memory import Memory
from memdb.scope import Scope
from tests.hostile.shell import shell

# How a row can be unreadable -> the edit, and the column and bytes that must be kept.
DAMAGE: dict[str, tuple[str, str, bytes | None]] = {
    "content is no UTF-8": ("content = CAST(x'ff41' AS TEXT)", "content", b"\xffA"),
    "content is a BLOB": ("content = x'00ff'", "content", b"\x00\xff"),
    "content is half a character": ("content = CAST(x'e9' AS TEXT)", "content", b"\xe9"),
    "metadata is broken JSON": ("metadata = '{\"a\": '", "metadata", b'{"a": '),
    "metadata is no UTF-8": ("metadata = CAST(x'22ff22' AS TEXT)", "metadata", b'"\xff"'),
    "metadata is a BLOB": ("metadata = x'7b7d'", "metadata", b"{}"),
    "metadata is nested 1,500 deep": (f"metadata = '{'[' * 1500}{']' * 1500}'", "metadata", None),
    "created_at is garbage": ("created_at = 'yesterday'", "created_at", b"yesterday"),
    "created_at is a BLOB": ("created_at = x'32'", "created_at", b"2"),
    "created_at is no UTF-8": ("created_at = CAST(x'ff' AS TEXT)", "created_at", b"\xff"),
}
ITEM_ONLY = {
    "expires_at is garbage": ("expires_at = 'zzz'", "expires_at", b"zzz"),
}
PAGE_ONLY = {
    "title is a BLOB": ("title = x'ff'", "title", b"\xff"),
    "tags are broken JSON": ("tags = '[\"a\",'", "tags", b'["a",'),
    "tags are an object": ("tags = '{\"a\": 1}'", "tags", b'{"a": 1}'),
    "tags are numbers": ("tags = '[1, null]'", "tags", b"[1, null]"),
    "keywords are text": ("keywords = '\"a\"'", "keywords", b'"a"'),
    "updated_at is garbage": ("updated_at = '?'", "updated_at", b"?"),
    "category is a BLOB": ("category = x'ff'", "category", b"\xff"),
}
PAGES = {name: case for name, case in DAMAGE.items() if "metadata" not in name} | PAGE_ONLY


@pytest.fixture
async def db(path: Path) -> AsyncIterator[memdb.Database]:
    async with memdb.open(path) as opened:
        memory = opened.memory()
        await memory.items.save_many([MemoryItem(id=id, content=f"text {id}") for id in ("bad", "good1", "good2")])
        await memory.pages.add_pages([KnowledgePage(id=id, title=f"Text {id}", tags=["t"]) for id in ("bad", "good")])
        yield opened


def damage(path: Path, layer: str, edit: str) -> None:
    shell(path, f"UPDATE record SET {edit} WHERE layer = '{layer}' AND key = 'bad'", careless=True)


async def kept(db: memdb.Database) -> list[tuple[str, dict[str, str]]]:
    rows = await db.read(lambda tx: tx.execute("SELECT reason, raw FROM v_quarantine"))
    return [(reason, json.loads(raw)) for reason, raw in rows]


async def set_aside(db: memdb.Database, caplog: pytest.LogCaptureFixture, column: str, raw: bytes | None) -> None:
    """Check that one row is in the quarantine, whole, told of in the log, and the file is sound."""
    ((reason, columns),) = await kept(db)
    assert reason
    assert raw is None or bytes.fromhex(columns[column]) == raw
    assert bytes.fromhex(columns["key"]) == b"bad"
    assert sum("MEMORY_CORRUPT" in record.message for record in caplog.records) == 1
    assert (await db.stats()).quarantined == 1
    assert (await db.check()).problems == []


@pytest.mark.parametrize("how", DAMAGE | ITEM_ONLY)
@pytest.mark.parametrize("call", ["get", "list", "search"])
async def test_an_item_that_cannot_be_read(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture, how: str, call: str
) -> None:
    edit, column, raw = (DAMAGE | ITEM_ONLY)[how]
    damage(path, "item", edit)
    items = db.memory().items
    if call == "get":
        assert await items.get("bad") is None
    elif call == "list":
        assert [item.id for item in await items.list()] == ["good1", "good2"]
    else:
        await items.get("bad") if column == "content" else None  # its words are gone from the index with its text
        assert sorted(hit.item.id for hit in await items.search("text")) == ["good1", "good2"]
    await set_aside(db, caplog, column, raw)
    await items.save(MemoryItem(id="bad", content="new text"))
    assert len(await items.search("text")) == 3


@pytest.mark.parametrize("how", PAGES)
@pytest.mark.parametrize("call", ["get_page", "find_by_keywords", "atomic"])
async def test_a_page_that_cannot_be_read(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture, how: str, call: str
) -> None:
    edit, column, raw = PAGES[how]
    damage(path, "page", edit)
    pages = db.memory().pages
    if call == "get_page":
        assert await pages.get_page("bad") is None
    elif call == "find_by_keywords":
        hits = await pages.find_by_keywords(["text", "t"])
        assert [page.id for page in hits if page.id != "bad"] == ["good"]
        assert await pages.get_page("bad") is None
    else:
        assert await db.memory().atomic(lambda m: m.pages.get_page("bad")) is None
    await set_aside(db, caplog, column, raw)
    await pages.add_page(KnowledgePage(id="bad", title="New text"))
    assert len(await pages.search("text")) == 2


@pytest.mark.parametrize("how", PAGES)
async def test_updating_a_page_that_cannot_be_read(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    edit, column, raw = PAGES[how]
    damage(path, "page", edit)
    pages = db.memory().pages
    try:
        await pages.update_page(KnowledgePage(id="bad", title="Renewed"))
    except memdb.NotFound:  # it is set aside, and the page may be added anew
        await set_aside(db, caplog, column, raw)
        await pages.add_page(KnowledgePage(id="bad", title="Renewed"))
    page = await pages.get_page("bad")
    assert page is not None, "an acknowledged update is gone"
    assert page.title == "Renewed"
    assert [page.id for page in await pages.search("renewed")] == ["bad"]
    assert (await db.check()).problems == []


@pytest.mark.parametrize("how", DAMAGE)
async def test_a_read_only_handle_only_logs(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    damage(path, "item", DAMAGE[how][0])
    async with memdb.open(path, read_only=True) as looking:
        for _ in range(2):
            assert await looking.memory().items.get("bad") is None
            assert len(await looking.memory().items.list()) == 2
        assert await kept(looking) == []
    assert any("MEMORY_CORRUPT" in record.message for record in caplog.records)


@pytest.mark.parametrize("how", DAMAGE)
async def test_a_repair_survives_a_row_that_cannot_be_read(db: memdb.Database, path: Path, how: str) -> None:
    damage(path, "item", f"{DAMAGE[how][0]}, seg_revision = 0")
    report = await db.check(repair=True)
    assert report.ok or any("cannot be read" in problem or "constraint" in problem for problem in report.problems)
    assert len(await db.memory().items.list()) == 2
    assert (await db.check(repair=True)).ok
    assert (await db.check()).problems == []


async def test_views_survive_a_row_that_cannot_be_read(db: memdb.Database, path: Path) -> None:
    damage(path, "page", "tags = '[', metadata = '{', keywords = ''")
    for (name,) in shell(path, "SELECT name FROM sqlite_master WHERE type = 'view'"):
        shell(path, f"SELECT * FROM {name}")
    damage(path, "page", "tags = x'ff', title = 'still updated'")
    assert shell(path, "SELECT title FROM v_knowledge_pages WHERE id = 'bad'") == [("still updated",)]


async def test_a_row_mended_while_it_was_being_read_is_not_taken_away(db: memdb.Database, path: Path) -> None:
    damage(path, "item", DAMAGE["content is no UTF-8"][0])
    reading, mended = threading.Event(), threading.Event()

    def slow_read(tx: Any) -> Any:
        found = Memory(Scope(), tx).items.get("bad")
        reading.set()
        assert mended.wait(20)
        return found

    task = asyncio.create_task(db.read(slow_read))
    assert await asyncio.to_thread(reading.wait, 20)
    await db.memory().items.save(MemoryItem(id="bad", content="acknowledged"))
    mended.set()
    assert await task is None
    found = await db.memory().items.get("bad")
    assert found is not None, "an acknowledged write was quarantined"
    assert found.content == "acknowledged"
    assert (await db.check()).problems == []


async def test_many_rows_that_cannot_be_read_at_once(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await db.memory().items.save_many([MemoryItem(id=f"many{n}", content="x") for n in range(300)])
    shell(path, "UPDATE record SET content = CAST(x'ff' AS TEXT) WHERE key LIKE 'many%' AND id % 2", careless=True)
    with caplog.at_level(logging.CRITICAL):
        answers = await asyncio.gather(*(db.memory().items.list() for _ in range(5)))
    assert {len(answer) for answer in answers} == {153}
    assert len(await kept(db)) == 150
    assert (await db.check()).problems == []
