"""The pruned top k is the top k: the same scores, and the same records wherever scores tell them apart."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import memdb
from memdb import KnowledgePage, MemoryItem
from memdb.storage import fulltext
from memdb.storage.fulltext import search
from memdb.storage.plan import make_plan
from memdb.storage.within import Within, scope_of
from memdb.text.query import parse
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME

# A word in over half the rows adds at most 2.2e-6 to a score each time it is asked, and pruning leaves it out.
NEAR = 2.2e-6 * 20
# By rank: a word's chance falls as 1/rank, so the first are common and the last are rare. Digits are scope tokens too.
VOCABULARY = ("memory", "agent", "1", "state", "2", "部署", "graph", "runs", "running", "3", "4", "方案", "naïve", "5",
              "v1.2.3", "StateGraph", "6", "7", "zebra", "okapi", "8", "walrus")  # fmt: skip
WEIGHTS = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]


def text(chance: random.Random, longest: int) -> str:
    return " ".join(chance.choices(VOCABULARY, WEIGHTS, k=chance.randrange(longest + 1)))


def queries(chance: random.Random) -> Iterator[str]:
    """Yield questions of every form: common and rare words, phrases, prefixes, repetitions, numbers, unknown words."""
    words = list(VOCABULARY)
    for _ in range(6):
        asked = chance.choices(words, WEIGHTS if chance.random() < 0.5 else None, k=chance.randrange(1, 9))
        if chance.random() < 0.3:
            asked.append(f'"{" ".join(chance.choices(words, WEIGHTS, k=2))}"')
        if chance.random() < 0.2:
            asked.append(chance.choice(["部", "案", '"署"']))
        if chance.random() < 0.3:
            asked += [asked[0]] * chance.randrange(1, 4)
        if chance.random() < 0.1:
            asked.append("unknown")
        yield " ".join(asked)


async def history(db: memdb.Database, chance: random.Random, pages: int) -> None:
    """Write pages of several users, some replaced and deleted again, among items that are no pages."""
    users = ["alice", "alice", "alice", "bob", "carol"]

    def page(n: int) -> KnowledgePage:
        return KnowledgePage(
            id=str(n), title=text(chance, 4), summary=text(chance, 6), content=text(chance, 25),
            tags=text(chance, 2).split(), category=chance.choice(["x", "y"]), keywords=["k"],
        )  # fmt: skip

    for user in dict.fromkeys(users):
        share = [page(n) for n in range(pages) if chance.choice(users) == user]
        await db.memory(user).pages.add_pages(share)
        for old in share:
            if chance.random() < 0.1:
                await db.memory(user).pages.delete_page(old.id)
            elif chance.random() < 0.1:
                await db.memory(user).pages.update_page(page(int(old.id)))
        await db.memory(user).items.save_many(
            [MemoryItem(id=str(n), content=text(chance, 9)) for n in range(pages // 4)]
        )


def both(tx: Any, query: str, within: Within, k: int) -> tuple[list[Any], list[Any], list[Any]]:
    terms = parse(query)
    return tuple(search(tx, terms, within, k, prune=prune, own=False) for prune in (True, False, None))  # type: ignore[return-value]


def agree(found: list[tuple[int, float]], full: list[tuple[int, float]], beyond: list[tuple[int, float]]) -> None:
    """Compare two answers; `beyond` is the full answer with one more, to know whether the last place is a tie."""
    assert len(found) == len(full)
    scores = [score for _, score in beyond]
    for at, ((id, score), (true_id, true_score)) in enumerate(zip(found, full, strict=True)):
        assert score == pytest.approx(true_score, abs=NEAR)
        apart = [abs(scores[at] - scores[next]) > NEAR for next in (at - 1, at + 1) if 0 <= next < len(scores)]
        if all(apart):
            assert id == true_id
    assert len({id for id, _ in found}) == len(found)


@settings(SAME_EVERY_TIME, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([5, 30, 120, 250]), st.sampled_from([1, 3, 10, 1000]))
@example(1, 400, 10)
def test_the_pruned_top_k_is_the_top_k(seed: int, pages: int, k: int) -> None:
    chance = random.Random(seed)

    async def go(db: memdb.Database) -> None:
        await history(db, chance, pages)
        for query in queries(chance):
            for within in (
                Within("alice", "page"), Within("carol", "page"), Within("alice"), Within("bob", "page", category="x"),
                Within("nobody", "page"),
            ):  # fmt: skip
                pruned, full, chosen = await db.read(both, query, within, k)
                _, beyond, _ = await db.read(both, query, within, k + 1)
                agree(pruned, full, beyond)
                agree(chosen, full, beyond)
                assert full == beyond[:k]

    run(go)


@settings(SAME_EVERY_TIME, max_examples=12)
@given(st.integers(0, 2**32))
def test_the_answer_is_the_same_inside_a_unit_and_outside_while_others_write(seed: int) -> None:
    chance = random.Random(seed)

    async def go(db: memdb.Database) -> None:
        await history(db, chance, 100)
        memory = db.memory("alice")
        for query in queries(chance):
            many = [KnowledgePage(id=str(n), title="", content=query) for n in range(chance.choice([0, 1, 40]))]
            await db.memory(chance.choice(["alice", "bob"])).pages.add_pages(many, replace=True)
            live = await memory.pages.search_scored(query)
            inside = await memory.atomic(lambda m: m.pages.search_scored(query))  # noqa: B023 - awaited at once
            assert [hit.score for hit in inside] == pytest.approx([hit.score for hit in live], abs=NEAR)

    run(go, on_file=True)


async def test_common_words_are_pruned_at_all(db: memdb.Database) -> None:
    """Else the two answers above would be one and the same."""
    pages = [KnowledgePage(id=str(n), title="", content=f"memory agent{n % 4} rare{n}") for n in range(400)]
    await db.memory("alice").pages.add_pages(pages)
    query = parse("memory agent1 agent2 rare7")

    def plan(tx: Any) -> Any:
        scope = scope_of(tx, Within("alice", "page"))
        assert scope is not None
        understood = fulltext._understand(tx, query, scope)
        assert understood is not None
        return make_plan(understood, prune=True)

    assert (await db.read(plan)).pruned


async def test_a_search_ends_although_most_of_what_matches_lies_elsewhere(db: memdb.Database) -> None:
    pages = db.memory("alice").pages
    await pages.add_pages([KnowledgePage(id=str(n), title="common", category="crowded") for n in range(200)])
    await pages.add_page(KnowledgePage(id="a", title="a common word in a longer title", category="quiet"))
    found = await asyncio.wait_for(pages.search("common", 5, category="quiet"), 20)
    assert [page.id for page in found] == ["a"]
