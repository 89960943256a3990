"""Patterns in their store: what is stored comes back, uses are counted, what to avoid is told from the rest."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from memdb import Database, InvalidInput, Memory, NotFound
from memdb.layers.experience.parts import Link
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.layer import Inside, Live
from memdb.testing import FrozenClock
from memdb.testing.clock import NOON


@pytest.fixture
def patterns(memory: Memory[Live]) -> SemanticMemory[Live]:
    return SemanticMemory(memory.scope, memory._home)


def pattern(id: str = "p1", text: str = "retry what fails", category: str = "errors", **fields: Any) -> SemanticPattern:
    return SemanticPattern(id=id, pattern=text, category=category, **fields)


WHOLE = pattern(
    id="sem-0123abcd",
    text="Close what you open",
    category="resources",
    conditions=["files", "Sockets über TLS"],
    correct_approach="use a context manager",
    incorrect_approach="rely on the collector",
    confidence=0.65,
    source_episodes=["ep-2", "ep-1", "ep-2"],
    usage_count=3,
    last_used=NOON,
    links=[Link(to_id="sem-9", relation="related_to", strength=0.5), Link(to_id="ep-7", relation="derived_from")],
    importance=0.25,
    access_count=2,
    last_accessed=NOON,
    extra={"namespace": "x", "why": ["because", 1, None]},
)


async def test_all_of_a_pattern_comes_back(patterns: SemanticMemory[Live]) -> None:
    assert await patterns.store(WHOLE) == WHOLE.id
    got = await patterns.get(WHOLE.id)
    assert got == WHOLE
    assert got.to_dict() == WHOLE.to_dict()


async def test_create_and_store(patterns: SemanticMemory[Live]) -> None:
    made = SemanticPattern.create("x", "a new category")  # the original raised a TypeError here
    assert await patterns.get(await patterns.store(made)) == made


@pytest.mark.parametrize(
    "odd",
    [
        {"usage_count": -4, "confidence": -1.5, "importance": 7.0, "access_count": -1},
        {"usage_count": 2**63 - 1, "confidence": 1e300},
        {"pattern": "x" * 10_000 + " behind it", "category": "", "source_episodes": ["", "a", "a"]},
        {"pattern": "", "links": [Link(to_id="", relation="no such", strength=9)]},
    ],
    ids=["negative", "huge", "long", "empty"],
)
async def test_what_validate_finds_is_stored_as_it_is(patterns: SemanticMemory[Live], odd: dict[str, Any]) -> None:
    given = WHOLE.model_copy(update={"access_count": 0, "last_accessed": None} | odd)
    await patterns.store(given)
    assert await patterns.get(WHOLE.id) == given
    await patterns.store_many([given, pattern()])
    assert await patterns.get(WHOLE.id) == given


@pytest.mark.parametrize(
    "form", [WHOLE.to_dict(), SimpleNamespace(to_dict=WHOLE.to_dict), SimpleNamespace(**WHOLE.to_dict())]
)
async def test_any_form_is_taken(patterns: SemanticMemory[Live], form: Any) -> None:
    assert await patterns.store(form) == WHOLE.id
    assert await patterns.get(WHOLE.id) == WHOLE


@pytest.mark.parametrize("given", ["sem-1", None, 5, object(), {"pattern": "a\x00"}, {"source_episodes": 5}])
async def test_what_is_no_pattern_is_refused(patterns: SemanticMemory[Live], given: Any) -> None:
    with pytest.raises(InvalidInput):
        await patterns.store_many([pattern(), given])
    assert await patterns.list() == []


async def test_an_empty_id_gets_a_new_one(patterns: SemanticMemory[Live]) -> None:
    ids = await patterns.store_many([{"pattern": "x"}, {"id": "", "pattern": "y"}])
    assert len({*ids}) == 2
    assert all(id.startswith("sem-") for id in ids)
    assert [one.id for one in await patterns.find()] == ids


async def test_store_again_replaces_and_keeps_what_was_counted(
    patterns: SemanticMemory[Live], db: Database, clock: FrozenClock
) -> None:
    await patterns.store_many([pattern("a"), WHOLE])
    read = await patterns.get(WHOLE.id)
    clock.forward(hours=1)
    assert await patterns.increment_usage(WHOLE.id)
    await patterns.record_recall(WHOLE.id, 0.5)
    await patterns.store(read.model_copy(update={"pattern": "new text", "source_episodes": ["ep-3"], "links": []}))
    got = await patterns.get(WHOLE.id)
    assert (got.pattern, got.source_episodes, got.links) == ("new text", ["ep-3"], [])
    assert (got.usage_count, got.last_used, got.access_count) == (4, clock.now, 3)
    assert [one.id for one in await patterns.find()] == ["a", WHOLE.id]  # still in the order of the first storing
    assert await db.read(lambda tx: tx.execute("SELECT target_layer, target_key FROM record_reference")) == [
        ("episode", "ep-3")
    ]


async def test_uses_are_counted_one_by_one(patterns: SemanticMemory[Live], clock: FrozenClock) -> None:
    await patterns.store(pattern())
    clock.forward(days=1)
    assert await asyncio.gather(*(patterns.increment_usage("p1") for _ in range(25))) == [True] * 25
    got = await patterns.get("p1")
    assert (got.usage_count, got.last_used) == (25, clock.now)
    assert await patterns.increment_usage("nobody") is False
    with pytest.raises(InvalidInput):
        await patterns.increment_usage("")
    await patterns.store(pattern("most", usage_count=2**63 - 1))
    await patterns.increment_usage("most")
    assert (await patterns.get("most")).usage_count == 2**63 - 1


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, "bca"),
        ({"category": "errors"}, "ba"),
        ({"category": "Errors"}, ""),
        ({"category": ""}, ""),
        ({"min_confidence": 0.7}, "ba"),
        ({"min_confidence": 0}, "bcadn"),
        ({"category": "errors", "min_confidence": 0}, "bad"),
        ({"min_confidence": -1, "anti": True}, "xy"),
        ({"anti": None}, "bcxay"),
        ({"category": "anti-pattern"}, "x"),
        ({"category": "errors", "anti": True}, "y"),
    ],
    ids=str,
)
async def test_find_takes_whole_categories_and_enough_confidence(
    patterns: SemanticMemory[Live], clock: FrozenClock, arguments: dict[str, Any], found: str
) -> None:
    for id, category, confidence in (
        ("b", "errors", 0.9), ("c", "tests", 0.5), ("x", "anti-pattern", 0.6), ("a", "errors", 0.7),
        ("d", "errors", 0.49999), ("n", "none", None),
    ):  # fmt: skip
        clock.forward(seconds=1)
        await patterns.store({"id": id, "pattern": "x", "category": category, "confidence": confidence})
    await patterns.store(pattern("y", confidence=0.8), kind="anti_pattern")
    assert "".join(one.id for one in await patterns.find(**arguments)) == found


@pytest.mark.parametrize("wrong", [{"min_confidence": "x"}, {"min_confidence": float("nan")}, {"category": 5}])
async def test_find_checks_its_arguments(patterns: SemanticMemory[Live], wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await patterns.find(**wrong)


async def test_a_kind_that_was_given_stays(patterns: SemanticMemory[Live]) -> None:
    async def anti() -> list[str]:
        return [one.id for one in await patterns.anti_patterns()]

    await patterns.store(pattern(), kind="anti_pattern")
    await patterns.store(await patterns.get("p1"))
    assert await anti() == ["p1"]
    await patterns.store_many([pattern()], kind="pattern")
    assert await anti() == []
    await patterns.store(pattern(category="anti-pattern"))
    assert await anti() == ["p1"]
    await patterns.store({"id": "w", "what_fails": "a", "why": "b", "prevention": "c", "source": ["ep-1"]})
    assert await anti() == ["p1", "w"]
    assert [one.id for one in await patterns.anti_patterns(1)] == ["p1"]
    with pytest.raises(InvalidInput, match="kind must be one of"):
        await patterns.store(pattern(), kind="other")


@pytest.mark.parametrize("query", ["open", "resources", "sockets", "uber", "manager", "collector", '"close what you"'])
async def test_it_is_found_by_all_that_it_says(patterns: SemanticMemory[Live], query: str) -> None:
    await patterns.store_many([WHOLE, pattern("other", "cook rice", "kitchen")])
    [hit] = await patterns.search(query)
    assert hit.pattern == WHOLE
    assert hit.score > 0


async def test_search_finds_the_best_of_a_kind_behind_others(patterns: SemanticMemory[Live]) -> None:
    await patterns.store_many(pattern(f"{n:03}", "tea") for n in range(300))
    await patterns.store(pattern("late", "tea and much more of anything else"), kind="anti_pattern")
    assert [hit.pattern.id for hit in await patterns.search("tea", 3, anti=True)] == ["late"]
    assert [hit.pattern.id for hit in await patterns.search("tea", 2, anti=False)] == ["000", "001"]
    assert len(await patterns.search("tea", 1000)) == 301
    assert await patterns.search("tea", 0, anti=True) == []


async def test_list_pages_from_the_last(patterns: SemanticMemory[Live], clock: FrozenClock) -> None:
    for n in range(5):
        await patterns.store(pattern(f"{n}"))
        clock.forward(seconds=n % 2)
    assert [one.id for one in await patterns.list()] == list("43210")
    assert [one.id for one in await patterns.list(2, before="3")] == list("21")
    assert await patterns.list(before="0") == []
    with pytest.raises(NotFound, match="nobody"):
        await patterns.list(before="nobody")


async def test_delete_takes_all_that_belongs_to_it(patterns: SemanticMemory[Live], db: Database) -> None:
    await patterns.store(WHOLE)
    assert await patterns.delete(WHOLE.id)
    assert not await patterns.delete(WHOLE.id)
    for table in ("record", "pattern", "recall", "record_reference"):
        assert await db.read(lambda tx, table=table: tx.execute(f"SELECT * FROM {table}")) == []


async def test_nobody_sees_the_patterns_of_others(db: Database, patterns: SemanticMemory[Live]) -> None:
    bob = SemanticMemory(db.memory("bob").scope, db.engine)
    await patterns.store(WHOLE)
    assert await bob.get(WHOLE.id) is None
    assert await bob.find() == await bob.list() == await bob.search("open") == []
    assert not await bob.increment_usage(WHOLE.id)
    assert not await bob.delete(WHOLE.id)
    with pytest.raises(NotFound):
        await bob.list(before=WHOLE.id)
    await bob.store(pattern(WHOLE.id), kind="anti_pattern")
    assert await patterns.get(WHOLE.id) == WHOLE
    assert await patterns.anti_patterns() == []


async def test_in_a_unit(memory: Memory[Live]) -> None:
    def unit(m: Memory[Inside]) -> list[Any]:
        inside = SemanticMemory(m.scope, m._home)
        inside.store_many([pattern(f"{n}", usage_count=n) for n in range(3)])
        inside.increment_usage("1")
        return [(one.id, one.usage_count) for one in inside.find()]

    assert await memory.atomic(unit) == [("0", 0), ("1", 2), ("2", 2)]
