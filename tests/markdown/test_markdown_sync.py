"""sync_folder: what a user sees of a folder of notes that becomes pages."""

from __future__ import annotations

import os
import time

import pytest

import memdb
from memdb import InvalidInput, KnowledgePage, Skipped, SyncReport
from memdb.layers import sources
from memdb.markdown import apply as applying
from memdb.markdown import sync as syncing
from tests.markdown.conftest import Notes


def ids(report: SyncReport) -> dict[str, object]:
    """What a report says, in short: only what is not empty, ids without the category."""

    def short(id: str) -> str:
        return id.removeprefix("knowledge/")

    said = {name: [short(id) for id in getattr(report, name)] for name in ("added", "changed", "removed")}
    said["renamed"] = [(short(old), short(new)) for old, new in report.renamed]
    return {name: value for name, value in said.items() if value}


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


# -- ids --------------------------------------------------------------------------------------------------------------


async def test_an_id_of_the_front_matter_outlives_path_and_text(notes):
    notes.write("a.md", "---\nid: X\n---\none")
    await notes.sync()
    await notes.recall("X", 5)
    (notes.root / "a.md").unlink()
    notes.write("sub/b.md", "---\nid: X\n---\ntwo")
    assert ids(await notes.sync()) == {"renamed": [("X", "X")]}
    assert (await notes.page("X")).content == "two"
    assert await notes.recalls() == {"X": 5}


async def test_an_id_moves_to_another_note(notes):
    notes.write("a.md", "---\nid: X\n---\na")
    notes.write("b.md", "b")
    await notes.sync()
    await notes.recall("X", 1)
    await notes.recall("b.md", 2)
    notes.write("a.md", "a")
    notes.write("b.md", "---\nid: X\n---\nb")
    report = ids(await notes.sync())
    assert report == {"added": ["a.md"], "renamed": [("X", "X")], "removed": ["b.md"]}
    assert (await notes.page("X")).content == "b"
    assert await notes.recalls() == {"X": 1}
    assert not await notes.sync()


async def test_ids_change_places(notes):
    notes.write("a.md", "---\nid: A\n---\n1")
    notes.write("b.md", "---\nid: B\n---\n2")
    await notes.sync()
    await notes.recall("A", 1)
    await notes.recall("B", 2)
    notes.write("a.md", "---\nid: B\n---\n3")
    notes.write("b.md", "---\nid: A\n---\n4")
    assert ids(await notes.sync()) == {"renamed": [("B", "B"), ("A", "A")]}
    assert ((await notes.page("A")).content, (await notes.page("B")).content) == ("4", "3")
    assert await notes.recalls() == {"A": 1, "B": 2}


async def test_a_note_gets_and_loses_an_id(notes):
    notes.write("a.md", "x")
    await notes.sync()
    await notes.recall("a.md", 3)
    notes.write("a.md", "---\nid: X\n---\nx")
    assert ids(await notes.sync()) == {"renamed": [("a.md", "X")]}
    notes.write("a.md", "---\nid: Y\n---\nx")
    assert ids(await notes.sync()) == {"renamed": [("X", "Y")]}
    notes.write("a.md", "x")
    assert ids(await notes.sync()) == {"renamed": [("Y", "a.md")]}
    assert await notes.recalls() == {"a.md": 3}


async def test_an_id_that_looks_like_memdbs_own_way_aside(notes):
    notes.write("a.md", '---\nid: "\\x01Y"\n---\n1')
    notes.write("b.md", "---\nid: Y\n---\n2")
    await notes.sync()
    notes.write("b.md", "---\nid: Z\n---\n2")
    assert ids(await notes.sync()) == {"renamed": [("Y", "Z")]}
    assert await notes.ids() == ["\x01Y", "Z"]


async def test_two_notes_of_one_id(notes):
    notes.write("b.md", "---\nid: X\n---\nfirst")
    await notes.sync()
    notes.write("a.md", "---\nid: X\n---\nsecond")
    for _ in range(2):
        report = await notes.sync()
        assert ids(report) == {}
        assert [skipped.path for skipped in report.skipped] == ["a.md"]
        assert "'X' is that of b.md" in report.skipped[0].reason
        assert report.unchanged == 1
    assert (await notes.page("X")).content == "first"
    notes.write("a.md", "---\nid: Y\n---\nsecond")
    assert ids(await notes.sync()) == {"added": ["Y"]}


