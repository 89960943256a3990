"""References between records: what a record points at, in order, and what points at it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlalchemy import delete, select

from memdb.layers.reading import numbers
from memdb.layers.record import Place
from memdb.storage.schema import record, record_reference
from memdb.storage.statement import Statement, each, insert, json_field, param
from memdb.storage.transaction import Transaction

_FORGET_REFERENCES = Statement(
    delete(record_reference).where(record_reference.c.source_id.in_(select(each("ids").c.value)))
)
_ROW = each("rows").c.value
_REFER = Statement(
    insert(record_reference).from_select(
        ["source_id", "position", "user_id", "target_layer", "target_key"],
        select(
            json_field(_ROW, "source"),
            json_field(_ROW, "position"),
            param("user_id"),
            param("layer"),
            json_field(_ROW, "target"),
        ),
    )
)
_REFERENCES = Statement(
    select(record_reference.c.source_id, record_reference.c.target_key)
    .where(
        record_reference.c.source_id.in_(select(each("ids").c.value)),
        record_reference.c.user_id.concat("") == param("user_id"),
    )
    .order_by(record_reference.c.source_id, record_reference.c.position)
)
_REFERRERS = Statement(
    select(record.c.key)
    .join(record_reference, record_reference.c.source_id == record.c.id)
    .where(
        record_reference.c.user_id == param("user_id"),
        record_reference.c.target_layer == param("layer"),
        record_reference.c.target_key == param("key"),
    )
    .order_by(record.c.id)
)


def set_references(tx: Transaction, place: Place, targets: Mapping[str, list[str]], *, fresh: bool) -> None:
    """Replace what records refer to, in their own layer.

    Args:
        targets: the key of each record -> the keys it refers to, in order.
        fresh: whether the records are new, so that there is nothing to replace.
    """
    named = {key: keys for key, keys in targets.items() if keys or not fresh}
    if not named:
        return
    ids = numbers(tx, place, named)
    if not fresh:
        tx.run(_FORGET_REFERENCES, ids=json.dumps(list(ids.values())))
    rows = [
        {"source": ids[key], "position": position, "target": target}
        for key, keys in named.items()
        for position, target in enumerate(keys)
    ]
    if rows:
        tx.run(_REFER, rows=json.dumps(rows), user_id=place.user_id, layer=place.layer)


def references(tx: Transaction, user_id: str, ids: Iterable[int]) -> dict[int, list[str]]:
    """Return what records refer to: record id -> keys, in order."""
    found: dict[int, list[str]] = {}
    for source, target in tx.all(_REFERENCES, ids=json.dumps(list(ids)), user_id=user_id):
        found.setdefault(source, []).append(target)
    return found


def referrers(tx: Transaction, place: Place, key: str) -> list[str]:
    """Return the keys of the records of any layer that refer to a key of this place, oldest first."""
    return [found for (found,) in tx.all(_REFERRERS, **place.values(key=key))]
