"""Embedders, model servers and folders that behave badly: each case was a fault once."""

from __future__ import annotations

import asyncio
import gzip
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import InvalidInput, KnowledgePage, ModelError
from memdb.asking import ask_text
from memdb.llm import client
from memdb.llm.anthropic import AnthropicChat
from memdb.llm.openai import OpenAIChat
from memdb.markdown.index_service import MemoryIndexService
from memdb.retrieval.meaning import service as embedding_service
from tests.llm.server import Answer, Server

HELLO = [{"role": "user", "content": "hello"}]
CHATS = [(OpenAIChat, "OPENAI"), (AnthropicChat, "ANTHROPIC")]


class Bad:
    """An embedder that does what a test says."""

    def __init__(self, deed: Callable[[Bad, list[str]], Any]) -> None:
        self.model, self.dimensions, self.calls, self._deed = "m", 3, 0, deed

    async def embed(self, texts: list[str]) -> Any:
        self.calls += 1
        found = self._deed(self, texts)
        return await found if asyncio.iscoroutine(found) else found


async def with_pages(db: memdb.Database, count: int = 3) -> memdb.Memory[Any]:
    memory = db.memory("alice")
    await memory.pages.add_pages([KnowledgePage(id=f"p{n}", title=f"rocket {n}") for n in range(count)])
    return memory


async def embedded(db: memdb.Database) -> None:
    async with asyncio.timeout(20):
        while (await db.embeddings.progress()).waiting:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


# -- embedders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [[5e-324] * 3, [1e-310, 2e-312, 0.0], [1e308] * 3])
async def test_vectors_of_the_smallest_and_greatest_numbers_are_kept_whole(numbers):
    embedder = Bad(lambda self, texts: [numbers for _ in texts])
    async with memdb.open(":memory:", embedder=embedder) as db:
        memory = await with_pages(db)
        await memory.hybrid.search("rocket", layer="page")
        await embedded(db)
        before = embedder.calls
        await memory.hybrid.search("rocket", layer="page")
        await asyncio.sleep(0.05)
        assert embedder.calls == before + 1  # the query alone: nothing is made anew


async def test_a_row_without_a_length_is_a_failure_of_the_embedder():
    numpy = pytest.importorskip("numpy")
    async with memdb.open(":memory:", embedder=Bad(lambda self, texts: [numpy.array(3.0) for _ in texts])) as db:
        assert len(await (await with_pages(db)).hybrid.search("rocket", layer="page")) == 3


async def test_vectors_of_a_model_that_is_exchanged_meanwhile_are_stored_for_none():
    def exchange(self: Bad, texts: list[str]) -> list[list[float]]:
        self.model = "other"
        return [[1.0, 0.0, 0.0] for _ in texts]

    async with memdb.open(":memory:", embedder=Bad(exchange)) as db:
        memory = await with_pages(db)
        assert len(await memory.hybrid.search("rocket", layer="page")) == 3
        rows = await db.read(lambda tx: tx.rows("SELECT model, embedded FROM v_embeddings WHERE model = 'm'", {}))
        assert rows == [("m", 0)]


@pytest.mark.parametrize("name", ["model", "dimensions"])
@pytest.mark.parametrize("value", [None, "", b"x", -1])
async def test_an_embedder_that_becomes_none(name, value):
    embedder = Bad(lambda self, texts: [[1.0, 0.0, 0.0] for _ in texts])
    async with memdb.open(":memory:", embedder=embedder) as db:
        memory = await with_pages(db)
        setattr(embedder, name, value)
        with pytest.raises(InvalidInput, match=rf"embedder\.{name}"):
            await memory.hybrid.search("rocket", layer="page")


async def test_an_embedder_that_cancels_its_own_work_has_failed():
    def cancelled_once(self: Bad, texts: list[str]) -> list[list[float]]:
        if self.calls == 1:
            raise asyncio.CancelledError
        return [[1.0, 0.0, 0.0] for _ in texts]

    async with memdb.open(":memory:", embedder=Bad(cancelled_once)) as db:
        memory = await with_pages(db)
        await db.embeddings.start()
        assert len(await memory.hybrid.search("rocket", layer="page")) == 3
        await embedded(db)


async def test_a_model_that_cancels_its_own_work_has_failed():
    class Cancelling:
        async def chat(self, messages: Any, **options: Any) -> Any:
            raise asyncio.CancelledError

    with pytest.raises(ModelError, match="CancelledError"):
        await ask_text(Cancelling(), "q")


