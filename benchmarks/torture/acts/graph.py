"""Acts on the graph: entities, their tags, and relations that go with them."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.torture.acts.act import Act, Chance, Refused, need
from benchmarks.torture.model import State
from memdb import GraphEntity, GraphRelation

TYPES = ("person", "concept", "部署")


def _entity(chance: Chance) -> list[Any]:
    return [chance.id("e"), chance.text(2), chance.random.choice(TYPES), chance.text(8), chance.tags()]


def _given(one: list[Any]) -> GraphEntity:
    id, name, kind, description, tags = one
    return GraphEntity(id=id, name=name, entity_type=kind, description=description, tags=tags)


def _relation(chance: Chance) -> list[Any]:
    known = [*chance.state["entities"], chance.id("e")]
    ends = [chance.random.choice(known) for _ in "st"]
    return [*ends, chance.random.choice(["knows", "part_of"]), chance.random.randint(0, 8) / 8]


def _add(state: State, one: list[Any]) -> None:
    need(one[0] not in state["entities"], "AlreadyExists")
    state["entities"][one[0]] = one[1:]


def _put_many(state: State, ones: list[list[Any]]) -> int:
    for one in ones:
        state["entities"][one[0]] = one[1:]
    return len(ones)


def _update(state: State, one: list[Any]) -> None:
    need(one[0] in state["entities"], "NotFound")
    state["entities"][one[0]] = one[1:]


def _remove(state: State, id: str) -> None:
    need(id in state["entities"], "NotFound")
    del state["entities"][id]
    state["relations"] = {key: weight for key, weight in state["relations"].items() if id not in json.loads(key)[:2]}


def _relate(state: State, ones: list[list[Any]]) -> int:
    if any(source == target for source, target, *_ in ones):
        raise Refused("InvalidInput")
    ends = {key for one in ones for key in one[:2]}
    need(ends <= state["entities"].keys(), "GraphError")
    for *key, weight in ones:
        state["relations"][json.dumps(key)] = weight
    return len(ones)


def _relate_all(at: Any, ones: list[list[Any]]) -> Any:
    fields = ("source_id", "target_id", "relation_type", "weight")
    return at("a").graph.add_relations([dict(zip(fields, one, strict=True)) for one in ones])


def _relate_one(at: Any, one: list[Any]) -> Any:
    source, target, kind, weight = one
    if source == target:  # GraphRelation itself refuses it
        return at("a").graph.add_relations([{"source_id": source, "target_id": target, "relation_type": kind}])
    relation = GraphRelation(source_id=source, target_id=target, relation_type=kind, weight=weight)
    return at("a").graph.add_relation(relation)


def _relate_once(state: State, one: list[Any]) -> None:
    _relate(state, [one])


def _part(state: State, args: list[str]) -> None:
    need(json.dumps(args) in state["relations"], "NotFound")
    del state["relations"][json.dumps(args)]


def _tag(state: State, args: list[Any]) -> None:
    need(args[0] in state["entities"], "NotFound")
    state["entities"][args[0]][3] = args[1]


def _known_relation(chance: Chance) -> list[str]:
    known = list(chance.state["relations"])
    if known and chance.random.random() < 0.8:
        found: list[str] = json.loads(chance.random.choice(known))
        return found
    return _relation(chance)[:3]


ACTS = [
    Act("graph.add", 2, _entity, _add, lambda at, one: at("a").graph.add_entity(_given(one))),
    Act(
        "graph.put_many", 3, lambda chance: chance.some(lambda: _entity(chance)), _put_many,
        lambda at, ones: at("a").graph.add_entities([_given(one) for one in ones], replace=True),
    ),
    Act("graph.update", 1, _entity, _update, lambda at, one: at("a").graph.update_entity(_given(one))),
    Act("graph.remove", 1, lambda chance: chance.id("e"), _remove, lambda at, id: at("a").graph.remove_entity(id)),
    Act("graph.relate", 4, _relation, _relate_once, _relate_one),
    Act("graph.relate_many", 2, lambda chance: chance.some(lambda: _relation(chance), 4), _relate, _relate_all),
    Act("graph.part", 1, _known_relation, _part, lambda at, key: at("a").graph.remove_relation(*key)),
    Act(
        "graph.tag", 1, lambda chance: [chance.id("e"), chance.tags()], _tag,
        lambda at, args: at("a").graph.set_entity_tags(*args),
    ),
]  # fmt: skip
