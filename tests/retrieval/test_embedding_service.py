"""Embedding in the background: everything in the end, nothing twice for long, whatever the embedder does."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, InvalidInput, KnowledgePage, MemoryItem
from memdb.errors import ModelError
from memdb.retrieval.meaning import batches as embedding_batches
from memdb.retrieval.meaning import service as embedding_service
from memdb.retrieval.meaning.batches import BATCH_PASSAGES, BATCH_RECORDS, Batches, Complaints
from memdb.retrieval.meaning.service import EmbeddingService
from memdb.testing import HashingEmbedder


class Embedder(HashingEmbedder):
    """A hashing embedder that does something before each answer."""

    def __init__(self, before: Callable[[list[str]], Any] | None = None, model: str = "one") -> None:
        super().__init__(16)
        self.model = model
        self.before = before

    async def embed(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        if self.before is not None and (waits := self.before(texts)) is not None:
            await waits
        return await super().embed(texts)

    @property
    def asked(self) -> list[str]:
        return [text for call in self.calls for text in call]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look every few milliseconds, and rest no longer than that."""
    monkeypatch.setattr(embedding_service, "LOOK_S", 0.005)
    monkeypatch.setattr(embedding_batches, "MAX_PAUSE_S", 0.005)


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not await true():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


async def progresses_to(db: Database, embedded: int, waiting: int = 0) -> None:
    async def there() -> bool:
        return await db.embeddings.progress() == (embedded, waiting)

    await until(there)


async def fill(db: Database, user: str, count: int, start: int = 0) -> None:
    memory = db.memory(user)
    await memory.items.save_many(MemoryItem(id=f"{n}", content=f"{user}'s item {n}") for n in range(start, count))
    await memory.pages.add_pages(KnowledgePage(id=f"{n}", title=f"{user}'s page {n}") for n in range(start, count))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [line for line in lines if "SQLite" not in line]


async def test_a_started_service_embeds_what_all_users_hold_and_what_comes(place: Path | str) -> None:
    embedder = Embedder()
    async with memdb.open(place, embedder=embedder) as db, db.embeddings:
        for user in ("alice", "bob"):
            await fill(db, user, 100)
            await db.memory(user).hybrid.search("x", layer="item")
        await db.memory("bob").hybrid.search("x", layer="page")
        await progresses_to(db, 300)
        await fill(db, "alice", 150, start=100)  # her pages are not kept
        await progresses_to(db, 350)
        texts = [text for text in embedder.asked if text != "x"]
        assert len(texts) == len(set(texts)) == 350
        assert not any("alice's page" in text for text in texts)
        assert max(len(call) for call in embedder.calls) <= BATCH_RECORDS
        assert (await db.check()).problems == []


async def test_a_service_that_nobody_started_works_after_a_search_and_ends(place: Path | str) -> None:
    async with memdb.open(place, embedder=Embedder()) as db:
        await fill(db, "alice", 200)
        await db.memory("alice").hybrid.search("x", layer="item")
        await progresses_to(db, 200)
        await fill(db, "alice", 300, start=200)
        await asyncio.sleep(0.05)
        assert await db.embeddings.progress() == (200, 100)
        assert not [task for task in asyncio.all_tasks() if "memdb embeds" in task.get_name()]
        await db.memory("alice").hybrid.search("x", layer="item")
        await progresses_to(db, 300)


async def test_another_model_embeds_everything_anew_while_search_stays_up(path: Path) -> None:
    users = ("alice", "bob")
    async with memdb.open(path, embedder=Embedder(model="old")) as db, db.embeddings:
        for user in users:
            await fill(db, user, 100)
            await db.memory(user).hybrid.search("x", layer="item")
        await progresses_to(db, 200)
    turn = asyncio.Event()
    new = Embedder(lambda texts: turn.wait() if len(texts) > 1 else None, model="new")
    async with memdb.open(path, embedder=new) as db:
        async with db.embeddings:
            searches = [
                asyncio.create_task(db.memory(user).hybrid.search(f"{user}'s item 7", layer="item", k=1))
                for user in users
            ]
            assert await db.embeddings.drop_others() == 0
            turn.set()
            assert [[hit.id for hit in await search] for search in searches] == [["7"], ["7"]]
            await progresses_to(db, 200)
            models = await db.read(lambda tx: tx.execute("SELECT model, embedded, waiting FROM v_embeddings"))
            assert sorted(models) == [("new", 100, 0)] * 2 + [("old", 100, 0)] * 2
            assert await db.embeddings.drop_others() == 2
            assert await db.embeddings.drop_others() == 0
            models = await db.read(lambda tx: tx.execute("SELECT model, embedded, waiting FROM v_embeddings"))
            assert models == [("new", 100, 0)] * 2
        assert (await db.check()).problems == []


