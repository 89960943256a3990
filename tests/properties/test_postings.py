"""Postings in memory give FTS5's own answers, whatever was written meanwhile, by whom and how."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import KnowledgePage, MemoryItem
from memdb.storage import plan
from memdb.storage.fulltext import search
from memdb.storage.postings import connections, kept
from memdb.storage.within import Within
from memdb.text.query import parse
from tests.hostile.shell import NOW, shell
from tests.properties.running import a_file
from tests.properties.test_pruning import NEAR, history, queries, text
from tests.strategies import SAME_EVERY_TIME

WHERE = (Within("alice", "page"), Within("carol"), Within("alice"), Within("bob", "page", category="x"))


def agree(tx: Any, query: str, within: Within, k: int) -> bool:
    """Compare the two ways in one snapshot; return whether postings in memory were used."""
    if connections.kept_by(tx) is None:
        return False
    terms = parse(query)
    found, full = search(tx, terms, within, k, own=False), dict(search(tx, terms, within, 10_000, prune=False))
    assert [score for _, score in found] == pytest.approx(sorted(full.values(), reverse=True)[:k], abs=NEAR)
    assert {number: full[number] for number, _ in found} == pytest.approx(dict(found), abs=NEAR)
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
    return True


def by_hand(chance: random.Random) -> tuple[str, tuple[Any, ...]]:
    """Return a statement that a person might type."""
    fields = "id, user_id, layer, session_id, key, created_at, updated_at, content"
    number, words = chance.randrange(1, 400), text(chance, 9)
    place = (chance.choice(["alice", "bob"]), "page", "", f"by hand {chance.random()}", NOW, NOW, words)
    return chance.choice(
        [
            ("UPDATE record SET content = ? WHERE id % 7 = 3", (words,)),
            ("UPDATE record SET title = ? WHERE id = ?", (words, number)),
            ("UPDATE record SET user_id = 'carol', session_id = id WHERE id % 11 = 2", ()),
            ("DELETE FROM record WHERE id % 5 = 1", ()),
            ("DELETE FROM record WHERE id = (SELECT max(id) FROM record)", ()),
            ("UPDATE record SET content = CAST(x'77616c727573ff' AS TEXT) WHERE id = ?", (number,)),
            (f"INSERT OR REPLACE INTO record ({fields}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (number, *place)),
            (
                f"INSERT INTO record ({fields}) VALUES ((SELECT max(id) + 3 FROM record), ?, ?, ?, ?, ?, ?, ?)",
                place,
            ),
            ("UPDATE record SET category = 'x'", ()),
            ("DELETE FROM index_change", ()),
        ]
    )


async def write(db: memdb.Database, path: Path, chance: random.Random) -> None:
    """Write something: by a call, in a unit that fails, through a shell."""
    memory, act = db.memory(chance.choice(["alice", "bob", "carol"])), chance.randrange(6)
    pages = [
        KnowledgePage(id=str(chance.randrange(300)), title=text(chance, 4), content=text(chance, 20))
        for _ in range(chance.choice([1, 1, 3, 30]))
    ]
    pages = list({page.id: page for page in pages}.values())
    if act == 0:
        await memory.items.save(MemoryItem(id=str(chance.randrange(50)), content=text(chance, 9)))
    elif act <= 2:
        await memory.pages.add_pages(pages, replace=True)
    elif act == 3:

        def fails(tx: Any) -> None:
            tx.execute("UPDATE record SET content = 'walrus' WHERE id % 2")
            raise LookupError

        with pytest.raises(LookupError):
            await db.write(fails)
    elif act == 4:
        await db.forget(chance.choice(["bob", "carol"]))
    else:
        shell(path, "PRAGMA recursive_triggers = ON", by_hand(chance))


@settings(SAME_EVERY_TIME, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([1, 10, 1000]))
def test_postings_in_memory_answer_as_fts5_does(seed: int, k: int) -> None:
    chance = random.Random(seed)

    async def go(path: Path) -> None:
        async with memdb.open(path, durability="normal", readers=1) as db, memdb.open(path) as other:
            await history(db, chance, 120)
            used = False
            for _ in range(12):
                for _ in range(chance.randrange(3)):
                    await write(chance.choice([db, other]), path, chance)
                for query in queries(chance):
                    used |= await db.read(agree, query, chance.choice(WHERE), k)
            assert used
            assert (await db.check(repair=True)).ok

    with pytest.MonkeyPatch.context() as patched, a_file() as path:
        patched.setattr(plan, "IN_MEMORY_US", -1e9)
        patched.setattr(kept, "MAX_FRESH", chance.choice([10, 60, 1000]))
        patched.setattr(connections, "MAX_BYTES", chance.choice([10_000, 16 * 2**20]))
        asyncio.run(go(path))
