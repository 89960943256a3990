"""sync_folder: notes become pages; new, changed, renamed and deleted ones, and whose they are."""

from __future__ import annotations

import os
import time

import pytest

from memdb import Skipped, SyncReport
from memdb.markdown import apply as applying
from memdb.markdown import sync as syncing
from tests.markdown.conftest import ids

# -- the plain way ----------------------------------------------------------------------------------------------------


async def test_notes_become_pages(notes, clock):
    notes.write("tea.md", "# Tea\n\nGreen *tea*.\n\nMore, see [[coffee]].\n")
    notes.write("drinks/coffee.MD", "---\ntags: [Hot]\n---\n# Coffee\n")
    notes.write("drinks/readme.markdown", "x")
    notes.write("drinks/picture.png", b"\xff\xd8")
    notes.write(".hidden.md", "no")
    notes.write(".git/x.md", "no")
    report = await notes.sync()
    assert ids(report) == {"added": ["drinks/coffee.MD", "drinks/readme.markdown", "tea.md"]}
    assert (report.unchanged, report.skipped, bool(report)) == (0, [], True)
    tea = await notes.page("tea.md")
    assert (tea.title, tea.summary, tea.category) == ("Tea", "Green tea.", "knowledge")
    assert tea.content == "# Tea\n\nGreen *tea*.\n\nMore, see [[coffee]].\n"
    assert tea.references == ["knowledge/drinks/coffee.MD"]
    assert (tea.created_at, tea.updated_at) == (clock.now, clock.now)
    assert (await notes.page("drinks/coffee.MD")).tags == ["hot"]
    assert [found.id for found in await notes.pages.search("green")] == ["knowledge/tea.md"]
    again = await notes.sync()
    assert (ids(again), again.unchanged, bool(again)) == ({}, 3, False)


async def test_changed_and_deleted_notes(notes, clock):
    notes.write("a.md", "one")
    notes.write("b.md", "two")
    await notes.sync()
    await notes.recall("a.md", 3)
    born = clock.now
    clock.forward(hours=1)
    notes.write("a.md", "three words here")
    (notes.root / "b.md").unlink()
    report = await notes.sync()
    assert ids(report) == {"changed": ["a.md"], "removed": ["b.md"]}
    changed = await notes.page("a.md")
    assert (changed.content, changed.created_at, changed.updated_at) == ("three words here", born, clock.now)
    assert await notes.ids() == ["a.md"]
    assert await notes.recalls() == {"a.md": 3}
    assert await notes.pages.search("two") == []


async def test_an_empty_folder_and_an_emptied_one(notes):
    assert not await notes.sync()
    notes.write("a/b/c.md", "x")
    await notes.sync()
    (notes.root / "a/b/c.md").unlink()
    assert ids(await notes.sync()) == {"removed": ["a/b/c.md"]}
    assert await notes.ids() == []


@pytest.mark.usefixtures("settled")
async def test_a_note_that_did_not_change_is_not_read(notes, unreadable):
    notes.write("a.md", "x")
    await notes.sync()
    unreadable("a.md")
    report = await notes.sync()
    assert (report.skipped, report.unchanged) == ([], 1)


@pytest.mark.usefixtures("settled")
async def test_a_touched_note_is_read_but_not_changed(notes, clock):
    file = notes.write("a.md", "x")
    await notes.sync()
    before = await notes.page("a.md")
    clock.forward(hours=1)
    os.utime(file, (1, 1))
    for _ in range(2):
        report = await notes.sync()
        assert (ids(report), report.unchanged) == ({}, 1)
    assert await notes.page("a.md") == before


@pytest.mark.usefixtures("settled")
async def test_a_restored_older_note_is_seen(notes):
    file = notes.write("a.md", "new")
    await notes.sync()
    file.write_text("old")  # as long, and with an older time
    os.utime(file, (1, 1))
    assert ids(await notes.sync()) == {"changed": ["a.md"]}
    assert (await notes.page("a.md")).content == "old"


@pytest.mark.usefixtures("settled")
async def test_a_change_that_keeps_size_and_time_of_modification_is_seen(notes):
    file = notes.write("a.md", "one")
    os.utime(file, ns=(10**18, 10**18))
    await notes.sync()
    time.sleep(0.02)  # a step of the kernel's clock
    file.write_text("two")
    os.utime(file, ns=(10**18, 10**18))
    assert ids(await notes.sync()) == {"changed": ["a.md"]}


