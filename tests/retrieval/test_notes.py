"""MarkdownStore: notes by name, as a user of memory.notes sees them."""

from __future__ import annotations

import pytest

import memdb
from memdb import AlreadyExists, InvalidInput, KnowledgePage, MissingFile, NotFound
from memdb.testing import HashingEmbedder

PYTHON = "# Python Basics\n\nAn introduction to *Python* programming.\n\nVariables and loops."


async def test_a_note_is_a_page_with_the_title_and_description_of_its_text(memory):
    assert await memory.notes.write_file("user1_python.md", PYTHON) == "user1_python.md"
    page = await memory.pages.get_page("knowledge/user1_python.md")
    assert (page.title, page.summary) == ("Python Basics", "An introduction to Python programming.")
    assert (page.category, page.content) == ("knowledge", PYTHON)
    assert "python" in page.keywords
    assert await memory.notes.read_file("user1_python.md") == PYTHON


async def test_the_documents_example(memory):
    notes = memory.notes
    path = notes.category_dir("knowledge") / "default_user_new.md"
    await notes.write_file(path, "# New Topic\nImportant content here")
    assert await notes.list_user_files("alice", "knowledge") == ["default_user_new.md"]
    assert str(notes.category_dir("knowledge")) == "knowledge"
    stale = await notes.get_stale_entries(user_id="alice", categories=["knowledge"])
    assert stale == [("knowledge", "default_user_new.md")]


@pytest.mark.parametrize(
    ("content", "title", "description"),
    [
        ("no heading", "a note", "no heading"),
        ("## only a second rank\n\ntext", "a note", "text"),
        ("", "a note", ""),
        ("```\n# code\n```\n# Real `C#` #\n\n> quoted\n\nThe first\nparagraph.", "Real C#", "The first paragraph."),
        ("Setext\n======\n\n部署方案。", "Setext", "部署方案。"),
    ],
)
async def test_title_and_description_by_rule(memory, content, title, description):
    await memory.notes.write_file("work/a note.md", content)
    page = await memory.pages.get_page("work/a note.md")
    assert (page.title, page.summary, page.category) == (title, description, "work")


async def test_replacing_keeps_what_belongs_to_the_page(memory, clock):
    await memory.pages.add_page(
        KnowledgePage(
            id="work/plan.md",
            title="T",
            content="old",
            category="work",
            tags=["tag"],
            references=["other"],
            keywords=["mine"],
        )
    )
    before = await memory.pages.get_page("work/plan.md")
    clock.forward(days=1)
    assert await memory.notes.write_file("plan.md", "# Plan B\n\nfresh words") == "plan.md"
    page = await memory.pages.get_page("work/plan.md")
    assert (page.title, page.summary, page.tags, page.references) == ("Plan B", "fresh words", ["tag"], ["other"])
    assert (page.keywords, page.created_at) == (["mine"], before.created_at)
    assert page.updated_at > before.updated_at
    assert await memory.notes.bm25_search("fresh") == ["plan.md"]
    assert await memory.notes.bm25_search("old") == []


async def test_keywords_by_rule_follow_the_text(memory):
    await memory.notes.write_file("a.md", "# Rockets\n\nengines")
    await memory.notes.write_file("a.md", "# Gardens\n\nroses")
    assert (await memory.pages.get_page("knowledge/a.md")).keywords == ["gardens", "roses"]


async def test_equal_file_names_in_two_categories(memory):
    notes = memory.notes
    for category in ("knowledge", "work"):
        await notes.write_file(f"{category}/python.md", f"# Python {category}\n\ntext of {category}")
    await notes.write_file("rust.md", "# Rust")
    assert await notes.list_user_files("alice", "knowledge") == ["knowledge/python.md", "rust.md"]
    assert await notes.list_user_files("alice", "work") == ["work/python.md"]
    assert "text of work" in await notes.read_file("work/python.md")
    assert await notes.read_file("knowledge/rust.md") == "# Rust"
    assert set(await notes.bm25_search("python")) == {"knowledge/python.md", "work/python.md"}
    for act in (notes.read_file, notes.delete_file):
        with pytest.raises(InvalidInput, match=r"say 'knowledge/python\.md' or 'work/python\.md'"):
            await act("python.md")
    with pytest.raises(InvalidInput, match="2 files"):
        await notes.write_file("python.md", "which?")
    await notes.delete_file("work/python.md")
    assert await notes.list_user_files("alice", "knowledge") == ["python.md", "rust.md"]


