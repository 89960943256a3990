"""Values that cannot be kept are refused with a sentence that names them, and nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import InvalidInput, KnowledgePage, MemoryFilter, MemoryItem

DEEP: Any = []
for _ in range(100):
    DEEP = [DEEP]

BAD_IDS = ["", "x" * 1001, "x" * 10_000, "a\x00b", "\ud800", None, 5, b"a", ["a"]]
BAD_FIELDS: dict[str, dict[str, Any]] = {
    "NUL": {"content": "a\x00b"},
    "surrogate": {"content": "a\udfff"},
    "bytes": {"content": b"a"},
    "no text": {"content": None},
    "50 MB": {"content": "x" * 50_000_000},
    "16 MB of two-byte characters": {"content": "é" * (8 * 1024 * 1024 + 1)},
    "NaN": {"metadata": {"score": float("nan")}},
    "infinity": {"metadata": [1, [float("inf")]]},
    "2**63": {"metadata": {"n": 2**63}},
    "-2**63-1": {"metadata": -(2**63) - 1},
    "2**10000": {"metadata": {"n": 2**10_000}},
    "a number as key": {"metadata": {1: "a"}},
    "NUL in a key": {"metadata": {"a\x00": 1}},
    "surrogate in a value": {"metadata": {"a": ["\ud800"]}},
    "a set": {"metadata": {1, 2}},
    "an object": {"metadata": {"a": object()}},
    "a time": {"metadata": {"a": datetime.now(UTC)}},
    "bytes in it": {"metadata": b"x"},
    "100 levels": {"metadata": DEEP},
    "2 MB of JSON": {"metadata": ["x" * 2_000_000]},
    "a naive time": {"created_at": datetime(2026, 1, 1)},
    "a naive expiry": {"expires_at": datetime(2026, 1, 1)},
    "a time before year 1": {"created_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))},
    "a time after year 9999": {"expires_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))},
    "no time": {"created_at": "yesterday"},
    "an unknown field": {"contents": "x"},
}


@pytest.fixture
async def db(path: Path) -> AsyncIterator[memdb.Database]:
    async with memdb.open(path) as opened:
        yield opened
        assert await opened.read(lambda tx: tx.execute("SELECT count(*) FROM record")) == [(0,)]
        assert (await opened.check()).problems == []


def sentence(caught: pytest.ExceptionInfo[InvalidInput]) -> str:
    text = str(caught.value)
    assert len(text.split()) >= 4
    assert len(text) < 500, "the message repeats the value"
    return text


@pytest.mark.parametrize("id", BAD_IDS, ids=lambda id: repr(id)[:12])
async def test_a_bad_id_is_refused_everywhere(db: memdb.Database, id: Any) -> None:
    memory = db.memory()
    calls: list[Callable[[], Any]] = [
        lambda: memory.items.save(MemoryItem(id=id, content="x")),
        lambda: memory.items.save(MemoryItem.model_construct(id=id, content="x")),
        lambda: memory.items.save_many([MemoryItem(id="good", content="x"), {"id": id, "content": "x"}]),
        lambda: memory.items.get(id),
        lambda: memory.items.delete(id),
        lambda: memory.items.record_recall(id, 1.0),
        lambda: memory.items.recall_stats(id),
        lambda: memory.pages.add_page(KnowledgePage(id=id, title="x")),
        lambda: memory.pages.add_page(KnowledgePage(id="good", title="x", references=[id])),
        lambda: memory.pages.add_page(KnowledgePage(id="good", title="x", category=id)),
        lambda: memory.pages.get_page(id),
        lambda: memory.pages.delete_page(id),
        lambda: memory.pages.referenced_by(id),
        lambda: memory.atomic(lambda m: m.items.get(id)),
        lambda: db.forget(id),
    ]
    for call in calls:
        with pytest.raises(InvalidInput) as caught:
            await call()
        sentence(caught)
    for build in (lambda: db.memory(user_id=id), lambda: db.memory(session_id=id), lambda: memdb.Scope(id)):
        with pytest.raises(InvalidInput) as caught:
            build()
        sentence(caught)


@pytest.mark.parametrize("what", BAD_FIELDS)
async def test_a_bad_field_is_refused_however_it_comes(db: memdb.Database, what: str) -> None:
    fields = {"id": "a", "content": "x", **BAD_FIELDS[what]}
    field = next(iter(BAD_FIELDS[what]))
    items = db.memory().items
    for call in (
        lambda: items.save(MemoryItem(**fields)),
        lambda: items.save(fields),  # type: ignore[arg-type]
        lambda: items.save(MemoryItem.model_construct(**fields)),
        lambda: items.save_many([MemoryItem(id="good", content="x"), MemoryItem.model_construct(**fields)]),
    ):
        if what == "an unknown field" and call.__code__.co_names[-1] == "model_construct":
            continue
        with pytest.raises(InvalidInput, match=field) as caught:
            await call()
        sentence(caught)


@pytest.mark.parametrize("value", [None, 5, "text", [1], {"id": "a"}, KnowledgePage(id="a", title="x")])
async def test_something_else_than_an_item_is_refused(db: memdb.Database, value: Any) -> None:
    for call in (db.memory().items.save, lambda item: db.memory().items.save_many([item]), db.memory().items.save_many):
        with pytest.raises(InvalidInput):
            await call(value)


@pytest.mark.parametrize("limit", [-1, 10_001, 2**70, 1.5, "1", True, float("nan")])
async def test_a_bad_limit_is_refused(db: memdb.Database, limit: Any) -> None:
    memory = db.memory()
    for call in (
        lambda: memory.items.search("x", limit),
        lambda: memory.pages.search("x", limit),
        lambda: memory.pages.find_by_keywords(["x"], limit),
        lambda: memory.items.list(MemoryFilter(limit=limit)),
        lambda: memory.items.list(MemoryFilter.model_construct(limit=limit)),
    ):
        if limit in ("1", True) and call.__code__.co_names[-1] != "search":
            continue  # pydantic's own reading of a whole number
        with pytest.raises(InvalidInput, match="limit"):
            await call()


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "1", None, 10**400])
async def test_a_bad_score_is_refused(db: memdb.Database, score: Any) -> None:
    with pytest.raises(InvalidInput, match="score"):
        await db.memory().items.record_recall("a", score)


async def test_integers_beyond_64_bits_in_sql_of_ones_own_are_refused(db: memdb.Database) -> None:
    for call in (db.read, db.write):
        with pytest.raises(InvalidInput, match="64 bits"):
            await call(lambda tx: tx.execute("SELECT ?", (2**63,)))


async def test_too_many_at_once_are_refused(db: memdb.Database) -> None:
    item = MemoryItem(id="a", content="x")
    with pytest.raises(InvalidInput, match="100,000"):
        await db.memory().items.save_many([item] * 100_001)
    with pytest.raises(InvalidInput, match="tags"):
        await db.memory().pages.add_page(KnowledgePage(id="a", title="x", tags=[str(n) for n in range(1000)]))
    with pytest.raises(InvalidInput, match="keywords"):
        await db.memory().pages.add_page(KnowledgePage(id="a", title="x", keywords=[f"k{n}" for n in range(100_000)]))


async def test_extremes_that_are_allowed_come_back(path: Path) -> None:
    longest = MemoryItem(
        id="\U0010ffff" * 1000,
        content="é" * (8 * 1024 * 1024),
        metadata={"min": -(2**63), "max": 2**63 - 1, "tiny": 5e-324, "big": 1.7e308, "": [None, True, -0.0]},
        created_at=datetime(1, 1, 1, tzinfo=UTC),
        expires_at=datetime.max.replace(tzinfo=UTC),
    )
    async with memdb.open(path) as db:
        await db.memory().items.save(longest)
        assert await db.memory().items.get(longest.id) == longest
        assert await db.memory().items.list(MemoryFilter(prefix="\U0010ffff" * 999)) == [longest]
        assert (await db.check()).problems == []


async def test_a_hundred_thousand_items_in_one_call(path: Path) -> None:
    async with memdb.open(path, durability="normal") as db:
        items = db.memory().items
        many = [MemoryItem(id=str(n), content=f"number{n} of many") for n in range(100_000)]
        assert await items.save_many(many) == 100_000
        assert (await items.search("number54321"))[0].item.id == "54321"
        assert len(await items.search("many", limit=10_000)) == 10_000
        assert (await db.stats()).records == 100_000
        assert (await db.check()).problems == []


async def test_fifty_thousand_words_are_a_query(path: Path) -> None:
    async with memdb.open(path) as db:
        items = db.memory().items
        await items.save_many([MemoryItem(id=str(n), content=f"w{n} common") for n in range(500)])
        query = " ".join(f"w{n}" for n in range(50_000))
        assert len(await asyncio.wait_for(items.search(query, limit=5), 60)) == 5
        assert (await items.search(f'{query} "w7 common"'))[0].item.id == "7"
        assert await items.search('"' + query + '"') == []
        assert await items.search("AND " * 50_000) == await items.search('"' * 50_001) == []
        assert len(await items.search("common " * 50_000, limit=3)) == 3
