"""The index of notes against a dictionary: stale is what says something else than was indexed, however it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import KnowledgePage
from memdb.testing import ScriptedModel
from memdb.text.headline import headline
from memdb.text.keywords import extract_keywords
from tests.hostile.shell import NOW, shell
from tests.properties.running import a_file
from tests.strategies import SAME_EVERY_TIME

NAMES = st.sampled_from(["knowledge/a.md", "work/a.md", "work/sub/c.md"])
CONTENTS = st.sampled_from(["# Rockets\n\nengines", "no heading", "# 部署方案"])
CATEGORIES = st.sampled_from([None, ["knowledge"], ["work"], ["work", "knowledge"], []])
CHOSEN = ["chosen", "by the model"]


ANOTHER = "\0 a text that nobody knows"


class Notes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.path = self.stack.enter_context(a_file())
        self.loop = asyncio.new_event_loop()
        self.db = self.wait(memdb.open(self.path).__aenter__())
        self.notes, self.pages = self.db.memory("alice").notes, self.db.memory("alice").pages
        self.content: dict[str, str] = {}  # what notes say
        self.indexed: dict[str, str] = {}  # of which content they are indexed
        self.chosen: set[str] = set()  # whose keywords the model chose for what they say
        self.there_is = False

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def within(self, categories: Iterable[str] | None) -> list[str]:
        return [id for id in self.content if categories is None or id.split("/")[0] in categories]

    def stale(self, categories: Iterable[str] | None) -> list[str]:
        return [id for id in self.within(categories) if not self.there_is or self.indexed.get(id) != self.content[id]]

    def write(self, id: str, content: str) -> None:
        if self.content.get(id) != content:
            self.chosen.discard(id)
        self.content[id] = content

    def gone(self, id: str) -> None:
        for known in (self.content, self.indexed):
            known.pop(id, None)
        self.chosen.discard(id)
        self.there_is &= bool(self.content)

    @rule(id=NAMES, content=CONTENTS)
    def write_file(self, id: str, content: str) -> None:
        self.wait(self.notes.write_file(id, content))
        self.write(id, content)

    @rule(many=st.dictionaries(NAMES, CONTENTS, max_size=3))
    def replaced_as_a_sync_does(self, many: dict[str, str]) -> None:
        pages = []
        for id, content in many.items():
            title, summary = headline(content)
            pages.append(KnowledgePage(id=id, title=title, summary=summary, content=content, category=id.split("/")[0]))
            self.write(id, content)
            self.chosen.discard(id)
        self.wait(self.pages.add_pages(pages, replace=True))

    @rule(id=NAMES)
    def delete(self, id: str) -> None:
        if id in self.content:
            self.wait(self.notes.delete_file(id))
            self.gone(id)

    @rule(id=NAMES, content=CONTENTS)
    def edited_in_a_shell(self, id: str, content: str) -> None:
        if id in self.content:
            shell(self.path, ("UPDATE record SET content = ? WHERE key = ? AND user_id = 'alice'", (content, id)))
            self.write(id, content)

    @rule(id=NAMES)
    def deleted_in_a_shell(self, id: str) -> None:
        shell(self.path, ("DELETE FROM record WHERE key = ?", (id,)))
        self.gone(id)

    @rule(id=NAMES, content=CONTENTS)
    def added_in_a_shell(self, id: str, content: str) -> None:
        if id not in self.content:
            columns = "user_id, layer, key, category, created_at, updated_at, content"
            values = ("alice", "page", id, id.split("/")[0], NOW, NOW, content)
            shell(self.path, (f"INSERT INTO record ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values))
            self.write(id, content)

    @rule(categories=CATEGORIES)
    def refresh(self, categories: list[str] | None) -> None:
        expected = self.stale(categories)
        found = self.wait(self.notes.refresh_stale_entries("alice", categories))
        assert ["/".join(entry) for entry in found] == expected
        self.there_is = bool(self.content)
        for id in expected:
            self.indexed[id] = self.content[id]
            self.chosen.discard(id)

    @rule(categories=CATEGORIES, rebuild=st.booleans(), fails=st.booleans())
    def populate(self, categories: list[str] | None, rebuild: bool, fails: bool) -> None:
        model = ScriptedModel(["bad" if fails else json.dumps(CHOSEN)] * len(self.content))
        report = self.wait(self.notes.populate_index_from_files("alice", categories, model, rebuild=rebuild))
        asked = {*report.by_model, *report.by_rule}
        assert asked <= set(self.within(categories))
        assert asked >= set(self.within(categories)) - (set() if rebuild else self.chosen)
        assert not report.kept
        self.there_is = bool(self.content)
        self.indexed |= {id: self.content[id] for id in asked}
        self.chosen = self.chosen - asked if fails else self.chosen | asked

    @rule(id=NAMES)
    def written_by_hand(self, id: str) -> None:
        if id in self.content:
            category, name = id.split("/", 1)
            self.wait(self.notes.update_index_entry(name, "T", "D", CHOSEN, category))
            self.there_is = True
            self.indexed[id] = self.content[id]
            self.chosen.add(id)

    @rule()
    def read_and_written(self) -> None:
        index = self.wait(self.notes.read_index())
        if index:
            stale = set(self.stale(None))
            report = self.wait(self.notes.write_index(index))
            assert report.skipped == []
            assert {"/".join(entry) for entry in report.stale} == stale & self.indexed.keys()
            self.indexed |= dict.fromkeys(stale & self.indexed.keys(), ANOTHER)

    @invariant()
    def what_is_stale_is_what_says_something_else(self) -> None:
        assert self.wait(self.notes.index_exists()) == self.there_is
        for categories in (None, ["knowledge"], ["work"]):
            found = self.wait(self.notes.get_stale_entries("alice", categories))
            assert ["/".join(entry) for entry in found] == self.stale(categories)
        if self.there_is and self.wait(self.notes.is_fresh()):
            assert self.stale(None) == []

    @invariant()
    def the_index_says_what_was_indexed(self) -> None:
        index = self.wait(self.notes.read_index())
        entries = {f"{one['category']}/{one['filename']}": one for one in index.get("files", [])}
        assert entries.keys() == self.indexed.keys()
        for id, entry in entries.items():
            if self.indexed[id] != self.content[id]:
                continue
            by_rule = extract_keywords(entry["title"], entry["description"], self.content[id])
            assert entry["keywords"] == (CHOSEN if id in self.chosen else by_rule)

    @invariant()
    def names_read_back(self) -> None:
        for category in ("knowledge", "work"):
            names = self.wait(self.notes.list_user_files("alice", category))
            said = [self.wait(self.notes.read_file(name)) for name in names]
            assert said == [self.content[id] for id in self.within([category])]

    def teardown(self) -> None:
        assert self.wait(self.db.memory("bob").notes.read_index()) == {}
        report = self.wait(self.db.check(repair=True))
        assert report.ok, report.problems
        self.wait(self.db.close())
        self.loop.close()
        self.stack.close()


Notes.TestCase.settings = settings(SAME_EVERY_TIME, max_examples=15, stateful_step_count=25)
TestNotes = Notes.TestCase
