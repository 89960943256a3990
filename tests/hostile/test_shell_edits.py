"""The sqlite3 shell beside memdb: what it writes is searchable at once, and what it breaks is noticed and mended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import KnowledgePage, MemoryItem
from tests.hostile.shell import BY_HAND, NOW, inserted, shell


@pytest.fixture
async def db(path: Path) -> AsyncIterator[memdb.Database]:
    async with memdb.open(path) as opened:
        memory = opened.memory()
        await memory.items.save_many(
            [MemoryItem(id=str(n), content=f"部署方案{n} StateGraph item{n}") for n in range(12)]
        )
        await memory.pages.add_page(KnowledgePage(id="p", title="Seite", tags=["eins", "zwei"], references=["q"]))
        yield opened


async def found(db: memdb.Database, query: str) -> list[str]:
    return sorted(hit.item.id for hit in await db.memory().items.search(query, limit=100))


async def said(db: memdb.Database, repair: bool = False) -> list[str]:
    """Return what check() says: what is wrong, and what is only not as good as it could be."""
    report = await db.check(repair=repair)
    return [*report.problems, *report.notes]


async def test_rows_written_by_hand_are_searchable_at_once(db: memdb.Database, path: Path) -> None:
    shell(path, inserted("new", "a zebra appears"), inserted("other", "a zebra too", user="bob"))
    assert await found(db, "zebra") == ["new"]
    shell(path, "UPDATE record SET content = 'an okapi appears' WHERE key = 'new'")
    assert (await found(db, "zebra"), await found(db, "okapi")) == ([], ["new"])
    shell(path, "UPDATE record SET content = 'okapi' WHERE key = '3'")
    assert (await found(db, "okapi"), await found(db, "item3")) == (["3", "new"], [])
    shell(path, "UPDATE record SET user_id = 'bob' WHERE key = 'new'")
    assert await found(db, "okapi") == ["3"]
    shell(path, "DELETE FROM record WHERE key = '3'")
    assert await found(db, "okapi") == []
    assert (await db.check()).problems == []
    assert await said(db, repair=True) == await said(db) == []


async def test_text_written_by_hand_in_an_unspaced_script_is_found_by_its_parts_after_a_repair(
    db: memdb.Database, path: Path
) -> None:
    shell(path, inserted("zh", "数据库迁移 ParseTree"), "UPDATE record SET content = '回滚计划' WHERE key = '3'")
    assert [BY_HAND in sentence for sentence in await said(db)] == [True]
    assert await said(db, repair=True) == []
    assert (await found(db, "迁移"), await found(db, "parse tree"), await found(db, "计划")) == (["zh"], ["zh"], ["3"])
    assert await found(db, '"部署方案3"') == await found(db, '"案3"') == []
    assert (await db.check()).problems == []


async def test_tags_and_children_follow_a_shell(db: memdb.Database, path: Path) -> None:
    pages = db.memory().pages
    shell(path, """UPDATE record SET tags = '["drei"]' WHERE key = 'p'""")
    assert [page.id for page in await pages.find_by_keywords(["drei"])] == ["p"]
    assert await pages.find_by_keywords(["zwei"]) == []
    shell(path, "DELETE FROM record WHERE key = 'p'")
    assert await pages.referenced_by("q") == await pages.find_by_keywords(["drei"]) == []
    assert (await db.check()).problems == []


# What a careless hand can do.
HARM: dict[str, tuple[str, ...]] = {
    "replace": (inserted("3", "okapi", verb="INSERT OR REPLACE"),),
    "replace by number": ("REPLACE INTO record (id, user_id, layer, key, created_at, updated_at, content)"
                          f" SELECT id, user_id, layer, key, '{NOW}', '{NOW}', 'okapi' FROM record WHERE key = '3'",),
    "update or replace": ("UPDATE OR REPLACE record SET key = '4' WHERE key = '3'",),
    "renumbered": ("UPDATE record SET id = 9000 + id WHERE key IN ('3', 'p')",),
    "insert trigger dropped": ("DROP TRIGGER record_search_ai", inserted("x", "okapi")),
    "update trigger dropped": ("DROP TRIGGER record_search_au", "UPDATE record SET content = 'okapi' WHERE key = '3'"),
    "delete trigger dropped": ("DROP TRIGGER record_search_ad", "DELETE FROM record WHERE key IN ('3', 'p')"),
    "tag trigger dropped": ("DROP TRIGGER record_tag_au", "UPDATE record SET tags = '[\"drei\"]' WHERE key = 'p'"),
    "trigger rewritten": ("DROP TRIGGER record_search_ad",
                          "CREATE TRIGGER record_search_ad AFTER DELETE ON record BEGIN SELECT 1; END",
                          "DELETE FROM record WHERE key = '3'"),
    "view dropped": ("DROP VIEW v_items", "DROP VIEW v_knowledge_pages"),
    "index dropped": ("DROP INDEX record_by_time",),
    "index emptied": ("INSERT INTO record_search (record_search) VALUES ('delete-all')",),
    "index emptied, then an edit": ("INSERT INTO record_search (record_search) VALUES ('delete-all')",
                                    inserted("x", "部署")),
    "an index entry lost, its row marked": ("INSERT INTO record_search (record_search) VALUES ('delete-all')",
                                            "UPDATE record SET seg_revision = 0 WHERE key IN ('3', 'p')"),
    "index row added": ("INSERT INTO record_search (rowid, title) VALUES (777, 'ghost')",),
    "twin falsified": ("UPDATE record SET content_seg = 'okapi' WHERE key = '3'",),
    "twins distrusted": ("UPDATE record SET seg_revision = 0 WHERE key < '5'",),
    "twins distrusted, rows deleted": ("UPDATE record SET seg_revision = 0", "DELETE FROM record WHERE key > '1'"),
    "counters wrong": ("UPDATE scope SET records = 0, bytes = 5",),
    "counters negative": ("UPDATE scope SET records = -3",),
    "scopes deleted": ("DELETE FROM scope",),
    "a layer's scope deleted": ("DELETE FROM scope WHERE layer = 'item'",),
    "a user's scope deleted": ("DELETE FROM scope WHERE layer = ''",),
    "tokens emptied": ("UPDATE scope SET tokens = NULL",),
    "tokens swapped": ("UPDATE scope SET tokens = '1 1' WHERE layer = 'item'",),
    "tags out of step": ("DELETE FROM record_tag WHERE tag = 'eins'", "UPDATE record_tag SET tag = 'falsch'"),
    "orphans": ("INSERT INTO record_tag VALUES ('default', 'a', 'page', 999)",
                "INSERT INTO record_reference VALUES (999, 0, 'default', 'page', 'x')",
                "INSERT INTO recall (record_id) VALUES (999)"),
    "content as a number": ("UPDATE record SET content = 5, title = 1.5 WHERE key = '3'",),
    "moved to another user": ("UPDATE record SET user_id = 'bob', layer = 'page', session_id = 's' WHERE key < '5'",),
    "all deleted": ("DELETE FROM record",),
}  # fmt: skip
HARMLESS = {"all deleted", "moved to another user"}  # the triggers see to it


@pytest.mark.parametrize("harm", HARM)
async def test_what_a_careless_hand_breaks_is_noticed_and_mended(db: memdb.Database, path: Path, harm: str) -> None:
    shell(path, *HARM[harm])
    assert (harm in HARMLESS) == (await said(db) == [])
    assert await said(db, repair=True) == []
    assert await said(db) == []
    await in_step(db, path)


async def in_step(db: memdb.Database, path: Path) -> None:
    """Check by searching that every row is found by its text, by its owner, and by nobody else."""
    rows = shell(path, "SELECT user_id, key, content FROM record WHERE layer = 'item' AND session_id = ''")
    for user, key, content in rows:
        hits: list[Any] = await db.memory(user).items.search(f'"{content}"', limit=100)
        assert key in [hit.item.id for hit in hits], content
        assert await db.memory("nobody").items.search(content) == []
    assert await found(db, "ghost falsch") == []
    expected = sorted(key for user, key, content in rows if user == "default" and "部署方案" in content)
    assert await found(db, '"部署方案"') == expected
    stats = await db.stats()
    assert stats.records == shell(path, "SELECT count(*) FROM record")[0][0]
    await db.memory().items.save(MemoryItem(id="3", content="walrus"))
    assert await found(db, "walrus") == ["3"]
    assert await db.memory().items.delete("3")
    assert (await db.check()).problems == []


@pytest.mark.parametrize("harm", HARM)
async def test_a_handle_goes_on_or_says_what_to_do_before_the_repair(db: memdb.Database, path: Path, harm: str) -> None:
    shell(path, *HARM[harm])
    memory = db.memory()
    for act in (
        lambda: memory.items.search("部署 item3 okapi"),
        lambda: memory.items.list(),
        lambda: memory.pages.search("seite eins"),
        lambda: memory.items.save(MemoryItem(id="3", content="x")),
        lambda: memory.items.delete("4"),
        lambda: memory.pages.delete_page("p"),
    ):
        try:
            await act()
        except memdb.Corrupt as error:
            assert "check(repair=True)" in str(error)  # noqa: PT017
        except memdb.NotFound:
            continue
    assert await said(db, repair=True) == await said(db) == []


async def test_a_read_only_check_says_what_it_could_not_look_at(db: memdb.Database, path: Path) -> None:
    shell(path, "INSERT INTO record_search (record_search) VALUES ('delete-all')")
    async with memdb.open(path, read_only=True) as looking:
        report = await looking.check(repair=True)
        assert any("not checked" in note for note in report.notes)
        assert report.repaired == []
    assert (await db.check(repair=True)).ok