async def test_pages_of_any_id_have_a_name_that_means_them_alone(memory):
    ids = [
        ("knowledge/a.md", "knowledge"),
        ("a.md", "knowledge"),
        ("b.md", "work"),
        ("work/b.md", "personal"),
        ("c/d.md", "c"),
        ("c/d.md/e", "c/d.md"),
        ("e", "c/d.md"),
        ("x/y", "z"),
        ("z/x/y", "q"),
        ("plain", "z"),
    ]
    await memory.pages.add_pages([KnowledgePage(id=id, title=id, content=id, category=kind) for id, kind in ids])
    listed = {}
    for category in dict.fromkeys(kind for _, kind in ids):
        for name in await memory.notes.list_user_files("alice", category):
            listed[name] = await memory.notes.read_file(name)
    assert sorted(listed.values()) == sorted(id for id, _ in ids)
    for id, _ in ids:
        assert await memory.notes.read_file(id) == id


async def test_a_file_name_of_two_categories_is_said_whole_also_where_an_id_is_bare(memory):
    pages = [("a.md", "knowledge"), ("work/a.md", "work")]
    await memory.pages.add_pages([KnowledgePage(id=id, title="t", category=category) for id, category in pages])
    assert await memory.notes.list_user_files("alice", "knowledge") == ["knowledge/a.md"]
    assert await memory.notes.list_user_files("alice", "work") == ["work/a.md"]


async def test_a_category_of_its_own_choice(memory):
    notes = memory.notes
    assert await notes.write_file("plan.md", "1", category="work/eu") == "plan.md"
    assert await notes.list_user_files("alice", "work/eu") == ["plan.md"]
    await notes.write_file("plan.md", "changed", category="work/eu")
    with pytest.raises(AlreadyExists, match=r"work/eu/plan\.md"):  # the same id would be that of two files
        await notes.write_file("eu/plan.md", "2", category="work")
    assert await notes.read_file("plan.md") == "changed"
    await notes.write_file("eu/plan.md", "in its default category", category="knowledge")
    assert await notes.read_file("knowledge/eu/plan.md") == "in its default category"


async def test_what_is_not_there(memory):
    for act in (memory.notes.read_file, memory.notes.delete_file):
        with pytest.raises(MissingFile, match="list_user_files") as caught:
            await act("nothing.md")
        assert isinstance(caught.value, FileNotFoundError | NotFound)
    assert await memory.notes.list_user_files("alice", "nowhere") == []
    assert await memory.notes.bm25_search("nothing") == []
    assert await memory.notes.entries(["nothing.md"]) == {}
    await memory.notes.record_recall("nothing.md", 0.5)


async def test_categories_are_filtered_before_ranking(memory):
    for n in range(30):
        await memory.notes.write_file(f"work/w{n}.md", "# rocket rocket rocket")
    await memory.notes.write_file("personal/one.md", "# Something\n\nA rocket among other words that are many")
    await memory.notes.write_file("knowledge/two.md", "# Something\n\nA rocket among other words")
    search = memory.notes.bm25_search
    assert await search("rocket", categories=["personal"]) == ["one.md"]
    assert await search("rocket", categories=["personal", "knowledge", "personal"]) == ["two.md", "one.md"]
    assert len(await search("rocket")) == 5
    assert await search("rocket", 40, categories=["work", "personal", "knowledge"]) == await search("rocket", 40)
    assert await memory.notes.fast_filter("rocket", 1, categories=["knowledge"]) == ["two.md"]
    assert await search("rocket", categories=[]) == []
    assert await search("rocket", 0) == []


async def test_hybrid_without_an_embedder_is_bm25(memory, caplog):
    await memory.notes.write_file("a.md", "# Rockets\n\nengines")
    await memory.notes.write_file("work/b.md", "# Engines")
    assert await memory.notes.hybrid_search("engines", categories=["work"]) == ["b.md"]
    assert set(await memory.notes.hybrid_search("engines")) == {"a.md", "b.md"}


async def test_hybrid_finds_by_meaning_too(path):
    async with memdb.open(path, embedder=HashingEmbedder()) as db:
        notes = db.memory("alice").notes
        await notes.write_file("a.md", "# Rocketry")
        await notes.write_file("work/a.md", "# Gardening")
        assert await notes.bm25_search("rocketships") == []
        assert (await notes.hybrid_search("rocketships"))[0] == "knowledge/a.md"
        assert await notes.hybrid_search("rocketships", bm25_weight=1.0) == []
        assert await notes.hybrid_search("rocketships", categories=["work"]) in ([], ["work/a.md"])


