"""What stands in the way of a sync: bad files, folders that vanish, writes that fail; nothing is done by halves."""

from __future__ import annotations

import os

import pytest

import memdb
from memdb import InvalidInput
from memdb.layers import sources
from memdb.markdown import sync as syncing
from tests.markdown.conftest import ids

# -- what stands in the way -------------------------------------------------------------------------------------------


async def test_bad_notes_are_told_and_the_others_synced(notes):
    notes.write("good.md", "x")
    notes.write("utf16.md", "x".encode("utf-16"))
    notes.write("latin.md", b"caf\xe9")
    notes.write("nul.md", b"a\0b")
    notes.write("yaml.md", "---\na: [\n---\n")
    notes.write("empty_reference.md", "---\nreferences: ['']\n---\n")
    notes.write("tags.md", "---\ntags: [" + "x" * 201 + "]\n---\n")
    notes.write("x" * 200 + "/" + "x" * 200 + "/" + "x" * 200 + "/" + "x" * 200 + "/" + "x" * 200 + ".md", "")
    os.mkfifo(notes.root / "pipe.md")
    report = await notes.sync()
    assert ids(report) == {"added": ["good.md"]}
    told = dict(report.skipped)
    assert "UTF-16" in told["utf16.md"]
    assert "not UTF-8 (byte 4)" in told["latin.md"]
    assert "NUL" in told["nul.md"]
    assert "YAML in line 3" in told["yaml.md"]
    assert "empty" in told["empty_reference.md"]
    assert "201 characters" in told["tags.md"]
    assert "ordinary" in told["pipe.md"]
    assert len(told) == 8
    assert report.skipped == sorted(report.skipped)
    assert (await notes.sync()).skipped == report.skipped


@pytest.mark.usefixtures("settled")
async def test_a_note_that_went_bad_keeps_its_page(notes, unreadable):
    for name in ("a", "b", "c", "sub/d", "sub/deep/e"):
        notes.write(f"{name}.md", f"text of {name}")
    notes.write("from.md", "[[a]] [[d]]")
    await notes.sync()
    before = {id: await notes.page(id) for id in await notes.ids()}
    notes.write("a.md", b"\xff\xfe")
    notes.write("b.md", "other text")
    unreadable("b.md", "sub")
    report = await notes.sync()
    assert ids(report) == {}
    assert [path for path, _ in report.skipped] == ["a.md", "b.md", "sub/"]
    assert "Permission denied" in report.skipped[1].reason
    assert {id: await notes.page(id) for id in await notes.ids()} == before


async def test_a_folder_whose_names_can_be_read_but_nothing_else(notes, monkeypatch):
    notes.write("sub/deep/a.md", "x")
    notes.write("sub/b.md", "x")
    await notes.sync()
    real = os.scandir

    class Entry:
        def __init__(self, entry):
            self.name, self.path, self.is_symlink, self.is_dir = entry.name, entry.path, entry.is_symlink, entry.is_dir

        def stat(self, **options):
            raise PermissionError(13, "Permission denied")

    class Listed(list):
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    def listed(path):
        if os.path.basename(path) == "deep":
            raise PermissionError(13, "Permission denied")
        found = real(path)
        return Listed(map(Entry, found)) if os.path.basename(path) == "sub" else found

    monkeypatch.setattr(os, "scandir", listed)
    report = await notes.sync()
    assert ids(report) == {}
    assert [path for path, _ in report.skipped] == ["sub/b.md", "sub/deep/"]
    assert await notes.ids() == ["sub/b.md", "sub/deep/a.md"]


