"""Vectors of records: which wait, what is stored, and the nearest, with numpy and without it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from memdb import Database, InvalidInput, KnowledgePage, Memory, MemoryItem
from memdb.errors import ModelError
from memdb.layers import embeddings, waiting
from memdb.layers.embeddings import Kept, Progress
from memdb.layers.layer import Live
from memdb.layers.waiting import Waiting
from memdb.storage import matrix
from memdb.storage.matrix import MatrixComparer
from memdb.storage.nearest import nearest
from memdb.storage.vectors import Comparer, Space, packed, unpacked
from memdb.testing import FrozenClock
from memdb.text.passages import MAX_PARTS

MODEL, DIMENSIONS = "toy", 8
Vector = Sequence[float]


async def keep(db: Database, layer: str = "item", user: str = "alice", model: str = MODEL) -> Kept:
    await db.write(embeddings.keep, user, [layer], model, DIMENSIONS)
    return (await db.read(embeddings.kept, user, model, DIMENSIONS))[layer]


async def all_waiting(db: Database, one: Kept) -> list[Waiting]:
    return await db.read(waiting.newest_waiting, one, 10_000)


async def embed(db: Database, one: Kept, *, chance: random.Random) -> dict[int, list[Vector]]:
    """Give every record that waits a vector a passage; return them by record id."""
    given = {each.record_id: [direction(chance) for _ in each.passages] for each in await all_waiting(db, one)}
    made = [(each, [packed(v, DIMENSIONS) for v in given[each.record_id]]) for each in await all_waiting(db, one)]
    assert await db.write(waiting.store, made) == len(made)
    return given


def direction(chance: random.Random) -> Vector:
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


def cosine(one: Vector, other: Vector) -> float:
    a, b = unpacked(packed(one, len(one))), unpacked(packed(other, len(other)))
    return sum(x * y for x, y in zip(a, b, strict=True))


COMPARERS = {
    "python": lambda: None,
    "numpy": MatrixComparer,
    "numpy, nothing kept": lambda: MatrixComparer(0),
}


@pytest.fixture(name="comparer", params=COMPARERS)
def a_comparer(request: pytest.FixtureRequest) -> Comparer | None:
    return COMPARERS[request.param]()  # type: ignore[no-any-return]


# -- what is stored ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", [[3.0, 4.0], (3, 4), [3e200, 4e200], [3e-200, 4e-200]])
def test_a_vector_is_stored_with_length_1(vector: Any) -> None:
    assert unpacked(packed(vector, 2)).tolist() == pytest.approx([0.6, 0.8])
    assert packed(vector, 2) == b"\x9a\x99\x19?\xcd\xccL?"  # float32, little-endian, on every machine


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([], "has 0 numbers where 2 are expected"),
        ([1.0], "has 1 numbers where 2 are expected"),
        ([1.0, 2.0, 3.0], "has 3 numbers where 2 are expected"),
        ([0.0, -0.0], "nothing but zeros"),
        ([math.nan, 1.0], "not finite"),
        ([math.inf, 1.0], "not finite"),
        ([1.0, None], "is a list of numbers"),
        (["1", "2"], "is a list of numbers"),
        (None, "is a list of numbers"),
        (5, "is a list of numbers"),
        ("ab", "has 0 numbers"),
        ([[1.0, 2.0], [3.0, 4.0]], "is a list of numbers"),
    ],
)
def test_what_is_no_vector_is_refused(vector: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        packed(vector, 2)


# -- which records wait ------------------------------------------------------------------------------------------------


async def test_what_a_layer_holds_waits_once_it_is_kept_and_what_comes_later_too(
    db: Database, memory: Memory[Live]
) -> None:
    await memory.items.save(MemoryItem(id="old", content="green tea"))
    await memory.pages.add_page(KnowledgePage(id="p", title="not kept", content="x"))
    await db.memory("bob").items.save(MemoryItem(id="b", content="bob's"))
    one = await keep(db)
    assert await keep(db) == one  # a second time changes nothing
    await memory.items.save_many([MemoryItem(id="new", content="coffee"), MemoryItem(id="newer", content="water")])
    assert [each.passages for each in await all_waiting(db, one)] == [["water"], ["coffee"], ["green tea"]]
    assert await db.read(embeddings.progress, MODEL) == Progress(0, 3)


async def test_a_stored_vector_is_replaced_when_its_text_changes_and_only_then(
    db: Database, memory: Memory[Live]
) -> None:
    one, chance = await keep(db), random.Random(1)
    await memory.items.save(MemoryItem(id="a", content="tea"))
    await embed(db, one, chance=chance)
    await memory.items.save(MemoryItem(id="a", content="tea", metadata={"other": 1}))
    assert await all_waiting(db, one) == []
    await memory.items.save(MemoryItem(id="a", content="coffee"))
    assert [each.passages for each in await all_waiting(db, one)] == [["coffee"]]
    assert await db.read(embeddings.progress, MODEL) == Progress(0, 1)


@pytest.mark.parametrize("change", ["edited", "edited back", "deleted", "deleted and saved"])
async def test_a_vector_of_a_text_that_changed_meanwhile_is_not_stored(
    db: Database, memory: Memory[Live], change: str
) -> None:
    one = await keep(db)
    await memory.items.save_many([MemoryItem(id="a", content="tea"), MemoryItem(id="b", content="water")])
    read = await all_waiting(db, one)
    if change.startswith("deleted"):
        await memory.items.delete("a")
    if change != "deleted":
        await memory.items.save(MemoryItem(id="a", content="coffee"))
    if change == "edited back":
        await memory.items.save(MemoryItem(id="a", content="tea"))
    made = [(each, [packed(direction(random.Random(1)), DIMENSIONS)]) for each in read]
    assert await db.write(waiting.store, made) == 1
    assert await db.write(waiting.store, made) == 0  # nor twice
    assert await db.read(embeddings.progress, MODEL) == Progress(1, change != "deleted")


async def test_a_record_without_text_is_embedded_and_never_found(db: Database, memory: Memory[Live]) -> None:
    one = await keep(db)
    await memory.items.save(MemoryItem(id="a", content=" \n"))
    await embed(db, one, chance=random.Random(1))
    assert await db.read(embeddings.progress, MODEL) == Progress(1, 0)
    for comparer in (None, MatrixComparer()):
        found = await db.read(nearest, space(one), packed([1.0] * DIMENSIONS, DIMENSIONS), 5, comparer)
        assert (found.hits, found.broken, found.size) == ([], set(), 0)


async def test_a_long_text_has_a_vector_a_passage(db: Database, memory: Memory[Live]) -> None:
    one = await keep(db, "page")
    await memory.pages.add_page(KnowledgePage(id="p", title="Long", content="A sentence. " * 100_000))
    ((parts,),) = ((await embed(db, one, chance=random.Random(1))).values(),)
    assert len(parts) == MAX_PARTS
    assert await db.read(embeddings.progress, MODEL) == Progress(1, 0)


async def test_a_model_of_other_dimensions_is_refused_naming_both(db: Database) -> None:
    await keep(db)
    message = r"keeps vectors of 'toy' with 8 dimensions, the embedder says 9"
    with pytest.raises(InvalidInput, match=message):
        await db.write(embeddings.keep, "alice", ["page"], MODEL, 9)
    with pytest.raises(InvalidInput, match=message):
        await db.read(embeddings.kept, "alice", MODEL, 9)
    assert await db.read(embeddings.kept, "bob", MODEL, 9) == {}


async def test_a_batch_begins_anywhere_and_gives_each_record_once(db: Database, memory: Memory[Live]) -> None:
    one = await keep(db)
    assert await db.read(waiting.ends, one) == (0, 0)
    await memory.items.save_many(MemoryItem(id=f"{n}", content=f"text {n}") for n in range(20))
    first, last = await db.read(waiting.ends, one)
    assert last - first == 19
    for start in (0, first, first + 7, last, last + 1, 10**9):
        found = await db.read(waiting.waiting_from, one, 20, start)
        assert len({each.record_id for each in found}) == 20
        assert await db.read(waiting.waiting_from, one, 7, start) == found[:7]
    found = await db.read(waiting.waiting_from, one, 3, first + 18)
    assert [each.passages for each in found] == [["text 18"], ["text 19"], ["text 0"]]
    assert found[0] not in await db.read(waiting.waiting_from, one, 20, 0, [found[0].part])
    assert found[0] not in await db.read(waiting.newest_waiting, one, 20, [found[0].part])


async def test_another_model_has_vectors_of_its_own_until_it_is_dropped(db: Database, memory: Memory[Live]) -> None:
    await memory.items.save(MemoryItem(id="a", content="tea"))
    old = await keep(db)
    await embed(db, old, chance=random.Random(1))
    assert await db.read(embeddings.not_kept_yet, "new") == [("alice", "item")]
    new = await keep(db, model="new")
    assert await db.read(embeddings.not_kept_yet, "new") == []
    assert await db.read(embeddings.progress, MODEL) == Progress(1, 0)
    assert await db.read(embeddings.progress, "new") == Progress(0, 1)
    assert await db.read(embeddings.some_wait, "new", DIMENSIONS) == [new]
    assert await db.read(embeddings.others, "new") == [old]
    await db.write(embeddings.drop, old)
    assert await db.read(embeddings.others, "new") == []
    rows = await db.read(lambda tx: tx.execute("SELECT model_id FROM embedding"))
    assert rows == [(new.id,)]


# -- the nearest -------------------------------------------------------------------------------------------------------


def space(one: Kept, **more: Any) -> Space:
    return Space(one.user_id, one.layer, one.id, DIMENSIONS, **more)


async def test_the_nearest_are_those_that_a_plain_comparison_finds(
    db: Database, memory: Memory[Live], comparer: Comparer | None
) -> None:
    one, chance = await keep(db, "page"), random.Random(7)
    await memory.pages.add_pages(
        KnowledgePage(id=f"{n}", title=f"{n}", content="A sentence. " * (1 + n % 300), category=f"c{n % 40}")
        for n in range(400)
    )
    vectors = await embed(db, one, chance=chance)
    assert {len(parts) for parts in vectors.values()} == {1, 2, 3, 4}
    numbers = dict(await db.read(lambda tx: tx.execute("SELECT id, key FROM record")))
    for k, categories in ((1, None), (10, None), (1_000, None), (3, ["c7"]), (30, ["c7", "c8", "none"]), (5, [])):
        query = direction(chance)
        expected = sorted(
            (-round(max(cosine(query, part) for part in parts), 9), number)
            for number, parts in vectors.items()
            if categories is None or f"c{int(numbers[number]) % 40}" in categories
        )[:k]
        found = await db.read(nearest, space(one, categories=categories), packed(query, DIMENSIONS), k, comparer)
        assert [(-score, number) for number, score in found.hits] == expected
        every = [cosine(query, part) for parts in vectors.values() for part in parts]
        mean = sum(every) / len(every)
        deviation = math.sqrt(sum((one - mean) ** 2 for one in every) / len(every))
        assert (found.size, found.mean, found.deviation) == (
            len(every),
            pytest.approx(mean, abs=2e-6),
            pytest.approx(deviation, abs=2e-6),
        )


async def test_ties_are_in_the_order_of_saving(db: Database, memory: Memory[Live], comparer: Comparer | None) -> None:
    one, chance = await keep(db), random.Random(3)
    await memory.items.save_many(MemoryItem(id=f"{n:03}", content=f"text {n}") for n in range(300))
    vectors = [direction(chance) for _ in range(2)]
    made = [(each, [packed(vectors[each.record_id % 2], DIMENSIONS)]) for each in await all_waiting(db, one)]
    await db.write(waiting.store, made)
    found = await db.read(nearest, space(one), packed(vectors[0], DIMENSIONS), 7, comparer)
    assert [number for number, _ in found.hits] == sorted(n for n in range(1, 301) if n % 2 == 0)[:7]


async def test_others_and_what_is_gone_are_not_found(
    db: Database, memory: Memory[Live], clock: FrozenClock, comparer: Comparer | None
) -> None:
    one, other = await keep(db), await keep(db, user="bob")
    chance = random.Random(4)
    soon = clock().replace(year=clock().year + 1)
    await memory.items.save_many(
        [
            MemoryItem(id="stays", content="x"),
            MemoryItem(id="goes", content="y"),
            MemoryItem(id="ends", content="z", expires_at=soon),
        ]
    )
    await db.memory("bob").items.save(MemoryItem(id="bobs", content="x"))
    for each in (one, other):
        await embed(db, each, chance=chance)
    query = packed(direction(chance), DIMENSIONS)

    async def found(each: Kept) -> list[str]:
        numbers = dict(await db.read(lambda tx: tx.execute("SELECT id, key FROM record")))
        return sorted(numbers[number] for number, _ in (await db.read(nearest, space(each), query, 9, comparer)).hits)

    assert (await found(one), await found(other)) == (["ends", "goes", "stays"], ["bobs"])
    foreign = Space("bob", "item", one.id, DIMENSIONS)  # another's number gives nothing away
    assert (await db.read(nearest, foreign, query, 9, comparer)).hits == []
    await memory.items.delete("goes")
    clock.forward(days=800)
    assert (await found(one), await found(other)) == (["stays"], ["bobs"])
    await db.forget("alice")
    assert (await found(one), await found(other)) == ([], ["bobs"])


async def test_messages_of_one_session(db: Database, comparer: Comparer | None) -> None:
    for session in ("one", "two"):
        talk = db.memory("alice", session).conversation
        await talk.add_messages({"role": "user", "content": f"{session} {n}"} for n in range(30))
    one = await keep(db, "message")
    await embed(db, one, chance=random.Random(2))
    query = packed([1.0] * DIMENSIONS, DIMENSIONS)
    hits = (await db.read(nearest, space(one, session_id="two"), query, 40, comparer)).hits
    assert sorted(number for number, _ in hits) == list(range(31, 61))


async def test_what_is_kept_in_memory_follows_the_file(db: Database, memory: Memory[Live]) -> None:
    one, chance, kept = await keep(db), random.Random(5), MatrixComparer()
    vectors: dict[int, list[Vector]] = {}

    async def both() -> None:
        query = packed(direction(chance), DIMENSIONS)
        plain = await db.read(nearest, space(one), query, 5)
        assert await db.read(nearest, space(one), query, 5, kept) == plain
        assert len(plain.hits) == min(5, len(await memory.items.list()))

    for step in range(40):
        act, id = chance.randrange(4), f"{chance.randrange(12)}"
        if act == 0:
            await memory.items.delete(id)
        elif act == 1:
            await memory.items.save_many(MemoryItem(id=f"{n}", content=f"{step} {n}") for n in range(12))
        else:
            await memory.items.save(MemoryItem(id=id, content=f"{step}"))
        vectors |= await embed(db, one, chance=chance)
        await both()
    assert 0 < kept.kept_bytes < 12 * (DIMENSIONS * 4 + 16) + 1


async def test_memory_is_bounded_and_the_oldest_goes_first(db: Database) -> None:
    size = 10 * (DIMENSIONS * 4 + 16)
    kept, chance = MatrixComparer(2 * size), random.Random(6)
    query = packed(direction(chance), DIMENSIONS)
    for user in ("a", "b", "c"):
        await db.memory(user).items.save_many(MemoryItem(id=f"{n}", content=f"{n}") for n in range(10))
        one = await keep(db, user=user)
        await embed(db, one, chance=chance)
        assert len((await db.read(nearest, space(one), query, 20, kept)).hits) == 10
    assert kept.kept_bytes == 2 * size


async def test_the_plain_way_is_taken_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(matrix.comparer(), MatrixComparer)
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    matrix.numpy.cache_clear()
    try:
        assert matrix.comparer() is None
    finally:
        matrix.numpy.cache_clear()


async def test_statements_take_their_indexes(db: Database) -> None:
    one = await keep(db)
    seen: list[str] = []

    def plans(tx: Any) -> None:
        for name in ("_WAITING_NEWEST", "_WAITING_FROM", "_WAITING_BEFORE", "_WAITING_ENDS", "_TAKE"):
            statement = getattr(waiting, name)
            values = {"user_id": "alice", "model_id": one.id, "without": "[]", "limit": 5, "start": 1, "part": 1}
            rows = tx.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.bind(values))
            seen.extend(row[3] for row in rows if row[3].startswith(("SCAN", "SEARCH")))

    await db.read(plans)
    assert not [plan for plan in seen if plan.startswith("SCAN") and "VIRTUAL TABLE" not in plan], seen
