"""Entities and relations as they are printed: for a person, and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memdb.cli import output

if TYPE_CHECKING:
    from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity
    from memdb.layers.recall import RecallStats
    from memdb.retrieval.subgraph import Subgraph

HINT = "--format dot or mermaid prints it for drawing, json for programs"


def label(entity: GraphEntity) -> str:
    """Return what an entity is called, with its id where that is another."""
    return entity.name if entity.name == entity.id else f"{entity.name} ({entity.id})"


def entity_data(entity: GraphEntity) -> dict[str, Any]:
    """Return an entity as it is printed in JSON."""
    return entity.model_dump(mode="json")


def graph_data(found: Subgraph) -> dict[str, Any]:
    """Return a part of the graph as it is printed in JSON."""
    data = {
        "entities": [entity_data(entity) for entity in found.entities.values()],
        "relations": [relation.model_dump() for relation in found.relations],
        "more": found.more,
    }
    if found.start is None:
        return data
    return {"entity": {**entity_data(found.start), "recalls": _recalls_data(found.recalls)}, **data}


def _recalls_data(stats: RecallStats | None) -> dict[str, Any] | None:
    from memdb.storage.clock import to_text

    if stats is None:
        return None
    mean = round(stats.total_score / stats.recall_count, 4)
    return {"count": stats.recall_count, "mean_score": mean, "last": to_text(stats.last_recall_at)}


def related_data(start: GraphEntity | None, found: Sequence[ScoredEntity]) -> dict[str, Any]:
    """Return what an entity is related to as it is printed in JSON."""
    hits = [
        {
            "entity": entity_data(hit.entity),
            "distance": hit.distance,
            "score": round(hit.score, 4),
            "weight": round(hit.weight, 4),
            "relations": [relation.model_dump() for relation in hit.relations],
        }
        for hit in found
    ]
    return {"start": start and entity_data(start), "related": hits}


def show_graph(found: Subgraph) -> None:
    """Print a part of the graph: the entity it lies around, then a row a relation, then who has none."""
    if found.start is not None:
        _show_entity(found.start, found.recalls)
    names = {id: label(entity) for id, entity in found.entities.items()}
    rows = [
        (names[one.source_id], one.relation_type, names[one.target_id], f"{one.weight:.2f}") for one in found.relations
    ]
    joined = {id for one in found.relations for id in (one.source_id, one.target_id)}
    if found.start is None:
        rows += [(name, "", "", "") for id, name in names.items() if id not in joined]
    elif rows:
        output.say("")
    if rows:
        output.table(("source", "relation", "target", "weight"), rows, numbers=("weight",))
    if output.on_terminal() and found.relations:
        count = output.amount(len(found.relations), "relation")
        output.say(f"{count} of {len(joined):,} entities; {HINT}")


def _show_entity(entity: GraphEntity, recalls: RecallStats | None) -> None:
    told = ""
    if recalls is not None:
        mean = recalls.total_score / recalls.recall_count
        told = f"{recalls.recall_count:,}, mean score {mean:.2f}, last {recalls.last_recall_at:%Y-%m-%d %H:%M} UTC"
    lines = {
        "name": entity.name,
        "id": entity.id,
        "type": entity.entity_type,
        "tags": ", ".join(entity.tags),
        "recalls": told or "none",
        "updated": f"{entity.updated_at:%Y-%m-%d %H:%M:%S} UTC",
    }
    output.say(*(f"{name:<11} {output.one_line(value)}" for name, value in lines.items() if value))
    if entity.description:
        output.say("", output.printable(entity.description))


def show_related(start: GraphEntity, found: Sequence[ScoredEntity]) -> None:
    """Print what an entity is related to, the nearest first, and how it is reached."""
    names = {one.id: one.name for one in (start, *(hit.entity for hit in found))}
    output.table(
        ("distance", "weight", "entity", "type", "reached by"),
        [
            (f"{hit.distance}", f"{hit.weight:.2f}", label(hit.entity), hit.entity.entity_type, way(names, start, hit))
            for hit in found
        ],
        numbers=("distance", "weight"),
    )
    if output.on_terminal():
        output.say(HINT)


def way(names: Mapping[str, str], start: GraphEntity, hit: ScoredEntity) -> str:
    """Return how an entity is reached: Ana -lives_in-> Lisbon <-flows_through- Tagus.

    Args:
        names: what the entities are called, by id.
        start: where the way begins, if all of it is told.
        hit: the entity with its relations.
    """
    if not hit.relations:
        return ""
    at = start.id
    if at not in (hit.relations[0].source_id, hit.relations[0].target_id):  # the last relation alone
        at = _other(hit.relations[0], hit.entity.id)
    told = names.get(at, at)
    for one in hit.relations:
        to = _other(one, at)
        told += f" -{one.relation_type}-> " if one.source_id == at else f" <-{one.relation_type}- "
        told += names.get(to, to)
        at = to
    return told


def _other(relation: GraphRelation, id: str) -> str:
    return relation.target_id if relation.source_id == id else relation.source_id