async def test_a_change_within_one_step_of_the_clock_is_seen(notes, monkeypatch):
    """What a coarse clock cannot tell apart: a file that was read just after its last change is read again."""
    file = notes.write("a.md", "one")
    await notes.sync()
    stamp = os.stat(file)
    file.write_text("two")
    real = syncing.scan

    def coarse(root):
        found = real(root)
        now = found.files["a.md"]
        found.files["a.md"] = type(now)(now.path, now.real, now.size, stamp.st_mtime_ns, stamp.st_ctime_ns)
        return found

    monkeypatch.setattr(syncing, "scan", coarse)
    assert ids(await notes.sync()) == {"changed": ["a.md"]}


# -- renaming ---------------------------------------------------------------------------------------------------------


async def test_a_renamed_note_keeps_its_page(notes, clock):
    notes.write("a.md", "# A\n\ntext")
    notes.write("other.md", "[[a]] [[b]]")
    await notes.sync()
    await notes.recall("a.md", 2)
    born = clock.now
    clock.forward(days=1)
    (notes.root / "sub").mkdir()
    (notes.root / "a.md").rename(notes.root / "sub/b.md")
    assert ids(await notes.sync()) == {"renamed": [("a.md", "sub/b.md")]}
    assert await notes.ids() == ["other.md", "sub/b.md"]
    assert (await notes.page("sub/b.md")).created_at == born
    assert await notes.recalls() == {"sub/b.md": 2}
    assert await notes.references("other.md") == ["sub/b.md"]
    assert [found.id for found in await notes.pages.search("text")] == ["knowledge/sub/b.md"]
    assert not await notes.sync()


async def test_a_renamed_folder_of_equal_notes_keeps_each_page(notes):
    for name in "abc":
        notes.write(f"old/{name}.md", "same")
    await notes.sync()
    for count, name in enumerate("abc", 1):
        await notes.recall(f"old/{name}.md", count)
    (notes.root / "old/a.md").unlink()
    (notes.root / "old").rename(notes.root / "new")
    report = ids(await notes.sync())
    assert report == {"renamed": [("old/b.md", "new/b.md"), ("old/c.md", "new/c.md")], "removed": ["old/a.md"]}
    assert await notes.recalls() == {"new/b.md": 2, "new/c.md": 3}


async def test_a_case_only_rename(notes):
    notes.write("note.md", "x")
    await notes.sync()
    await notes.recall("note.md", 1)
    (notes.root / "note.md").rename(notes.root / "Note.md")
    assert ids(await notes.sync()) == {"renamed": [("note.md", "Note.md")]}
    assert await notes.recalls() == {"Note.md": 1}


async def test_notes_that_change_places(notes):
    notes.write("a.md", "a")
    notes.write("b.md", "b")
    notes.write("c.md", "c")
    await notes.sync()
    for count, name in enumerate("abc", 1):
        await notes.recall(f"{name}.md", count)
    (notes.root / "a.md").rename(notes.root / "t")
    (notes.root / "b.md").rename(notes.root / "a.md")
    (notes.root / "c.md").rename(notes.root / "b.md")
    (notes.root / "t").rename(notes.root / "c.md")
    report = await notes.sync()
    assert ids(report) == {"renamed": [("b.md", "a.md"), ("c.md", "b.md"), ("a.md", "c.md")]}
    assert await notes.recalls() == {"a.md": 2, "b.md": 3, "c.md": 1}
    assert [(await notes.page(f"{name}.md")).content for name in "abc"] == ["b", "c", "a"]
    assert not await notes.sync()


async def test_a_chain_of_renames_onto_freed_names(notes):
    for name in "abc":
        notes.write(f"{name}.md", name)
    await notes.sync()
    for count, name in enumerate("abc", 1):
        await notes.recall(f"{name}.md", count)
    (notes.root / "c.md").unlink()
    (notes.root / "b.md").rename(notes.root / "c.md")
    (notes.root / "a.md").rename(notes.root / "b.md")
    assert ids(await notes.sync()) == {"renamed": [("a.md", "b.md"), ("b.md", "c.md")], "removed": ["c.md"]}
    assert await notes.recalls() == {"b.md": 1, "c.md": 2}
    assert (await notes.page("c.md")).content == "b"


