"""Recall statistics: which memories proved useful."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage.clock import from_text
from memdb.storage.schema import recall, record
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction


@dataclass(frozen=True, slots=True)
class RecallStats:
    """How useful a record proved (agcore document, section 4.3).

    Args:
        recall_count: how often it was recalled.
        total_score: the sum of the scores; the mean is total_score / recall_count.
        last_recall_at: when it was last recalled, in UTC.
    """

    recall_count: int
    total_score: float
    last_recall_at: datetime


_RECALL = insert(recall).from_select(
    ["record_id", "recall_count", "total_score", "last_recall_at"],
    select(record.c.id, func.abs(1), param("score"), param("now")).where(here(), record.c.key == param("key")),
)
_RECORD_RECALL = Statement(
    _RECALL.on_conflict_do_update(
        index_elements=["record_id"],
        set_={
            "recall_count": recall.c.recall_count + 1,
            "total_score": recall.c.total_score + _RECALL.excluded.total_score,
            "last_recall_at": _RECALL.excluded.last_recall_at,
        },
    )
)
_RECALL_STATS = Statement(
    select(recall.c.recall_count, recall.c.total_score, recall.c.last_recall_at)
    .join(record, record.c.id == recall.c.record_id)
    .where(here(), record.c.key == param("key"), recall.c.recall_count > 0)
)


def record_recall(tx: Transaction, place: Place, key: str, score: float) -> None:
    """Count one recall of a record; nothing happens when it is not there (any more)."""
    tx.run(_RECORD_RECALL, **place.values(key=key, score=score, now=tx.now))


def recall_stats(tx: Transaction, place: Place, key: str) -> RecallStats | None:
    """Return how often a record was recalled, or None when it never was."""
    found = tx.one(_RECALL_STATS, **place.values(key=key))
    return None if found is None else RecallStats(found[0], found[1], from_text(found[2]))
