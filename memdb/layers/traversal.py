"""The traversal of the graph: what lies within some relations of an entity, in one statement over record numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from memdb.errors import GraphError, InvalidInput
from memdb.layers.arguments import check_bulk, check_limit, check_range
from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity, check_type, entity_of
from memdb.layers.reading import RECORD, shaped
from memdb.layers.record import UNREADABLE, Place
from memdb.layers.traversal_statement import DIRECTIONS, MAX_DEPTH, ONWARD, statement
from memdb.storage.clock import from_text
from memdb.storage.transaction import Row, Transaction
from memdb.text.check import check_choice, check_flag

__all__ = ["DEFAULT_FAN_OUT", "DIRECTIONS", "MAX_DEPTH", "Traversal", "related"]

DEFAULT_FAN_OUT = 50
MAX_FAN_OUT = 10_000
MAX_TIMEOUT_S = 3_600
_TAGS = json.JSONDecoder()
_TEXT = {str}


@dataclass(frozen=True, slots=True)
class Traversal:
    """What is asked of a traversal.

    Args:
        depth: how many relations away at most, 1 to MAX_DEPTH.
        direction: "out" follows relations from source to target, "in" from target to source, "both" either way.
        relation_types: follow only relations of these types, matched exactly; None for all, an empty tuple for none.
        fan_out: of each entity follow only its strongest relations, so many of those asked for, ties by the other
            entity's record; None for all. Equally strong ones to one entity count as one at the cap.
        limit: how many entities at most, 0 to 10,000.
        timeout: how long the search may take, in seconds; None for as long as it takes.
        paths: whether each entity comes with all relations of its best path, or with the last of them only.

    Raises:
        InvalidInput: one of them is not what it must be.
    """

    depth: int = 2
    direction: str = "both"
    relation_types: tuple[str, ...] | None = None
    fan_out: int | None = DEFAULT_FAN_OUT
    limit: int = 200
    timeout: float | None = 5.0
    paths: bool = False

    def __post_init__(self) -> None:
        check_range(self.depth, "depth", 1, MAX_DEPTH)
        check_choice(self.direction, "direction", DIRECTIONS)
        check_flag(self.paths, "paths")
        if self.relation_types is not None:
            given = check_bulk(self.relation_types, "relation_types")
            types = tuple(check_type(value, "relation_types") for value in given)
            object.__setattr__(self, "relation_types", types)
        if self.fan_out is not None:
            check_range(self.fan_out, "fan_out", 1, MAX_FAN_OUT)
        check_limit(self.limit)
        timeout = self.timeout
        if timeout is not None and (
            isinstance(timeout, bool)
            or not isinstance(timeout, int | float)
            or not 0 < timeout <= MAX_TIMEOUT_S  # nor is what is no number
        ):
            raise InvalidInput(f"timeout must be more than 0 and at most {MAX_TIMEOUT_S:,} seconds, or None")


def related(tx: Transaction, place: Place, start: Sequence[int], how: Traversal) -> list[ScoredEntity]:
    """Return the entities within `how.depth` relations of any of `start`: nearest first, by weight, by record number.

    Expired entities are left out, though paths may lead over them; one whose row cannot be read is left out and marked
    for the quarantine. Of paths that weigh the same, the one told is that of the fewest relations.

    Args:
        start: the record numbers of the entities to start from; they are not in the answer.
        how: what is asked.

    Raises:
        GraphError: the search took longer than `how.timeout`.
    """
    if not start or not how.limit or how.relation_types == ():
        return []
    values = place.values(start=json.dumps(list(start)), now=tx.now)
    if how.fan_out is not None:
        values["fan_out"] = how.fan_out
    if how.relation_types is not None:
        values["types"] = json.dumps(how.relation_types)
    try:
        with nullcontext() if how.timeout is None else tx.deadline(how.timeout):
            return _answer(tx, place, _nearest(tx, values, how), paths=how.paths)
    except TimeoutError:
        raise GraphError(
            f"the search at depth {how.depth} took longer than {how.timeout:g} seconds and was given up; ask for less:"
            " a smaller depth or fan_out, fewer relation_types or a smaller limit, or give it a longer timeout"
        ) from None


def _nearest(tx: Transaction, values: dict[str, Any], how: Traversal) -> list[Row]:
    """Return the rows of the nearest entities that there are.

    What has expired or is gone takes places of the statement's answer: it is asked again for as many more, which only
    a file changed by hand makes necessary.
    """
    typed, capped = how.relation_types is not None, how.fan_out is not None
    sql = statement(how.depth, how.direction, typed=typed, capped=capped, paths=how.paths)
    enough = how.limit
    while True:
        rows = tx.rows(sql, {**values, "enough": enough})
        there = [row for row in rows if row[1] is not None]
        if len(there) >= how.limit or len(rows) < enough:
            return there[: how.limit]
        enough = how.limit + 2 * (len(rows) - len(there))


_WALKED = """
SELECT relation.id, relation.source_id, relation.target_id, relation.relation_type, relation.weight
  FROM json_each(:relations) AS wanted CROSS JOIN relation ON relation.id = wanted.value
 WHERE +relation.user_id = :user_id"""
_KEYS = """
SELECT record.id, record.key FROM json_each(:ids) AS wanted CROSS JOIN record ON record.id = wanted.value
 WHERE +record.user_id = :user_id"""


def _answer(tx: Transaction, place: Place, rows: list[Row], *, paths: bool) -> list[ScoredEntity]:
    """Return what the rows of the statement say, without the entities that cannot be read."""
    told = _whole(tx, place, rows) if paths else _last(tx, place, rows)
    found = []
    for row, relations in zip(rows, told, strict=True):
        entity = _unusual(tx, row) if tx.lenient else _entity(*row[1:8]) or _unusual(tx, row)
        if entity is not None:
            found.append(ScoredEntity(entity, row[8], 1 / (1 + row[8]), row[9], relations))
    return found


def _last(tx: Transaction, place: Place, rows: list[Row]) -> list[list[GraphRelation]]:
    """Return the relation by which each row's path arrives; none where what it leads from is gone."""
    keys = _keys(tx, place, rows, {row[10] for row in rows})
    told = []
    for row in rows:
        key, (before, by, kind, weight) = row[1], row[10:]
        if str is type(from_key := keys.get(before)) is type(kind):
            source, target = (from_key, key) if by == ONWARD else (key, from_key)
            one = GraphRelation.trusted(source_id=source, target_id=target, relation_type=kind, weight=weight)
            told.append([one])
        else:
            told.append([])
    return told


