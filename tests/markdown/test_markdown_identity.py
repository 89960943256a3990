"""Which page a note is: ids, categories, folders, users, other hands, and where its links lead."""

from __future__ import annotations

import os

import memdb
from memdb import KnowledgePage
from tests.markdown.conftest import Notes, ids

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