async def test_what_cannot_be_embedded_does_not_keep_the_old_vectors_for_ever(path: Path) -> None:
    class Zeros(Embedder):
        async def embed(self, texts: list[str]) -> list[list[float]]:
            vectors = await super().embed(texts)
            return [[0.0] * 16 if "item 7" in text else vector for text, vector in zip(texts, vectors, strict=True)]

    async with memdb.open(path, embedder=Embedder(model="old")) as db:
        await fill(db, "alice", 10)
        await db.memory("alice").hybrid.search("x", layer="item")
    async with memdb.open(path, embedder=Zeros(model="new")) as db:
        assert await db.embeddings.drop_others() == 0
        async with db.embeddings:
            await progresses_to(db, 9, 1)
            assert await db.embeddings.drop_others() == 1
            await db.memory("alice").items.save(MemoryItem(id="7", content="other words"))
            await progresses_to(db, 10)


async def test_two_handles_share_the_work(path: Path) -> None:
    one, two = Embedder(lambda texts: asyncio.sleep(0.005)), Embedder(lambda texts: asyncio.sleep(0.005))
    async with memdb.open(path, embedder=one) as first, memdb.open(path, embedder=two) as second:
        await fill(first, "alice", 2_000)
        for db in (first, second):
            await db.memory("alice").hybrid.search("x", layer="item")
            await db.embeddings.start()
        await progresses_to(first, 2_000)
        assert len(one.asked) > 200
        assert len(two.asked) > 200
        assert len(one.asked) + len(two.asked) < 2_000 * 1.5
        assert (await first.check()).problems == []


def fails_with(error: Exception) -> Callable[[list[str]], Any]:
    def fail(texts: list[str]) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [ModelError("the server is down"), ValueError("the server is down")])
async def test_a_failing_embedder_is_logged_once_and_asked_again(
    place: Path | str, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    embedder = Embedder()
    async with memdb.open(place, embedder=embedder) as db, db.embeddings:
        await db.memory("alice").hybrid.search("x", layer="item")
        embedder.before = fails_with(error)
        await fill(db, "alice", 100)
        await asyncio.sleep(0.3)
        assert await db.embeddings.progress() == (0, 100)
        several, one = warnings(caplog)
        assert several.startswith("what waits for vectors could not be embedded: ")
        assert one.startswith("a record that waits for its vector could not be embedded: ")
        assert several.endswith("the server is down")
        embedder.before = None
        await fill(db, "alice", 300, start=100)
        await progresses_to(db, 300)
        embedder.before = fails_with(error)
        await fill(db, "alice", 310, start=300)
        await until(lambda: asyncio.sleep(0, result=warnings(caplog) == [several, one, several]))  # anew


async def test_pauses_grow_from_one_second_to_a_minute(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_batches, "MAX_PAUSE_S", 60.0)
    embedder = Embedder()
    async with memdb.open(path, embedder=embedder) as db:
        await fill(db, "alice", 3)
        batches = Batches(db.engine, embedder, Complaints())
        await batches.keep("alice", ["item"])
        pauses = []
        for error in [ModelError("x")] * 8:
            embedder.before = fails_with(error)
            with pytest.raises(ModelError):
                await batches.some()
            pauses.append(round(batches.pause))
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
        embedder.before = None
        assert await batches.some()
        embedder.before = fails_with(ModelError("x"))
        await fill(db, "alice", 6, start=3)
        with pytest.raises(ModelError):
            await batches.some()
        assert round(batches.pause) == 1


async def test_a_search_does_not_ask_again_for_what_has_just_failed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_batches, "MAX_PAUSE_S", 60.0)
    calls: list[list[str]] = []

    def fail(texts: list[str]) -> None:
        calls.append(texts)
        if len(texts) > 1:
            raise ModelError("too many at once")

    async with memdb.open(path, embedder=Embedder(fail)) as db:
        await fill(db, "alice", 100)
        for _ in range(5):
            assert len(await db.memory("alice").hybrid.search("item 7", layer="item")) == 10
        assert [call for call in calls if len(call) == 1] == [["item 7"]] * 5
        assert len([call for call in calls if len(call) > 1]) <= 2


