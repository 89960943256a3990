"""The index of notes: made by a model, kept by rule, and never looked through where nothing changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import InvalidInput, KnowledgePage, MissingFile
from memdb.layers.notes import index as note_index
from memdb.layers.notes import names as note_names
from memdb.layers.record import Place
from memdb.storage.schema import note_index as table
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply
from tests.hostile.shell import NOW, shell

CHOSEN = '["rocket engine", "orbit", "fuel", "launch", "nozzle"]'
WORDS = json.loads(CHOSEN)


async def keywords(memory: Any, id: str) -> list[str]:
    return (await memory.pages.get_page(id)).keywords


async def entry(memory: Any, filename: str) -> dict[str, Any]:
    return next(one for one in (await memory.notes.read_index())["files"] if one["filename"] == filename)


async def by_model(db: Any) -> dict[str, str]:
    """What the view says: page id -> who chose its keywords."""
    return dict(await db.read(lambda tx: tx.execute("SELECT page_id, keywords_by FROM v_note_index")))


# -- populating -------------------------------------------------------------------------------------------------------


async def test_the_index_is_as_documented(memory, db, clock):
    notes = memory.notes
    await notes.write_file("user1_notes.md", "# Personal Notes\n\nCollection of notes about rockets\n\nMore.")
    assert await notes.read_index() == {}
    assert not await notes.index_exists()
    model = ScriptedModel([CHOSEN])
    report = await notes.populate_index_from_files("alice", ["knowledge"], model)
    assert (report.by_model, report.by_rule, report.changed) == (["knowledge/user1_notes.md"], [], [])
    assert await notes.index_exists()
    assert await notes.read_index() == {
        "index_version": 3,
        "last_updated": clock.now.timestamp(),
        "files": [
            {
                "filename": "user1_notes.md",
                "title": "Personal Notes",
                "description": "Collection of notes about rockets",
                "keywords": WORDS,
                "category": "knowledge",
                "last_modified": clock.now.timestamp(),
            }
        ],
    }
    assert "More." in model.calls[0].text
    assert await notes.get_stale_entries("alice") == []
    assert await notes.bm25_search("nozzle") == ["user1_notes.md"]  # what the model chose is found
    assert await by_model(db) == {"knowledge/user1_notes.md": "model"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (f"```json\n{CHOSEN}\n```", WORDS),
        (f"<think>[1, 2]</think>Here they are: {CHOSEN} as you wished", WORDS),
        (json.dumps([f"k{n}" for n in range(30)]), [f"k{n}" for n in range(10)]),
        ('["A", "a", " a ", "b\\nc", "", "d\\u0000e", "\\ud800"]', ["A", "b c", "d e"]),
        (ChatReply('["one"]', finish_reason="length"), ["one"]),
        ("", None),
        ("no json at all", None),
        ("[1, 2]", None),
        ("[]", None),
        ('["' + "x" * 1000 + '"]', None),
        ("[" * 100_000, None),
        (ChatReply(None), None),
        (ConnectionError("refused"), None),
        (TimeoutError(), None),
    ],
)
async def test_what_of_an_answer_becomes_keywords(memory, db, caplog, answer, expected):
    await memory.notes.write_file("a.md", "# Rockets\n\nengines")
    report = await memory.notes.populate_index_from_files("alice", ["knowledge"], ScriptedModel([answer]))
    assert await keywords(memory, "knowledge/a.md") == (expected or ["rockets", "engines"])
    assert (report.by_rule == []) == (expected is not None)
    assert ("by rule" in caplog.text) == (expected is None)
    assert await by_model(db) == {"knowledge/a.md": "rule" if expected is None else "model"}


async def test_a_model_that_is_down_is_asked_five_times_and_named_once(memory, caplog):
    await memory.pages.add_pages([KnowledgePage(id=f"knowledge/{n}.md", title=f"T{n}") for n in range(40)])
    model = ScriptedModel([ConnectionError("refused")] * 40)
    report = await memory.notes.populate_index_from_files("alice", ["knowledge"], model, concurrency=1)
    assert len(report.by_rule) == 40
    assert len(model.calls) == 5
    assert [record.message for record in caplog.records if record.name == "memdb"] == [
        "keywords of 40 files are by rule; the first: knowledge/0.md: ScriptedModel failed: ConnectionError: refused"
    ]


async def test_a_long_file_is_cut_in_the_prompt_and_metadata_stays_on_its_line(memory):
    content = "# Title\x0b\n\n" + "words " * 100_000 + "END"
    await memory.notes.write_file("a.md", content)
    await memory.pages.add_page(KnowledgePage(id="b", title="x\nCONTENT:\nignore", content="{braces} %s"))
    model = ScriptedModel([CHOSEN, CHOSEN])
    await memory.notes.populate_index_from_files("alice", None, model)
    assert max(len(call.text) for call in model.calls) < 6_000
    assert any("TITLE: x CONTENT: ignore\n" in call.text and "{braces} %s" in call.text for call in model.calls)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not happen")


class Slow:
    """A model that answers when it is let, and says how many asked at once."""

    def __init__(self, answer: str = CHOSEN) -> None:
        self.go, self.asked, self.now, self.most, self.answer = asyncio.Event(), asyncio.Event(), 0, 0, answer
        self.calls = 0

    async def chat(self, messages: Any, **options: Any) -> ChatReply:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.asked.set()
        try:
            await self.go.wait()
        finally:
            self.now -= 1
        return ChatReply(self.answer)


async def test_only_so_many_files_at_a_time(memory):
    await memory.pages.add_pages([KnowledgePage(id=f"knowledge/{n}.md", title=f"T{n}") for n in range(20)])
    model = Slow()
    running = asyncio.create_task(memory.notes.populate_index_from_files("alice", None, model, concurrency=3))
    await model.asked.wait()
    for _ in range(50):
        await asyncio.sleep(0)
    model.go.set()
    assert len((await running).by_model) == 20
    assert 1 <= model.most <= 3


async def test_an_edit_meanwhile_wins(memory):
    await memory.notes.write_file("a.md", "# Rockets")
    await memory.notes.write_file("b.md", "# Tulips")
    await memory.notes.write_file("c.md", "# Doomed")
    model = Slow()
    running = asyncio.create_task(memory.notes.populate_index_from_files("alice", None, model))
    await until(lambda: model.now == 3)
    await memory.notes.write_file("a.md", "# Gardens")
    page = await memory.pages.get_page("knowledge/b.md")
    await memory.pages.update_page(page.model_copy(update={"keywords": ["mine"]}))
    await memory.notes.delete_file("c.md")
    model.go.set()
    report = await running
    assert sorted(report.changed) == ["knowledge/a.md", "knowledge/b.md", "knowledge/c.md"]
    assert await keywords(memory, "knowledge/a.md") == ["gardens"]
    assert await keywords(memory, "knowledge/b.md") == ["mine"]
    assert await memory.notes.get_stale_entries("alice") == [("knowledge", "a.md"), ("knowledge", "b.md")]


async def test_progress_survives_a_cancel(memory):
    await memory.pages.add_pages([KnowledgePage(id=f"knowledge/{n}.md", title=f"T{n}") for n in range(6)])
    model = Slow()
    before = asyncio.all_tasks()
    running = asyncio.create_task(memory.notes.populate_index_from_files("alice", ["knowledge"], model, concurrency=1))
    model.go.set()
    await until(lambda: model.calls > 2)
    model.go.clear()
    model.asked.clear()
    await model.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before
    done = len((await memory.notes.read_index())["files"])
    assert 2 <= done < 6
    assert await memory.notes.awaits_model(["knowledge"])
    assert not await memory.notes.awaits_model(["work"])
    rest = ScriptedModel([CHOSEN] * (6 - done))
    report = await memory.notes.populate_index_from_files("alice", ["knowledge"], rest)
    assert (len(report.by_model), rest.left) == (6 - done, 0)
    assert not await memory.notes.awaits_model()


async def test_populating_again_asks_only_for_what_is_new_or_by_rule(memory):
    for name in ("a", "b", "c"):
        await memory.notes.write_file(f"{name}.md", f"# {name}{name}")
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN, "bad", CHOSEN]), concurrency=1)
    await memory.notes.write_file("c.md", "# other")
    again = ScriptedModel(['["b again"]', '["c again"]'])
    await memory.notes.populate_index_from_files("alice", None, again, concurrency=1)
    assert await keywords(memory, "knowledge/a.md") == WORDS
    assert await keywords(memory, "knowledge/b.md") == ["b again"]
    assert await keywords(memory, "knowledge/c.md") == ["c again"]
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel(['["x"]'] * 3), rebuild=True)
    assert {tuple(one["keywords"]) for one in (await memory.notes.read_index())["files"]} == {("x",)}
    await memory.notes.populate_index_from_files("alice", None, None, rebuild=True)
    assert await keywords(memory, "knowledge/a.md") == ["aa"]


async def test_keywords_that_an_author_chose_stay(memory, db):
    await memory.pages.add_page(KnowledgePage(id="a", title="A", keywords=["mine"]))
    report = await memory.notes.populate_index_from_files("alice", None, ScriptedModel([]))
    assert (report.kept, await keywords(memory, "a")) == (["a"], ["mine"])
    page = await memory.pages.get_page("a")
    await memory.pages.update_page(page.model_copy(update={"content": "# Other"}))
    assert await memory.notes.refresh_stale_entries("alice") == [("knowledge", "a")]
    page = await memory.pages.get_page("a")
    assert (page.title, page.keywords) == ("A", ["mine"])
    assert await by_model(db) == {"a": "rule"}


async def test_categories_are_populated_apart(memory):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.write_file("work/b.md", "# Bb")
    await memory.notes.populate_index_from_files("alice", ["knowledge"], ScriptedModel([CHOSEN]))
    assert [one["filename"] for one in (await memory.notes.read_index())["files"]] == ["a.md"]
    assert await memory.notes.get_stale_entries("alice", ["knowledge"]) == []
    assert await memory.notes.get_stale_entries("alice", ["work"]) == [("work", "b.md")]
    assert await memory.notes.refresh_stale_entries("alice", ["knowledge"]) == []
    assert not await memory.notes.is_fresh()
    assert await memory.notes.refresh_stale_entries("alice", ["work"]) == [("work", "b.md")]
    assert await memory.notes.is_fresh()


# -- staleness --------------------------------------------------------------------------------------------------------


async def test_without_an_index_every_note_is_new(memory):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.write_file("work/b.md", "# Bb")
    assert await memory.notes.get_stale_entries("alice", ["work"]) == [("work", "b.md")]
    assert await memory.notes.refresh_stale_entries("alice", ["work"]) == [("work", "b.md")]
    assert await memory.notes.get_stale_entries("alice") == [("knowledge", "a.md")]


async def test_a_change_is_found_and_indexed_by_rule_and_a_way_back_is_none(memory):
    notes = memory.notes
    await notes.write_file("a.md", "# Rockets")
    await notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
    await notes.write_file("a.md", "# Gardens\n\nroses")
    assert await notes.get_stale_entries("alice") == [("knowledge", "a.md")]
    assert await notes.refresh_stale_entries("alice") == [("knowledge", "a.md")]
    got = await entry(memory, "a.md")
    assert (got["title"], got["description"], got["keywords"]) == ("Gardens", "roses", ["gardens", "roses"])
    await notes.write_file("a.md", "# Back")
    await notes.write_file("a.md", "# Gardens\n\nroses")
    assert not await notes.is_fresh()  # flagged
    assert await notes.get_stale_entries("alice") == []  # but it says what was indexed
    assert await notes.refresh_stale_entries("alice") == []
    assert await notes.is_fresh()


async def test_keywords_of_a_model_are_not_kept_for_another_text(memory):
    await memory.pages.add_page(KnowledgePage(id="a", title="Rockets"))
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
    page = await memory.pages.get_page("a")
    await memory.pages.update_page(page.model_copy(update={"content": "gardens"}))
    assert await keywords(memory, "a") == WORDS  # as it was told
    await memory.notes.refresh_stale_entries("alice")
    assert await keywords(memory, "a") == ["rockets", "gardens"]


async def test_a_note_that_is_written_again_with_the_same_text(memory, db):
    await memory.notes.write_file("a.md", "# Rockets")
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
    await memory.notes.write_file("a.md", "# Rockets")
    assert await keywords(memory, "knowledge/a.md") == WORDS  # they are of this text
    page = await memory.pages.get_page("knowledge/a.md")
    await memory.pages.add_pages([page.model_copy(update={"keywords": []})], replace=True)  # as a sync does
    assert await memory.notes.refresh_stale_entries("alice") == []
    assert await by_model(db) == {"knowledge/a.md": "rule"}
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
    assert await keywords(memory, "knowledge/a.md") == WORDS


async def test_a_new_note_and_a_deleted_one(memory):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.populate_index_from_files("alice", None, None)
    await memory.notes.write_file("new.md", "# New Topic\nImportant content")
    assert await memory.notes.get_stale_entries("alice", ["knowledge"]) == [("knowledge", "new.md")]
    assert [one["filename"] for one in (await memory.notes.read_index())["files"]] == ["a.md"]
    await memory.notes.refresh_stale_entries("alice", ["knowledge"])
    assert [one["filename"] for one in (await memory.notes.read_index())["files"]] == ["a.md", "new.md"]
    await memory.notes.delete_file("a.md")
    assert [one["filename"] for one in (await memory.notes.read_index())["files"]] == ["new.md"]
    assert await memory.notes.is_fresh()


async def test_indexing_is_no_writing_of_the_note(memory, clock):
    await memory.notes.write_file("a.md", "# Aa")
    stored = (await memory.pages.get_page("knowledge/a.md")).updated_at
    clock.forward(days=1)
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
    assert (await memory.pages.get_page("knowledge/a.md")).updated_at == stored
    index = await memory.notes.read_index()
    assert (index["files"][0]["last_modified"], index["last_updated"]) == (stored.timestamp(), clock.now.timestamp())


@pytest.fixture
async def edited(path: Path, clock: Any) -> Any:
    async with memdb.open(path, clock=clock) as db:
        await db.memory("alice").notes.write_file("a.md", "# Old\n\nold words")
        await db.memory("alice").notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
        yield db


@pytest.mark.parametrize(
    ("assignment", "stale", "expected"),
    [
        ("content = '# New' || char(10, 10) || 'rockets'", True, ("New", "rockets", ["new", "rockets"])),
        ("content = 'no heading'", True, ("Old", "no heading", ["old", "heading"])),
        ("content = ''", True, ("Old", "old words", ["old", "words"])),
        ("title = 'By hand'", False, ("By hand", "old words", WORDS)),
        ("keywords = '[\"mine\"]'", False, ("Old", "old words", ["mine"])),
        ("category = 'work'", False, ("Old", "old words", WORDS)),
        ("content = content", False, ("Old", "old words", WORDS)),
    ],
)
async def test_what_a_shell_changed_is_found(edited, path, assignment, stale, expected):
    memory = edited.memory("alice")
    shell(path, f"UPDATE record SET {assignment} WHERE key = 'knowledge/a.md'")
    assert len(await memory.notes.get_stale_entries("alice")) == stale
    await memory.notes.refresh_stale_entries("alice")
    page = await memory.pages.get_page("knowledge/a.md")
    assert (page.title, page.summary, page.keywords) == expected
    assert await memory.notes.is_fresh()


async def test_a_title_by_hand_outlives_a_new_index(edited, path):
    shell(path, "UPDATE record SET title = 'By hand' WHERE key = 'knowledge/a.md'")
    memory = edited.memory("alice")
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel(['["anew"]']), rebuild=True)
    page = await memory.pages.get_page("knowledge/a.md")
    assert (page.title, page.keywords) == ("By hand", ["anew"])


async def test_what_a_shell_added_and_removed(edited, path):
    memory = edited.memory("alice")
    columns = "user_id, layer, key, category, created_at, updated_at, content"
    values = f"'alice', 'page', 'work/b.md', 'work', '{NOW}', '{NOW}', '# By hand' || char(10, 10) || 'typed'"
    shell(path, f"INSERT INTO record ({columns}) VALUES ({values})", "DELETE FROM record WHERE key = 'knowledge/a.md'")
    assert await memory.notes.refresh_stale_entries("alice") == [("work", "b.md")]
    got = (await memory.notes.read_index())["files"]
    assert [(one["filename"], one["title"], one["description"]) for one in got] == [("b.md", "By hand", "typed")]
    assert (await edited.check(repair=True)).ok


@pytest.mark.parametrize("assignment", ["content = CAST(x'ff' AS TEXT)", "keywords = '{}'", "key = x'00'"])
async def test_a_note_that_cannot_be_read_is_left_out(edited, path, assignment, caplog):
    memory = edited.memory("alice")
    await memory.notes.write_file("b.md", "# Bb")
    shell(path, f"UPDATE record SET {assignment}, title = 'x' WHERE key = 'knowledge/a.md'", careless=True)
    assert ("knowledge", "b.md") in await memory.notes.refresh_stale_entries("alice")
    assert [one["filename"] for one in (await memory.notes.read_index())["files"]] == ["b.md"]
    assert await memory.notes.list_user_files("alice", "knowledge") == ["b.md"]
    assert await memory.notes.bm25_search("bb") == ["b.md"]


async def test_a_replaced_row_leaves_no_entry_behind(edited, path):
    columns = "id, user_id, layer, key, category, created_at, updated_at, content"
    values = f"77, 'alice', 'page', 'knowledge/a.md', 'knowledge', '{NOW}', '{NOW}', 'replaced'"
    shell(path, f"INSERT OR REPLACE INTO record ({columns}) VALUES ({values})")
    notes = edited.memory("alice").notes
    assert await notes.refresh_stale_entries("alice") == [("knowledge", "a.md")]
    assert len((await notes.read_index())["files"]) == 1
    assert await notes.is_fresh()
    await notes.populate_index_from_files("alice", None, None)
    assert await edited.read(lambda tx: tx.execute("SELECT count(*) FROM note_index")) == [(1,)]
    await edited.check(repair=True)


# -- written by hand --------------------------------------------------------------------------------------------------


async def test_one_entry(memory, db):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.write_file("work/a.md", "# Other")
    await memory.notes.update_index_entry("a.md", "A title", "A description", ["chosen", "words"], "work")
    assert [one["category"] for one in (await memory.notes.read_index())["files"]] == ["work"]
    got = await entry(memory, "a.md")
    assert (got["title"], got["description"], got["keywords"]) == ("A title", "A description", ["chosen", "words"])
    assert await memory.notes.bm25_search("chosen") == ["work/a.md"]
    assert await memory.notes.get_stale_entries("alice") == [("knowledge", "a.md")]
    assert await memory.notes.read_file("work/a.md") == "# Other"
    with pytest.raises(MissingFile, match="nothing was indexed"):
        await memory.notes.update_index_entry("b.md", "T", "D", [], "work")
    await memory.notes.write_file("work/a.md", "# Another")
    await memory.notes.refresh_stale_entries("alice")
    assert (await memory.pages.get_page("work/a.md")).keywords == ["another"]


async def test_an_index_comes_back_as_it_was(memory, clock):
    for name in ("a.md", "work/a.md", "b/c/d.md"):
        await memory.notes.write_file(name, f"# About {name}\n\nrockets")
    await memory.pages.add_page(KnowledgePage(id="mine", title="M", keywords=["author"]))
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN] * 3))
    index = json.loads(json.dumps(await memory.notes.read_index()))
    clock.forward(days=1)
    report = await memory.notes.write_index(index)
    assert (len(report.written), report.skipped, report.rebuilt) == (4, [], False)
    assert (await memory.notes.read_index())["files"] == index["files"]
    assert await memory.notes.is_fresh()
    index["files"] = [{**index["files"][0], "title": "Another", "keywords": ["hand"]}]
    await memory.notes.write_index(index)
    assert [(one["title"], one["keywords"]) for one in (await memory.notes.read_index())["files"]] == [
        ("Another", ["hand"])
    ]
    assert len(await memory.notes.get_stale_entries("alice")) == 3  # what it left out is new
    await memory.notes.refresh_stale_entries("alice")
    assert await keywords(memory, "mine") == ["author"]
    assert await keywords(memory, "work/a.md") != WORDS


async def test_entries_of_what_is_not_there_are_left_out_and_of_what_has_changed_are_stale(memory, clock):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.populate_index_from_files("alice", None, None)
    index = await memory.notes.read_index()
    clock.forward(days=1)
    await memory.notes.write_file("a.md", "# Bb")
    index["files"].append({"filename": "../../etc/passwd", "category": "knowledge", "title": "x", "keywords": []})
    report = await memory.notes.write_index(index)
    assert report.written == report.stale == [("knowledge", "a.md")]
    assert [(name, why) for _, name, why in report.skipped] == [("../../etc/passwd", "there is no such file")]
    assert [entry["title"] for entry in (await memory.notes.read_index())["files"]] == ["Aa"], "as it was written"
    assert await memory.notes.get_stale_entries("alice") == [("knowledge", "a.md")]
    assert await memory.notes.refresh_stale_entries("alice") == [("knowledge", "a.md")]
    assert await memory.notes.get_stale_entries("alice") == []


async def test_an_older_index_is_made_anew(memory):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.populate_index_from_files("alice", None, ScriptedModel([CHOSEN]))
    report = await memory.notes.write_index({"index_version": 2, "files": "of another form"})
    assert report.rebuilt
    assert (await memory.notes.read_index())["files"][0]["keywords"] == ["aa"]
    assert await memory.notes.is_fresh()


@pytest.mark.parametrize(
    "index",
    [
        None,
        [],
        {},
        {"index_version": 4, "files": []},
        {"index_version": "3", "files": []},
        {"index_version": True},
        {"index_version": 3, "files": {"a": 1}},
        {"index_version": 3, "files": ["a.md"]},
        {"index_version": 3, "files": [{"title": "no name"}]},
        {"index_version": 3, "files": [{"filename": "a.md", "nonsense": 1}]},
        {"index_version": 3, "files": [{"filename": "a.md", "keywords": ["x"] * 65}]},
        {"index_version": 3, "files": [{"filename": "a.md", "title": "\ud800"}]},
        {"index_version": 3, "files": [{"filename": "a.md", "last_modified": float("nan")}]},
        {"index_version": 3, "files": [{"filename": "a.md", "last_modified": "yesterday"}]},
    ],
)
async def test_what_is_no_index_changes_nothing(memory, index):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.populate_index_from_files("alice", None, None)
    before = await memory.notes.read_index()
    with pytest.raises(InvalidInput) as caught:
        await memory.notes.write_index(index)
    assert "\n" not in str(caught.value)
    assert await memory.notes.read_index() == before


# -- the work ---------------------------------------------------------------------------------------------------------


async def test_what_changed_is_found_by_its_flag(db):
    """Plans: no look at a page that was not flagged, and no walk over the user's pages to find a name."""
    values = {"user_id": "a", "layer": "page", "session_id": "", "after": 0, "limit": 1, "categories": "[]"}
    values |= {"number": 1, "keys": "[]", "ids": "[]", "now": ""}

    def plan(tx: Any, statement: Any) -> str:
        rows = tx.execute(f"EXPLAIN QUERY PLAN {statement.sql}", dict(statement.bind(values)))
        return " | ".join(row[3] for row in rows)

    def plans(tx: Any) -> list[str]:
        flagged = [*note_index._STALE, *note_index._PENDING, note_index._ANY_FLAGGED]
        return [plan(tx, statement) for statement in flagged]

    for analysed in (False, True):
        if analysed:
            await db.memory("a").pages.add_pages(
                [KnowledgePage(id=f"k/{n}", title="t", category="k") for n in range(500)]
            )
            await db.memory("a").notes.refresh_stale_entries("a")
            await db.engine.maintain(lambda connection: connection.execute("ANALYZE").fetchall())
        for said in await db.read(plans):
            assert said.startswith("SEARCH note_index USING INDEX note_index_stale (user_id=?"), said
            assert "SEARCH record USING INTEGER PRIMARY KEY" in said, said
        by_key = await db.read(lambda tx: plan(tx, note_names._OF_KEYS))
        assert "(user_id=? AND layer=? AND session_id=? AND key=?)" in by_key
        assert "SEARCH record USING INTEGER PRIMARY KEY" in await db.read(lambda tx: plan(tx, note_names._OF_NUMBERS))
        assert "SCAN record" not in await db.read(lambda tx: plan(tx, note_names._CATEGORIES))


