"""Whatever is done to a folder and to the pages in between: after a sync the pages are the notes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import Database, KnowledgePage
from tests.strategies import SAME_EVERY_TIME

PATHS = ("a.md", "b.md", "c.md", "d/a.md")
IDS = ("", "", "A", "B", "knowledge/a.md", "knowledge/b.md", "work/a.md")
paths, ids = st.sampled_from(PATHS), st.sampled_from(IDS)
texts = st.sampled_from(["", "x", "y [[a]]", "[[b]] [[d/a]]"])
steps = st.one_of(
    st.tuples(st.just("write"), paths, ids, texts),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("swap"), paths, paths),
    st.tuples(st.just("remove"), paths),
    st.tuples(st.just("spoil"), paths),
    st.tuples(st.just("add page"), ids.filter(bool)),
    st.tuples(st.just("delete page"), ids.filter(bool)),
    st.tuples(st.just("sync"), st.sampled_from(["knowledge", "knowledge", "work"])),
)


def note(id: str, text: str) -> str:
    return f"---\nid: {id}\n---\n{text}" if id else text


async def change(db: Database, root: Path, own: set[str], step: tuple[str, ...]) -> None:
    """Do one thing to the folder or to the pages; `own` are ids of pages from elsewhere."""
    kind, first, *more = step
    file = root / first
    if kind == "write":
        file.write_text(note(*more))
    elif kind == "spoil":
        file.write_bytes(b"\xff")
    elif kind == "remove":
        file.unlink(missing_ok=True)
    elif kind == "rename" and file.exists():
        file.rename(root / more[0])
    elif kind == "swap" and first != more[0] and file.exists() and (root / more[0]).exists():
        file.rename(root / "t")
        (root / more[0]).rename(file)
        (root / "t").rename(root / more[0])
    elif kind == "add page" and await db.memory().pages.get_page(first) is None:
        await db.memory().pages.add_page(KnowledgePage(id=first, title="own"))
        own.add(first)
    elif kind == "delete page" and first in own:
        await db.memory().pages.delete_page(first)
        own.discard(first)


async def look(db: Database, root: Path, own: set[str], category: str) -> None:
    """Sync, and compare the pages with the folder."""
    known = set((await db.read(sources)).values())
    report = await memdb.sync_folder(db, root, category=category)
    skipped = {path for path, _ in report.skipped}
    pages = {entry.id: await db.memory().pages.get_page(entry.id) for entry in await db.memory().pages.get_index()}
    came_from = await db.read(sources)
    assert all(pages[id].title == "own" for id in own)
    assert set(pages) == own | set(came_from)
    assert len(set(came_from.values())) == len(came_from)
    for file in root.rglob("*.md"):
        path = file.relative_to(root).as_posix()
        if path in skipped:
            continue
        id = next(id for id, at in came_from.items() if at == path)
        raw = file.read_text()
        named = raw.split("\n")[1].removeprefix("id: ") if raw.startswith("---") else f"{category}/{path}"
        assert (id, pages[id].content) == (named, raw.rsplit("---\n", 1)[-1])
        assert all(target in came_from for target in pages[id].references)
    for path in came_from.values():
        assert path in known or path not in skipped or not (root / path).exists()
        assert (root / path).exists() or skipped, "a page whose note is gone"
    again = await memdb.sync_folder(db, root, category=category)
    assert not again
    assert again.skipped == report.skipped


def sources(tx: Any) -> dict[str, str]:
    return dict(tx.execute("SELECT key, path FROM source JOIN record ON record.id = record_id"))


@settings(SAME_EVERY_TIME, max_examples=150)
@given(st.lists(steps, max_size=25))
def test_after_a_sync_the_pages_are_the_notes(todo: list[tuple[str, ...]]) -> None:
    async def play(root: Path) -> None:
        (root / "d").mkdir()
        own: set[str] = set()
        async with memdb.open(":memory:") as db:
            for step in [*todo, ("sync", "knowledge")]:
                if step[0] == "sync":
                    await look(db, root, own, step[1])
                else:
                    await change(db, root, own, step)
            assert (await db.check()).problems == []

    root = Path(tempfile.mkdtemp())
    try:
        asyncio.run(play(root))
    finally:
        shutil.rmtree(root)
