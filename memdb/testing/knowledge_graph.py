"""The suite of a KnowledgeGraph: every public function here is a case, given a fresh, empty graph.

"agcore" is the document that memdb.protocols follows, "decisions" what memdb decided where it is silent.
"""

from __future__ import annotations

import asyncio

from memdb.errors import AlreadyExists, GraphError, NotFound
from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity
from memdb.protocols import KnowledgeGraph
from memdb.testing import graph_lookup
from memdb.testing.expect import ability, expect, expect_refusal, expect_that
from memdb.testing.memory_store import LOOK_ALIKES
from memdb.testing.suite import Case, cases


async def an_added_entity_comes_back_as_it_was(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.4, "GraphEntity"; tags are kept best first."""
    entity = GraphEntity(
        id="e/ü",
        name="StateGraph – 状态图",
        entity_type="Concept",
        description="line\n\tline",
        tags=["z", "a", "state-graph"],
    )
    await graph.add_entity(entity)
    expect(_told(await _got(graph, "e/ü")), _told(entity), "get_entity() of an added entity")


async def an_unknown_id_gives_none(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: get_entity returns an Option."""
    expect(await graph.get_entity("nothing"), None, "get_entity() of an unknown id")


async def adding_again_is_refused(graph: KnowledgeGraph) -> None:
    """memdb.protocols, KnowledgeGraph.add_entity: AlreadyExists, and the entity that was there stays."""
    await graph.add_entity(GraphEntity(id="e", name="first"))
    again = graph.add_entity(GraphEntity(id="e", name="second"))
    await expect_refusal(again, AlreadyExists, "add_entity() of an id that is taken")
    expect((await _got(graph, "e")).name, "first", "the name of an entity after another of its id was refused")


async def a_removed_entity_is_gone(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: remove_entity; decisions: and its tags."""
    await graph.add_entity(GraphEntity(id="e", name="Ann", tags=["own", "shared"]))
    await graph.add_entity(GraphEntity(id="f", name="Ann", tags=["shared"]))
    await graph.remove_entity("e")
    expect(await graph.get_entity("e"), None, "get_entity() of a removed entity")
    for keyword in ("ann", "shared"):
        found = [entity.id for entity in await graph.find_by_keywords([keyword])]
        expect(found, ["f"], f"find_by_keywords([{keyword!r}]) after 'e' of 'e' and 'f' was removed")
    expect(await graph.find_tags(""), ["shared"], "find_tags('') after an entity with a tag of its own was removed")
    counts = [await graph.entity_count_by_tag(tag) for tag in ("own", "shared")]
    expect(counts, [0, 1], "entity_count_by_tag() of 'own' and 'shared' after one of two entities was removed")


async def removing_an_unknown_entity_is_refused(graph: KnowledgeGraph) -> None:
    """memdb.protocols, KnowledgeGraph.remove_entity: NotFound."""
    await expect_refusal(graph.remove_entity("e"), NotFound, "remove_entity() of an unknown id")


async def ids_that_look_alike_are_kept_apart(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.4, "GraphEntity": an id is exact text: no folding, trimming or normal form."""
    for number, id in enumerate(LOOK_ALIKES):
        await graph.add_entity(GraphEntity(id=id, name=str(number)))
    await _relate(graph, ("a", "A"), ("é", "ss"))
    for number, id in enumerate(LOOK_ALIKES):
        got = await _got(graph, id)
        expect((got.id, got.name), (id, str(number)), f"get_entity({id!r}) beside ids that look like it")
    for id, expected in (("a", ["A"]), ("a ", []), ("é", ["ss"]), ("e\u0301", []), ("ß", [])):
        expect(await _around(graph, id, 1), expected, f"the ids of get_related({id!r}, 1) beside ids that look like it")


async def many_entities_and_relations_at_once_all_land(graph: KnowledgeGraph) -> None:
    """Agcore, section 2.2, NF3: a graph may be used by many callers at once."""
    ids = [f"e{n}" for n in range(40)]
    await asyncio.gather(*(graph.add_entity(GraphEntity(id=id, name=id)) for id in ("hub", *ids)))
    await asyncio.gather(*(graph.add_relation(_relation("hub", id)) for id in ids))
    expect(await _around(graph, "hub", 1), sorted(ids), "the ids around an entity after 40 add_relation() at once")


async def a_relation_needs_both_ends(graph: KnowledgeGraph) -> None:
    """Decisions, "relation to a missing entity": GraphError naming the missing id; nothing is stored."""
    await graph.add_entity(GraphEntity(id="a", name="a"))
    for source, target in (("a", "missing"), ("missing", "a")):
        done = f"add_relation() from {source!r} to {target!r}"
        await expect_refusal(graph.add_relation(_relation(source, target)), GraphError, done)
        try:
            await graph.add_relation(_relation(source, target))
        except GraphError as error:
            expect_that("missing" in str(error), f"the message of {done} must name the missing entity", str(error))
    await graph.add_entity(GraphEntity(id="missing", name="missing"))
    expect(await _around(graph, "a", 1), [], "the ids of get_related() after its relations were refused")


async def a_relation_is_stored_once(graph: KnowledgeGraph) -> None:
    """memdb.protocols, KnowledgeGraph.add_relation: of one source, target and type there is one; it gets the weight."""
    await _entities(graph, "ab")
    for weight in (0.25, 1.0, 0.5):
        await graph.add_relation(_relation("a", "b", weight=weight))
    found = await graph.get_related("a", 1)
    expect([hit.entity.id for hit in found], ["b"], "the ids of get_related() after a relation was added thrice")
    expect(found[0].relations[-1].weight, 0.5, "the weight of a relation that was added thrice")
    await graph.remove_relation("a", "b", "knows")
    expect(await _around(graph, "a", 1), [], "the ids of get_related() after that relation was removed once")


async def a_removed_relation_is_gone(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: remove_relation(source, target, type); its type and direction belong to it."""
    await _entities(graph, "abc")
    await _relate(graph, ("a", "b"), ("a", "c"))
    await graph.add_relation(_relation("a", "b", "likes"))
    for source, target, kind in (("b", "a", "knows"), ("a", "b", "hates"), ("b", "c", "knows"), ("a", "x", "knows")):
        removing = graph.remove_relation(source, target, kind)
        await expect_refusal(
            removing, NotFound, f"remove_relation({source!r}, {target!r}, {kind!r}), which is not there,"
        )
    await graph.remove_relation("a", "b", "knows")
    expect(await _around(graph, "a", 1), ["b", "c"], "the ids around 'a' after one of two relations to 'b' was removed")
    left = [one.relation_type for hit in await graph.get_related("b", 1) for one in hit.relations]
    expect(left, ["likes"], "the types of the relations of 'b' after 'knows' was removed")
    await graph.remove_relation("a", "b", "likes")
    expect(await _around(graph, "a", 1), ["c"], "the ids around 'a' after both relations to 'b' were removed")


async def relations_go_with_their_entity(graph: KnowledgeGraph) -> None:
    """Decisions, "remove_entity": its relations in either direction go with it, and do not come back with its id."""
    await _entities(graph, "abc")
    await _relate(graph, ("a", "b"), ("b", "c"))
    await graph.remove_entity("b")
    expect(await _around(graph, "a", 2), [], "the ids around 'a' after 'b', by which it was joined to 'c', was removed")
    await graph.add_entity(GraphEntity(id="b", name="b"))
    for id in "abc":
        expect(await _around(graph, id, 2), [], f"the ids around {id!r} after 'b' was removed and added anew")


async def get_related_goes_as_deep_as_it_is_told(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: get_related(id, depth); 2 by default, as RetrieverConfig.graph_depth."""
    await _entities(graph, "abcd")
    await _relate(graph, ("a", "b"), ("b", "c"), ("c", "d"))
    for depth, expected in ((1, ["b"]), (2, ["b", "c"]), (3, ["b", "c", "d"])):
        expect(await _around(graph, "a", depth), expected, f"the ids of get_related('a', {depth}) in a - b - c - d")
    found = sorted(hit.entity.id for hit in await graph.get_related("a"))
    expect(found, ["b", "c"], "the ids of get_related('a') in a - b - c - d")


async def get_related_scores_by_distance(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "GraphDistance": 1 / (1 + distance), the nearest first; whole entities."""
    await _entities(graph, "xyabcd")
    await _relate(graph, ("c", "d"), ("b", "c"), ("a", "b"), ("a", "x"), ("x", "y"))
    found = await graph.get_related("a", 3)
    came = {hit.entity.id: (hit.distance, round(hit.score, 6)) for hit in found}
    expected = {"b": (1, 0.5), "x": (1, 0.5), "c": (2, 0.333333), "y": (2, 0.333333), "d": (3, 0.25)}
    expect(came, expected, "distance and score by id of get_related('a', 3)")
    distances = [hit.distance for hit in found]
    expect(distances, sorted(distances), "the distances of get_related() in their order")
    expect([hit.entity.name for hit in found[-1:]], ["name d"], "the name of the entity that is farthest away")


async def get_related_takes_the_shortest_way(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "GraphDistance": the length of the shortest path, however strong a longer one is."""
    await _entities(graph, "abcd")
    await _relate(graph, ("a", "b"), ("b", "c"), ("c", "d"))
    await graph.add_relation(_relation("a", "d", weight=0.1))
    came = {hit.entity.id: hit.distance for hit in await graph.get_related("a", 3)}
    expect(came, {"b": 1, "d": 1, "c": 2}, "the distances by id in a ring of a, b, c, d")


async def get_related_ends_in_a_cycle(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: a traversal visits each entity once, and the one it starts from is no answer."""
    await _entities(graph, "abc")
    await _relate(graph, ("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"))
    found = [hit.entity.id for hit in await graph.get_related("a", 4)]
    expect(sorted(found), ["b", "c"], "the ids of get_related('a', 4) in a triangle, each once")


async def get_related_follows_either_direction(graph: KnowledgeGraph) -> None:
    """memdb.protocols, KnowledgeGraph.get_related: from source to target and back."""
    await _entities(graph, "abcd")
    await _relate(graph, ("a", "b"), ("c", "a"), ("d", "c"))
    for id, expected in (("a", ["b", "c", "d"]), ("b", ["a", "c"]), ("d", ["a", "c"])):
        expect(await _around(graph, id, 2), expected, f"the ids of get_related({id!r}, 2) in d -> c -> a -> b")


async def get_related_says_by_which_relation(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: "and the relations that led there"; the last one arrives at the entity."""
    await _entities(graph, "abcd")
    stored = [_relation("a", "b", "knows", 0.5), _relation("c", "b", "made", 0.75), _relation("c", "d", "likes", 0.25)]
    for relation in stored:
        await graph.add_relation(relation)
    found = {hit.entity.id: hit for hit in await graph.get_related("a", 3)}
    expect(sorted(found), ["b", "c", "d"], "the ids of get_related('a', 3)")
    for id, relation in zip("bcd", stored, strict=True):
        expect(found[id].relations[-1:], [relation], f"the last of the relations that led from 'a' to {id!r}")


async def a_recall_changes_no_entity(graph: KnowledgeGraph) -> None:
    """Agcore, section 4.4: what is reported may be gone by then; skipped where there is no record_recall."""
    record_recall = ability(graph, "record_recall")
    entity = GraphEntity(id="e", name="x", tags=["t"])
    await graph.add_entity(entity)
    for id in ("e", "nothing"):
        await record_recall(id, 0.5)
    expect(_told(await _got(graph, "e")), _told(entity), "get_entity() of what was recalled")
    expect(await graph.get_entity("nothing"), None, "get_entity() of an unknown id that was recalled")


def _told(entity: GraphEntity) -> tuple[object, ...]:
    return (entity.id, entity.name, entity.entity_type, entity.description, entity.tags)


def _relation(source: str, target: str, kind: str = "knows", weight: float = 1.0) -> GraphRelation:
    return GraphRelation(source_id=source, target_id=target, relation_type=kind, weight=weight)


async def _got(graph: KnowledgeGraph, id: str) -> GraphEntity:
    entity = await graph.get_entity(id)
    expect_that(entity is not None, f"get_entity({id!r}) must give the entity that was added", entity)
    assert entity is not None
    return entity


async def _entities(graph: KnowledgeGraph, ids: str) -> None:
    """Add an entity for each letter."""
    for id in ids:
        await graph.add_entity(GraphEntity(id=id, name=f"name {id}"))


async def _relate(graph: KnowledgeGraph, *ends: tuple[str, str]) -> None:
    for source, target in ends:
        await graph.add_relation(_relation(source, target))


async def _around(graph: KnowledgeGraph, id: str, depth: int) -> list[str]:
    found: list[ScoredEntity] = await graph.get_related(id, depth)
    return sorted(hit.entity.id for hit in found)


KNOWLEDGE_GRAPH: tuple[Case[KnowledgeGraph], ...] = cases(__name__) + graph_lookup.GRAPH_LOOKUP