async def test_the_id_of_a_page_from_elsewhere_is_not_touched(notes):
    await notes.pages.add_page(KnowledgePage(id="knowledge/a.md", title="Mine", content="kept"))
    notes.write("a.md", "# Theirs")
    notes.write("b.md", "[[a]]")
    report = await notes.sync()
    assert ids(report) == {"added": ["b.md"]}
    assert "from elsewhere" in report.skipped[0].reason
    assert (await notes.page("a.md")).content == "kept"
    assert await notes.references("b.md") == []
    (notes.root / "a.md").unlink()
    assert not await notes.sync()
    assert (await notes.page("a.md")).title == "Mine"


async def test_a_note_whose_new_id_is_taken_keeps_its_page(notes):
    await notes.pages.add_page(KnowledgePage(id="X", title="Mine"))
    notes.write("a.md", "---\nid: A\n---\none")
    await notes.sync()
    notes.write("a.md", "---\nid: X\n---\ntwo")
    for _ in range(2):
        report = await notes.sync()
        assert (ids(report), [skipped.path for skipped in report.skipped]) == ({}, ["a.md"])
        assert (await notes.page("A")).content == "one"
    await notes.pages.delete_page("X")
    assert ids(await notes.sync()) == {"renamed": [("A", "X")]}
    assert await notes.ids() == ["X"]


async def test_an_id_is_its_page_also_where_the_note_that_had_it_is_refused(notes):
    await notes.pages.add_page(KnowledgePage(id="X", title="Mine"))
    notes.write("a.md", "---\nid: A\n---\none")
    await notes.sync()
    await notes.recall("A", 2)
    notes.write("a.md", "---\nid: X\n---\ntwo")
    notes.write("b.md", "---\nid: A\n---\nthree")
    report = await notes.sync()
    assert (ids(report), [skipped.path for skipped in report.skipped]) == ({"renamed": [("A", "A")]}, ["a.md"])
    assert (await notes.page("A")).content == "three"
    await notes.pages.delete_page("X")
    assert ids(await notes.sync()) == {"added": ["X"]}
    assert await notes.recalls() == {"A": 2}


async def test_a_refused_note_whose_old_place_is_another_notes_now(notes):
    for name in "abc":
        notes.write(f"{name}.md", name)
    await notes.sync()
    await notes.pages.add_page(KnowledgePage(id="knowledge/d.md", title="Mine"))
    for old, new in ("cd", "bc", "ab"):
        (notes.root / f"{old}.md").rename(notes.root / f"{new}.md")
    report = await notes.sync()
    assert ids(report) == {"renamed": [("a.md", "b.md"), ("b.md", "c.md")], "removed": ["c.md"]}
    assert [skipped.path for skipped in report.skipped] == ["d.md"]
    assert [(await notes.page(f"{name}.md")).content for name in "bc"] == ["a", "b"]
    await notes.pages.delete_page("knowledge/d.md")
    assert ids(await notes.sync()) == {"added": ["d.md"]}


async def test_a_renamed_note_whose_new_id_is_taken_keeps_its_page(notes):
    notes.write("a.md", "text")
    await notes.sync()
    await notes.recall("a.md", 4)
    await notes.pages.add_page(KnowledgePage(id="knowledge/b.md", title="Mine"))
    (notes.root / "a.md").rename(notes.root / "b.md")
    for _ in range(2):
        report = await notes.sync()
        assert ids(report) == {}
        assert [skipped.path for skipped in report.skipped] == ["b.md"]
    assert (await notes.page("a.md")).content == "text"
    await notes.pages.delete_page("knowledge/b.md")
    assert ids(await notes.sync()) == {"renamed": [("a.md", "b.md")]}
    assert await notes.recalls() == {"b.md": 4}


async def test_a_swap_of_which_one_half_is_refused(notes):
    notes.write("a.md", "---\nid: A\n---\n1")
    notes.write("b.md", "b")
    await notes.sync()
    await notes.pages.add_page(KnowledgePage(id="knowledge/a.md", title="Mine"))
    (notes.root / "a.md").rename(notes.root / "t")
    (notes.root / "b.md").rename(notes.root / "a.md")
    (notes.root / "t").rename(notes.root / "b.md")
    report = await notes.sync()
    assert [skipped.path for skipped in report.skipped] == ["a.md"]
    assert (await notes.page("A")).content == "1"
    assert (await notes.page("knowledge/a.md")).title == "Mine"
    await notes.pages.delete_page("knowledge/a.md")
    await notes.sync()
    assert await notes.ids() == ["A", "a.md"]
    assert (await notes.page("a.md")).content == "b"


# -- categories, folders, users ---------------------------------------------------------------------------------------


async def test_equal_names_in_two_categories(notes, tmp_path):
    other = Notes(notes.db, tmp_path / "other")
    notes.write("a.md", "work")
    other.write("a.md", "home")
    await notes.sync(category="work")
    await other.sync(category="home")
    assert await notes.ids() == ["home/a.md", "work/a.md"]
    assert await notes.pages.categories() == {"home": 1, "work": 1}
    (other.root / "a.md").unlink()
    assert (await other.sync(category="home")).removed == ["home/a.md"]
    assert await notes.ids() == ["work/a.md"]


