"""Recall statistics: which memories proved useful."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pydantic import ConfigDict
from sqlalchemy import ColumnElement, Float, func, literal, select, text

from memdb.errors import InvalidInput, StorageError
from memdb.layers.arguments import check_score
from memdb.layers.models import Model, Weight
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage import recalls
from memdb.storage.clock import days_since, from_text
from memdb.storage.recalls import Recalled
from memdb.storage.schema import recall, record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.shown import shown


class RecallBasedConfig(Model):
    """What a memory is worth by its use (agcore document, section 4.3).

    Args:
        recall_weight: what ln(1 + number of recalls) counts, 0 to 1,000.
        score_weight: what the mean score counts.
        recency_weight: what 1 / (1 + days since the last recall) counts.
    """

    model_config = ConfigDict(frozen=True)

    recall_weight: Weight = 0.3
    score_weight: Weight = 0.5
    recency_weight: Weight = 0.2

    @property
    def weights(self) -> dict[str, float]:
        """The three weights by their names: the parameters of `value`."""
        return {name: getattr(self, name) for name in RecallBasedConfig.model_fields}


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

    def value(self, now: datetime, config: RecallBasedConfig | None = None) -> float:
        """Return what the record is worth: what a store with a RecallBased policy evicts by, lowest first.

        recall_weight * ln(1 + recall_count) + score_weight * mean score + recency_weight / (1 + days since last recall)

        Args:
            now: the present time, with a time zone. A time before the last recall counts as the last recall.
            config: the weights; the document's by default.
        """
        if now.tzinfo is None:
            raise InvalidInput("now must be a time with a zone, such as datetime.now(UTC)")
        weights = config or RecallBasedConfig()
        days = days_since(self.last_recall_at, now)
        mean = self.total_score / self.recall_count if self.recall_count and weights.score_weight else 0.0
        frequency = math.log1p(self.recall_count)
        return frequency * weights.recall_weight + mean * weights.score_weight + weights.recency_weight / (1 + days)


def value() -> ColumnElement[float]:
    """Return RecallStats.value as SQL over `record` and, joined to its left, `recall`.

    A record that was never recalled counts its days from its creation (decisions). Parameters: recall_weight,
    score_weight, recency_weight, now. It takes SQLite's ln(), which memdb's connections always have.
    """
    count = func.coalesce(recall.c.recall_count, literal(0, Float))
    mean = func.coalesce(recall.c.total_score / func.nullif(recall.c.recall_count, 0), 0.0)
    last = func.coalesce(recall.c.last_recall_at, record.c.created_at)
    days = func.max(0.0, func.julianday(param("now")) - func.julianday(last))
    frequency: ColumnElement[float] = func.ln(count + 1.0, type_=Float)
    scores = func.coalesce(mean * _number("score_weight"), 0.0)  # infinity times 0 is NULL
    return frequency * _number("recall_weight") + scores + _number("recency_weight") / (days + 1.0)


def _number(name: str) -> ColumnElement[float]:
    return func.coalesce(param(name), 0.0, type_=Float)


_RECALL_STATS = Statement(
    select(recall.c.recall_count, recall.c.total_score, recall.c.last_recall_at)
    .join(record, record.c.id == recall.c.record_id)
    .where(
        here(),
        record.c.key == param("key"),
        recall.c.recall_count > 0,
        # A shell may have left other things there: they are no statistics.
        func.typeof(recall.c.recall_count) == text("'integer'"),
        func.typeof(recall.c.total_score) == text("'real'"),
    )
)


def record_recall(tx: Transaction, place: Place, key: str, score: float) -> None:
    """Count one recall of a record; nothing happens when it is not there (any more).

    Raises:
        InvalidInput: the score is not a finite number of at least 0.
        StorageError: the handle is open for reading only.
    """
    if not tx.counts:
        raise StorageError("the file is open for reading only: recalls are not counted; open it without read_only")
    if check_score(score) < 0:
        raise InvalidInput(f"score must be at least 0, not {shown(score)}")
    record_recalls(tx, place, [(key, float(score))])


def record_recalls(tx: Transaction, place: Place, scores: Iterable[tuple[str, float]]) -> None:
    """Count that records were recalled, with the score that each had; on a read-only handle nothing is counted."""
    if tx.counts:
        named = (place.user_id, place.layer, place.session_id)
        recalls.recalled(tx, [Recalled(*named, key, score, tx.now) for key, score in scores])


def recall_stats(tx: Transaction, place: Place, key: str) -> RecallStats | None:
    """Return how often a record was recalled, or None when it never was."""
    found = tx.one(_RECALL_STATS, **place.values(key=key))
    return None if found is None else RecallStats(found[0], found[1], from_text(found[2]))
