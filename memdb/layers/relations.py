"""Relations between entities as rows: put, take away, list; over a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Integer, Select, bindparam, delete, select, text, true, union_all

from memdb.errors import GraphError
from memdb.layers import reading
from memdb.layers.entity import GraphRelation
from memdb.layers.record import Place
from memdb.layers.tags import first_of
from memdb.layers.traversal_statement import DIRECTIONS
from memdb.storage.schema import record, relation
from memdb.storage.statement import Statement, each, insert, json_field, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.check import check_choice, is_valid

_IDENTITY = ["user_id", "source_id", "target_id", "relation_type"]
_ROW = each("rows").c.value
_EACH = insert(relation).from_select(
    [*_IDENTITY, "weight", "created_at"],
    select(
        param("user_id"),
        json_field(_ROW, "source"),
        json_field(_ROW, "target"),
        json_field(_ROW, "type"),
        json_field(_ROW, "weight"),
        param("now"),
    ).where(true()),
)
_PUT_EACH = Statement(_EACH.on_conflict_do_update(index_elements=_IDENTITY, set_={"weight": _EACH.excluded.weight}))
_REMOVE = Statement(
    delete(relation).where(
        relation.c.user_id == param("user_id"),
        relation.c.source_id == bindparam("source_id", type_=Integer()),
        relation.c.target_id == bindparam("target_id", type_=Integer()),
        relation.c.relation_type == param("relation_type"),
    )
)
_SOURCE, _TARGET = record.alias("source"), record.alias("target")


def _of(end: str) -> Select[Row]:
    """The relations at one end of an entity, the strongest first; both ends must be entities of the user."""
    ends = [
        condition
        for side, number in ((_SOURCE, relation.c.source_id), (_TARGET, relation.c.target_id))
        for condition in (
            side.c.id == number,
            side.c.user_id.concat("") == param("user_id"),  # or SQLite would walk the user's whole index
            side.c.layer.concat("") == text("'entity'"),
        )
    ]
    other = relation.c.target_id if end == "source_id" else relation.c.source_id
    here = bindparam("entity", type_=Integer())
    found = select(
        _SOURCE.c.key.label("source"),
        _TARGET.c.key.label("target"),
        relation.c.relation_type.label("type"),
        relation.c.weight.label("weight"),
        relation.c.id.label("id"),
    ).where(
        relation.c.user_id == param("user_id"),
        relation.c[end] == here,
        other != here,  # by hand only, and then once
        relation.c.weight.between(0, 1),  # what a hand has left there is no number
        *ends,
    )
    return found.order_by(relation.c.weight.desc(), relation.c.id).limit(param("limit"))


def _listed(*ends: str) -> Statement:
    arms = [select(_of(end).subquery()) for end in ends]
    found = union_all(*arms).subquery() if len(arms) > 1 else arms[0].subquery()
    return Statement(select(found).order_by(found.c.weight.desc(), found.c.id).limit(param("limit")))


_LISTS = {"out": _listed("source_id"), "in": _listed("target_id"), "both": _listed("source_id", "target_id")}


def put_relations(tx: Transaction, place: Place, relations: Sequence[GraphRelation]) -> None:
    """Insert relations; one of the same source, target and type gets the new weight, of two given the later's.

    Raises:
        GraphError: an entity is not there; nothing is stored.
    """
    if not relations:
        return
    ends = dict.fromkeys(key for one in relations for key in (one.source_id, one.target_id))
    numbers = reading.numbers(tx, place, ends)
    if missing := [key for key in ends if key not in numbers]:
        none, them = ("is no entity", "it") if len(missing) == 1 else ("are no entities", "them")
        raise GraphError(
            f"there {none} {first_of(missing)} for a relation to join; add {them} first; nothing was stored"
        )
    rows = [
        {
            "source": numbers[one.source_id],
            "target": numbers[one.target_id],
            "type": one.relation_type,
            "weight": one.weight,
        }
        for one in relations
    ]
    tx.run(_PUT_EACH, rows=json.dumps(rows, ensure_ascii=False), user_id=place.user_id, now=tx.now)


def remove_relation(tx: Transaction, place: Place, source: str, target: str, relation_type: str) -> bool:
    """Delete a relation. Returns whether it was there."""
    numbers = reading.numbers(tx, place, (source, target))
    if source not in numbers or target not in numbers:
        return False
    ends = {"source_id": numbers[source], "target_id": numbers[target]}
    return tx.run(_REMOVE, user_id=place.user_id, relation_type=relation_type, **ends) > 0


def listed_relations(tx: Transaction, place: Place, key: str, direction: str, limit: int) -> list[GraphRelation]:
    """Return an entity's relations, the strongest first, ties in the order of adding.

    Args:
        direction: one of DIRECTIONS.

    Raises:
        InvalidInput: it is none of them.
    """
    check_choice(direction, "direction", DIRECTIONS)
    number = reading.numbers(tx, place, (key,)).get(key)
    if number is None:
        return []
    rows = tx.all(_LISTS[direction], user_id=place.user_id, entity=number, limit=limit)
    return [GraphRelation.trusted(**_fields(row)) for row in rows if all(map(_is_text, row[:3]))]


def _fields(row: Row) -> dict[str, object]:
    return dict(zip(("source_id", "target_id", "relation_type", "weight"), row, strict=False))


def _is_text(value: object) -> bool:
    """Whether a hand has left what it should be: a relation whose name cannot be read is left out."""
    return isinstance(value, str) and is_valid(value)