async def test_a_search_does_without_an_embedder_that_hangs(monkeypatch):
    async def hanging(texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(3600)
        return []

    monkeypatch.setattr(embedding_service, "PATIENCE_S", 0.05)
    async with memdb.open(":memory:", embedder=Bad(lambda self, texts: hanging(texts))) as db:
        memory = await with_pages(db)
        async with asyncio.timeout(20):
            assert len(await memory.hybrid.search("rocket", layer="page")) == 3


async def test_of_searches_at_once_each_waits_for_one_batch():
    async def slow(texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0.01)
        return [[1.0, 0.0, 0.0] for _ in texts]

    embedder = Bad(lambda self, texts: slow(texts))
    async with memdb.open(":memory:", embedder=embedder) as db:
        memory = await with_pages(db, 1_000)
        await asyncio.gather(*(memory.hybrid.search("rocket", layer="page") for _ in range(10)))
        assert (await db.embeddings.progress()).embedded < 500  # not ten batches of 64


# -- servers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chat", "name"), CHATS)
@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\x7f", "\u00e9"])
async def test_a_key_that_no_header_can_carry_is_not_shown(monkeypatch, chat, name, end):
    async with Server() as server:
        monkeypatch.setenv(f"{name}_API_KEY", f"sk-secret{end}")
        monkeypatch.setenv(f"{name}_BASE_URL", server.url)
        async with chat("m", retries=0) as model:
            with pytest.raises(InvalidInput, match=f"{name}_API_KEY") as caught:
                await model.chat(HELLO)
        assert "secret" not in str(caught.value)
        assert not server.requests


@pytest.mark.parametrize(("chat", "_name"), CHATS)
@pytest.mark.parametrize(
    "headers", [{"retry-after": "3600"}, {"retry-after": "Wed, 21 Oct 9999 07:28:00 GMT"}, {"retry-after-ms": "inf"}]
)
async def test_a_server_that_wants_to_be_left_alone_for_long_is(chat, _name, headers):
    async with Server([Answer({"error": "busy"}, 429, headers)]) as server, chat("m", server.url) as model:
        async with asyncio.timeout(20):
            with pytest.raises(ModelError, match="status 429"):
                await model.chat(HELLO)
        assert len(server.requests) == 1


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_has_an_end(monkeypatch, packed):
    monkeypatch.setattr(client, "MOST_BYTES", 100_000)
    body = b'{"a": "' + b" " * 1_000_000 + b'"}'
    answer = Answer(gzip.compress(body), headers={"content-encoding": "gzip"}) if packed else Answer(body)
    async with Server([answer]) as server, OpenAIChat("m", server.url, retries=0) as model:
        with pytest.raises(ModelError, match="more than 100,000 bytes"):
            await model.chat(HELLO)


# -- folders and the index --------------------------------------------------------------------------------------------


async def service(db: memdb.Database, root: Path, *categories: str) -> MemoryIndexService:
    return MemoryIndexService(db, root, user_id="alice", categories=categories, interval=0.05, poll=True)


async def ids(db: memdb.Database) -> list[str]:
    return [entry.id for entry in await db.memory("alice").pages.get_index()]


async def test_a_category_that_leads_out_of_the_folder_is_not_read(db, tmp_path):
    (tmp_path / "root" / "work").mkdir(parents=True)
    (tmp_path / "root" / "work" / "a.md").write_text("# a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("# secret")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    async with await service(db, tmp_path / "root", "work", "link") as running:
        await running.synced()
        assert await ids(db) == ["work/a.md"]
        assert "leads out" in running.problems["link"]


async def test_an_empty_folder_in_the_place_of_the_folder_removes_nothing(db, tmp_path):
    root, away = tmp_path / "root", tmp_path / "away"
    (root / "work").mkdir(parents=True)
    (root / "work" / "a.md").write_text("# a")
    async with await service(db, root, "work") as running:
        os.rename(root, away)
        root.mkdir()  # as where a disk was mounted
        await running.synced()
        assert await ids(db) == ["work/a.md"]
        assert "another folder" in running.problems["work"]
        root.rmdir()
        os.rename(away, root)
        await running.synced()
        assert not running.problems


@pytest.mark.parametrize("categories", [None, []])
async def test_a_service_of_no_category(db, tmp_path, categories):
    with pytest.raises(InvalidInput, match="at least one"):
        MemoryIndexService(db, tmp_path, categories=categories)


@pytest.mark.parametrize("time", ["yesterday", "", 5])
async def test_an_index_whose_times_a_hand_has_changed_is_read(path, time):
    async with memdb.open(path) as db:
        notes = db.memory("alice").notes
        await notes.write_file("a.md", "# rocket")
        await notes.populate_index_from_files("alice", None, None)
        shell = sqlite3.connect(path)
        shell.execute("UPDATE note_index SET indexed_at = ?", (time,))
        shell.execute("UPDATE record SET content = 'other'")
        shell.commit()
        shell.close()
        assert [file["filename"] for file in (await notes.read_index())["files"]] == ["a.md"]