async def test_a_copy_is_a_new_page(notes):
    notes.write("a.md", "same")
    await notes.sync()
    await notes.recall("a.md", 1)
    notes.write("b.md", "same")
    notes.write("0.md", "same")
    assert ids(await notes.sync()) == {"added": ["0.md", "b.md"]}
    assert await notes.recalls() == {"a.md": 1}


async def test_a_file_becomes_a_folder_of_that_name_and_back(notes):
    notes.write("a.md", "x")
    await notes.sync()
    (notes.root / "a.md").unlink()
    notes.write("a.md/b.md", "y")
    assert ids(await notes.sync()) == {"added": ["a.md/b.md"], "removed": ["a.md"]}
    (notes.root / "a.md/b.md").rename(notes.root / "t")
    (notes.root / "a.md").rmdir()
    (notes.root / "t").rename(notes.root / "a.md")
    assert ids(await notes.sync()) == {"renamed": [("a.md/b.md", "a.md")]}


# -- several at once ---------------------------------------------------------------------------------------------------


async def test_many_syncs_side_by_side(notes):
    import asyncio

    for n in range(30):
        notes.write(f"{n}.md", f"{n} [[{(n + 1) % 30}]]")
    reports = await asyncio.gather(*(notes.sync() for _ in range(8)))
    assert sum(len(report.added) for report in reports) == 30
    assert not await notes.sync()
    assert await notes.references("29.md") == ["0.md"]


async def test_a_sync_that_saw_less_does_not_undo_one_that_saw_more(notes, monkeypatch):
    """A looks, the file changes, B syncs, A writes: what A saw is looked at again."""
    notes.write("a.md", "one")
    await notes.sync()
    notes.write("a.md", "two")
    looks, real = iter(range(100)), syncing._look

    def look(root, known, category):
        seen = real(root, known, category)
        if next(looks) == 0:
            notes.write("a.md", "three")
            notes.write("b.md", "new")
            others = real(root, known, category)
            monkeypatch.setattr(syncing, "_look", real)
            stored.append(others)
        return seen

    stored: list[object] = []
    monkeypatch.setattr(syncing, "_look", look)
    real_apply = applying.apply

    def apply(tx, user_id, folder, seen):
        if stored:
            assert real_apply(tx, user_id, folder, stored.pop()) is not None
        return real_apply(tx, user_id, folder, seen)

    monkeypatch.setattr(syncing, "apply", apply)
    await notes.sync()
    assert (await notes.page("a.md")).content == "three"
    assert await notes.ids() == ["a.md", "b.md"]


async def test_a_sync_that_always_comes_late_reads_with_the_others_kept_out(notes, monkeypatch):
    notes.write("a.md", "x")
    real, refused = syncing.apply, []

    def apply(tx, user_id, folder, seen):
        if len(refused) < syncing.TRIES:
            refused.append(seen)
            return None
        return real(tx, user_id, folder, seen)

    monkeypatch.setattr(syncing, "apply", apply)
    assert ids(await notes.sync()) == {"added": ["a.md"]}


@pytest.mark.usefixtures("settled")
async def test_a_second_look_writes_nothing(notes):
    notes.write("a.md", "x [[b]]")
    await notes.sync()
    before = await notes.db.read(lambda tx: tx.execute("SELECT * FROM source"))
    await notes.sync()
    assert await notes.db.read(lambda tx: tx.execute("SELECT * FROM source")) == before


def test_a_report_is_true_when_a_page_is_other_than_before():
    assert not SyncReport(skipped=[Skipped("a", "b")], unchanged=3)
    assert SyncReport(renamed=[("a", "b")])


async def test_thousands_of_equal_notes_in_a_renamed_folder(notes):
    """Each pair is found at once: to look through all of them for each would be quadratic."""
    (notes.root / "old").mkdir()
    for n in range(3_000):
        (notes.root / f"old/{n}.md").touch()
    await notes.sync()
    (notes.root / "old").rename(notes.root / "new")
    began = time.perf_counter()
    report = await notes.sync()
    assert report.renamed[7][0].replace("old", "new") == report.renamed[7][1]
    assert len(report.renamed) == 3_000
    assert time.perf_counter() - began < 15
