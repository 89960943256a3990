"""Pages written as notes: safe names, nothing overwritten, and the same pages when they are read again."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import InvalidInput, KnowledgePage
from tests.strategies import SAME_EVERY_TIME, ids, instants, texts

HOSTILE = st.sampled_from(
    [
        "---\na: b\n---\nx",
        "---\n",
        "---\n---\n",
        " lead",
        "trail  \n\n\n",
        "a\r\nb\r\n",
        "\u2028\u0085\x0b",
        "\t# no\n",
        "# Title\n\nA paragraph with [[link]] and [x](y.md).\n",
        "key: value\n",
        "...\n",
        "```\ncode\n",
        "",
        "\n",
        "\ufeffx",
    ]
)
BODIES = texts | HOSTILE | st.tuples(HOSTILE, texts).map("".join)
WORDS = st.lists(st.text("abcdefgäß日 no1:#'\"-{}[],", min_size=1, max_size=12), max_size=4)
NAMES = ids | st.sampled_from(
    ["../../x", "/etc/passwd", "a//b", "a/", "con", "a.md", "A.MD", "a", "x" * 1000, "a\nb", ".hid"]
)
PAGES = st.builds(
    KnowledgePage,
    id=NAMES,
    title=BODIES,
    summary=BODIES,
    content=BODIES,
    tags=WORDS,
    references=st.lists(ids, max_size=3, unique=True),
    category=ids,
    keywords=WORDS,
    created_at=instants,
)


async def pages_of(db: memdb.Database, user: str) -> list[dict[str, Any]]:
    store = db.memory(user).pages
    found = [await store.get_page(entry.id) for entry in await store.get_index()]
    dumped = [page.model_dump(exclude={"updated_at"}) for page in found if page is not None]
    return sorted(dumped, key=lambda page: str(page["id"]))


@settings(SAME_EVERY_TIME, max_examples=60)
@given(st.lists(PAGES, min_size=1, max_size=6, unique_by=lambda page: page.id))
def test_pages_come_back_as_they_were(pages: list[KnowledgePage]) -> None:
    async def go(folder: Path) -> None:
        async with memdb.open(":memory:") as db, memdb.open(":memory:") as other:
            await db.memory("alice").pages.add_pages(pages)
            report = await memdb.export_folder(db, folder, user_id="alice")
            assert (len(report.written), report.skipped) == (len(pages), [])
            again = await memdb.export_folder(db, folder, user_id="alice")
            assert (again.written, len(again.unchanged)) == ([], len(pages))
            synced = await memdb.sync_folder(other, folder, user_id="bob")
            assert (len(synced.added), synced.skipped) == (len(pages), [])
            assert await pages_of(other, "bob") == await pages_of(db, "alice")

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "in" / "here"
        asyncio.run(go(root))
        outside = [path for path in Path(folder).rglob("*") if path.is_file() and root not in path.parents]
        assert outside == []


async def test_a_file_that_is_something_else_is_never_touched(db: memdb.Database, tmp_path: Path) -> None:
    await db.memory("alice").pages.add_pages(
        [KnowledgePage(id=id, title=id, content="mine") for id in ("a.md", "b.md")]
    )
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a.md").write_text("a diary")
    report = await memdb.export_folder(db, folder, user_id="alice")
    assert report.written == ["b.md"]
    assert [skipped.path for skipped in report.skipped] == ["a.md"]
    assert (folder / "a.md").read_text() == "a diary"
    (folder / "b.md").write_text((folder / "b.md").read_text() + "edited")  # a note of that very page
    assert (await memdb.export_folder(db, folder, user_id="alice")).written == ["b.md"]
    assert (folder / "b.md").read_text().endswith("mine")
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


async def test_links_in_the_folder_lead_nowhere(db: memdb.Database, tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "sub").symlink_to(elsewhere)
    (folder / "a.md").symlink_to(elsewhere / "a.md")
    await db.memory("alice").pages.add_pages([KnowledgePage(id=id, title="t") for id in ("a.md", "sub/b.md")])
    report = await memdb.export_folder(db, folder, user_id="alice")
    assert len(report.skipped) == 2
    assert os.listdir(elsewhere) == []


async def test_one_category_and_a_folder_that_cannot_be(db: memdb.Database, tmp_path: Path) -> None:
    await db.memory("alice").pages.add_pages([KnowledgePage(id=c, title=c, category=c) for c in ("x", "y")])
    report = await memdb.export_folder(db, tmp_path / "deep" / "er", user_id="alice", category="x")
    assert report.written == ["x.md"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput):
        await memdb.export_folder(db, tmp_path / "file", user_id="alice")
