"""What was stored comes back as it was, whatever the text, the id or the JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import memdb
from memdb import KnowledgePage, MemoryItem
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME, items, pages, queries


def same(a: Any, b: Any) -> bool:
    """Compare JSON values as strictly as JSON does: 1, 1.0 and true are three values."""
    return json.dumps(a) == json.dumps(b)


@settings(SAME_EVERY_TIME, max_examples=120)
@given(st.lists(items, min_size=1, max_size=6, unique_by=lambda item: item.id), st.booleans())
@example([MemoryItem(id="a", content="x", metadata={"a.b": 1.0, "$": True, "": None, '"': -0.0})], False)
def test_items(given_items: list[MemoryItem], at_once: bool) -> None:
    async def go(db: memdb.Database) -> None:
        store = db.memory().items
        if at_once:
            await store.save_many(given_items)
        else:
            for item in given_items:
                await store.save(item)
        for item in given_items:
            found = await store.get(item.id)
            assert found is not None
            assert (found.id, found.content) == (item.id, item.content)
            assert same(found.metadata, item.metadata)
            assert item.created_at is None or found.created_at == item.created_at
        assert {item.id for item in await store.list()} == {item.id for item in given_items}

    run(go)


@settings(SAME_EVERY_TIME, max_examples=120)
@given(st.lists(pages, min_size=1, max_size=5, unique_by=lambda page: page.id), st.booleans())
def test_pages(given_pages: list[KnowledgePage], at_once: bool) -> None:
    async def go(db: memdb.Database) -> None:
        store = db.memory().pages
        if at_once:
            await store.add_pages(given_pages)
        else:
            for page in given_pages:
                await store.add_page(page)
        for page in given_pages:
            found = await store.get_page(page.id)
            assert found is not None
            assert found.model_dump(exclude={"created_at", "updated_at", "keywords"}) == page.model_dump(
                exclude={"created_at", "updated_at", "keywords"}
            )
            assert found.keywords == page.keywords or not page.keywords
            assert page.created_at is None or found.created_at == page.created_at
            for target in page.references:
                assert page.id in await store.referenced_by(target)
        assert [entry.id for entry in await store.get_index()] == [page.id for page in given_pages]
        counts = await store.categories()
        assert sum(counts.values()) == len(given_pages)
        assert set(counts) == {page.category for page in given_pages}

    run(go)


@settings(SAME_EVERY_TIME, max_examples=200)
@given(st.lists(pages, max_size=4, unique_by=lambda page: page.id), st.lists(queries, min_size=1, max_size=4))
@example([], ["\x00"])
@example(
    [KnowledgePage(id="a", title="don't")], ["don't", "\ud800", 'a OR "', "NEAR(", '"" *', "content:x", "^", "-don't"]
)
def test_any_string_is_a_query(given_pages: list[KnowledgePage], asked: list[str]) -> None:
    async def go(db: memdb.Database) -> None:
        memory = db.memory()
        await memory.pages.add_pages(given_pages)
        await memory.items.save_many([MemoryItem(id=page.id, content=page.content) for page in given_pages])
        for query in asked:
            found = await memory.pages.search(query)
            scored = await memory.pages.search_scored(query)
            assert [hit.page for hit in scored] == found
            assert all(hit.score > 0 for hit in scored)
            assert sorted(scored, key=lambda hit: -hit.score) == scored
            assert {page.id for page in found} <= {page.id for page in given_pages}
            assert all(hit.score > 0 for hit in await memory.items.search(query))
            assert isinstance(await memory.pages.find_by_keywords([query, query.upper()]), list)

    run(go)