async def test_two_folders_of_one_category(notes, tmp_path):
    other = Notes(notes.db, tmp_path / "other")
    notes.write("a.md", "mine")
    other.write("a.md", "other")
    other.write("b.md", "[[a]]")
    await notes.sync()
    report = await other.sync()
    assert ids(report) == {"added": ["b.md"]}
    assert [skipped.path for skipped in report.skipped] == ["a.md"]
    assert (await notes.page("a.md")).content == "mine"
    (notes.root / "a.md").unlink()
    assert ids(await notes.sync()) == {"removed": ["a.md"]}
    assert ids(await other.sync()) == {"added": ["a.md"]}
    assert await notes.references("b.md") == ["a.md"]


async def test_the_category_of_the_call_changes(notes):
    notes.write("a.md", "x [[b]]")
    notes.write("b.md", "---\ncategory: own\n---\ny")
    await notes.sync()
    await notes.recall("a.md", 2)
    report = await notes.sync(category="work")
    assert report.renamed == [("knowledge/a.md", "work/a.md")]
    assert report.changed == ["own/b.md"]
    page = await notes.page("work/a.md")
    assert (page.category, page.references) == ("work", ["own/b.md"])
    assert await notes.recalls() == {"work/a.md": 2}
    assert not await notes.sync(category="work")


async def test_the_category_of_the_note_changes(notes):
    notes.write("a.md", "x")
    await notes.sync()
    notes.write("a.md", "---\ncategory: own\n---\nx")
    assert (await notes.sync()).renamed == [("knowledge/a.md", "own/a.md")]


async def test_users_have_their_own_pages_of_one_folder(notes):
    notes.write("a.md", "x")
    await notes.sync()
    await notes.sync(user_id="bob")
    (notes.root / "a.md").unlink()
    assert ids(await notes.sync()) == {"removed": ["a.md"]}
    assert await notes.ids() == []
    assert (await notes.db.memory("bob").pages.get_page("knowledge/a.md")).content == "x"
    await notes.db.forget("bob")
    notes.write("b.md", "y")
    assert ids(await notes.sync(user_id="bob")) == {"added": ["b.md"]}


async def test_one_folder_by_several_names(notes, tmp_path, monkeypatch):
    notes.write("a.md", "x")
    await notes.sync()
    (tmp_path / "link").symlink_to(notes.root)
    monkeypatch.chdir(tmp_path)
    for name in ("notes", "./notes/", "link", str(notes.root), notes.root, os.fsencode(notes.root)):
        report = await memdb.sync_folder(notes.db, name, user_id="alice")
        assert (ids(report), report.unchanged) == ({}, 1)


# -- pages that were changed by other hands ---------------------------------------------------------------------------


async def test_a_page_that_was_edited_stays_so_until_its_note_changes(notes):
    notes.write("a.md", "note")
    await notes.sync()
    edited = await notes.page("a.md")
    edited.content = "edited"
    await notes.pages.update_page(edited)
    assert not await notes.sync()
    assert (await notes.page("a.md")).content == "edited"
    notes.write("a.md", "note again")
    assert ids(await notes.sync()) == {"changed": ["a.md"]}
    assert (await notes.page("a.md")).content == "note again"


async def test_a_page_that_was_deleted_comes_back(notes):
    notes.write("a.md", "x")
    notes.write("b.md", "[[a]]")
    await notes.sync()
    await notes.pages.delete_page("knowledge/a.md")
    assert ids(await notes.sync()) == {"added": ["a.md"]}
    assert await notes.references("b.md") == ["a.md"]
    await notes.pages.delete_page("knowledge/a.md")
    (notes.root / "a.md").unlink()
    assert not await notes.sync()


async def test_a_deleted_page_whose_id_was_given_away(notes):
    notes.write("a.md", "x")
    await notes.sync()
    await notes.pages.delete_page("knowledge/a.md")
    await notes.pages.add_page(KnowledgePage(id="knowledge/a.md", title="Mine"))
    report = await notes.sync()
    assert (ids(report), [skipped.path for skipped in report.skipped]) == ({}, ["a.md"])
    (notes.root / "a.md").unlink()
    await notes.sync()
    assert (await notes.page("a.md")).title == "Mine"


