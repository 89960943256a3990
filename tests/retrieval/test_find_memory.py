"""find over facts, history, blocks and archive; and which of them a search by meaning sees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, Memory
from memdb.layers.blocks.config import BlockConfig
from memdb.layers.layer import Live
from memdb.retrieval.find import Hit, find
from memdb.scope import Scope
from memdb.testing import HashingEmbedder

ALICE = Scope("alice", "another session")


async def fill(db: Database) -> Memory[Live]:
    memory = db.memory("alice", "s1")
    await memory.facts.write_long_term("Ana drinks green tea.")
    for n in range(3):
        await memory.facts.append_history(f"[2026-01-0{n + 1} 09:00] Tea number {n} was bought.")
    await memory.blocks.configure({"persona": BlockConfig(size=500, initial_value="You are kind to tea drinkers.")})
    await memory.archive.insert("Tea from Assam is strong.", summary="Assam")
    return memory


def placed(hits: list[Hit]) -> set[tuple[str, str, str]]:
    return {(hit.layer, hit.id, hit.session_id) for hit in hits}


async def test_every_layer_is_searched(db: Database) -> None:
    memory = await fill(db)
    [passage] = await memory.archive.list()
    hits = await db.read(find, ALICE, "tea")
    assert placed(hits) == {
        ("fact", "MEMORY", ""),
        ("history", "1", ""),
        ("history", "2", ""),
        ("history", "3", ""),
        ("block", "persona", "s1"),
        ("archive", str(passage.id), ""),
    }
    assert {hit.snippet.text for hit in hits if hit.layer == "archive"} == {"Assam Tea from Assam is strong."}
    assert await db.read(find, Scope("bob"), "tea") == []


@pytest.mark.parametrize(("layer", "found"), [("fact", 1), ("history", 3), ("block", 1), ("archive", 1)])
async def test_one_layer_alone_is_searched(db: Database, layer: str, found: int) -> None:
    await fill(db)
    hits = await db.read(find, ALICE, "tea", 10, layer)
    assert [hit.layer for hit in hits] == [layer] * found
    assert all(hit.snippet.marks for hit in hits)


async def test_meaning_sees_the_archive_and_the_history(place: Path | str) -> None:
    async with memdb.open(place, embedder=HashingEmbedder()) as db:
        memory = await fill(db)
        await memory.hybrid.search("x")
        async with asyncio.timeout(20):
            while (await db.embeddings.progress()).waiting:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.01)
        assert (await db.embeddings.progress()).embedded == 4
        seen: set[Any] = placed(await memory.hybrid.search("teatime"))
        assert {layer for layer, _, _ in seen} == {"archive", "history"}
        assert ("history", "2", "") in seen
        [hit] = await memory.hybrid.search("assamese", layer="archive", k=1)
        assert hit.snippet.text == "Assam Tea from Assam is strong."
