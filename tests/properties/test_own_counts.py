"""What a user finds among others is what a user alone in a file finds: the same order, the same scores."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import memdb
from memdb import KnowledgePage, MemoryItem
from memdb.storage import fulltext, plan
from memdb.storage.fulltext import search
from memdb.storage.own_counts import NO_RECORDS, mean_length, own_index
from memdb.storage.postings import connections, kept
from memdb.storage.postings.own import OwnScored
from memdb.storage.vocabulary import index_size
from memdb.storage.within import Within
from memdb.text.query import parse
from tests.properties.running import a_file, run
from tests.properties.test_pruning import agree, queries, text
from tests.strategies import SAME_EVERY_TIME

WITHIN = (
    Within("me", "page"), Within("me"), Within("me", "item"), Within("me", "page", category="x"),
    Within("me", "message", "s"),
)  # fmt: skip


def pages(chance: random.Random, count: int, longest: int) -> list[KnowledgePage]:
    return [
        KnowledgePage(
            id=str(n), title=text(chance, 4), summary=text(chance, 6), content=text(chance, longest),
            tags=text(chance, 2).split(), category=chance.choice(["x", "y"]), keywords=["k"],
        )
        for n in range(count)
    ]  # fmt: skip


async def write(db: memdb.Database, chance: random.Random, count: int) -> None:
    """Write what one user remembers: long texts and short ones of three layers, some replaced or deleted."""
    memory = db.memory("me", "s")
    written = pages(chance, count, 30)
    await memory.pages.add_pages(written)
    await memory.items.save_many([MemoryItem(id=str(n), content=text(chance, 300 if n == 3 else 9)) for n in range(20)])
    await memory.conversation.add_messages([{"role": "user", "content": text(chance, 12)} for _ in range(15)])
    await memory.manager.update_working_memory("no record of its own")
    await memory.pages.delete_page("2")
    await memory.pages.update_page(written[1].model_copy(update={"content": text(chance, 40)}))


async def found(db: memdb.Database, query: str, within: Within, k: int, **options: Any) -> list[tuple[str, float]]:
    """Return the keys, with layer, and the scores of what is found."""

    def asked(tx: Any) -> list[tuple[str, float]]:
        keys = dict(tx.rows("SELECT id, layer || session_id || key FROM record"))
        return [(keys[number], score) for number, score in search(tx, parse(query), within, k, **options)]

    return await db.read(asked)


@settings(SAME_EVERY_TIME, max_examples=25)
@given(
    st.integers(0, 2**32), st.sampled_from([4, 40, 150]), st.sampled_from([1, 3, 10, 1000]), st.sampled_from([5, 80])
)
@example(1, 300, 10, 20)
def test_a_user_among_others_finds_what_a_user_alone_finds(seed: int, count: int, k: int, longest: int) -> None:
    async def go(shared: memdb.Database) -> None:
        chance = random.Random(seed)
        for other in ("others", "more of them"):
            await shared.memory(other).pages.add_pages(pages(chance, count + 50, longest))
        mine = chance.randrange(2**32)
        await write(shared, random.Random(mine), count)
        async with memdb.open(":memory:") as alone:
            await write(alone, random.Random(mine), count)
            for query in queries(chance):
                for within in WITHIN:
                    here = await found(shared, query, within, k)
                    full = await found(alone, query, within, k, prune=False)
                    beyond = await found(alone, query, within, k + 1, prune=False)
                    agree(here, full, beyond)  # type: ignore[arg-type]
                assert await shared.read(counted) is not None

    run(go)


@settings(SAME_EVERY_TIME, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([1, 10, 1000]))
def test_postings_in_memory_give_the_same_whatever_was_written(seed: int, k: int) -> None:
    chance, used = random.Random(seed), list[int]()

    class Counted(OwnScored):
        def best(self, count: int) -> list[tuple[int, float]]:
            used.append(count)
            return super().best(count)

    async def go(path: Path) -> None:
        async with memdb.open(path, durability="normal", readers=1) as db:
            await db.memory("others").pages.add_pages(pages(chance, 300, 20))
            await write(db, chance, 60)
            for _ in range(8):
                await db.memory(chance.choice(["me", "others"])).pages.add_pages(pages(chance, 30, 20), replace=True)
                for query in queries(chance):
                    for within in WITHIN:
                        here = await found(db, query, within, k)
                        with pytest.MonkeyPatch.context() as patched:
                            patched.setattr(fulltext, "kept_by", lambda tx: None)
                            full = await found(db, query, within, k)
                            beyond = await found(db, query, within, k + 1)
                        agree(here, full, beyond)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched, a_file() as path:
        patched.setattr(fulltext, "OwnScored", Counted)
        patched.setattr(plan, "IN_MEMORY_US", -1e9)
        patched.setattr(kept, "MAX_FRESH", chance.choice([10, 60, 1000]))
        patched.setattr(connections, "MAX_BYTES", chance.choice([10_000, 16 * 2**20]))
        asyncio.run(go(path))
    assert used


def counted(tx: Any) -> Any:
    return own_index(tx, "me", index_size(tx))


async def test_what_strangers_write_changes_no_score(db: memdb.Database) -> None:
    texts = ["green tea in the morning", "black tea", "a train at nine in the morning", "tea, train and tea again"]
    mine = db.memory("alice").pages
    await mine.add_pages([KnowledgePage(id=str(n), title="", content=content) for n, content in enumerate(texts)])
    strangers = db.memory("bob").pages
    await strangers.add_pages([KnowledgePage(id=str(n), title="", content="nothing of it") for n in range(20)])
    before = [(hit.page.id, hit.score) for hit in await mine.search_scored("black tea in the morning train")]
    await strangers.add_pages([KnowledgePage(id=f"b{n}", title="tea", content="morning tea " * n) for n in range(50)])
    after = [(hit.page.id, hit.score) for hit in await mine.search_scored("black tea in the morning train")]
    assert len(before) == 4
    assert after == before


async def test_what_is_counted_without_a_record_is_known(db: memdb.Database) -> None:
    def layers(tx: Any) -> set[str]:
        rows = tx.rows(
            "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%\\_counted\\_ai' ESCAPE '\\'"
        )
        return {layer for (sql,) in rows for layer in re.findall(r"\(new\.user_id, '(\w+)'", sql)}

    assert await db.read(layers) == set(NO_RECORDS)


@pytest.mark.parametrize("owner", ["alice", "bob"])
async def test_who_has_most_of_a_file_is_counted_with_all(db: memdb.Database, owner: str) -> None:
    for user, count in (("alice", 30), ("bob", 10)):
        many = [KnowledgePage(id=str(n), title="", content=f"tea {n}") for n in range(count)]
        await db.memory(user).pages.add_pages(many)
    own = await db.read(lambda tx: own_index(tx, owner, index_size(tx)))
    assert (own is None) == (owner == "alice")
    assert own is None or (own.rows, await db.read(lambda tx: mean_length(tx, own))) == (10, 4.0)
