"""The graph against dictionaries: any history of calls gives what the dictionaries give."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import AlreadyExists, GraphEntity, GraphError, GraphRelation, InvalidInput, KnowledgePage, NotFound
from tests.strategies import SAME_EVERY_TIME

IDS = st.sampled_from(["a", "b", "c", "d", "A", "a b"])
PAGES = st.sampled_from(["p", "q"])
TAGS = st.lists(st.sampled_from(["x", "y z", "Ü"]), max_size=3)
TYPES = st.sampled_from(["is", "IS", "knows"])
ENTITIES = st.builds(
    GraphEntity,
    id=IDS,
    name=st.sampled_from(["Red Node", "red", "RED!", "Граф знаний", "状态图"]),
    entity_type=st.sampled_from(["Concept", "concept", "понятие"]),
    description=st.sampled_from(["", "red tape", "图"]),
    tags=TAGS,
)
WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
Edge = tuple[str, str, str]


class Graph(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.db = self.wait(memdb.open(":memory:").__aenter__())
        self.memory = self.db.memory("alice")
        self.graph = self.memory.graph
        self.entities: dict[str, GraphEntity] = {}  # in the order of adding
        self.edges: dict[Edge, float] = {}
        self.handed: dict[str, dict[str, list[str]]] = {}  # entity -> page -> the tags that it handed on
        self.pages: dict[str, list[str]] = {}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def tags(self, id: str) -> set[str]:
        return {*self.entities[id].tags, *(tag for tags in self.handed.get(id, {}).values() for tag in tags)}

    # -- entities -----------------------------------------------------------------------------------------------------

    @rule(entity=ENTITIES)
    def add(self, entity: GraphEntity) -> None:
        if entity.id in self.entities:
            with pytest.raises(AlreadyExists):
                self.wait(self.graph.add_entity(entity))
        else:
            self.wait(self.graph.add_entity(entity))
            self.entities[entity.id] = entity

    @rule(many=st.lists(ENTITIES, max_size=4), replace=st.booleans())
    def add_many(self, many: list[GraphEntity], replace: bool) -> None:
        ids = [entity.id for entity in many]
        if not replace and (len(set(ids)) < len(ids) or self.entities.keys() & set(ids)):
            with pytest.raises(AlreadyExists):
                self.wait(self.graph.add_entities(many))
        else:
            assert self.wait(self.graph.add_entities(many, replace=replace)) == len(many)
            for entity in many:
                self.entities[entity.id] = entity
                self.handed.pop(entity.id, None)

    @rule(entity=ENTITIES)
    def update(self, entity: GraphEntity) -> None:
        if entity.id not in self.entities:
            with pytest.raises(NotFound):
                self.wait(self.graph.update_entity(entity))
        else:
            self.wait(self.graph.update_entity(entity))
            self.entities[entity.id] = entity
            self.handed.pop(entity.id, None)

    @rule(id=IDS)
    def remove(self, id: str) -> None:
        if id in self.entities:
            self.wait(self.graph.remove_entity(id))
            del self.entities[id]
            self.handed.pop(id, None)
            self.edges = {edge: weight for edge, weight in self.edges.items() if id not in edge[:2]}
        else:
            with pytest.raises(NotFound):
                self.wait(self.graph.remove_entity(id))

    # -- relations ----------------------------------------------------------------------------------------------------

    @rule(many=st.lists(st.tuples(IDS, IDS, TYPES, WEIGHTS), min_size=1, max_size=5))
    def relate(self, many: list[tuple[str, str, str, float]]) -> None:
        if any(source == target for source, target, *_ in many):
            with pytest.raises(InvalidInput):
                [self.relation(*one) for one in many]
            return
        add = self.graph.add_relations([self.relation(*one) for one in many])
        if {end for one in many for end in one[:2]} <= self.entities.keys():
            assert self.wait(add) == len(many)
            self.edges |= {one[:3]: one[3] for one in many}
        else:
            with pytest.raises(GraphError):
                self.wait(add)

    @staticmethod
    def relation(source: str, target: str, kind: str, weight: float) -> GraphRelation:
        return GraphRelation(source_id=source, target_id=target, relation_type=kind, weight=weight)

    @rule(edge=st.tuples(IDS, IDS, TYPES))
    def unrelate(self, edge: Edge) -> None:
        if edge in self.edges:
            self.wait(self.graph.remove_relation(*edge))
            del self.edges[edge]
        else:
            with pytest.raises(NotFound):
                self.wait(self.graph.remove_relation(*edge))

    @rule(id=IDS, direction=st.sampled_from(["out", "in", "both"]))
    def list_relations(self, id: str, direction: str) -> None:
        found = self.wait(self.graph.relations(id, direction=direction))
        ends = {"out": (0,), "in": (1,), "both": (0, 1)}[direction]
        expected = [
            self.relation(*edge, weight) for edge, weight in self.edges.items() if id in [edge[e] for e in ends]
        ]
        assert [one.weight for one in found] == sorted((one.weight for one in expected), reverse=True)
        assert sorted(map(str, found)) == sorted(map(str, expected))

    @rule(id=IDS, depth=st.integers(1, 4), direction=st.sampled_from(["out", "in", "both"]), kind=st.none() | TYPES)
    def traverse(self, id: str, depth: int, direction: str, kind: str | None) -> None:
        kinds = None if kind is None else [kind]
        call = self.graph.get_related(id, depth, direction=direction, relation_types=kinds, fan_out=None, timeout=None)
        found = {one.entity.id: (one.distance, one.score, one.weight) for one in self.wait(call)}
        steps = [(s, t, w) for (s, t, k), w in self.edges.items() if kind in (None, k)]
        steps = [step for step in steps if direction != "in"] + [(t, s, w) for s, t, w in steps if direction != "out"]
        best, distance = {id: 1.0}, {id: 0}
        for level in range(1, depth + 1):
            before = dict(best)
            for source, target, weight in steps:
                if source in before:
                    best[target] = max(best.get(target, 0.0), before[source] * weight)
                    distance.setdefault(target, level)
        assert found == {end: (distance[end], 1 / (1 + distance[end]), best[end]) for end in best if end != id}

    # -- tags and keywords --------------------------------------------------------------------------------------------

    @rule(id=IDS, tags=TAGS)
    def set_tags(self, id: str, tags: list[str]) -> None:
        if id not in self.entities:
            with pytest.raises(NotFound):
                self.wait(self.graph.set_entity_tags(id, tags))
        else:
            self.wait(self.graph.set_entity_tags(id, tags))
            fields = self.entities[id].model_dump()
            self.entities[id] = GraphEntity(**{**fields, "tags": tags})
            self.handed.pop(id, None)

    @rule(page=PAGES, tags=st.lists(st.sampled_from(["x", "of page", "of both"]), max_size=3, unique=True))
    def write_page(self, page: str, tags: list[str]) -> None:
        made = KnowledgePage(id=page, title=page, tags=tags)
        self.wait(self.memory.pages.add_pages([made], replace=True))
        self.pages[page] = made.tags

    @rule(page=PAGES, ids=st.lists(IDS, max_size=4))
    def hand_on(self, page: str, ids: list[str]) -> None:
        call = self.memory.pages.sync_tags(page, ids)
        if page not in self.pages or not set(ids) <= self.entities.keys():
            with pytest.raises(NotFound):
                self.wait(call)
            return
        before = {id: self.tags(id) for id in ids}
        for id in ids:
            self.handed.setdefault(id, {})[page] = self.pages[page]
        assert self.wait(call) == sum(self.tags(id) != tags for id, tags in before.items())

    @rule(
        word=st.sampled_from(
            ["red", "RED n", "x", "Y Z", "ü", "CONCEPT", "ПОНЯТИЕ", "граф", "ГРАФ ЗНАНИЙ", "状态", "图"]
        )
    )
    def find(self, word: str) -> None:
        low = word.lower()
        scores = {
            id: 3 * entity.name.lower().startswith(low)
            + 2 * ("-".join(low.split()) in self.tags(id))
            + (entity.entity_type.lower() == low)
            for id, entity in self.entities.items()
        }
        found = [entity.id for entity in self.wait(self.graph.find_by_keywords([word]))]
        assert [scores[id] for id in found] == sorted(filter(None, scores.values()), reverse=True)

    # -- always -------------------------------------------------------------------------------------------------------

    @invariant()
    def all_is_as_the_dictionaries_say(self) -> None:
        hidden = {"created_at", "updated_at", "tags"}
        for id, expected in self.entities.items():
            found = self.wait(self.graph.get_entity(id))
            assert found.model_dump(exclude=hidden) == expected.model_dump(exclude=hidden)
            assert set(found.tags) == self.tags(id)
            assert found.tags[: len(expected.tags)] == expected.tags  # its own come first
        tags = {tag for id in self.entities for tag in self.tags(id)} | {
            tag for of in self.pages.values() for tag in of
        }
        assert self.wait(self.graph.find_tags("")) == sorted(tags)
        assert self.wait(self.graph.entity_count_by_tag("X")) == sum("x" in self.tags(id) for id in self.entities)
        assert self.wait(self.db.check()).problems == []
        assert self.wait(self.db.stats()).records == len(self.entities) + len(self.pages)

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Graph.TestCase.settings = settings(SAME_EVERY_TIME, max_examples=25, stateful_step_count=30)
TestGraph = Graph.TestCase
