"""Vectors after the sqlite3 shell: what is no vector is left out, embedded anew, and never an exception."""

from __future__ import annotations

import asyncio
import logging
import math
from array import array
from pathlib import Path

import pytest

import memdb
from memdb import MemoryItem
from memdb.retrieval.meaning.service import EmbeddingService
from memdb.testing import HashingEmbedder
from tests.hostile.shell import NOW, inserted, shell

SIZE = 16
BROKEN = {
    "too short": b"\x00" * (4 * SIZE - 4),
    "too long": b"\x00" * (4 * SIZE + 4),
    "no whole number of floats": b"abc",
    "text": "not a vector",
    "text of the right length": "x" * (4 * SIZE),
    "a number": 5,
    "a real number": 2.5,
    "zeros": bytes(4 * SIZE),
    "not a number": array("f", [math.nan] * SIZE).tobytes(),
    "one not a number": array("f", [math.nan] + [0.1] * (SIZE - 1)).tobytes(),
    "infinite": array("f", [math.inf] * SIZE).tobytes(),
    "huge": array("f", [3e38] * SIZE).tobytes(),
    "hugely negative": array("f", [-3e38] * SIZE).tobytes(),
    "ten times as long": array("f", [10.0] + [0.0] * (SIZE - 1)).tobytes(),
}
UTF8 = "CAST(x'FF' AS TEXT)"


async def fill(path: Path, count: int = 8) -> None:
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        await db.memory().items.save_many(MemoryItem(id=f"{n}", content=f"note number {n}") for n in range(count))
        await db.memory().hybrid.search("note", layer="item")
        await mended(db, count)


async def search(db: memdb.Database, query: str = "note number 3", k: int = 100) -> list[str]:
    return [hit.id for hit in await db.memory().hybrid.search(query, layer="item", k=k, bm25_weight=0.0)]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [line for line in lines if "SQLite" not in line]


async def mended(db: memdb.Database, count: int) -> None:
    async with asyncio.timeout(20):
        while await db.embeddings.progress() != (count, 0):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


@pytest.fixture(params=["numpy", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(EmbeddingService, "comparer", None)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_vector_is_left_out_and_made_anew(
    path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    await fill(path)
    shell(path, ("UPDATE embedding SET vector = ? WHERE record_id IN (4, 5)", (BROKEN[kind],)), careless=True)
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        found = await search(db)
        assert set(found) >= {"0", "1", "2", "5", "6", "7"}
        await mended(db, 8)
        whole = await search(db)
        assert whole[0] == "3"
        assert sorted(whole) == [f"{n}" for n in range(8)]
        if kind not in ("zeros", "hugely negative"):  # those are near nothing, and so not looked at twice
            (line,) = warnings(caplog)
            assert line.startswith("some stored vectors cannot be read")
        assert len(warnings(caplog)) <= 1


@pytest.mark.usefixtures("way")
async def test_a_text_that_is_no_text_is_no_vector(path: Path) -> None:
    await fill(path)
    shell(path, f"UPDATE embedding SET vector = {UTF8} WHERE record_id = 4", careless=True)
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        assert "3" not in await search(db)
        await mended(db, 8)
        assert (await search(db))[0] == "3"


@pytest.mark.usefixtures("way")
async def test_all_vectors_are_broken(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await fill(path, 300)
    shell(path, ("UPDATE embedding SET vector = ?", (BROKEN["huge"],)))
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        assert await search(db, k=1) == []
        await mended(db, 300)
        assert len(await search(db, k=1)) == 1
        assert len(warnings(caplog)) == 1


async def test_a_vector_broken_under_a_running_handle(path: Path) -> None:
    await fill(path)
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        assert (await search(db))[0] == "3"
        shell(path, ("UPDATE embedding SET vector = ? WHERE record_id = 4", (b"abc",)))
        assert "3" not in await search(db)
        await mended(db, 8)
        assert (await search(db))[0] == "3"


async def test_a_handle_that_only_reads_leaves_them_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await fill(path)
    shell(path, ("UPDATE embedding SET vector = ? WHERE record_id = 4", (b"abc",)))
    async with memdb.open(path, read_only=True, embedder=HashingEmbedder(SIZE)) as db:
        for _ in range(3):
            assert sorted(await search(db)) == ["0", "1", "2", "4", "5", "6", "7"]
        assert len(warnings(caplog)) == 1


async def test_check_finds_them_and_a_repair_lets_them_wait(path: Path) -> None:
    await fill(path)
    shell(path, ("UPDATE embedding SET vector = ? WHERE record_id IN (4, 5)", (b"abc",)))
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        assert len((await db.check()).problems) == 1
        await db.check(repair=True)
        assert (await db.check()).problems == []
        assert await db.embeddings.progress() == (6, 2)
        assert (await search(db))[0] == "3"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM embedding",
        "DELETE FROM embedding WHERE record_id % 2",
        "DELETE FROM embedding_model",
        "UPDATE embedding SET vector = NULL",
        "UPDATE embedding SET vector = NULL, part = part + 1",
        "INSERT INTO embedding (user_id, model_id, record_id, part) VALUES ('default', 1, 4, 7)",
        "INSERT INTO embedding (user_id, model_id, record_id, part, vector) VALUES ('default', 1, 999, 0, x'00')",
        "INSERT INTO embedding (user_id, model_id, record_id, part) VALUES ('default', 999, 4, 0)",
        "UPDATE embedding SET user_id = 'eve'",
        "UPDATE embedding SET model_id = 999",
        "UPDATE embedding_model SET user_id = 'eve'",
        "UPDATE embedding_model SET layer = 'page'",
        "UPDATE embedding_model SET model = 'other'",
        "UPDATE embedding_model SET model = x'FF', layer = x'FF'",
        "UPDATE record SET content = x'FF' WHERE key = '3'",
        f"UPDATE record SET content = {UTF8} WHERE key = '3'",
        f"UPDATE record SET title = {UTF8}, created_at = 'soon'",
        "UPDATE record SET user_id = 'eve' WHERE key = '3'",
        "UPDATE record SET layer = 'page'",
        "UPDATE record SET content = ''",
        "DELETE FROM scope",
        "UPDATE scope SET records = -5",
        "UPDATE scope SET records = 'many'",
        inserted("new", "written by hand"),
        f"REPLACE INTO record (id, user_id, layer, key, created_at, updated_at, content)"
        f" VALUES (4, 'default', 'item', '3', '{NOW}', '{NOW}', 'another text')",
    ],
)
async def test_whatever_a_shell_does_nothing_raises_and_a_repair_mends_it(path: Path, statement: str) -> None:
    await fill(path)
    shell(path, statement, careless=True)
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db, db.embeddings:
        await search(db)
        assert len(await search(db, k=3)) <= 3
        await db.embeddings.progress()
        await db.check(repair=True)
        assert (await db.check()).problems == []
        async with asyncio.timeout(20):
            while (await db.embeddings.progress()).waiting:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.01)
        keys = {item.id for item in await db.memory().items.list()}
        assert set(await search(db)) <= keys
        if statement.startswith(("DELETE FROM embedding", "UPDATE embedding")):
            assert set(await search(db)) == keys


async def test_a_model_with_the_dimensions_of_another(path: Path) -> None:
    await fill(path)
    shell(path, "UPDATE embedding_model SET dimensions = 'many'", careless=True)
    async with memdb.open(path, embedder=HashingEmbedder(SIZE)) as db:
        with pytest.raises(memdb.InvalidInput, match="with many dimensions, the embedder says 16"):
            await search(db)
