"""find: one search over every layer of a user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import memdb
from memdb import Database, InvalidInput, KnowledgePage, Memory, MemoryItem
from memdb.layers.layer import Live
from memdb.retrieval.find import Hit, find
from memdb.scope import Scope
from memdb.testing import FrozenClock

ALICE = Scope("alice")


async def fill(memory: Memory[Live]) -> None:
    await memory.items.save(MemoryItem(id="note", content="We drink tea at four."))
    await memory.pages.add_page(
        KnowledgePage(id="tea", title="Tea", summary="How to make tea.", content="Boil the water and wait.")
    )
    await memory.pages.add_page(KnowledgePage(id="cake", title="Cake", content="Cake is eaten with tea or coffee."))


def marked(hit: Hit) -> list[str]:
    return [hit.snippet.text[start:end] for start, end in hit.snippet.marks]


async def test_every_layer_is_searched_best_first(db: Database, memory: Memory[Live], clock: FrozenClock) -> None:
    await fill(memory)
    hits = await db.read(find, ALICE, "making teas")
    assert {(hit.layer, hit.id, hit.title) for hit in hits} == {
        ("page", "tea", "Tea"),
        ("item", "note", ""),
        ("page", "cake", "Cake"),
    }
    assert hits[0].id == "tea"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 for hit in hits)
    assert {hit.created_at for hit in hits} == {clock.now}


async def test_a_layers_hits_and_scores_are_those_of_the_layer(db: Database, memory: Memory[Live]) -> None:
    await fill(memory)
    pages = [(hit.id, hit.score) for hit in await db.read(find, ALICE, "tea", 10, "page")]
    assert pages == [(hit.page.id, hit.score) for hit in await memory.pages.search_scored("tea")]
    assert [hit.id for hit in await db.read(find, ALICE, "tea", 10, "item")] == ["note"]
    assert await db.read(find, ALICE, "tea", 10, "nonsense") == []


async def test_snippets_come_from_summary_and_content(db: Database, memory: Memory[Live]) -> None:
    await fill(memory)
    snippets = {hit.id: hit for hit in await db.read(find, ALICE, "tea boiling")}
    assert snippets["tea"].snippet.text == "How to make tea. Boil the water and wait."
    assert marked(snippets["tea"]) == ["tea", "Boil"]
    assert marked(snippets["note"]) == ["tea"]


async def test_a_heading_that_repeats_the_title_is_left_out(db: Database, memory: Memory[Live]) -> None:
    page = KnowledgePage(id="a", title="Tea", content="# Tea\n\nDrink it hot.")
    await memory.pages.add_page(page)
    assert [hit.snippet.text for hit in await db.read(find, ALICE, "tea")] == ["Drink it hot."]
    await memory.pages.update_page(page.model_copy(update={"title": "Coffee"}))
    assert [hit.snippet.text for hit in await db.read(find, ALICE, "tea")] == ["# Tea Drink it hot."]


async def test_nothing_of_another_user_is_found(db: Database, memory: Memory[Live]) -> None:
    await fill(memory)
    await db.memory("bob").items.save(MemoryItem(id="b", content="Bob's tea"))
    assert [hit.id for hit in await db.read(find, Scope("bob"), "tea")] == ["b"]
    assert "b" not in {hit.id for hit in await db.read(find, ALICE, "tea")}
    assert await db.read(find, Scope("carol"), "tea") == []


async def test_the_limit_keeps_the_best(db: Database, memory: Memory[Live]) -> None:
    await fill(memory)
    everything = await db.read(find, ALICE, "tea")
    assert await db.read(find, ALICE, "tea", 2) == everything[:2]
    assert await db.read(find, ALICE, "tea", 0) == []


@pytest.mark.parametrize("query", ["", "!", '"', "NEAR(tea", "tea AND", "\x00", "x" * 10_000, "💥", "* ^ -"])
async def test_any_text_is_a_query(db: Database, memory: Memory[Live], query: str) -> None:
    await fill(memory)
    hits = await db.read(find, ALICE, query)
    assert (len(hits) == 3) is ("tea" in query)


@pytest.mark.parametrize("limit", [-1, 10_001, True, 1.5])
async def test_a_limit_out_of_range_is_refused(db: Database, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await db.read(find, ALICE, "tea", limit)


async def test_expired_records_are_not_found(db: Database, memory: Memory[Live], clock: FrozenClock) -> None:
    from datetime import timedelta

    await memory.items.save(MemoryItem(id="a", content="tea", expires_at=clock.now + timedelta(seconds=1)))
    assert len(await db.read(find, ALICE, "tea")) == 1
    clock.forward(seconds=1)
    assert await db.read(find, ALICE, "tea") == []


async def test_looking_is_not_recalling(db: Database, memory: Memory[Live]) -> None:
    await fill(memory)
    await db.read(find, ALICE, "tea")
    assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM recall")) == [(0,)]


async def test_a_record_that_cannot_be_read_is_set_aside(path: Path) -> None:
    async with memdb.open(path) as db:
        await fill(db.memory("alice"))
    shell = sqlite3.connect(path)
    shell.execute("UPDATE record SET created_at = 'once' WHERE key = 'cake'")
    shell.commit()
    shell.close()
    async with memdb.open(path) as db:
        assert {hit.id for hit in await db.read(find, ALICE, "tea")} == {"tea", "note"}
        assert (await db.stats()).quarantined == 1


async def test_a_tool_result_is_found_by_its_beginning_and_says_its_session(db, memory):
    for session in ("s1", "s2"):
        manager = db.memory("alice", session).manager
        await manager.save_tool_result(
            "r", {"tool": "grep", "content": f"plutonium in {session} " + "x " * 2_000 + "uranium"}
        )
    hits = await db.read(find, memory.scope, "plutonium")
    assert {(hit.layer, hit.id, hit.session_id, hit.title) for hit in hits} == {
        ("tool_result", "r", "s1", "grep"),
        ("tool_result", "r", "s2", "grep"),
    }
    assert await db.read(find, memory.scope, "uranium") == []
