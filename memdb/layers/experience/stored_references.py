"""What patterns and skills refer to: the episodes they come from, and whatever they link to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select

from memdb.layers.experience.stored import IDENTITY, OF_ROW, ROW
from memdb.storage.schema import record, record_reference
from memdb.storage.statement import Statement, insert, json_field
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_ID_CHARS

_FORGET = Statement(
    delete(record_reference).where(record_reference.c.source_id.in_(select(record.c.id).where(*OF_ROW)))
)
_REFER = Statement(
    insert(record_reference).from_select(
        ["source_id", "position", "user_id", "target_layer", "target_key"],
        select(
            record.c.id,
            json_field(ROW, "position"),
            record.c.user_id,
            json_field(ROW, "target_layer"),
            json_field(ROW, "target_key"),
        ).where(*OF_ROW),
    )
)


def refer(tx: Transaction, rows: Sequence[Mapping[str, Any]], targets: Sequence[Sequence[tuple[str, str]]]) -> None:
    """Replace what records refer to.

    Args:
        rows: the records, with the columns of their identity.
        targets: layer and key of what each refers to, in order; what can be no key is left out.
    """
    places = [{name: one[name] for name in IDENTITY} for one in rows]
    tx.run(_FORGET, rows=json.dumps(places))
    edges = [
        {**place, "position": position, "target_layer": layer, "target_key": key}
        for place, mine in zip(places, targets, strict=True)
        for position, (layer, key) in enumerate((layer, key) for layer, key in mine if 0 < len(key) <= MAX_ID_CHARS)
    ]
    if edges:
        tx.run(_REFER, rows=json.dumps(edges))
