"""The index never drifts: any history of calls and of shell edits leaves it in step with the records."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import KnowledgePage, MemoryItem
from tests.hostile.shell import NOW, shell
from tests.properties.running import a_file
from tests.strategies import SAME_EVERY_TIME

TEXTS = ("", "red fox", "部署方案", "StateGraph v1.2.3", "สวัสดี", "ＦＵＬＬ ﬁle", "x" * 5000, "1 2 3", "don't")
USERS, KEYS = ("alice", "bob", "eve"), ("a", "b", "c", "d")
TEXT_COLUMNS = ("title", "summary", "content", "title_seg", "summary_seg", "content_seg", "keywords_seg", "tags_seg")
LISTS = ("[]", '["x"]', '["x", "部署"]', '["y", 1, null]', "{}", '"x"', "5")


def by_hand(chance: random.Random) -> tuple[str, tuple[Any, ...]]:
    """Return a statement that a person might type."""
    some = "WHERE id % ? = 0" if chance.random() < 0.7 else "WHERE key = ?"
    which = chance.choice([1, 2, 3]) if "%" in some else chance.choice(KEYS)
    user, key, text, words = chance.choice(USERS), chance.choice(KEYS), chance.choice(TEXTS), chance.choice(LISTS)
    column = chance.choice(TEXT_COLUMNS)
    conflict = chance.choice(["", "OR IGNORE ", "OR FAIL ", "OR ABORT "])
    fields = "user_id, layer, session_id, key, created_at, updated_at, content, tags"
    place = (user, chance.choice(["item", "page"]), chance.choice(["", "s"]), key, NOW, NOW, text, words)
    return chance.choice(
        [
            (f"UPDATE record SET {column} = ? {some}", (text, which)),
            (f"UPDATE record SET {column} = NULL {some}", (which,)),
            (f"UPDATE record SET tags = ? {some}", (words, which)),
            (f"UPDATE record SET keywords = ?, content = ? {some}", (words, text, which)),
            (f"UPDATE record SET content = ?, content_seg = ? {some}", (text, chance.choice(TEXTS), which)),
            (f"UPDATE record SET content = content || ?, seg_revision = seg_revision + 1 {some}", (text, which)),
            (f"UPDATE {conflict}record SET user_id = ? {some}", (user, which)),
            (f"UPDATE {conflict}record SET key = ?, layer = ? {some}", (key, chance.choice(["item", "page"]), which)),
            (f"UPDATE {conflict}record SET session_id = ?, title = ? {some}", (chance.choice(["", "s"]), text, which)),
            (f"DELETE FROM record {some}", (which,)),
            (f"INSERT {conflict}INTO record ({fields}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", place),
            (
                f"INSERT INTO record ({fields}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET content = excluded.content, user_id = 'eve'",
                place,
            ),
        ]
    )


async def by_call(db: memdb.Database, chance: random.Random) -> None:
    """Do something through memdb."""
    memory, key, text = db.memory(chance.choice(USERS)), chance.choice(KEYS), chance.choice(TEXTS)
    page = KnowledgePage(id=key, title=text, summary=chance.choice(TEXTS), tags=["x"] * chance.randrange(2))
    act = chance.randrange(7)
    try:
        if act == 0:
            await memory.items.save(MemoryItem(id=key, content=text))
        elif act == 1:
            await memory.items.save_many([MemoryItem(id=id, content=text) for id in chance.choices(KEYS, k=3)])
        elif act == 2:
            await memory.items.delete(key)
        elif act == 3:
            await memory.pages.add_page(page)
        elif act == 4:
            await memory.pages.update_page(page)
        elif act == 5:
            await memory.pages.add_pages([page], replace=True)
        else:
            await db.forget(chance.choice(USERS))
    except (memdb.NotFound, memdb.AlreadyExists):
        return


def edit(path: Path, chance: random.Random) -> None:
    recursive = f"PRAGMA recursive_triggers = {chance.choice(['ON', 'OFF'])}"
    try:
        shell(path, recursive, by_hand(chance))
    except Exception as error:
        assert "constraint failed" in str(error), error  # noqa: PT017 - any other failure is a trigger's


@settings(SAME_EVERY_TIME, max_examples=40)
@given(st.integers(0, 2**32))
def test_the_index_stays_in_step(seed: int) -> None:
    chance = random.Random(seed)

    async def go(path: Path) -> None:
        async with memdb.open(path, durability="normal") as db:
            for step in range(40):
                if chance.random() < 0.5:
                    await by_call(db, chance)
                else:
                    edit(path, chance)
                if step % 10 == 9:
                    assert (await db.check()).problems == []
            assert (await db.check(repair=True)).ok
            report = await db.check()
            assert [*report.problems, *report.notes] == []

    with a_file() as path:
        asyncio.run(go(path))