async def test_links_on_the_disk(notes, tmp_path):
    notes.write("real/a.md", "x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.md").write_text("secret")
    (notes.root / "out.md").symlink_to(tmp_path / "outside/b.md")
    (notes.root / "outdir").symlink_to(tmp_path / "outside")
    (notes.root / "up").symlink_to("..")
    (notes.root / "self").symlink_to(".")
    (notes.root / "inner.md").symlink_to("real/a.md")
    (notes.root / "loop1").symlink_to("loop2")
    (notes.root / "loop2").symlink_to("loop1")
    (notes.root / "loop.md").symlink_to("loop.md")
    (notes.root / "nowhere.md").symlink_to("gone.md")
    (notes.root / "zero.md").symlink_to("/dev/zero")
    (notes.root / "picture.png").symlink_to(tmp_path / "outside/b.md")
    report = await notes.sync()
    assert ids(report) == {"added": ["real/a.md"]}
    told = dict(report.skipped)
    for path in ("out.md", "outdir", "up", "zero.md"):
        assert "out of the folder" in told.pop(path)
    for path in ("self", "inner.md"):
        assert "in the folder" in told.pop(path)
    for path in ("loop1", "loop2", "loop.md", "nowhere.md"):
        assert "nowhere" in told.pop(path)
    assert told == {}


async def test_a_note_or_folder_that_became_a_link_keeps_its_pages(notes, tmp_path):
    notes.write("a.md", "x")
    notes.write("sub/b.md", "y")
    await notes.sync()
    (notes.root / "a.md").rename(tmp_path / "a.md")
    (notes.root / "a.md").symlink_to(tmp_path / "a.md")
    (notes.root / "sub").rename(tmp_path / "sub")
    (notes.root / "sub").symlink_to(tmp_path / "sub")
    report = await notes.sync()
    assert (ids(report), [path for path, _ in report.skipped]) == ({}, ["a.md", "sub"])
    assert await notes.ids() == ["a.md", "sub/b.md"]


async def test_names_that_are_not_utf8(notes):
    notes.write("good.md", "x")
    with open(os.fsencode(notes.root) + b"/caf\xe9.md", "w"):
        pass
    os.mkdir(os.fsencode(notes.root) + b"/d\xff")
    with open(os.fsencode(notes.root) + b"/d\xff/inner.md", "w"):
        pass
    report = await notes.sync()
    assert ids(report) == {"added": ["good.md"]}
    assert [path.isprintable() for path, _ in report.skipped] == [True, True]
    assert all("not UTF-8" in reason for _, reason in report.skipped)


async def test_strange_names_are_names(notes):
    names = [
        "a b.md",
        "名前.md",
        "new\nline.md",
        "tab\t.md",
        "q\"u'o.md",
        "%41.md",
        "-.md",
        "a\\b.md",
        "\u2028.md",
        "#.md",
    ]
    for name in names:
        notes.write(name, f"text {name}")
    report = await notes.sync()
    assert sorted(ids(report)["added"]) == sorted(names)
    assert (await notes.page("new\nline.md")).title == "new\nline"
    assert not await notes.sync()


async def test_huge_notes(notes, monkeypatch):
    monkeypatch.setattr("memdb.markdown.note.MAX_NOTE_BYTES", 1000)
    notes.write("a.md", "x" * 1000)
    notes.write("b.md", "x" * 1001)
    with open(notes.root / "c.md", "wb") as file:
        file.truncate(10**11)  # a file of 100 GB
    report = await notes.sync()
    assert ids(report) == {"added": ["a.md"]}
    assert ["larger" in reason for _, reason in report.skipped] == [True, True]


async def test_front_matter_does_not_count_as_content(notes, monkeypatch):
    monkeypatch.setattr("memdb.text.check.MAX_CONTENT_BYTES", 1000)
    notes.write("a.md", b"---\nid: x\n---\n" + b"x" * 1000)
    notes.write("b.md", b"---\nid: y\n---\n" + b"x" * 1001)
    report = await notes.sync()
    assert (report.added, [path for path, _ in report.skipped]) == (["x"], ["b.md"])


# -- a folder that is not there, or vanishes ---------------------------------------------------------------------------


async def test_what_is_no_folder_changes_nothing(notes, tmp_path, unreadable):
    notes.write("a.md", "x")
    await notes.sync()
    (tmp_path / "loop").symlink_to("loop")
    for folder in (tmp_path / "nope", tmp_path / "nope/deeper", notes.root / "a.md/x", "/proc/nope"):
        with pytest.raises(memdb.MissingFile, match="nothing was changed"):
            await memdb.sync_folder(notes.db, folder, user_id="alice")
    for folder in (notes.root / "a.md", tmp_path / "loop", "", "a\0b", None, 5, b"\xff"):
        with pytest.raises((InvalidInput, memdb.MissingFile)):
            await memdb.sync_folder(notes.db, folder, user_id="alice")
    unreadable("notes")
    with pytest.raises(InvalidInput, match=r"Permission denied.*nothing was changed"):
        await notes.sync()
    unreadable("notes", error=OSError(116, "Stale file handle"))
    with pytest.raises(InvalidInput, match="Stale"):
        await notes.sync()
    assert await notes.ids() == ["a.md"]


