"""Searching by words and by meaning, in every layer, with an embedder that works, fails, or is not there."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, GraphEntity, InvalidInput, KnowledgePage, Memory, MemoryItem
from memdb.errors import ModelError
from memdb.layers.layer import Live
from memdb.retrieval.find import find
from memdb.testing import HashingEmbedder

MEANINGS = {"car": 0, "automobile": 0, "vehicle": 0, "tea": 1, "beverage": 1, "drink": 1, "sea": 2, "ocean": 2}


class Thesaurus:
    """An embedder that knows a few words by their meaning, and nothing else."""

    model, dimensions = "thesaurus", 4

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    async def embed(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0, 0.0, 0.0, 0.1]
        for word in re.findall(r"\w+", text.lower()):
            if word in MEANINGS:
                vector[MEANINGS[word]] += 1.0
        return vector


class Broken(Thesaurus):
    """An embedder that fails as told, with everything or with queries alone."""

    def __init__(self, fail: Callable[[list[str]], Any]) -> None:
        super().__init__()
        self.fail: Callable[[list[str]], Any] | None = fail

    async def embed(self, texts: list[str]) -> list[list[float]]:
        good = await super().embed(texts)
        if self.fail is None:
            return good
        return self.fail(texts)  # type: ignore[no-any-return]


def failing(error: BaseException) -> Callable[[list[str]], Any]:
    def fail(texts: list[str]) -> Any:
        raise error

    return fail


async def fill(memory: Memory[Live]) -> None:
    await memory.pages.add_pages(
        [
            KnowledgePage(id="notes/auto.md", title="My automobile", content="It is red.", category="notes"),
            KnowledgePage(id="work/tea.md", title="Tea", content="A hot beverage.", category="work"),
            KnowledgePage(id="work/code.md", title="Code", content="A car is a pair's first element.", category="work"),
        ]
    )
    await memory.items.save(MemoryItem(id="i", content="Alice likes the ocean"))
    await memory.conversation.add_messages(
        [{"role": "user", "content": "Shall we go to the sea?"}, {"role": "assistant", "content": "Yes, gladly."}]
    )
    await memory.graph.add_entity(GraphEntity(id="e", name="Beverage", entity_type="drink", description="for guests"))


@pytest.fixture
async def db(place: Path | str) -> Any:
    async with memdb.open(place, embedder=Thesaurus()) as opened:
        yield opened
        report = await opened.check()
        assert report.ok, report.problems


@pytest.fixture
async def memory(db: Database) -> Memory[Live]:
    memory = db.memory("alice")
    await fill(memory)
    return memory


async def nothing_waits(db: Database) -> None:
    async with asyncio.timeout(20):
        while (await db.embeddings.progress()).waiting:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


def ids(hits: list[Any]) -> list[str]:
    return [hit.id for hit in hits]


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "layer", "best"),
    [
        ("vehicle", "page", "notes/auto.md"),
        ("drink", "page", "work/tea.md"),
        ("ocean", "message", "1"),
        ("sea", "item", "i"),
        ("tea", "entity", "e"),
    ],
)
async def test_what_shares_no_word_is_found_by_its_meaning(
    memory: Memory[Live], query: str, layer: str, best: str
) -> None:
    hit = (await memory.hybrid.search(query, layer=layer))[0]
    assert (hit.layer, hit.id) == (layer, best)
    assert hit.score > 0


async def test_words_and_meaning_together_beat_either(memory: Memory[Live]) -> None:
    hits = await memory.hybrid.search("red car", layer="page")
    assert ids(hits)[0] == "notes/auto.md"  # by one word and by meaning; code.md has the word "car"
    assert ids(await memory.hybrid.search("car", layer="page", bm25_weight=1.0)) == ["work/code.md"]


async def test_all_layers_are_searched_at_once(memory: Memory[Live]) -> None:
    hits = await memory.hybrid.search("ocean", k=2)
    assert {(hit.layer, hit.id) for hit in hits} == {("item", "i"), ("message", "1")}
    assert [hit.session_id for hit in hits if hit.layer == "message"] == ["default"]
    assert len(await memory.hybrid.search("ocean", k=100)) == 7


async def test_categories_sessions_and_users_are_walls(db: Database, memory: Memory[Live]) -> None:
    search, page_ids = memory.hybrid.search, memory.hybrid.page_ids
    assert await page_ids("vehicle", k=1) == ["notes/auto.md"]
    assert await page_ids("vehicle", categories=["work"]) == ["work/code.md", "work/tea.md"]
    assert sorted(await page_ids("vehicle", categories=["work", "notes", "none"])) == sorted(await page_ids("vehicle"))
    assert await page_ids("vehicle", categories=[]) == []
    assert ids(await search("sea", layer="message", session_id="default")) == ["1", "2"]
    assert await search("sea", layer="message", session_id="other") == []
    assert await db.memory("bob").hybrid.search("vehicle car tea") == []
    assert await db.memory("bob").hybrid.page_ids("vehicle") == []


async def test_messages_lend_to_their_neighbours(db: Database) -> None:
    talk = db.memory("alice", "long").conversation
    lines = [
        "hello",
        "Do you like the sea?",
        "Oh yes, very much.",
        *["something else entirely"] * 20,
        "Oh yes, very much.",
    ]
    await talk.add_messages({"role": "user", "content": line} for line in lines)
    found = ids(await db.memory("alice", "long").hybrid.search("ocean", layer="message", k=20))
    assert found[0] == "2"
    assert found.index("3") < 4
    assert "24" not in found[: found.index("3")]


async def test_what_was_just_written_is_found_and_older_things_follow(db: Database) -> None:
    memory = db.memory("alice")
    await memory.items.save_many(MemoryItem(id=f"{n}", content=f"note {n}") for n in range(200))
    await memory.hybrid.search("anything", layer="item")
    await memory.items.save(MemoryItem(id="new", content="an automobile"))
    assert ids(await memory.hybrid.search("vehicle", layer="item", k=1)) == ["new"]
    await nothing_waits(db)
    assert await db.embeddings.progress() == (201, 0)
    await memory.items.save(MemoryItem(id="new", content="a beverage"))
    assert ids(await memory.hybrid.search("tea", layer="item", k=1)) == ["new"]
    await memory.items.delete("new")
    assert "new" not in ids(await memory.hybrid.search("tea", layer="item", k=300))


async def test_while_most_still_wait_words_count_more(db: Database) -> None:
    memory = db.memory("alice")
    await memory.items.save(MemoryItem(id="old", content="the car of our neighbour"))
    await memory.items.save_many(MemoryItem(id=f"{n}", content="my automobile") for n in range(640))
    hits = await memory.hybrid.search("car", layer="item", k=3, bm25_weight=0.5)
    assert hits[0].id == "old"  # 64 automobiles are embedded, this one is not


async def test_the_same_question_has_the_same_answer(memory: Memory[Live], monkeypatch: pytest.MonkeyPatch) -> None:
    first = await memory.hybrid.search("red vehicle tea", k=50)
    assert await memory.hybrid.search("red vehicle tea", k=50) == first
    monkeypatch.setattr(type(memory.hybrid._service), "comparer", None)  # without numpy
    assert await memory.hybrid.search("red vehicle tea", k=50) == first


async def test_an_embedder_may_have_a_way_of_its_own_for_queries(path: Path) -> None:
    class Asymmetric(Thesaurus):
        async def embed_query(self, texts: list[str]) -> list[list[float]]:
            return await self.embed(["drink"] * len(texts))

    async with memdb.open(path, embedder=Asymmetric()) as db:
        await fill(db.memory())
        assert await db.memory().hybrid.page_ids("vehicle", k=1) == ["work/tea.md"]


async def test_looking_is_not_recalling(memory: Memory[Live]) -> None:
    await memory.hybrid.search("ocean sea", layer="item")
    stats = await memory.items.recall_stats("i")
    assert stats is None or stats.recall_count == 0


@pytest.mark.parametrize("query", ["", " \n", "\x00", "\ud800", "car " * 50_000, '"', "AND OR NOT (", "👩\u200d👩"])
async def test_any_text_is_a_query(memory: Memory[Live], query: str) -> None:
    assert len(await memory.hybrid.search(query)) <= 10


# -- what is not right -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": 5}, "query must be text, not int"),
        ({"k": -1}, "k must be a whole number from 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"layer": "pages"}, "layer must be one of page, item, .*, .*, skill, or None for all, not 'pages'"),
        ({"layer": 5}, "layer must be one of"),
        ({"bm25_weight": 1.1}, "bm25_weight must be a number from 0 to 1, not 1.1"),
        ({"bm25_weight": math.nan}, "bm25_weight must be a number"),
        ({"bm25_weight": True}, "bm25_weight must be a number"),
        ({"categories": "work"}, "categories must be a list, not str"),
        ({"categories": [""]}, "categories must not be empty"),
        ({"session_id": ""}, "session_id must not be empty"),
    ],
)
async def test_wrong_arguments_are_refused(memory: Memory[Live], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        await memory.hybrid.search(**{"query": "car", **arguments})


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (object(), "an embedder is an object with model, dimensions and async embed"),
        (Thesaurus, "not the class Thesaurus"),
        (type("E", (Thesaurus,), {"model": ""})(), "embedder.model must not be empty"),
        (type("E", (Thesaurus,), {"model": 5})(), "embedder.model must be text"),
        (type("E", (Thesaurus,), {"dimensions": 0})(), "embedder.dimensions must be a whole number from 1 to 65,536"),
        (type("E", (Thesaurus,), {"dimensions": 2.0})(), "embedder.dimensions must be a whole number"),
    ],
)
def test_what_is_no_embedder_is_refused_at_once(embedder: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        memdb.open(":memory:", embedder=embedder)


async def test_a_unit_cannot_search_by_meaning(memory: Memory[Live]) -> None:
    with pytest.raises(InvalidInput, match="asks a model, which a unit must not"):
        await memory.atomic(lambda m: m.hybrid)


async def test_other_dimensions_are_an_error_and_nothing_is_stored(place: Path | str) -> None:
    embedder = Broken(lambda texts: [[1.0, 2.0, 3.0]] * len(texts))
    async with memdb.open(place, embedder=embedder) as db:
        memory = db.memory()
        await fill(memory)
        with pytest.raises(InvalidInput, match="says it has 4 dimensions and returned a vector of 3"):
            await memory.hybrid.search("car")
        embedder.fail = None
        assert (await db.embeddings.progress()).embedded == 0


async def test_a_known_model_with_other_dimensions_is_an_error(path: Path) -> None:
    async with memdb.open(path, embedder=Thesaurus()) as db:
        await fill(db.memory())
        await db.memory().hybrid.search("car")
    other = HashingEmbedder(8)
    other.model = "thesaurus"
    async with memdb.open(path, embedder=other) as db:
        with pytest.raises(InvalidInput, match="vectors of 'thesaurus' with 4 dimensions, the embedder says 8"):
            await db.memory().hybrid.search("car")


# -- words alone -------------------------------------------------------------------------------------------------------

ALONE = "searched by words alone, not by meaning: "


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and "SQLite" not in record.getMessage()
    ]


async def test_without_an_embedder_words_are_searched_and_the_log_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with memdb.open(path) as db:
        memory = db.memory()
        await fill(memory)
        for layer in (None, "page", "message"):
            hits = await memory.hybrid.search("the sea automobile", layer=layer)
            assert ids(hits) == ids(await db.read(find, memory.scope, "the sea automobile", 10, layer))
        assert await memory.hybrid.page_ids("automobile") == ["notes/auto.md"]
        assert warnings(caplog) == [ALONE + "memdb.open() was given no embedder"]
        with pytest.raises(InvalidInput, match="without an embedder"):
            await db.embeddings.start()


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (failing(ModelError("no such model")), "no such model"),
        (failing(RuntimeError("out of memory")), "failed: RuntimeError: out of memory"),
        (failing(KeyError()), "failed: KeyError"),
        (lambda texts: None, "failed"),
        (lambda texts: [], "was given 1 texts and returned 0 vectors"),
        (lambda texts: [[1.0, 0.0, 0.0, 0.0]] * 9, "was given 1 texts and returned 9 vectors"),
        (lambda texts: [[0.0] * 4] * len(texts), "nothing but zeros"),
        (lambda texts: [[math.nan] * 4] * len(texts), "not finite"),
        (lambda texts: [None] * len(texts), "is a list of numbers, not None"),
        (lambda texts: ["abcd"] * len(texts), "has 0 numbers where 4 are expected"),
    ],
)
async def test_a_failing_embedder_leaves_the_words_and_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture, fail: Callable[[list[str]], Any], reason: str
) -> None:
    embedder = Broken(fail)
    embedder.fail = None
    async with memdb.open(path, embedder=embedder) as db:
        memory = db.memory()
        await fill(memory)
        assert await memory.hybrid.page_ids("vehicle", k=1) == ["notes/auto.md"]
        embedder.fail = fail
        for _ in range(3):
            assert await memory.hybrid.page_ids("car") == ["work/code.md"]
        assert len(warnings(caplog)) == 1
        assert warnings(caplog)[0].startswith(ALONE)
        assert reason in warnings(caplog)[0]
        embedder.fail = None
        assert await memory.hybrid.page_ids("vehicle", k=1) == ["notes/auto.md"]
        assert await db.embeddings.progress() == (3, 0)


async def test_what_cannot_be_embedded_is_found_by_its_words(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(texts: list[str]) -> Any:
        return [[0.0] * 4 if "red" in text else [1.0, 0.0, 0.0, 0.0] for text in texts]

    async with memdb.open(path, embedder=Broken(fail)) as db:
        memory = db.memory()
        await fill(memory)
        for _ in range(3):
            assert "notes/auto.md" in await memory.hybrid.page_ids("automobile")
        assert await db.embeddings.progress() == (2, 1)
        assert [line.split(" (record")[0] for line in warnings(caplog)] == [
            "a record is found by its words alone, the embedder 'thesaurus' returned a vector of no use: "
            "a vector holds nothing but zeros, so it is near to nothing"
        ]


async def test_a_cancelled_search_is_cancelled(path: Path) -> None:
    class Slow(Thesaurus):
        async def embed(self, texts: list[str]) -> list[list[float]]:
            await asyncio.sleep(60)
            return []

    async with memdb.open(path, embedder=Slow()) as db:
        await fill(db.memory())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await db.memory().hybrid.search("car")


async def test_a_file_that_is_only_read(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with memdb.open(path) as db:
        await fill(db.memory())
    async with memdb.open(path, read_only=True, embedder=Thesaurus()) as db:
        assert await db.memory().hybrid.page_ids("automobile") == ["notes/auto.md"]
        with pytest.raises(InvalidInput, match="open for reading only"):
            await db.embeddings.start()
    assert warnings(caplog) == [ALONE + "the file holds no vectors of 'thesaurus' and is open for reading only"]
    async with memdb.open(path, embedder=Thesaurus()) as db:
        await db.memory().hybrid.page_ids("car")
    async with memdb.open(path, read_only=True, embedder=Thesaurus()) as db:
        assert await db.memory().hybrid.page_ids("vehicle", k=1) == ["notes/auto.md"]
