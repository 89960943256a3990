"""Which messages proved useful: the recall statistics of a conversation, by position."""

from __future__ import annotations

from memdb.layers import recall
from memdb.layers.layer import Layer, Mode, reads, reads_counts
from memdb.layers.message import key_at
from memdb.layers.recall import RecallStats
from memdb.layers.record import Place
from memdb.storage.transaction import Transaction


class RecalledMessages(Layer[Mode]):
    """A session whose messages are recalled (agcore document, section 4.3)."""

    @property
    def _place(self) -> Place:
        raise NotImplementedError

    @reads
    def record_recall(self, tx: Transaction, position: int, score: float) -> None:
        """Count that a message was recalled, with the score it had (agcore document, section 4.3).

        Counted in memory and written with the next write, after a second at the latest; `recall_stats` sees it at once.
        Nothing happens when there is no message at this position.

        Raises:
            InvalidInput: the position is no whole number, or the score no finite number of at least 0.
            StorageError: the handle is open for reading only.
        """
        recall.record_recall(tx, self._place, key_at(position, "position"), score)

    @reads_counts
    def recall_stats(self, tx: Transaction, position: int) -> RecallStats | None:
        """Return how often a message was recalled, or None when it never was or is not there."""
        return recall.recall_stats(tx, self._place, key_at(position, "position"))