async def test_a_title_that_cannot_be_read_does_not_stop_the_sync(notes):
    notes.write("a.md", "# A")
    notes.write("b.md", "[[A]]")
    await notes.sync()
    await notes.db.write(
        lambda tx: tx.execute("UPDATE record SET title = CAST(x'ff41' AS TEXT) WHERE key LIKE '%a.md'")
    )
    notes.write("c.md", "new")
    assert ids(await notes.sync()) == {"added": ["c.md"]}
    notes.write("a.md", "# A new one")
    assert ids(await notes.sync()) == {"changed": ["a.md"]}
    assert (await notes.page("a.md")).title == "A new one"
    await notes.db.write(lambda tx: tx.execute("UPDATE source SET links = '{\"a\": [1]}'"))
    (notes.root / "c.md").unlink()
    assert ids(await notes.sync()) == {"removed": ["c.md"]}


# -- links ------------------------------------------------------------------------------------------------------------


async def test_links_follow_what_comes_and_goes(notes, clock):
    notes.write("a.md", "[[b]] [c](sub/c.md) [[Some Title]] [[a]]")
    await notes.sync()
    assert await notes.references("a.md") == []
    before = await notes.page("a.md")
    clock.forward(hours=1)
    notes.write("sub/c.md", "c")
    notes.write("t.md", "# some title")
    report = await notes.sync()
    assert ids(report) == {"added": ["sub/c.md", "t.md"]}
    assert await notes.references("a.md") == ["sub/c.md", "t.md"]
    assert await notes.pages.referenced_by("knowledge/t.md") == ["knowledge/a.md"]
    assert (await notes.page("a.md")).updated_at == before.updated_at
    notes.write("b.md", "b")
    (notes.root / "sub/c.md").unlink()
    await notes.sync()
    assert await notes.references("a.md") == ["b.md", "t.md"]
    notes.write("t.md", "# Another title")
    await notes.sync()
    assert await notes.references("a.md") == ["b.md"]
    notes.write("b.md", "---\nid: X\ntitle: some title\n---\n")
    await notes.sync()
    assert await notes.references("a.md") == ["X"]


async def test_a_nearer_note_takes_a_link_over(notes):
    notes.write("a/from.md", "[[x]]")
    notes.write("b/x.md", "far")
    await notes.sync()
    assert await notes.references("a/from.md") == ["b/x.md"]
    notes.write("a/x.md", "near")
    await notes.sync()
    assert await notes.references("a/from.md") == ["a/x.md"]
    (notes.root / "a/x.md").unlink()
    await notes.sync()
    assert await notes.references("a/from.md") == ["b/x.md"]


async def test_links_of_a_moved_note_lead_from_its_new_place(notes):
    notes.write("a/from.md", "[x](x.md)")
    notes.write("a/x.md", "a")
    notes.write("b/x.md", "b")
    await notes.sync()
    (notes.root / "a/from.md").rename(notes.root / "b/from.md")
    await notes.sync()
    assert await notes.references("b/from.md") == ["b/x.md"]


async def test_ids_of_the_front_matter_are_references_wherever_they_lead(notes):
    notes.write("a.md", "---\nid: A\nreferences: [A, nowhere, A, knowledge/b.md]\n---\n[[c]]")
    notes.write("b.md", "")
    notes.write("c.md", "")
    await notes.sync()
    assert (await notes.page("A")).references == ["A", "nowhere", "knowledge/b.md"]
    (notes.root / "b.md").unlink()
    await notes.sync()
    assert (await notes.page("A")).references == ["A", "nowhere", "knowledge/b.md"]


async def test_two_notes_that_link_to_each_other_are_renamed(notes):
    notes.write("a.md", "1 [[b]]")
    notes.write("b.md", "2 [[a]]")
    await notes.sync()
    (notes.root / "sub").mkdir()
    for name in "ab":
        (notes.root / f"{name}.md").rename(notes.root / f"sub/{name}.md")
    await notes.sync()
    assert await notes.references("sub/a.md") == ["sub/b.md"]
    assert await notes.references("sub/b.md") == ["sub/a.md"]


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
            self.name, self.path = entry.name, entry.path

        def stat(self, **options):
            raise PermissionError(13, "Permission denied")

    class Listed(list):
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    def listed(path):
        found = real(path)
        return Listed(map(Entry, found)) if os.path.basename(path) == "sub" else found

    monkeypatch.setattr(os, "scandir", listed)
    report = await notes.sync()
    assert ids(report) == {}
    assert [path for path, _ in report.skipped] == ["sub/b.md", "sub/deep"]
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
    for folder in (notes.root / "a.md", tmp_path / "loop", "a\0b", None, 5, b"\xff"):
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


# -- several at once -------------------------------------------------------------------------------------------------


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


async def test_ten_thousand_equal_notes_in_a_renamed_folder(notes):
    """Each pair is found at once: looking through all of them for each would take minutes."""
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
