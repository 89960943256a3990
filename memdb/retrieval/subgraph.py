"""The graph as a person looks at it: an entity by what it is called, what lies around it, the whole; over `tx`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from memdb.errors import NotFound
from memdb.layers import reading
from memdb.layers.arguments import MAX_LIMIT, check_key, check_limit
from memdb.layers.entity import LAYER, GraphEntity, GraphRelation, ScoredEntity, entity_of, numbered_entity
from memdb.layers.keyword_lookup import ENTITY_FIELDS, named
from memdb.layers.recall import RecallStats, recall_stats
from memdb.layers.record import Place
from memdb.layers.tags import vocabulary
from memdb.layers.traversal import Traversal, related
from memdb.retrieval.find import find
from memdb.scope import Scope
from memdb.storage.transaction import Row, Transaction

MOST_NAMED = 10  # entities that a sentence names
_BY_NAME = ENTITY_FIELDS[:1]

_EXACTLY = """
SELECT record.id FROM record
 WHERE record.user_id = :user_id AND record.layer = 'entity' AND record.title != ''
   AND record.title = :name COLLATE NOCASE AND record.title = :name LIMIT :limit"""
_WEIGHT = """
SELECT relation.weight FROM relation
 WHERE relation.user_id = :user_id AND relation.source_id = :source AND relation.target_id = :target
   AND relation.relation_type = :type"""
_STRONGEST = """
SELECT relation.source_id, relation.target_id, relation.relation_type, relation.weight FROM relation
 WHERE relation.user_id = :user_id AND relation.weight BETWEEN 0 AND 1
 ORDER BY relation.weight DESC, relation.id LIMIT :limit"""
_LONELY = """
SELECT record.id FROM record
 WHERE record.user_id = :user_id AND record.layer = 'entity' AND record.session_id = ''
   AND NOT EXISTS (SELECT 1 FROM relation WHERE relation.user_id = :user_id AND relation.source_id = record.id)
   AND NOT EXISTS (SELECT 1 FROM relation WHERE relation.user_id = :user_id AND relation.target_id = record.id)
 ORDER BY record.id LIMIT :limit"""
# Both directions of every entity in `near`, which are [number, distance]: the nearest first, then the strongest.
_AROUND = """
SELECT source_id, target_id, relation_type, weight FROM (
  SELECT edge.id, edge.source_id, edge.target_id, edge.relation_type, edge.weight, near.value ->> 1 AS distance
    FROM json_each(:near) AS near CROSS JOIN relation AS edge
      ON edge.user_id = :user_id AND edge.source_id = near.value ->> 0
   UNION ALL
  SELECT edge.id, edge.source_id, edge.target_id, edge.relation_type, edge.weight, near.value ->> 1
    FROM json_each(:near) AS near CROSS JOIN relation AS edge
      ON edge.user_id = :user_id AND edge.target_id = near.value ->> 0)
 WHERE weight BETWEEN 0 AND 1
 GROUP BY id ORDER BY min(distance), weight DESC, id LIMIT :limit"""
_TAG_COUNTS = """
SELECT wanted.value,
       (SELECT count(*) FROM record_tag AS kept
         WHERE kept.user_id = :user_id AND kept.tag = wanted.value AND kept.layer = 'entity'),
       (SELECT count(*) FROM record_tag AS kept
         WHERE kept.user_id = :user_id AND kept.tag = wanted.value AND kept.layer = 'page')
  FROM json_each(:tags) AS wanted"""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A part of a user's graph.

    Args:
        entities: by id: the ends of the relations in the order in which these name them, then those without any.
        relations: between these entities.
        more: whether there is more than was asked for.
        start: the entity that it lies around; None for the whole.
        recalls: how often that was recalled; None for never.
    """

    entities: dict[str, GraphEntity]
    relations: list[GraphRelation]
    more: bool
    start: GraphEntity | None = None
    recalls: RecallStats | None = None


class TagCount(NamedTuple):
    """A tag of a user's vocabulary.

    Args:
        tag: the tag.
        entities: how many entities have it.
        pages: how many pages have it.
    """

    tag: str
    entities: int
    pages: int


def called(tx: Transaction, scope: Scope, text: str) -> list[GraphEntity]:
    """Return the entities of exactly this id, else of exactly this name, else of this name but for its case.

    At most MOST_NAMED + 1.

    Raises:
        InvalidInput: the text can be no id.
    """
    place = Place.of(LAYER, scope)
    if (found := reading.get(tx, place, check_key(text, "ENTITY"), entity_of)) is not None:
        return [found]
    rows = tx.rows(_EXACTLY, {"user_id": scope.user_id, "name": text, "limit": MOST_NAMED + 1})
    if rows:
        return _entities(tx, scope, (number for (number,) in rows))
    return [entity for entity in _begun(tx, scope, text) if entity.name.casefold() == text.casefold()][: MOST_NAMED + 1]


def _begun(tx: Transaction, scope: Scope, text: str) -> list[GraphEntity]:
    """Return the entities whose name begins with a text, without regard to case."""
    return [*reading.shaped(tx, named(tx, Place.of(LAYER, scope), [text], _BY_NAME, MAX_LIMIT), entity_of)]


def meant(tx: Transaction, scope: Scope, text: str) -> GraphEntity:
    """Return the entity that a person means: of this id, else of this name, else the only one whose name begins so.

    Raises:
        NotFound: there is none, or several; the message names what it could be.
    """
    if len(exact := called(tx, scope, text)) == 1:
        return exact[0]
    begun = exact or _begun(tx, scope, text)
    if len(begun) == 1:
        return begun[0]
    if begun:
        what = "have the name" if exact else "have a name that begins with"
        raise NotFound(f"several entities {what} {_short(text)}; say which by its id: {listed(begun)}")
    hits = (reading.get(tx, Place.of(LAYER, scope), hit.id, entity_of) for hit in find(tx, scope, text, 5, LAYER))
    near = listed([entity for entity in hits if entity is not None])
    raise NotFound(f"there is no entity {_short(text)}" + (f"; what comes near it: {near}" if near else ""))


