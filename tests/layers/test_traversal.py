"""The traversal against a plain model that walks every path, on graphs that hypothesis makes up, and its hard cases."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import GraphEntity, GraphError, GraphRelation, InvalidInput, MemoryItem
from memdb.layers.entity import ScoredEntity
from memdb.layers.layer import Inside
from memdb.layers.record import Place
from memdb.layers.traversal import DIRECTIONS, MAX_DEPTH, Traversal, related
from memdb.layers.traversal_statement import statement
from memdb.memory import Memory
from memdb.storage import transaction
from memdb.storage.clock import Clock
from memdb.storage.transaction import Transaction
from tests.strategies import SAME_EVERY_TIME

ALICE, BOB = Place("entity", "alice"), Place("entity", "bob")
NOW, PAST = "2026-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z"
EVERYTHING: dict[str, Any] = {"fan_out": None, "limit": 10_000}


# -- files -------------------------------------------------------------------------------------------------------------


class Relation(NamedTuple):
    source: int
    target: int
    kind: str
    weight: float


_ENTITY = """
INSERT INTO record (id, user_id, layer, key, category, created_at, updated_at, expires_at, title, seg_revision)
VALUES (?, ?, 'entity', ?, 'concept', ?, ?, ?, ?, 1)"""
_RELATION = (
    "INSERT INTO relation (user_id, source_id, target_id, relation_type, weight, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)


def key(number: int) -> str:
    return f"entity {number}"


class File:
    """An in-memory copy of an empty file, filled and asked on this thread."""

    def __init__(self, template: Path) -> None:
        self.raw = sqlite3.connect(":memory:", isolation_level=None)
        with_schema = sqlite3.connect(template)
        with_schema.backup(self.raw)
        with_schema.close()
        for (name,) in self.raw.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'record_search_a_'").fetchall():
            self.raw.execute(f"DROP TRIGGER {name}")  # the traversal looks at no text
        self.raw.execute("BEGIN")

    def fill(self, relations: list[Relation], *, user: str = "alice", expired: frozenset[int] = frozenset()) -> None:
        nodes = sorted({end for relation in relations for end in relation[:2]})
        self.raw.executemany(
            _ENTITY,
            [
                (n, user, key(n), NOW, NOW, "2020-01-01T00:00:00.000000Z" if n in expired else None, f"N{n}")
                for n in nodes
            ],
        )
        self.raw.executemany(_RELATION, [(user, *relation, NOW) for relation in relations])

    def ask(self, start: list[int], how: Traversal, place: Place = ALICE) -> list[ScoredEntity]:
        return related(Transaction(self.raw, Clock(), writing=False), place, start, how)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None:
        self.raw.close()


@pytest.fixture
def file(template: Path) -> Iterator[File]:
    with File(template) as opened:
        yield opened


# -- the model ---------------------------------------------------------------------------------------------------------


class Path_(NamedTuple):
    weight: float
    relations: tuple[int, ...]  # their places in the list


def followed(relations: list[Relation], how: Traversal) -> dict[int, list[tuple[float, int, int]]]:
    """Of each entity the relations that are followed: (weight, the other end, place in the list)."""
    leaving: dict[int, list[tuple[float, int, int]]] = {}
    for place, (source, target, kind, weight) in enumerate(relations):
        if how.relation_types is not None and kind not in how.relation_types:
            continue
        if how.direction != "in":
            leaving.setdefault(source, []).append((weight, target, place))
        if how.direction != "out":
            leaving.setdefault(target, []).append((weight, source, place))
    if how.fan_out is None:
        return leaving

    def rank(edge: tuple[float, int, int]) -> tuple[float, int]:
        return -edge[0], edge[1]

    capped = {}
    for node, edges in leaving.items():
        last = rank(sorted(edges, key=rank)[: how.fan_out][-1])
        capped[node] = [edge for edge in edges if rank(edge) <= last]
    return capped


def expected(
    relations: list[Relation], start: list[int], how: Traversal, expired: frozenset[int] = frozenset()
) -> list[tuple[int, int, float, tuple[int, ...]]]:
    """What the traversal must say, by walking every path: (entity, distance, weight, the best path's relations)."""
    leaving = followed(relations, how)
    found: dict[int, list[Path_]] = {}

    def walk(node: int, path: Path_) -> None:
        if path.relations:
            found.setdefault(node, []).append(path)
        if len(path.relations) < how.depth:
            for weight, other, place in leaving.get(node, []):
                walk(other, Path_(path.weight * weight, (*path.relations, place)))

    for node in set(start):
        walk(node, Path_(1.0, ()))
    answer = []
    for node, paths in found.items():
        if node not in start and node not in expired:
            best = min(paths, key=lambda path: (-path.weight, len(path.relations), path.relations[-1]))
            answer.append((node, min(len(path.relations) for path in paths), best.weight, best.relations))
    return sorted(answer, key=lambda row: (row[1], -row[2], row[0]))[: how.limit]


def as_told(relation: Relation) -> GraphRelation:
    return GraphRelation(
        source_id=key(relation.source),
        target_id=key(relation.target),
        relation_type=relation.kind,
        weight=relation.weight,
    )


def compare(file: File, relations: list[Relation], start: list[int], how: Traversal, expired: frozenset[int]) -> None:
    model = expected(relations, start, how, expired)
    answer = file.ask(start, how)
    assert [(found.entity.id, found.distance, found.weight) for found in answer] == [
        (key(node), distance, weight) for node, distance, weight, _ in model
    ]
    for found, (_, distance, _, path) in zip(answer, model, strict=True):
        assert found.score == 1 / (1 + distance)
        assert found.relations[-1] == as_told(relations[path[-1]])
        assert len(found.relations) == (len(path) if how.paths else 1)
        if how.paths:
            leads_from_a_start_there(found, start, how)


def leads_from_a_start_there(found: ScoredEntity, start: list[int], how: Traversal) -> None:
    ends = {key(node) for node in start}
    weight = 1.0
    for relation in found.relations:
        onward = set()
        if how.direction != "in" and relation.source_id in ends:
            onward.add(relation.target_id)
        if how.direction != "out" and relation.target_id in ends:
            onward.add(relation.source_id)
        ends, weight = onward, weight * relation.weight
    assert found.entity.id in ends
    assert weight == found.weight


NODES = st.integers(1, 9)
WEIGHTS = st.sampled_from([0.0, 0.1, 0.25, 0.3, 1 / 3, 0.5, 0.7, 0.9, 1.0]) | st.floats(0, 1)
RELATIONS = st.lists(
    st.builds(Relation, NODES, NODES, st.sampled_from(["knows", "Knows", "part_of"]), WEIGHTS),
    min_size=1, max_size=22, unique_by=lambda relation: relation[:3],
).map(lambda relations: [relation for relation in relations if relation.source != relation.target])  # fmt: skip
QUESTIONS = st.builds(
    Traversal,
    depth=st.integers(1, 4),
    direction=st.sampled_from(DIRECTIONS),
    relation_types=st.none() | st.sampled_from([("knows",), ("Knows", "part_of"), ("unheard of",)]),
    fan_out=st.none() | st.integers(1, 4),
    limit=st.integers(1, 12),
    paths=st.booleans(),
)


@pytest.fixture(scope="module")
def template_path(template: Path) -> Path:
    return template


@given(RELATIONS, st.lists(NODES, min_size=1, max_size=3), QUESTIONS, st.frozensets(NODES, max_size=2))
@settings(SAME_EVERY_TIME, max_examples=400)
def test_it_says_what_walking_every_path_says(
    template_path: Path, relations: list[Relation], start: list[int], how: Traversal, expired: frozenset[int]
) -> None:
    with File(template_path) as file:
        file.fill(relations, expired=expired)
        compare(file, relations, start, how, expired)


@given(st.data())
@settings(SAME_EVERY_TIME, max_examples=60)
def test_and_so_where_all_weights_are_equal_and_the_limit_is_small(template_path: Path, data: st.DataObject) -> None:
    weight = data.draw(st.sampled_from([1.0, 0.5]))
    relations = [relation._replace(weight=weight) for relation in data.draw(RELATIONS)]
    how = Traversal(depth=4, limit=data.draw(st.integers(1, 4)), paths=True, fan_out=data.draw(st.none() | st.just(2)))
    with File(template_path) as file:
        file.fill(relations)
        compare(file, relations, [1], how, frozenset())


def test_every_kind_of_question_on_one_graph(file: File) -> None:
    relations = [
        Relation(source, target, kind, round(0.1 + (source * 7 + target * 3) % 10 / 10, 1))
        for source, target in product(range(1, 9), repeat=2)
        for kind in ("knows", "part_of")
        if source != target and (source * target + len(kind)) % 3 == 0
    ]
    file.fill(relations)
    for depth, direction, types, fan_out, limit, paths in product(
        (1, 2, 3), DIRECTIONS, (None, ("knows",)), (None, 1, 3), (2, 100), (False, True)
    ):
        compare(file, relations, [1, 5], Traversal(depth, direction, types, fan_out, limit, None, paths), frozenset())


# -- hard cases --------------------------------------------------------------------------------------------------------


def test_a_long_way_may_be_stronger_than_a_short_one(file: File) -> None:
    file.fill([Relation(1, 2, "r", 0.1), Relation(1, 3, "r", 0.9), Relation(3, 4, "r", 0.9), Relation(4, 2, "r", 0.9)])
    answer = {found.entity.id: found for found in file.ask([1], Traversal(depth=3, limit=2, paths=True))}
    there = answer[key(2)]
    assert (there.distance, there.score, there.weight) == (1, 0.5, 0.9 * 0.9 * 0.9)
    assert [relation.target_id for relation in there.relations] == [key(3), key(4), key(2)]
    [last] = file.ask([1], Traversal(depth=3, limit=2))[1].relations
    assert (last.source_id, last.target_id) == (key(1), key(3)) or (last.source_id, last.target_id) == (key(4), key(2))


def test_relations_of_weight_nothing_are_followed(file: File) -> None:
    file.fill([Relation(1, 2, "r", 0.0), Relation(2, 3, "r", 1.0)])
    assert [(f.entity.id, f.distance, f.weight) for f in file.ask([1], Traversal())] == [(key(2), 1, 0), (key(3), 2, 0)]


def test_a_cycle_of_100_000(file: File) -> None:
    count = 100_000
    file.fill([Relation(n, n % count + 1, "next", 1.0) for n in range(1, count + 1)])
    answer = file.ask([1], Traversal(depth=MAX_DEPTH, direction="both", **EVERYTHING))
    assert {found.entity.id for found in answer} == {
        key((at - 1) % count + 1) for at in range(1 - MAX_DEPTH, 2 + MAX_DEPTH) if at != 1
    }
    assert [found.entity.id for found in file.ask([count], Traversal(depth=3, direction="out"))] == [
        key(1),
        key(2),
        key(3),
    ]


@pytest.mark.parametrize("fan_out", [None, 50, 5])
def test_a_dense_graph_at_the_greatest_depth(file: File, fan_out: int | None) -> None:
    relations = [Relation(s, t, "r", (s * 31 + t) % 97 / 96) for s, t in product(range(1, 32), repeat=2) if s != t]
    file.fill(relations)
    answer = file.ask([1], Traversal(depth=MAX_DEPTH, fan_out=fan_out, limit=10_000, timeout=20, paths=True))
    assert len(answer) == 30
    assert all(found.distance == 1 for found in answer) or fan_out == 5


def test_what_is_not_there_takes_no_place_in_the_answer(file: File) -> None:
    relations = [Relation(1, n, "r", 1 - n / 100) for n in range(2, 40)]
    relations += [Relation(n, n + 100, "r", 0.5) for n in range(2, 40)]
    file.fill(relations, expired=frozenset(range(2, 30)))
    answer = file.ask([1], Traversal(limit=12))
    assert [found.entity.id for found in answer] == [*map(key, range(30, 40)), key(102), key(103)]


def test_a_row_that_cannot_be_read_is_left_out_and_marked(file: File) -> None:
    file.fill([Relation(1, 2, "r", 0.9), Relation(2, 3, "r", 0.8), Relation(1, 4, "r", 0.7), Relation(1, 5, "r", 0.6)])
    file.raw.execute("UPDATE record SET title = x'ff' WHERE id = 2")
    file.raw.execute("UPDATE record SET tags = ' [\"a\"] ', category = NULL WHERE id = 4")
    file.raw.execute("UPDATE record SET tags = '[1]' WHERE id = 5")
    tx = Transaction(file.raw, Clock(), writing=False)
    four, three = related(tx, ALICE, [1], Traversal())
    assert (four.entity.id, four.entity.tags, four.entity.entity_type) == (key(4), ["a"], "")
    assert [relation.source_id for relation in three.relations] == [key(2)]
    assert set(tx.damaged) == {2, 5}


async def test_text_that_is_no_utf_8_goes_to_the_quarantine(path: Path) -> None:
    async with memdb.open(path) as db:
        graph = db.memory("alice").graph
        await graph.add_entities([GraphEntity(id=id, name=id) for id in "abc"])
        await graph.add_relations(
            [GraphRelation(source_id="a", target_id=id, relation_type="r", weight=1) for id in "bc"]
        )
        await db.write(lambda tx: tx.execute("UPDATE record SET content = CAST(x'ff41' AS TEXT) WHERE key = 'b'"))
        assert [found.entity.id for found in await graph.get_related("a")] == ["c"]
        assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM quarantine")) == [(1,)]


# -- the tenant wall ---------------------------------------------------------------------------------------------------


def test_nobody_reaches_what_is_anothers(file: File) -> None:
    file.fill([Relation(1, 2, "r", 1.0), Relation(2, 3, "r", 1.0)])
    file.fill([Relation(11, 12, "r", 1.0), Relation(12, 13, "r", 1.0)], user="bob")
    # A relation across the wall, as only a shell makes it.
    file.raw.execute(_RELATION, ("alice", 3, 11, "r", 1.0, NOW))
    file.raw.execute(_RELATION, ("alice", 11, 2, "r", 1.0, NOW))
    for direction, fan_out, paths in product(DIRECTIONS, (None, 2), (False, True)):
        how = Traversal(depth=5, direction=direction, fan_out=fan_out, paths=paths)
        assert file.ask([11, 12, 13], how, ALICE) == [] or direction != "x"
        for found in file.ask([1, 2, 3, 11, 12, 13], how, ALICE):
            assert found.entity.id in map(key, (1, 2, 3))
        assert {found.entity.id for found in file.ask([1], how, ALICE)} <= {key(2), key(3)}
        assert file.ask([1, 2, 3], how, BOB) == []
        assert {found.entity.id for found in file.ask([11], how, BOB)} <= {key(12), key(13)}
        told = repr(file.ask([1], how, ALICE))
        assert not any(key(number) in told for number in (11, 12, 13))


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        *(({"depth": value}, "depth") for value in (0, -1, True, 1000, MAX_DEPTH + 1, 1.0, "2", None)),
        *(({"direction": value}, "direction") for value in ("", "BOTH", None, 1)),
        *(({"relation_types": value}, "relation_types") for value in ("knows", (1,), ("\ud800",), 5)),
        *(({"fan_out": value}, "fan_out") for value in (0, -1, False, 10_001, "50", 2.5)),
        *(({"limit": value}, "limit") for value in (-1, 10_001, True, None, "1")),
        *(({"timeout": value}, "timeout") for value in (0, -1, True, math.nan, math.inf, "5", 3_601)),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        Traversal(**wrong)


def test_the_range_of_depths_is_said() -> None:
    with pytest.raises(InvalidInput, match=f"depth must be a whole number from 1 to {MAX_DEPTH}, not 1000"):
        Traversal(depth=1000)


def test_nothing_is_asked_nothing_is_said(file: File) -> None:
    file.fill([Relation(1, 2, "r", 1.0)])
    assert file.ask([], Traversal()) == []
    assert file.ask([1], Traversal(limit=0)) == []
    assert file.ask([1], Traversal(relation_types=())) == []
    assert file.ask([99], Traversal()) == []
    assert Traversal(relation_types=["r"]).relation_types == ("r",)  # type: ignore[arg-type]
    assert len(file.ask([1, 1, 1], Traversal(relation_types=("r", "r")))) == 1


# -- the deadline ------------------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at after every few instructions."""
    monkeypatch.setattr(transaction, "DEADLINE_STEPS", 10)


async def star(memory: Memory[Any]) -> None:
    ids = [str(number) for number in range(20)]
    await memory.graph.add_entities([GraphEntity(id=id, name=id) for id in ids])
    await memory.graph.add_relations(
        [GraphRelation(source_id="0", target_id=id, relation_type="r", weight=1) for id in ids[1:]]
    )


@pytest.mark.usefixtures("impatient")
async def test_a_search_that_takes_too_long_is_given_up_and_the_handle_goes_on(
    db: memdb.Database, memory: Memory[Any]
) -> None:
    await star(memory)
    for _ in range(6):  # more than there are readers
        with pytest.raises(GraphError, match=r"depth 3 took longer than 1e-09 seconds.* smaller depth or fan_out"):
            await memory.graph.get_related("0", depth=3, timeout=1e-9)
    assert len(await memory.graph.get_related("0", depth=3)) == 19
    assert await db.read(lambda tx: len(tx.execute(COUNTING))) == 1


COUNTING = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000) SELECT count(*) FROM n"


