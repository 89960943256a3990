"""KnowledgeGraph: what a user of entities, relations and traversal sees."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memdb import AlreadyExists, GraphEntity, GraphError, GraphRelation, InvalidInput, NotFound


def entity(id: str, name: str = "A name", **fields) -> GraphEntity:
    return GraphEntity(id=id, name=name, **fields)


def relation(source: str, target: str, weight: float = 1.0, kind: str = "part_of") -> GraphRelation:
    return GraphRelation(source_id=source, target_id=target, relation_type=kind, weight=weight)


async def add(memory, *ids: str) -> None:
    await memory.graph.add_entities([entity(id) for id in ids])


async def ids(call) -> list[str]:
    return [found.id for found in await call]


# -- entities ---------------------------------------------------------------------------------------------------------


async def test_entity_crud(memory, clock):
    given = entity(
        "e1", "StateGraph", entity_type=" class ", description="A graph of states.", tags=["State Graph", "a"]
    )
    await memory.graph.add_entity(given)
    got = await memory.graph.get_entity("e1")
    assert (got.id, got.name, got.entity_type, got.description) == ("e1", "StateGraph", "class", "A graph of states.")
    assert (got.tags, got.created_at, got.updated_at) == (["state-graph", "a"], clock.now, clock.now)
    assert await memory.graph.get_entity("E1") is None
    await memory.graph.remove_entity("e1")
    assert await memory.graph.get_entity("e1") is None
    with pytest.raises(NotFound, match="'e1'"):
        await memory.graph.remove_entity("e1")


async def test_adding_twice_is_refused_and_changes_nothing(memory):
    await memory.graph.add_entity(entity("e", "First"))
    with pytest.raises(AlreadyExists, match="'e'"):
        await memory.graph.add_entity(entity("e", "Second"))
    assert (await memory.graph.get_entity("e")).name == "First"


async def test_add_entities_is_one_act(memory):
    assert await memory.graph.add_entities(entity(f"e{n}") for n in range(700)) == 700
    with pytest.raises(AlreadyExists, match="'e3'"):
        await memory.graph.add_entities([entity("new"), entity("e3")])
    with pytest.raises(AlreadyExists, match="twice"):
        await memory.graph.add_entities([entity("new"), entity("new")])
    assert await memory.graph.get_entity("new") is None
    await memory.graph.add_relation(relation("e3", "e4"))
    assert await memory.graph.add_entities([entity("e3", "Once"), entity("e3", "Twice")], replace=True) == 2
    assert (await memory.graph.get_entity("e3")).name == "Twice"
    assert await memory.graph.relations("e3") == [relation("e3", "e4")]


async def test_update_keeps_relations_and_the_first_date(memory, clock):
    await memory.graph.add_entities([entity("a", "Old", tags=["old"]), entity("b")])
    await memory.graph.add_relation(relation("a", "b", 0.5))
    clock.forward(days=1)
    await memory.graph.update_entity(entity("a", "New", tags=["new"], created_at=clock.now))
    got = await memory.graph.get_entity("a")
    assert (got.name, got.tags, got.updated_at - got.created_at) == ("New", ["new"], timedelta(days=1))
    assert await memory.graph.relations("a") == [relation("a", "b", 0.5)]
    assert await memory.graph.find_tags("old") == []
    assert await ids(memory.graph.find_by_keywords(["old", "new"])) == ["a"]
    with pytest.raises(NotFound, match="add_entity"):
        await memory.graph.update_entity(entity("nothing"))


async def test_remove_takes_relations_and_tags_with_it(memory):
    await memory.graph.add_entities([entity("a", tags=["t"]), entity("b"), entity("c")])
    await memory.graph.add_relations([relation("a", "b"), relation("c", "a"), relation("b", "c")])
    await memory.graph.remove_entity("a")
    assert await memory.graph.relations("b") == await memory.graph.relations("c") == [relation("b", "c")]
    assert await memory.graph.find_tags("") == []
    await add(memory, "a")
    assert await memory.graph.relations("a") == []


# -- relations --------------------------------------------------------------------------------------------------------


async def test_relations_strongest_first_in_either_direction(memory):
    await add(memory, "hub", "a", "b", "c")
    await memory.graph.add_relations(
        [
            relation("hub", "a", 0.2),
            relation("b", "hub", 0.9),
            relation("hub", "c", 0.2),
            relation("c", "hub", 0.5, "x"),
        ]
    )
    graph = memory.graph
    ends = [(r.source_id, r.target_id) for r in await graph.relations("hub")]
    assert ends == [("b", "hub"), ("c", "hub"), ("hub", "a"), ("hub", "c")]
    assert [r.target_id for r in await graph.relations("hub", direction="out")] == ["a", "c"]
    assert [r.source_id for r in await graph.relations("hub", direction="in")] == ["b", "c"]
    assert [r.weight for r in await graph.relations("hub", limit=2)] == [0.9, 0.5]
    assert await graph.relations("hub", limit=0) == await graph.relations("nothing") == []
    for wrong in ("outward", "", None, ["out"]):
        with pytest.raises(InvalidInput, match="direction"):
            await graph.relations("hub", direction=wrong)


async def test_a_relation_again_gets_the_new_weight(memory):
    await add(memory, "a", "b")
    await memory.graph.add_relation(relation("a", "b", 0.3))
    await memory.graph.add_relation(relation("a", "b", 0.3, "other"))
    await memory.graph.add_relation(relation("b", "a", 0.3))
    await memory.graph.add_relation(relation("a", "b", 0.7))
    assert [r.weight for r in await memory.graph.relations("a")] == [0.7, 0.3, 0.3]
    assert await memory.graph.add_relations([relation("a", "b", 0.9), relation("a", "b", 0.1)]) == 2
    assert [r.weight for r in await memory.graph.relations("a")] == [0.3, 0.3, 0.1]


async def test_a_relation_to_a_missing_entity_is_refused_by_name(memory):
    await add(memory, "a", "b")
    for source, target, missing in (("a", "x", "'x'"), ("y", "a", "'y'"), ("x", "y", "'x', 'y'")):
        with pytest.raises(GraphError, match=missing):
            await memory.graph.add_relation(relation(source, target))
    with pytest.raises(GraphError, match=r"'n0', 'n1', 'n2', 'n3', 'n4' and 15 more.*nothing was stored"):
        await memory.graph.add_relations([relation("a", "b"), *(relation("a", f"n{n}") for n in range(20))])
    assert await memory.graph.relations("a") == []


async def test_remove_relation(memory):
    await add(memory, "a", "b")
    await memory.graph.add_relations([relation("a", "b"), relation("a", "b", kind="x"), relation("b", "a")])
    await memory.graph.remove_relation("a", "b", "part_of")
    assert {(r.source_id, r.relation_type) for r in await memory.graph.relations("a")} == {("a", "x"), ("b", "part_of")}
    for missing in (("a", "b", "part_of"), ("b", "a", "x"), ("a", "nothing", "x")):
        with pytest.raises(NotFound, match="no relation"):
            await memory.graph.remove_relation(*missing)


async def test_many_relations_in_one_act(memory):
    await add(memory, *(f"e{n}" for n in range(300)))
    many = [relation(f"e{n % 300}", f"e{(n * 7 + 1) % 300}", n / 20_000, f"t{n // 300}") for n in range(20_000)]
    many = [one for one in many if one.source_id != one.target_id]
    assert await memory.graph.add_relations(many) == len(many)
    assert await memory.graph.add_relations([]) == 0
    got = await memory.graph.relations("e5", direction="out", limit=10_000)
    assert got == sorted((one for one in many if one.source_id == "e5"), key=lambda one: -one.weight)


async def test_weights_come_back_to_the_last_digit(memory):
    await add(memory, "a", "b")
    weights = [0.1 + 0.2, 1 / 3, 5e-324, 1e-300, 0.0, 1.0, 0.9999999999999999]
    await memory.graph.add_relations([relation("a", "b", weight, f"t{n}") for n, weight in enumerate(weights)])
    assert [r.weight for r in await memory.graph.relations("a")] == sorted(weights, reverse=True)


# -- traversal --------------------------------------------------------------------------------------------------------


async def test_traversal_to_a_depth(memory):
    await add(memory, "a", "b", "c", "d", "alone")
    await memory.graph.add_relations([relation("a", "b", 0.5), relation("b", "c", 0.5), relation("c", "d", 0.5)])
    found = await memory.graph.get_related("a")
    assert [(one.entity.id, one.distance, one.score, one.weight) for one in found] == [
        ("b", 1, 1 / 2, 0.5),
        ("c", 2, 1 / 3, 0.25),
    ]
    assert found[1].relations == [relation("b", "c", 0.5)]
    (_, far) = await memory.graph.get_related("a", paths=True)
    assert far.relations == [relation("a", "b", 0.5), relation("b", "c", 0.5)]
    assert [one.entity.id for one in await memory.graph.get_related("a", 3)] == ["b", "c", "d"]
    assert await memory.graph.get_related("a", direction="in") == []
    assert await memory.graph.get_related("alone") == await memory.graph.get_related("nothing") == []


async def test_traversal_follows_what_is_asked_for(memory):
    await add(memory, "a", "b", "c")
    await memory.graph.add_relations([relation("a", "b", 0.2, "knows"), relation("c", "a", 0.9, "likes")])
    graph = memory.graph
    assert [one.entity.id for one in await graph.get_related("a")] == ["c", "b"]
    assert [one.entity.id for one in await graph.get_related("a", relation_types=iter(["knows"]))] == ["b"]
    assert [one.entity.id for one in await graph.get_related("a", fan_out=1, depth=1)] == ["c"]
    assert [one.entity.id for one in await graph.get_related("a", limit=1)] == ["c"]
    for wrong in ({"depth": 0}, {"depth": True}, {"limit": -1}, {"relation_types": "knows"}, {"timeout": 0},
                  {"direction": "up"}, {"fan_out": 0}, {"relation_types": 5}):  # fmt: skip
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            await graph.get_related("a", **wrong)


# -- what is refused --------------------------------------------------------------------------------------------------


def test_bad_entities_and_relations_are_refused():
    for fields in (
        {"name": ""}, {"name": " "}, {"name": "x" * 1_001}, {"entity_type": ""}, {"entity_type": "x" * 201}, {"id": ""},
        {"tags": "abc"}, {"tags": ["x" * 10_000]}, {"description": None}, {"size": 1},
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=next(iter(fields))):
            GraphEntity(**{"id": "e", "name": "n", **fields})
    for weight in (-0.1, 1.0001, float("nan"), float("inf"), "0.5", None, True, 10**400):
        with pytest.raises(InvalidInput, match="weight"):
            relation("a", "b", weight)
    with pytest.raises(InvalidInput, match="both ends are 'a'"):
        relation("a", "a")
    for kind in ("", " ", "x" * 201, None, "a\0"):
        with pytest.raises(InvalidInput, match="relation_type"):
            relation("a", "b", kind=kind)


async def test_what_was_built_without_validation_is_refused(memory):
    await add(memory, "a", "b")
    loop = GraphRelation.model_construct(source_id="a", target_id="a", relation_type="x", weight=1.0)
    heavy = relation("a", "b").model_copy(update={"weight": 7})
    for wrong in (loop, heavy, entity("c"), None):
        with pytest.raises(InvalidInput):
            await memory.graph.add_relation(wrong)
    with pytest.raises(InvalidInput, match="name"):
        await memory.graph.add_entity(entity("c").model_copy(update={"name": 5}))
    assert await memory.graph.relations("a") == []


async def test_100_001_relations_are_too_many(memory):
    await add(memory, "a", "b")
    with pytest.raises(InvalidInput, match="more than 100,000"):
        await memory.graph.add_relations([relation("a", "b")] * 100_001)
    with pytest.raises(InvalidInput, match="relations must be a list"):
        await memory.graph.add_relations("ab")
