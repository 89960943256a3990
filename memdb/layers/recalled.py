"""What the layers whose records are recalled by id share: counting a recall, and what was counted."""

from __future__ import annotations

from memdb.layers import recall
from memdb.layers.arguments import check_key
from memdb.layers.layer import Layer, Mode, reads, reads_counts
from memdb.layers.recall import RecallStats
from memdb.layers.record import Place
from memdb.storage.transaction import Transaction


class RecalledLayer(Layer[Mode]):
    """A layer that knows which of its records proved useful (agcore document, section 4.3)."""

    @property
    def _place(self) -> Place:
        raise NotImplementedError

    @reads
    def record_recall(self, tx: Transaction, id: str, score: float) -> None:
        """Count that a record was recalled, with the score it had (agcore document, section 4.3).

        Counted in memory and written with the next write, after a second at the latest; `recall_stats` sees it at once.
        Nothing happens when it is not there (any more).

        Raises:
            InvalidInput: the score is not a finite number of at least 0.
            StorageError: the handle is open for reading only.
        """
        recall.record_recall(tx, self._place, check_key(id), score)

    @reads_counts
    def recall_stats(self, tx: Transaction, id: str) -> RecallStats | None:
        """Return how often a record was recalled, or None when it never was or is not there."""
        return recall.recall_stats(tx, self._place, check_key(id))
