"""100,000 random strings as queries over every search that takes one: each comes to an answer, none to an error."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import GraphEntity, KnowledgePage, Memory, MemoryItem
from memdb.layers.layer import Live
from memdb.testing import HashingEmbedder

QUERIES, SLOW_QUERIES = 7_000, 2_000  # of each search: 102,000 in all
SLOW = ("experience", "retriever")  # they search several layers at once
AT_ONCE = 500  # in one snapshot
SIGNS = (
    '"', "'", "*", "^", ":", "(", ")", "{", "}", "-", "+", ",", "\\", "\x00", "\ud800", "\udfff", "\u202e", "\ufeff",
    "\u200d", "\u0301", " ", "\n", "\t", ";", "--", "/*", "%", "_", "[[", "]]", "#", "$", "0", "1e9", "9" * 50,
)  # fmt: skip
WORDS = (
    "AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR/2", "rank", "rowid", "content:", "record_search", "MATCH", "NULL", "tea",
    "Tee", "thé", "部署", "部", "จดหมาย", "한국어", "हिन्दी", "🍵", "👩\u200d👩\u200d👧", "ﬁ", "İ", "ß", "a", "the",
    "plutonium",
)  # fmt: skip


def queries(chance: random.Random) -> list[str]:
    """Return random strings: pieces of FTS5's syntax and words, and any characters; some are long."""
    made = []
    for _ in range(AT_ONCE):
        length = chance.choice((0, 1, 1, 2, 3, 5, 8, 20)) if chance.random() < 0.99 else 500
        if chance.random() < 0.7:
            pieces = [chance.choice(chance.choice((SIGNS, WORDS))) for _ in range(length)]
            made.append(chance.choice(("", " ")).join(pieces))
        else:
            most = chance.choice((0x250, 0x110000))
            made.append("".join(chr(chance.randrange(most)) for _ in range(length)))
    return made


# Each search inside a snapshot, for five at most.
SEARCHES: dict[str, Callable[[Any, str], list[Any]]] = {
    "items": lambda m, query: m.items.search(query, 5),
    "pages": lambda m, query: m.pages.search(query, 5),
    "pages of a category": lambda m, query: m.pages.search_scored(query, 5, category="words"),
    "page keywords": lambda m, query: m.pages.find_by_keywords([query], 5),
    "conversation": lambda m, query: m.conversation.search(query, 5),
    "all sessions": lambda m, query: m.conversation.search(query, 5, all_sessions=True),
    "history": lambda m, query: m.facts.search_history(query, 5),
    "archive": lambda m, query: m.archive.search(query, 5),
    "archive by tag": lambda m, query: m.archive.search(query, 5, tags=["drink"], threshold=0),
    "entity keywords": lambda m, query: m.graph.find_by_keywords([query, "tea"], 5),
    "episodes": lambda m, query: m.engine.episodic.search(query, 5),
    "patterns": lambda m, query: m.engine.semantic.search(query, 5),
    "skills": lambda m, query: m.engine.procedural.search(query, 5),
    "experience": lambda m, query: m.engine.retrieve_relevant({"goal": query, "task_type": "auto"}, 5),
    "similar": lambda m, query: m.engine.retrieve_by_similarity(query, "episodic", 5),
    "retriever": lambda m, query: m.retriever.retrieve(query).items[:5],
}
# Those that may ask a model are called one by one, outside of a snapshot.
ALONE: dict[str, Callable[[Any, str], Any]] = {
    "hybrid": lambda m, query: m.hybrid.search(query, k=5),
    "archive by meaning": lambda m, query: m.archive.hybrid_search(query, 5),
    "notes": lambda m, query: m.notes.bm25_search(query, 5),
    "notes by meaning": lambda m, query: m.notes.hybrid_search(query, 5),
    "context": lambda m, query: memdb.ContextBuilder(m).build(query, max_tokens=200),
}


@pytest.fixture
async def db(path: Path) -> AsyncIterator[memdb.Database]:
    async with memdb.open(path, embedder=HashingEmbedder(16)) as opened:
        yield opened
        assert (await opened.check()).problems == []


async def filled(db: memdb.Database) -> Memory[Live]:
    memory = db.memory("alice")
    texts = [f"{word} {other}" for word in WORDS for other in ("tea", "部署方案", "plutonium")]
    await memory.items.save_many(MemoryItem(id=str(n), content=text) for n, text in enumerate(texts))
    await memory.pages.add_pages(
        KnowledgePage(id=str(n), title=text, content=text, tags=["tea"], category="words")
        for n, text in enumerate(texts)
    )
    await memory.graph.add_entities(
        GraphEntity(id=str(n), name=text, entity_type="word", tags=["tea"]) for n, text in enumerate(texts)
    )
    await memory.conversation.add_messages({"role": "user", "content": text} for text in texts)
    await memory.facts.append_entries(texts)
    await memory.archive.insert_many({"content": text, "tags": ["drink"]} for text in texts)
    for n, text in enumerate(texts[:20]):
        await memory.engine.store_episode({"id": f"e{n}", "task_id": "t", "agent": "a", "goal": text})
        await memory.engine.store_pattern({"id": f"p{n}", "pattern": text, "category": "c"})
        await memory.engine.store_skill({"id": f"s{n}", "name": text, "description": text, "steps": ["pour"]})
    return memory


@pytest.mark.parametrize("name", SEARCHES)
async def test_any_string_is_a_query(db: memdb.Database, name: str) -> None:
    memory, chance = await filled(db), random.Random(name)

    def unit(m: Any, asked: list[str]) -> int:
        return max(len(SEARCHES[name](m, query)) for query in asked)

    most = 0
    for asked in islice(map(queries, repeat(chance)), (SLOW_QUERIES if name in SLOW else QUERIES) // AT_ONCE):
        most = max(most, await memory.atomic(lambda m, asked=asked: unit(m, asked)))
    assert 1 <= most <= 5


@pytest.mark.parametrize("name", ALONE)
async def test_any_string_is_a_query_where_a_model_may_be_asked(db: memdb.Database, name: str) -> None:
    memory, chance = await filled(db), random.Random(name)
    for query in queries(chance)[:150]:
        await ALONE[name](memory, query)


def test_no_search_is_left_out() -> None:
    """Every public method with a parameter `query` is in one of the two tables."""
    from tests.hostile.every_call import OBJECTS, methods, parameters

    taking = {
        full
        for full in methods()
        for one in parameters(getattr(OBJECTS[full.split(".")[0]][0], full.split(".")[1]))
        if one.name == "query"
    }
    assert taking == {
        "items.search", "conversation.search", "facts.search_history", "archive.search", "archive.hybrid_search",
        "archive.recall", "pages.search", "pages.search_scored", "engine.retrieve_by_similarity", "episodic.search",
        "semantic.search", "procedural.search", "retriever.retrieve", "composed.retrieve", "notes.bm25_search",
        "notes.fast_filter", "notes.hybrid_search", "hybrid.search", "hybrid.page_ids", "context.build",
        "three stages.retrieve", "three stages.retrieve_detailed", "access.get_relevant_context",
        "manager.search_tool_result", "loader.load_relevant_context",
    }, "write a new search into SEARCHES or ALONE"  # fmt: skip