async def test_arguments_are_checked_before_anything_is_read(notes):
    for options in ({"user_id": ""}, {"category": ""}, {"category": "a\0"}, {"user_id": 5}, {"category": "x" * 1001}):
        with pytest.raises(InvalidInput, match=next(iter(options))):
            await notes.sync(**options)


@pytest.mark.parametrize("when", ["before it is listed", "while it is listed", "while notes are read", "and is back"])
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_folder_that_vanishes_changes_nothing(notes, tmp_path, monkeypatch, when, replaced):
    for n in range(5):
        notes.write(f"{n}.md", f"{n}")
        notes.write(f"sub/{n}.md", f"sub {n}")
    await notes.sync()
    before = {id: await notes.page(id) for id in await notes.ids()}
    notes.write("new.md", "new")

    def vanish() -> None:
        if notes.root.exists():
            notes.root.rename(tmp_path / "away")
            if replaced:
                notes.root.mkdir()
                (notes.root / "other.md").write_text("other")

    real_scandir, real_read, reads = os.scandir, syncing.read_bytes, iter(range(100))

    def scandir(path):
        if when == "before it is listed" or (when == "while it is listed" and path.endswith("sub")):
            vanish()
        return real_scandir(path)

    def read(path):
        if next(reads) == 3 and when in ("while notes are read", "and is back"):
            vanish()
            if when == "and is back":
                try:
                    return real_read(path)
                finally:
                    if replaced:
                        (notes.root / "other.md").unlink()
                        notes.root.rmdir()
                    (tmp_path / "away").rename(notes.root)
        return real_read(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(syncing, "read_bytes", read)
    if when == "and is back":
        report = await notes.sync()
        assert not report.removed
        assert [reason for _, reason in report.skipped] == ["it vanished while the folder was read"]
    else:
        with pytest.raises(memdb.MissingFile, match="nothing was changed"):
            await notes.sync()
        assert await notes.ids() == list(before)
    assert {id: await notes.page(id) for id in before} == before


async def test_a_folder_inside_that_vanishes_keeps_its_pages_for_now(notes, monkeypatch, tmp_path):
    notes.write("a.md", "x")
    notes.write("sub/b.md", "y")
    await notes.sync()
    real = os.scandir

    def scandir(path):
        if path.endswith("sub") and os.path.exists(path):
            os.rename(path, tmp_path / "away")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = await notes.sync()
    assert (ids(report), [path for path, _ in report.skipped]) == ({}, ["sub/"])
    assert ids(await notes.sync()) == {"removed": ["sub/b.md"]}


@pytest.mark.parametrize("step", ["remove_many", "free_paths", "rename", "put_sources", "references.set_references"])
async def test_a_failing_write_leaves_all_as_it_was(notes, monkeypatch, step):
    for name in "abc":
        notes.write(f"{name}.md", f"{name} [[c]] [[d]]")
    await notes.sync()
    before = {id: await notes.page(id) for id in await notes.ids()}
    known = await notes.db.read(sources.of_folder, "alice", str(notes.root))
    (notes.root / "a.md").unlink()
    (notes.root / "b.md").rename(notes.root / "d.md")
    notes.write("c.md", "changed")
    notes.write("e.md", "[[d]]")

    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"memdb.markdown.apply.{step}", fail)
        with pytest.raises(OSError, match="No space"):
            await notes.sync()
    assert {id: await notes.page(id) for id in await notes.ids()} == before
    assert await notes.db.read(sources.of_folder, "alice", str(notes.root)) == known
    report = ids(await notes.sync())
    assert report == {"added": ["e.md"], "changed": ["c.md"], "removed": ["a.md"], "renamed": [("b.md", "d.md")]}