def _whole(tx: Transaction, place: Place, rows: list[Row]) -> list[list[GraphRelation]]:
    """Return the relations of each row's path, in order, without those of which an end is gone."""
    paths = [[int(number) for number in row[10].split(",")] for row in rows]
    wanted = json.dumps(list({number for path in paths for number in path}))
    walked = tx.rows(_WALKED, place.values(relations=wanted))
    keys = _keys(tx, place, rows, {end for relation in walked for end in relation[1:3]})
    known = {
        number: {"source_id": source_id, "target_id": target_id, "relation_type": kind, "weight": weight}
        for number, source, target, kind, weight in walked
        if str is type(source_id := keys.get(source)) is type(target_id := keys.get(target)) is type(kind)
    }
    return [[GraphRelation.trusted(**known[number]) for number in path if number in known] for path in paths]


def _keys(tx: Transaction, place: Place, rows: list[Row], numbers: set[int]) -> dict[int, str]:
    """Return the keys of records by their numbers; most are among the rows."""
    keys = {row[0]: row[1] for row in rows}
    missing = json.dumps(list(numbers - keys.keys()))
    keys.update(tx.rows(_KEYS, place.values(ids=missing)))
    return keys


def _entity(
    key: str, name: str, kind: str, description: str, tags: str, created_at: str, updated_at: str
) -> GraphEntity | None:
    """Return an entity of the columns that are read of it; None where one is not as memdb writes it.

    What entity_of makes of a whole record, but faster (200 entities: 0.8 ms and 0.5), which counts beside a search.
    """
    if not str is type(key) is type(name) is type(kind) is type(description) is type(tags):
        return None
    try:
        words, end = _TAGS.raw_decode(tags)
        created = from_text(created_at)
        updated = created if updated_at == created_at else from_text(updated_at)
    except UNREADABLE:
        return None
    if end != len(tags) or type(words) is not list or not _TEXT.issuperset(map(type, words)):
        return None
    return GraphEntity.trusted(
        id=key,
        name=name,
        entity_type=kind,
        description=description,
        tags=words,
        created_at=created,
        updated_at=updated,
    )


def _unusual(tx: Transaction, row: Row) -> GraphEntity | None:
    """Return an entity by way of its whole record, as all layers do; what cannot be read is marked and None."""
    whole = tx.one(RECORD.by_id, id=row[0])
    return None if whole is None else next(shaped(tx, [whole], entity_of), None)
