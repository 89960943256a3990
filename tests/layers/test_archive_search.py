"""Searching the archive: which passages, with what scores, and what a threshold keeps; by words and by meaning."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, InvalidInput, Memory
from memdb.layers.archive import ScoredPassage
from memdb.layers.layer import Live
from memdb.layers.passage_search import MEANING_THRESHOLD, WORDS_THRESHOLD
from memdb.testing import HashingEmbedder

PYTHON = "User prefers Python for data analysis"
DATABASE = "Project X uses PostgreSQL database with 10M records"
OTHERS = [f"The {name} stands in row {n}." for n, name in enumerate(["oak", "elm", "fir", "ash", "yew", "box"] * 4)]


def contents(hits: list[ScoredPassage]) -> list[str]:
    return [hit.passage.content for hit in hits]


async def nothing_waits(db: Database) -> None:
    async with asyncio.timeout(20):
        while (await db.embeddings.progress()).waiting:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


# -- by words ----------------------------------------------------------------------------------------------------------


async def test_the_document_s_question_finds_its_passage(memory: Memory[Live]) -> None:
    await memory.archive.insert_many([DATABASE, PYTHON, *OTHERS])
    assert contents(await memory.archive.search("database details", k=5)) == [DATABASE]
    assert await memory.archive.search("favorite food") == []


async def test_an_archive_of_one_passage_is_searched_like_any_other(memory: Memory[Live]) -> None:
    await memory.archive.insert(PYTHON)
    [hit] = await memory.archive.search("Python analysis")
    assert 0.5 < hit.score <= 1
    assert contents(await memory.archive.search("which Python do they like")) == [PYTHON]
    assert await memory.archive.search("favorite food") == []


async def test_scores_tell_how_much_of_the_query_is_there(memory: Memory[Live]) -> None:
    await memory.archive.insert_many([*OTHERS, "green tea", "green grass of summer", "tea"])
    found = {hit.passage.content: hit.score for hit in await memory.archive.search("green tea", threshold=0)}
    assert found["green tea"] > found["tea"] > found["green grass of summer"] > 0
    assert found["green tea"] > 2 * found["green grass of summer"]
    [alone] = await memory.archive.search("green tea of Xanadu and Ruritania", k=1)
    assert alone.score < found["green tea"]  # words that nobody knows count, too


@pytest.mark.parametrize("query", ["the of a", "The OF a", "an", "is that it"])
async def test_stop_words_alone_say_nothing(memory: Memory[Live], query: str) -> None:
    await memory.archive.insert_many(["the of a is that it an", *OTHERS])
    assert await memory.archive.search(query) == []
    assert await memory.archive.recall(query) == []
    assert await memory.archive.hybrid_search(query) == []
    assert {hit.score for hit in await memory.archive.search(query, threshold=0)} == {0}
    assert len(await memory.archive.search('"of a"')) == 1, "a phrase is meant as it stands"


async def test_scores_are_in_bounds_and_best_first(memory: Memory[Live]) -> None:
    await memory.archive.insert_many([f"{'tea ' * n}at {n}" for n in range(1, 40)] + OTHERS)
    for query in ("tea", "tea tea tea tea tea tea tea tea tea", "tea at row 3", "the tea stands " * 9, '"tea tea"'):
        hits = await memory.archive.search(query, k=1000, threshold=0)
        assert len(hits) >= 38
        assert all(0 < hit.score <= 1 for hit in hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        best = await memory.archive.search(query, k=3, threshold=0)
        assert len(best) == 3
        assert best[0].score == pytest.approx(hits[0].score, abs=0.1)


async def test_ties_stand_in_the_order_of_insertion(memory: Memory[Live]) -> None:
    await memory.archive.insert_many(["tea one", "tea two", "tea six"])
    assert contents(await memory.archive.search("tea")) == ["tea one", "tea two", "tea six"]


async def test_a_threshold_is_the_least_score(memory: Memory[Live]) -> None:
    await memory.archive.insert_many([DATABASE, PYTHON, *OTHERS])
    query = "what stands in the third row of this database"
    every = await memory.archive.search(query, k=100, threshold=0)
    usual = await memory.archive.search(query, k=100)
    assert usual == [hit for hit in every if hit.score >= WORDS_THRESHOLD]
    middle = every[0].score
    assert all(hit.score >= middle for hit in await memory.archive.search(query, threshold=middle))
    assert await memory.archive.search(query, threshold=1) == []


async def test_only_some_passages_are_wanted(memory: Memory[Live]) -> None:
    await memory.archive.insert_many({"content": f"tea {n}", "tags": ["hot"], "source": "tool"} for n in range(300))
    await memory.archive.insert_many(
        [
            {"content": "a rare tea among so many others of them all", "tags": ["hot", "Rare One"], "source": "tool"},
            {"content": "another rare tea, with words and words about it", "tags": ["rare-one"]},
        ]
    )
    rare = await memory.archive.search("tea", tags=["hot", "rare one"])
    assert contents(rare) == ["a rare tea among so many others of them all"]
    assert len(await memory.archive.search("tea", tags="rare one")) == 2
    assert contents(await memory.archive.search("tea", source="agent")) == [
        "another rare tea, with words and words about it"
    ]
    assert len(await memory.archive.search("tea", tags=["hot"], source="tool")) == 5
    assert await memory.archive.search("tea", tags=["cold"]) == await memory.archive.search("tea", source="block") == []


@pytest.mark.parametrize(
    ("query", "found"), [("猫", 1), ("海辺の町", 1), ("StateGraph", 1), ("keeps state", 1), ("", 0)]
)
async def test_any_language_and_any_name(memory: Memory[Live], query: str, found: int) -> None:
    await memory.archive.insert_many(
        ["海辺の町で猫を飼っている。", "The StateGraph keeps its state in channels", *OTHERS]
    )
    assert len(await memory.archive.search(query)) == found


@pytest.mark.parametrize("query", ["a OR", "NEAR(", '"', "*", "\x00", "\ud800", "🔥", "foo:bar", "1", "x " * 50_000])
async def test_any_text_is_a_query(memory: Memory[Live], query: str) -> None:
    await memory.archive.insert_many(["foo bar 1", "x", *OTHERS])
    assert all(0 < hit.score <= 1 for hit in await memory.archive.search(query, threshold=0))


async def test_a_number_is_not_the_number_of_a_scope(memory: Memory[Live]) -> None:
    ids = [await memory.archive.insert(f"passage {word}") for word in ("one", "two", "three")]
    assert len(ids) == 3
    for number in range(1, 9):
        assert await memory.archive.search(str(number), threshold=0) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": 5}, "query must be text"),
        ({"k": -1}, "k must be a whole number from 0"),
        ({"k": True}, "k must be a whole number"),
        ({"threshold": 1.01}, "threshold must be a number from 0 to 1, or None"),
        ({"threshold": math.nan}, "threshold"),
        ({"threshold": "0.5"}, "threshold"),
        ({"tags": 5}, "tags must be a list"),
        ({"tags": [5]}, "tags must be text"),
        ({"source": ""}, "the source is blank"),
    ],
)
@pytest.mark.parametrize("search", ["search", "hybrid_search", "recall"])
async def test_wrong_arguments_are_refused(
    memory: Memory[Live], search: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        await getattr(memory.archive, search)(**{"query": "tea", **arguments})


# -- by meaning --------------------------------------------------------------------------------------------------------


class Thesaurus:
    """An embedder that knows two things, and that all else is neither."""

    model, dimensions = "thesaurus", 3

    def __init__(self) -> None:
        self.fails = False

    async def embed(self, texts: list[str]) -> list[list[float]]:
        if self.fails:
            raise RuntimeError("no answer")
        known = {"Python": 0, "programming": 0, "food": 1, "sushi": 1}
        return [[float(known.get(word, 2) == n) for n in range(3)] for word in map(self._word, texts)]

    def _word(self, text: str) -> str:
        return next((word for word in ("Python", "programming", "food", "sushi") if word in text), "")


@pytest.fixture
async def meant(place: Path | str) -> AsyncIterator[Database]:
    async with memdb.open(place, embedder=Thesaurus()) as db:
        yield db
        report = await db.check()
        assert report.ok, report.problems


@pytest.mark.parametrize("embedder", [Thesaurus, HashingEmbedder])
async def test_the_document_s_example(place: Path | str, embedder: Any) -> None:
    async with memdb.open(place, embedder=embedder()) as db:
        archive = db.memory("alice").archive
        await archive.insert_many([PYTHON, *OTHERS])
        await archive.hybrid_search("x")
        await nothing_waits(db)
        [hit] = await archive.hybrid_search("programming language preference")
        assert hit.passage.content == PYTHON
        assert MEANING_THRESHOLD <= hit.score <= 1
        assert await archive.hybrid_search("favorite food") == []
        assert contents(await archive.recall("programming language preference")) == [PYTHON]
        stats = await archive.recall_stats(hit.passage.id or "")
        assert stats is not None
        assert (stats.recall_count, stats.total_score) == (1, hit.score)


async def test_meaning_and_words_together_score_more_than_either(meant: Database) -> None:
    archive = meant.memory("alice").archive
    await archive.insert_many(["I like sushi", "the food of kings", "a food of kings, and kings again", *OTHERS])
    await archive.hybrid_search("x")
    await nothing_waits(meant)
    hits = await archive.hybrid_search("food of the kings", threshold=0)
    assert {*contents(hits)[:3]} == {"I like sushi", "the food of kings", "a food of kings, and kings again"}
    assert hits[0].score == 1.0
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_only_some_passages_are_wanted_by_meaning(meant: Database) -> None:
    archive = meant.memory("alice").archive
    await archive.insert_many({"content": f"sushi {n}", "source": "tool"} for n in range(300))
    await archive.insert_many([{"content": "old sushi", "tags": ["t"]}])
    await archive.hybrid_search("x")
    await nothing_waits(meant)
    assert contents(await archive.hybrid_search("food", tags=["t"])) == ["old sushi"]
    assert contents(await archive.hybrid_search("food", source="agent")) == ["old sushi"]
    assert len(await archive.hybrid_search("food", source="tool")) == 5


async def test_while_the_embedder_fails_words_alone_are_searched(meant: Database) -> None:
    archive = meant.memory("alice").archive
    await archive.insert_many([PYTHON, "I like sushi", *(f"Python {'or snakes ' * n}{n}" for n in range(40))])
    meant.embedder.fails = True  # type: ignore[union-attr]
    assert await archive.hybrid_search("Python") == await archive.search("Python") != []
    assert await archive.hybrid_search("programming") == []
    meant.embedder.fails = False  # type: ignore[union-attr]


async def test_another_users_passages_are_not_meant(meant: Database) -> None:
    await meant.memory("alice").archive.insert("sushi")
    await meant.memory("bob").archive.insert("Python")
    for user in ("alice", "bob"):
        await meant.memory(user).archive.hybrid_search("x")
    await nothing_waits(meant)
    assert contents(await meant.memory("alice").archive.hybrid_search("programming", threshold=0)) == ["sushi"]
