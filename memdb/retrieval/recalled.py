"""What proved useful, and what never did: recall statistics over all layers of a user, as read units over `tx`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select

from memdb.layers.archive import LAYER as ARCHIVE
from memdb.layers.arguments import check_limit
from memdb.layers.entity import LAYER as ENTITIES
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.items import LAYER as ITEMS
from memdb.layers.page import LAYER as PAGES
from memdb.layers.reading import alive
from memdb.layers.recall import RecallBasedConfig, RecallStats, value
from memdb.layers.record import UNREADABLE
from memdb.scope import Scope
from memdb.storage.clock import from_text
from memdb.storage.schema import recall, record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.check import check_choice

LAYERS = (
    ITEMS,
    PAGES,
    ENTITIES,
    ARCHIVE,
    EPISODE,
    PATTERN,
    SKILL,
)  # that live by user and whose records can be recalled


@dataclass(frozen=True, slots=True)
class Usefulness:
    """How useful a record proved.

    Args:
        layer: the layer's name in the file, such as "page" or "item".
        id: the record's id in its layer.
        created_at: when it was first stored.
        stats: how often it was recalled; None for never.
        value: what it is worth by that, see RecallStats.value, with the default weights; 0 for what was never recalled.
    """

    layer: str
    id: str
    created_at: datetime
    stats: RecallStats | None
    value: float


_ORDERS: dict[str, ColumnElement[Any]] = {
    "value": value(),
    "count": recall.c.recall_count,
    "score": recall.c.total_score / recall.c.recall_count,
    "last": recall.c.last_recall_at,
}
ORDERS = tuple(_ORDERS)

_READ = (record.c.layer, record.c.key, record.c.created_at)
_THEIRS = and_(
    record.c.user_id == param("user_id"),
    record.c.layer.in_(select(each("layers").c.value)),
    alive(),
)
_RECALLED = {
    name: Statement(
        select(*_READ, recall.c.recall_count, recall.c.total_score, recall.c.last_recall_at)
        .join(recall, recall.c.record_id == record.c.id)
        .where(_THEIRS, recall.c.recall_count > 0)
        .order_by(order.desc(), record.c.id)
        .limit(param("limit"))
    )
    for name, order in _ORDERS.items()
}
_NEVER = Statement(
    select(*_READ)
    .outerjoin(recall, recall.c.record_id == record.c.id)
    .where(_THEIRS, or_(recall.c.recall_count.is_(None), recall.c.recall_count == 0))
    .order_by(record.c.created_at, record.c.id)
    .limit(param("limit"))
)


def recalled(
    tx: Transaction, scope: Scope, limit: int = 20, *, layers: Sequence[str] = LAYERS, order: str = "value"
) -> list[Usefulness]:
    """Return the records of a user that were recalled. Looking does not count.

    Args:
        limit: how many at most, 0 to 10,000.
        layers: only of these layers, by their names in the file.
        order: one of ORDERS: by value, by number of recalls, by mean score, by the time of the last recall.

    Returns:
        Highest first, ties in the order of adding.

    Raises:
        InvalidInput: the limit is out of range, or there is no such order.
    """
    check_choice(order, "order", ORDERS)
    weights = RecallBasedConfig().weights if order == "value" else {}
    return _shaped(tx, tx.all(_RECALLED[order], **_values(tx, scope, limit, layers), **weights))


def never_recalled(
    tx: Transaction, scope: Scope, limit: int = 20, *, layers: Sequence[str] = LAYERS
) -> list[Usefulness]:
    """Return the records of a user that were never recalled.

    Args:
        limit: how many at most, 0 to 10,000.
        layers: only of these layers, by their names in the file.

    Returns:
        Oldest first, ties in the order of adding.

    Raises:
        InvalidInput: the limit is out of range.
    """
    return _shaped(tx, tx.all(_NEVER, **_values(tx, scope, limit, layers)))


def _values(tx: Transaction, scope: Scope, limit: int, layers: Sequence[str]) -> dict[str, object]:
    return {
        "user_id": scope.user_id,
        "layers": json.dumps(list(layers)),
        "limit": check_limit(limit),
        "now": tx.now,
    }


def _shaped(tx: Transaction, rows: list[Row]) -> list[Usefulness]:
    """Return what rows say, without those that a hand has left unreadable."""
    now, made = from_text(tx.now), []
    for layer, key, created_at, *counted in rows:
        try:
            stats = RecallStats(counted[0], counted[1], from_text(counted[2])) if counted else None
            made.append(Usefulness(layer, key, from_text(created_at), stats, stats.value(now) if stats else 0.0))
        except UNREADABLE:
            continue
    return [one for one in made if isinstance(one.id, str)]