def around(tx: Transaction, scope: Scope, text: str, depth: int = 1, limit: int = 200) -> Subgraph:
    """Return an entity and the relations on the way of whoever goes `depth` relations from it, in any direction.

    Args:
        text: the entity, as `meant` takes it.
        depth: 1 for its own relations, 2 for those of its neighbours too, at most 6.
        limit: how many relations at most: the nearest, of these the strongest.

    Raises:
        NotFound: it is not certain which entity is meant.
        GraphError: it took longer than 5 seconds.
    """
    start, place = meant(tx, scope, text), Place.of(LAYER, scope)
    how = Traversal(depth, fan_out=None, limit=min(check_limit(limit) + 1, MAX_LIMIT))
    distances = {start.id: 0}
    if depth > 1:
        number = reading.numbers(tx, place, [start.id])
        nearer = related(tx, place, [*number.values()], replace(how, depth=depth - 1))
        distances |= {one.entity.id: one.distance for one in nearer}
    near = [[number, distances[key]] for key, number in reading.numbers(tx, place, distances).items()]
    rows = tx.rows(_AROUND, {"user_id": scope.user_id, "near": json.dumps(near), "limit": limit + 1})
    entities, relations = _joined(tx, scope, rows[:limit])
    entities = {start.id: start, **entities}
    return Subgraph(entities, relations, len(rows) > limit, start, recall_stats(tx, place, start.id))


def whole(tx: Transaction, scope: Scope, limit: int = 200) -> Subgraph:
    """Return a user's graph: the strongest relations, then, where there is room, the entities without any.

    Args:
        limit: how many relations and lonely entities at most.
    """
    values = {"user_id": scope.user_id, "limit": check_limit(limit) + 1}
    rows = tx.rows(_STRONGEST, values)
    entities, relations = _joined(tx, scope, rows[:limit])
    room = limit - len(rows)
    lonely = [] if room < 0 else tx.rows(_LONELY, {**values, "limit": room + 1})
    alone = _entities(tx, scope, (number for (number,) in lonely[: max(room, 0)]))
    entities |= {entity.id: entity for entity in alone}
    return Subgraph(entities, relations, len(rows) > limit or len(lonely) > room)


def reached(tx: Transaction, scope: Scope, text: str, how: Traversal) -> tuple[GraphEntity, list[ScoredEntity]]:
    """Return the entity that a person means, and what it is related to.

    Raises:
        NotFound: it is not certain which entity is meant.
        GraphError: it took too long.
    """
    start, place = meant(tx, scope, text), Place.of(LAYER, scope)
    return start, related(tx, place, list(reading.numbers(tx, place, [start.id]).values()), how)


def weight(tx: Transaction, scope: Scope, source_id: str, relation_type: str, target_id: str) -> float | None:
    """Return the weight of a relation, None where there is none."""
    numbers = reading.numbers(tx, Place.of(LAYER, scope), (source_id, target_id))
    if len(numbers) < 2:
        return None
    ends = {"source": numbers[source_id], "target": numbers[target_id]}
    rows = tx.rows(_WEIGHT, {"user_id": scope.user_id, "type": relation_type, **ends})
    return rows[0][0] if rows else None


def tag_counts(tx: Transaction, scope: Scope, prefix: str = "", limit: int = 100) -> list[TagCount]:
    """Return the tags that begin with a prefix, alphabetically, with how many entities and pages have each."""
    tags = json.dumps(vocabulary(tx, scope.user_id, prefix, limit), ensure_ascii=False)
    return [TagCount(*row) for row in tx.rows(_TAG_COUNTS, {"user_id": scope.user_id, "tags": tags})]


def listed(entities: list[GraphEntity]) -> str:
    """Return entities as a sentence names them: 'sqlite' (SQLite), 'fts5' (FTS5) and more."""
    known = [f"{_short(one.id)} ({_short(one.name)[1:-1]})" for one in entities[:MOST_NAMED]]
    return ", ".join(known) + (" and more" if len(entities) > MOST_NAMED else "")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _entities(tx: Transaction, scope: Scope, numbers: Iterable[int]) -> list[GraphEntity]:
    """Return the entities of these record numbers, in the order of adding."""
    return [entity for _, entity in sorted(_numbered(tx, scope, numbers).items())]


def _numbered(tx: Transaction, scope: Scope, numbers: Iterable[int]) -> dict[int, GraphEntity]:
    rows = [row for row in reading.by_ids(tx, scope.user_id, numbers) if row[1] == LAYER]
    return dict(reading.shaped(tx, rows, numbered_entity))


def _joined(tx: Transaction, scope: Scope, rows: list[Row]) -> tuple[dict[str, GraphEntity], list[GraphRelation]]:
    """Return the ends of relations, by id, and the relations; without those whose ends cannot be read."""
    order = dict.fromkeys(number for row in rows for number in row[:2])
    found = _numbered(tx, scope, order)
    relations = [
        GraphRelation.trusted(
            source_id=found[source].id, target_id=found[target].id, relation_type=kind, weight=float(strength)
        )
        for source, target, kind, strength in rows
        if source in found and target in found and isinstance(kind, str)
    ]
    return {found[number].id: found[number] for number in order if number in found}, relations
