"""Pages against a dictionary: any history of calls gives what the dictionary gives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import AlreadyExists, KnowledgePage, NotFound
from tests.strategies import SAME_EVERY_TIME

IDS = st.sampled_from(["a", "b", "c", "A", "a b"])
TAGS = st.lists(st.sampled_from(["x", "y", "z w", "Ü"]), max_size=3)
MADE = st.builds(
    KnowledgePage,
    id=IDS,
    title=st.sampled_from(["Red Page", "green page", "部署方案", ""]),
    summary=st.sampled_from(["", "about sqlite", "在线部署"]),
    content=st.sampled_from(["", "StateGraph and more", "สวัสดีครับ"]),
    tags=TAGS,
    references=st.lists(IDS, max_size=3),
    category=st.sampled_from(["knowledge", "notes"]),
    keywords=st.sampled_from([[], ["given"], ["given", "words"]]),
)


class Pages(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.db = self.wait(memdb.open(":memory:").__aenter__())
        self.memory = self.db.memory("alice")
        self.pages: dict[str, KnowledgePage] = {}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    @rule(page=MADE)
    def add(self, page: KnowledgePage) -> None:
        if page.id in self.pages:
            with pytest.raises(AlreadyExists):
                self.wait(self.memory.pages.add_page(page))
        else:
            self.wait(self.memory.pages.add_page(page))
            self.pages[page.id] = page

    @rule(many=st.lists(MADE, max_size=4), replace=st.booleans())
    def add_many(self, many: list[KnowledgePage], replace: bool) -> None:
        ids = [page.id for page in many]
        if not replace and (len(set(ids)) < len(ids) or self.pages.keys() & set(ids)):
            with pytest.raises(AlreadyExists):
                self.wait(self.memory.pages.add_pages(many))
        else:
            assert self.wait(self.memory.pages.add_pages(many, replace=replace)) == len(many)
            self.pages.update({page.id: page for page in many})

    @rule(page=MADE)
    def update(self, page: KnowledgePage) -> None:
        if page.id not in self.pages:
            with pytest.raises(NotFound):
                self.wait(self.memory.pages.update_page(page))
        else:
            self.wait(self.memory.pages.update_page(page))
            self.pages[page.id] = page

    @rule(id=IDS)
    def delete(self, id: str) -> None:
        if id in self.pages:
            self.wait(self.memory.pages.delete_page(id))
            del self.pages[id]
        else:
            with pytest.raises(NotFound):
                self.wait(self.memory.pages.delete_page(id))

    @rule(page=MADE, fail=st.booleans())
    def in_one_act(self, page: KnowledgePage, fail: bool) -> None:
        def act(m: Any) -> None:
            m.pages.add_pages([page], replace=True)
            assert m.pages.get_page(page.id).title == page.title
            if fail:
                raise KeyError(page.id)

        try:
            self.wait(self.memory.atomic(act))
            self.pages[page.id] = page
        except KeyError:
            assert fail

    @rule(id=IDS)
    def get(self, id: str) -> None:
        found = self.wait(self.memory.pages.get_page(id))
        expected = self.pages.get(id)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            hidden = {"created_at", "updated_at", "keywords"}
            assert found.model_dump(exclude=hidden) == expected.model_dump(exclude=hidden)
            assert not expected.keywords or found.keywords == expected.keywords
        assert set(self.wait(self.memory.pages.referenced_by(id))) == {
            page.id for page in self.pages.values() if id in page.references
        }

    @rule(tag=st.sampled_from(["x", "Y", "z-w", "ü"]))
    def by_tag(self, tag: str) -> None:
        found = {page.id for page in self.wait(self.memory.pages.find_by_keywords([tag]))}
        assert found == {page.id for page in self.pages.values() if tag.lower() in page.tags}

    @rule(
        query=st.sampled_from(['"red page"', '"署方"', '"ส"', '"state graph"', '"在线"']),
        category=st.none() | st.just("notes"),
    )
    def search(self, query: str, category: str | None) -> None:
        words = {
            '"red page"': "Red Page",
            '"署方"': "部署方案",
            '"ส"': "สวัสดีครับ",
            '"state graph"': "StateGraph",
            '"在线"': "在线部署",
        }
        found = {page.id for page in self.wait(self.memory.pages.search(query, 100, category=category))}
        assert found == {
            page.id
            for page in self.pages.values()
            if words[query] in page.title + page.summary + page.content and category in (None, page.category)
        }

    @invariant()
    def the_index_and_the_check_agree(self) -> None:
        index = self.wait(self.memory.pages.get_index())
        assert {entry.id: entry.title for entry in index} == {page.id: page.title for page in self.pages.values()}
        assert self.wait(self.db.check()).problems == []
        assert self.wait(self.db.stats()).records == len(self.pages)

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Pages.TestCase.settings = settings(SAME_EVERY_TIME, max_examples=25, stateful_step_count=30)
TestPages = Pages.TestCase