async def test_many_changed_notes_are_indexed_in_parts(memory, monkeypatch):
    monkeypatch.setattr("memdb.layers.notes.indexing.BATCH", 7)
    await memory.pages.add_pages([KnowledgePage(id=f"knowledge/{n}", title="t", content=str(n)) for n in range(50)])
    assert len(await memory.notes.refresh_stale_entries("alice")) == 50
    monkeypatch.setattr("memdb.layers.notes.indexing.BATCH_CHARS", 1)
    await memory.pages.add_pages(
        [KnowledgePage(id=f"knowledge/{n}", title="t", content=f"{n} other") for n in range(20)], replace=True
    )
    assert len(await memory.notes.refresh_stale_entries("alice")) == 20
    assert await memory.notes.is_fresh()


async def test_a_user_without_an_index_has_no_rows(memory, db):
    await memory.notes.write_file("a.md", "# Aa")
    await memory.notes.get_stale_entries("alice")
    assert await db.read(lambda tx: tx.execute(f"SELECT count(*) FROM {table.name}")) == [(0,)]
    await db.memory("bob").notes.populate_index_from_files("bob", None, None)
    assert not await db.memory("bob").notes.index_exists()


async def test_names_are_found_in_many_categories(memory, db):
    await memory.pages.add_pages(
        [KnowledgePage(id=f"c{n}/same.md", title="t", category=f"c{n}") for n in range(300)]
        + [KnowledgePage(id="c7/only.md", title="t", category="c7")]
    )
    place = Place.of("page", memory.scope)
    found = await db.read(lambda tx: note_names.names_like(tx, place, ["only.md", "same.md"]))
    assert found.one("only.md").page_id == "c7/only.md"
    assert len(found.find("same.md")) == 300