@pytest.mark.parametrize(
    "call",
    [
        lambda n: n.list_user_files("alice", ""),
        lambda n: n.read_file(""),
        lambda n: n.read_file(None),
        lambda n: n.read_file("a\x00b"),
        lambda n: n.read_file("\ud800"),
        lambda n: n.write_file("a.md", b"bytes"),
        lambda n: n.write_file("a.md", "\x00"),
        lambda n: n.write_file("a.md", "\ud800"),
        lambda n: n.write_file("x" * 1001, "text"),
        lambda n: n.write_file("x" * 1000, "text"),  # with its category too long
        lambda n: n.write_file("a.md", "text", category=""),
        lambda n: n.bm25_search(3),
        lambda n: n.bm25_search("q", -1),
        lambda n: n.bm25_search("q", True),
        lambda n: n.bm25_search("q", categories="knowledge"),
        lambda n: n.bm25_search("q", categories=[3]),
        lambda n: n.bm25_search("q", categories=[str(i) for i in range(1001)]),
        lambda n: n.hybrid_search("q", bm25_weight=1.5),
        lambda n: n.hybrid_search("q", bm25_weight=float("nan")),
        lambda n: n.record_recall("a", -1),
        lambda n: n.update_index_entry("a.md", "T", "D", "words", "knowledge"),
        lambda n: n.populate_index_from_files("alice", None, "model"),
        lambda n: n.populate_index_from_files("alice", None, None, concurrency=0),
        lambda n: n.populate_index_from_files("alice", "knowledge", None),
    ],
)
async def test_bad_arguments_are_one_sentence(memory, call):
    with pytest.raises(InvalidInput) as caught:
        await call(memory.notes)
    assert "\n" not in str(caught.value)
    assert await memory.pages.get_index() == []


@pytest.mark.parametrize(
    "name",
    [
        "../../x",
        "/etc/passwd",
        "..",
        "a//b",
        "work/",
        "C:\\x",
        "%2e%2e/x",
        "' OR 1=1 --",
        "a\nb",
        " ",
        "名前.md",
        "é",
        "e\u0301",
    ],
)
async def test_a_name_is_text_and_never_a_place_on_the_disk(memory, name, tmp_path, monkeypatch):
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    called = await memory.notes.write_file(name, "what it says")
    assert await memory.notes.read_file(name) == await memory.notes.read_file(called) == "what it says"
    assert await memory.notes.bm25_search("says") == [called]
    await memory.notes.delete_file(name)
    assert await memory.pages.get_index() == []
    assert {found for found in tmp_path.rglob("*") if not found.name.startswith("agent.db")} == {here.parent, here}


async def test_a_foreign_user_is_refused_and_finds_nothing(db):
    alice, bob = db.memory("alice").notes, db.memory("bob").notes
    await alice.write_file("alice_notes.md", "# Secret plutonium")
    await alice.populate_index_from_files("alice", None, None)
    with pytest.raises(InvalidInput, match=r"db.memory\('bob'\).notes"):
        await alice.list_user_files("bob", "knowledge")
    for call in (
        alice.bm25_search("plutonium", user_id="bob"),
        alice.hybrid_search("plutonium", user_id="bob"),
        alice.get_stale_entries("bob"),
        alice.refresh_stale_entries("bob"),
        alice.populate_index_from_files("bob", None, None),
    ):
        with pytest.raises(InvalidInput, match="'bob'"):
            await call
    assert await bob.list_user_files("bob", "knowledge") == []
    assert await bob.bm25_search("plutonium") == await bob.hybrid_search("plutonium") == []
    assert await bob.read_index() == {}
    assert not await bob.index_exists()
    assert await bob.get_stale_entries("bob") == await bob.refresh_stale_entries("bob") == []
    assert await bob.entries(["alice_notes.md"]) == {}
    report = await bob.write_index(await alice.read_index())
    assert report.skipped == [("knowledge", "alice_notes.md", "there is no such file")]
    with pytest.raises(MissingFile):
        await bob.update_index_entry("alice_notes.md", "x", "x", ["x"], "knowledge")
    for act in (bob.read_file, bob.delete_file):
        with pytest.raises(MissingFile):
            await act("alice_notes.md")
    await bob.write_file("alice_notes.md", "# Bob's own")
    assert await alice.read_file("alice_notes.md") == "# Secret plutonium"
    assert await alice.is_fresh()


async def test_ann_is_not_anna(db):
    await db.memory("anna").notes.write_file("anna_notes.md", "# Secret")
    assert await db.memory("ann").notes.list_user_files("ann", "knowledge") == []


async def test_notes_are_not_for_units(memory):
    with pytest.raises(InvalidInput, match="pages"):
        await memory.atomic(lambda m: m.notes)