@pytest.mark.usefixtures("impatient")
async def test_and_so_inside_a_unit_whose_writes_stay(memory: Memory[Any]) -> None:
    await star(memory)

    def unit(inside: Memory[Inside]) -> int:
        inside.items.save(MemoryItem(id="before", content="x"))
        with pytest.raises(GraphError, match="took longer"):
            inside.graph.get_related("0", timeout=1e-9)
        inside.items.save(MemoryItem(id="after", content="x"))
        return len(inside.graph.get_related("0"))

    assert await memory.atomic(unit) == 19
    assert {item.id for item in await memory.items.list()} == {"before", "after"}


@pytest.mark.usefixtures("impatient")
def test_a_deadline_leaves_other_errors_alone_and_nothing_behind(file: File) -> None:
    tx = Transaction(file.raw, Clock(), writing=False)
    with pytest.raises(KeyError), tx.deadline(1e-9):
        raise KeyError
    with pytest.raises(sqlite3.OperationalError, match="no such table"), tx.deadline(60):
        tx.rows("SELECT * FROM nowhere")
    file.raw.create_function("stop", 0, file.raw.interrupt)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), tx.deadline(60):
        tx.rows(f"SELECT stop(), ({COUNTING})")
    with pytest.raises(TimeoutError, match="longer than 1e-09 seconds"), tx.deadline(1e-9):
        tx.rows(COUNTING)
    assert tx.rows(COUNTING) == [(10_000,)]
    tx.end()
    with pytest.raises(memdb.Closed), tx.deadline(1):
        pass