async def test_a_text_that_the_embedder_cannot_take_does_not_hold_up_the_others(
    place: Path | str, caplog: pytest.LogCaptureFixture
) -> None:
    def choke(texts: list[str]) -> None:
        if any("item 66" in text for text in texts):
            raise RuntimeError("cannot take this")

    async with memdb.open(place, embedder=Embedder(choke)) as db, db.embeddings:
        await fill(db, "alice", 100)
        await db.memory("alice").hybrid.search("x", layer="item")
        await progresses_to(db, 99, 1)
        await fill(db, "alice", 200, start=100)
        await progresses_to(db, 199, 1)
        assert len(warnings(caplog)) <= 4


async def test_what_changes_while_it_is_embedded_is_embedded_again(place: Path | str) -> None:
    changed = asyncio.Event()
    embedder = Embedder(lambda texts: changed.wait() if "first" in texts else None)
    async with memdb.open(place, embedder=embedder) as db, db.embeddings:
        items = db.memory("alice").items
        await db.memory("alice").hybrid.search("x", layer="item")
        await items.save_many([MemoryItem(id="a", content="first"), MemoryItem(id="b", content="other")])
        await until(lambda: asyncio.sleep(0.005, result=len(asyncio.all_tasks()) > 1))
        await items.save(MemoryItem(id="a", content="second"))
        changed.set()
        await progresses_to(db, 2)
        assert "second" in embedder.asked
        best = (await db.memory("alice").hybrid.search("second", layer="item", bm25_weight=0.0, k=1))[0]
        assert best.snippet.text == "second"


async def test_long_texts_come_a_few_at_a_time(place: Path | str) -> None:
    embedder = Embedder()
    async with memdb.open(place, embedder=embedder) as db, db.embeddings:
        await db.memory().pages.add_pages(
            KnowledgePage(id=f"{n}", title=f"{n}", content=f"Sentence {n}. " * 5_000) for n in range(10)
        )
        await db.memory().hybrid.search("x", layer="page")
        await progresses_to(db, 10)
        assert max(len(call) for call in embedder.calls) <= BATCH_PASSAGES + 64


async def test_closing_stops_it_in_the_middle_and_the_rest_waits(path: Path) -> None:
    embedder = Embedder(lambda texts: asyncio.sleep(60 if len(texts) > 1 else 0))
    async with memdb.open(path, embedder=embedder) as db:
        await db.memory("alice").hybrid.search("x", layer="item")
        await fill(db, "alice", 100)
        await db.embeddings.start()
        await asyncio.sleep(0.05)
    assert not [task for task in asyncio.all_tasks() if "memdb embeds" in task.get_name()]
    async with memdb.open(path, embedder=Embedder()) as db:
        assert await db.embeddings.progress() == (0, 100)
        async with db.embeddings:
            await db.embeddings.start()  # twice is once
            await progresses_to(db, 100)
        await db.embeddings.stop()
        async with db.embeddings:  # and anew
            await fill(db, "alice", 120, start=100)
            await progresses_to(db, 120)


async def test_a_service_of_ones_own(path: Path) -> None:
    async with memdb.open(path, embedder=Embedder()) as db:
        await fill(db, "alice", 10)
        await db.memory("alice").hybrid.search("x", layer="item")
        async with EmbeddingService(db) as service:
            await progresses_to(db, 10)
            assert await service.progress() == (10, 0)
        assert db.embedder is not None
        assert db.embedder.model == "one"


async def test_a_forgotten_user_leaves_nothing_to_embed(place: Path | str) -> None:
    async with memdb.open(place, embedder=Embedder()) as db, db.embeddings:
        await fill(db, "alice", 100)
        await db.memory("alice").hybrid.search("x", layer="item")
        await db.forget("alice")
        await progresses_to(db, 0)
        rows = await db.read(lambda tx: tx.execute("SELECT count(*) FROM embedding"))
        assert rows == [(0,)]
        await fill(db, "alice", 5)
        assert len(await db.memory("alice").hybrid.search("alice's item 3", layer="item")) == 5


async def test_without_an_embedder_there_is_nothing_to_start(place: Path | str) -> None:
    async with memdb.open(place) as db:
        for call in (db.embeddings.start, db.embeddings.progress, db.embeddings.drop_others):
            with pytest.raises(InvalidInput, match=r"without an embedder: memdb.open\(path, embedder=...\)"):
                await call()
        await db.embeddings.stop()


async def test_a_dropped_handle_is_gone_once_nothing_waits(path: Path) -> None:
    db = await memdb.open(path, embedder=Embedder())
    await fill(db, "alice", 10)
    await db.memory("alice").hybrid.search("x", layer="item")
    await progresses_to(db, 10)
    await asyncio.sleep(0.05)
    engine = weakref.ref(db.engine)
    del db
    gc.collect()
    assert engine() is None
