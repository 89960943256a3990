"""export_folder: pages become notes that say everything, in files that are safe to have."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import InvalidInput, KnowledgePage
from memdb.markdown.export import FileNames
from tests import strategies
from tests.strategies import SAME_EVERY_TIME

LEAVING = (
    "../../x", "/etc/x", "..", ".", "a/../../x", "~/x", "C:\\x", "\\\\host\\x", "a//b", "a/", "/", ".hidden",
    "a/.git/config",
)  # fmt: skip
NAMELESS = (
    "con", "CON.md", "nul.txt", "a/aux/b", "com1", "LPT¹.md", "a.", "a ", "a:b", "a|b", "a?b", "a*b", 'a"b', "<a>",
    "a\nb.md", "\r", "a\x7fb", "x" * 1000, "é" * 150, "a/" * 400 + "b", "-", "--", ".md", ".markdown", "\u202e.md",
    "🔥",
)  # fmt: skip
CLASHING = (
    "a",
    "a.md",
    "A",
    "A.md",
    "a.MD",
    "ﬁ",
    "fi",
    "e\u0301",
    "é",
    "b",
    "b/c",
    "b.md",
    "b.md/c",
    "B/c",
    "℀",
    "a/c",
)


async def exported(pages: list[KnowledgePage], out: Path) -> memdb.ExportReport:
    async with memdb.open(":memory:") as db:
        await db.memory().pages.add_pages(pages)
        return await memdb.export_folder(db, out)


async def read_back(out: Path, category: str = "knowledge") -> dict[str, KnowledgePage]:
    async with memdb.open(":memory:") as db:
        report = await memdb.sync_folder(db, out, category=category)
        assert report.skipped == []
        store = db.memory().pages
        return {entry.id: await store.get_page(entry.id) for entry in await store.get_index()}


async def round_trip(pages: list[KnowledgePage], out: Path) -> None:
    """Export, sync into an empty database, compare; export that again and find all files as they are."""
    async with memdb.open(":memory:") as db:
        store = db.memory().pages
        await store.add_pages(pages, replace=True)
        report = await memdb.export_folder(db, out)
        assert report.skipped == []
        before = {entry.id: await store.get_page(entry.id) for entry in await store.get_index()}
        assert len(report.written) == len(before)
        again = await memdb.export_folder(db, out)
        assert (again.written, sorted(again.unchanged)) == ([], sorted(report.written))
    after = await read_back(out, category="another")
    for page in (*before.values(), *after.values()):
        page.updated_at = None
    assert after == before


TRICKS = st.sampled_from(
    ["---", "---\n", "---\na: b\n---\n", "\n---\n", "...", "\r\n", "\r", " ", "\t", "\u2028", "\u2029", "\x85", "\xa0",
     "\u3000", "\ufeff", "\x1b", "null", "~", "yes", "0x1F", "1_000", "2024-01-01", "- a", "? a", "a: b", "# c", "&a",
     "*a", "!!int 1", "%YAML 1.2", "|", ">", "'", '"', "[", "{", "<<", "=", "@", "`", "[[x]]", "[x](y.md)",
     "\ufffe", "🔥", "\x01"]
)  # fmt: skip
tricky = st.lists(TRICKS | strategies.words | strategies.plain, max_size=6).map("".join)
some_ids = strategies.ids | st.sampled_from([*LEAVING, *NAMELESS, *CLASHING]) | tricky.filter(bool)
pages = st.builds(
    KnowledgePage,
    id=some_ids,
    title=tricky,
    summary=tricky,
    content=tricky | strategies.texts,
    tags=st.lists(tricky, max_size=4),
    references=st.lists(some_ids, max_size=4),
    category=some_ids,
    keywords=st.lists(tricky, max_size=4),
    created_at=st.none() | strategies.instants,
)


@settings(SAME_EVERY_TIME, max_examples=60)
@given(st.lists(pages, max_size=8))
def test_export_and_back_loses_nothing(given_pages: list[KnowledgePage]) -> None:
    out = Path(tempfile.mkdtemp())
    try:
        asyncio.run(round_trip(given_pages, out / "out"))
    finally:
        shutil.rmtree(out)


async def test_every_hostile_id_has_a_file_in_the_folder(tmp_path):
    ids = list(dict.fromkeys([*LEAVING, *NAMELESS, *CLASHING]))
    await round_trip([KnowledgePage(id=id, title="t", content=f"of {id}") for id in ids], tmp_path / "a/out")
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"out"}
    files = [
        path.relative_to(tmp_path / "a/out").as_posix() for path in (tmp_path / "a/out").rglob("*") if path.is_file()
    ]
    assert len(files) == len({file.casefold() for file in files}) == len(ids)
    assert all(len(part.encode()) <= 255 and part[0] != "." for file in files for part in file.split("/"))


@settings(SAME_EVERY_TIME, max_examples=300)
@given(st.lists(some_ids, max_size=30, unique=True))
def test_names_of_files_are_safe_and_different(ids: list[str]) -> None:
    names = FileNames()
    taken = [names.of(id) for id in ids]
    assert len({name.casefold() for name in taken}) == len(ids)
    for name in taken:
        assert name.lower().endswith((".md", ".markdown"))
        assert not set(name) & set('\0\n\r<>:"|?*\\')
        for part in name.split("/"):
            assert part not in ("", ".", "..")
            assert not part.startswith((".", "~/"))
            assert not part.endswith((".", " "))
            assert len(part.encode()) <= 255


async def test_plain_ids_are_plain_files(tmp_path):
    report = await exported(
        [KnowledgePage(id=id, title="t") for id in ("tea", "work/plan.md", "x/Notes.markdown")], tmp_path
    )
    assert report.written == ["tea.md", "work/plan.md", "x/Notes.markdown"]
    assert (tmp_path / "tea.md").read_text().startswith("---\nid: tea\ntitle: t\nsummary: ''\ncategory: knowledge\n")


async def test_only_a_category(tmp_path):
    pages = [KnowledgePage(id=id, title="t", category=id) for id in "ab"]
    async with memdb.open(":memory:") as db:
        await db.memory().pages.add_pages(pages)
        assert (await memdb.export_folder(db, tmp_path, category="a")).written == ["a.md"]
        assert (await memdb.export_folder(db, tmp_path, category="c")).written == []
        assert (await memdb.export_folder(db, tmp_path, user_id="bob")).written == []
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


async def test_a_changed_page_replaces_its_note_and_nothing_else(tmp_path):
    foreign = {
        "b.md": "# mine", "c.md": "---\nid: other\n---\n", "d.md": "---\nid: [\n---\n", "e.md": "",
        "f.md": "\ufeff---\nid: f\n---\n",
    }  # fmt: skip
    for name, text in foreign.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "g.md").write_bytes(b"\xff\xfe")
    (tmp_path / "h.md").mkdir()
    os.mkfifo(tmp_path / "i.md")
    (tmp_path / "j.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "k.md").symlink_to("nowhere")
    (tmp_path / "l").write_text("a file where a folder would have to be")
    (tmp_path / "a.md").write_text("---\nid: a\n---\nold")
    ids = [*"abcdefghijk", "l/m"]
    report = await exported([KnowledgePage(id=id, title="new") for id in ids], tmp_path)
    assert report.written == ["a.md", "f.md"]  # f's byte order mark does not make it another note
    assert [id for id, _ in report.skipped] == [*"bcdeghijk", "l/m"]
    assert all((tmp_path / name).read_text() == text for name, text in foreign.items() if name != "f.md")
    assert "title: new" in (tmp_path / "a.md").read_text()
    assert not list(tmp_path.rglob(".*"))


async def test_links_in_the_target_folder_are_not_followed_out(tmp_path):
    out, outside = tmp_path / "out", tmp_path / "outside"
    for folder in (out, outside, out / "real"):
        folder.mkdir()
    (out / "link").symlink_to(outside)
    (out / "inner").symlink_to("real")
    (outside / "a.md").write_text("---\nid: link/a\n---\nprecious")
    ids = ["link/a", "link/new", "link/deeper/and/deeper", "inner/b"]
    report = await exported([KnowledgePage(id=id, title="t") for id in ids], out)
    assert report.written == ["inner/b.md"]
    assert [id for id, _ in report.skipped] == ids[:3]
    assert [path.name for path in outside.iterdir()] == ["a.md"]
    assert "precious" in (outside / "a.md").read_text()


async def test_targets_that_are_no_folder(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for target in (tmp_path / "file", tmp_path / "file/x", tmp_path / "loop", "a\0b", None, 5, ""):
        with pytest.raises(InvalidInput):
            await exported([], target)
    async with memdb.open(":memory:") as db:
        for options in ({"user_id": ""}, {"category": ""}, {"category": 5}):
            with pytest.raises(InvalidInput):
                await memdb.export_folder(db, tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


async def test_what_cannot_be_written_is_told_and_leaves_nothing_half(tmp_path, monkeypatch):
    await exported([KnowledgePage(id=id, title="old") for id in "ab"], tmp_path)
    before = (tmp_path / "a.md").read_text()
    real = os.replace

    def refuse(source, target):
        if str(target).endswith("a.md"):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    report = await exported([KnowledgePage(id=id, title="new") for id in "ab"], tmp_path)
    assert (report.written, [id for id, _ in report.skipped]) == (["b.md"], ["a"])
    assert "No space" in report.skipped[0].reason
    assert (tmp_path / "a.md").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "b.md"]


async def test_a_page_too_large_to_be_read_again_is_told(tmp_path):
    large = KnowledgePage(id="large", title="t", summary="s" * 1_200_000)
    most = KnowledgePage(
        id="most",
        title="é" * 10_000,
        tags=[f"{n:0200}" for n in range(64)],
        references=[f"{n:0900}" for n in range(900)],
    )
    report = await exported([large, most], tmp_path)
    assert (report.written, [id for id, _ in report.skipped]) == (["most.md"], ["large"])
    assert "front matter" in report.skipped[0].reason
    assert list(await read_back(tmp_path)) == ["most"]


async def test_a_page_with_as_much_content_as_a_page_may_have_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr("memdb.text.check.MAX_CONTENT_BYTES", 10_000)
    monkeypatch.setattr("memdb.markdown.note.MAX_NOTE_BYTES", 10_000 + 1024 * 1024)
    await round_trip([KnowledgePage(id="x", title="t" * 9000, content="c" * 10_000)], tmp_path / "out")


async def test_a_synced_folder_exported_elsewhere_and_synced_is_the_same(tmp_path):
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "a.md").write_text("# A\n\nSee [[b]].\n")
    (notes / "sub/b.md").write_text("---\ntags: [x]\nid: B\n---\n# B\n\n[back](../a.md)\n")
    async with memdb.open(":memory:") as db:
        await memdb.sync_folder(db, notes)
        await memdb.export_folder(db, tmp_path / "out")
        store = db.memory().pages
        before = {entry.id: await store.get_page(entry.id) for entry in await store.get_index()}
    after = await read_back(tmp_path / "out")
    for page in (*before.values(), *after.values()):
        page.updated_at = None
    assert after == before
    assert after["knowledge/a.md"].references == ["B"]