# -- plans -------------------------------------------------------------------------------------------------------------

FORMS = [
    {"depth": depth, "direction": direction, "typed": typed, "capped": capped, "paths": paths}
    for depth, direction, typed, capped, paths in product(
        (1, 2, MAX_DEPTH), DIRECTIONS, (False, True), (False, True), (False, True)
    )
]


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def large(request: pytest.FixtureRequest, template: Path) -> Iterator[sqlite3.Connection]:
    with File(template) as opened:
        ends = {(n % 500 + 1, n * n % 499 + 1) for n in range(5_000)}
        opened.fill([Relation(s, t, f"type {s % 5}", (s + t) % 100 / 100) for s, t in sorted(ends) if s != t])
        opened.raw.execute("COMMIT")
        if request.param == "with statistics":
            opened.raw.execute("ANALYZE")
        yield opened.raw


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_every_statement_looks_relations_up_in_their_indexes(large: sqlite3.Connection, form: dict[str, Any]) -> None:
    sql = statement(**form)
    values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    plan = [row[3] for row in large.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    for step in plan:
        assert "BLOOM" not in step, plan  # built by reading all relations
        assert not re.match(r"SCAN (relation|record|edge|onward|back)\b", step), plan
        if re.match(r"SEARCH (edge|onward|back)\b", step):
            assert re.search(r"COVERING INDEX relation_(out|in)ward \(user_id=\? AND (source|target)_id=\?", step), plan
        if re.match(r"SEARCH (record|relation)\b", step):
            assert "rowid=?" in step, plan
    arms = 2 if form["direction"] == "both" else 1
    assert sum("relation_outward" in step or "relation_inward" in step for step in plan) >= arms * form["depth"]
