"""How far a session is consolidated, and what waits for it: the cursor of a conversation (LightGrep document).

The cursor moves by compare-and-set, so that of two processes that consolidated the same messages one loses cleanly, and
how often the model failed in a row is kept in the file, so that a restart does not begin to count anew (decisions).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile
from typing import NamedTuple

from sqlalchemy import delete, select

from memdb.errors import InvalidInput
from memdb.layers import cursor, reading
from memdb.layers.arguments import check_limit, check_range
from memdb.layers.history import groups, is_answer, unanswered
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.message import MAX_POSITION, MESSAGE, Message, key_of, message_of
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.layers.window import BEYOND
from memdb.storage.schema import consolidation, record
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction
from memdb.text.query import cleaned

MAX_REASON_CHARS = 1_000
_MOST_FAILURES = 2**31  # beyond it only a shell gets

_KEY = record.c.key
_OLDEST = Statement(
    MESSAGE.select(here(), param("after") < _KEY, param("before") > _KEY).order_by(_KEY).limit(param("limit"))
)

_OF_SESSION = (consolidation.c.user_id == param("user_id"), consolidation.c.session_id == param("session_id"))
_FAILURES = Statement(select(consolidation.c.failures).where(*_OF_SESSION))
_CLEAR_FAILURES = Statement(delete(consolidation).where(*_OF_SESSION))
_FAILED = insert(consolidation).values(
    {name: param(name) for name in ("user_id", "session_id", "failures", "reason", "failed_at")}
)
_COUNT_FAILURE = Statement(
    _FAILED.on_conflict_do_update(
        index_elements=["user_id", "session_id"],
        set_={name: _FAILED.excluded[name] for name in ("failures", "reason", "failed_at")},
    )
)


class Unconsolidated(NamedTuple):
    """What of a session is not consolidated, as it was at one moment.

    Args:
        messages: the messages after the cursor, as they were stored, oldest first.
        passed: the position of the last consolidated message; 0 for none.
    """

    messages: list[Message]
    passed: int


class ConsolidatedMessages(Layer[Mode]):
    """A session whose older messages are consolidated (LightGrep document, "Session" and "Consolidation loop")."""

    @property
    def _place(self) -> Place:
        raise NotImplementedError

    def _newest(self, tx: Transaction, limit: int | None, after: str, before: int | None) -> list[Message]:
        raise NotImplementedError

    @reads
    def last_consolidated(self, tx: Transaction) -> int:
        """Return the cursor: how many messages, from the first, are consolidated and no longer in the history."""
        return cursor.consolidated(tx, self._place)

    @reads
    def unconsolidated(self, tx: Transaction, limit: int | None = None) -> Unconsolidated:
        """Return the messages after the cursor as they were stored, whether a model API would take them or not.

        Args:
            limit: only so many, the oldest; None for all.
        """
        passed = cursor.consolidated_key(tx, self._place)
        most = -1 if limit is None else check_limit(limit)
        rows = tx.all(_OLDEST, **self._place.values(after=passed, before=BEYOND, limit=most))
        return Unconsolidated([*reading.shaped(tx, rows, message_of, MESSAGE)], int(passed or 0))

    @writes
    def consolidate_to(self, tx: Transaction, position: int, *, if_passed: int) -> bool:
        """Let the messages up to a position count as consolidated, if the cursor is still where it was read.

        Args:
            position: of the last message that is consolidated now.
            if_passed: where the cursor was when these messages were read: `unconsolidated().passed`.

        Returns:
            Whether it was moved. It is not, and nothing is written, when another has moved it so that other messages
            are unconsolidated now, or when there is no message at this position.

        Raises:
            InvalidInput: a position is no whole number of its range, or `position` is not after `if_passed`.
        """
        last = key_of(check_range(position, "position", 1, MAX_POSITION))
        known = key_of(check_range(if_passed, "if_passed", 0, MAX_POSITION))
        if last <= known:
            raise InvalidInput(f"position must be after if_passed ({if_passed}), not {position}")
        return cursor.stands_at(tx, self._place, known) and cursor.move_to(tx, self._place, last)

    @writes
    def compact(self, tx: Transaction, keep_last: int = 6) -> int:
        """Move the cursor forward so that the history keeps its last messages; nothing is deleted (decisions).

        Args:
            keep_last: how many messages stay at least; more do where the cut would part a call from its results.

        Returns:
            The cursor: how many messages are consolidated now.
        """
        place, keep = self._place, check_limit(keep_last, "keep_last")
        after, limit = cursor.consolidated_key(tx, place), 2 * keep + 16
        while True:
            newest = self._newest(tx, limit, after, None)
            whole = len(newest) < limit
            if position := _end_before(newest, keep, whole=whole):
                cursor.consolidate_to(tx, place, key_of(position))
            if position or whole:
                return cursor.consolidated(tx, place)
            limit *= 4

    @reads
    def failures(self, tx: Transaction) -> int:
        """Return how often in a row the session could not be consolidated because of its model."""
        return self._failures(tx)

    @writes
    def record_failure(self, tx: Transaction, reason: str) -> int:
        """Count that a consolidation failed.

        Args:
            reason: why; its first 1,000 characters are kept.

        Returns:
            How often it failed in a row, this time included.

        Raises:
            InvalidInput: the reason is no text.
        """
        if not isinstance(reason, str):
            raise InvalidInput(f"reason must be text, not {type(reason).__name__}")
        count = self._failures(tx) + 1
        kept = cleaned(reason)[:MAX_REASON_CHARS]
        tx.run(_COUNT_FAILURE, **self._whose, failures=count, reason=kept, failed_at=tx.now)
        return count

    @writes
    def clear_failures(self, tx: Transaction) -> None:
        """Forget that consolidations failed, as after one that went through."""
        tx.run(_CLEAR_FAILURES, **self._whose)

    @property
    def _whose(self) -> dict[str, str]:
        return {"user_id": self.scope.user_id, "session_id": self.scope.session_id}

    def _failures(self, tx: Transaction) -> int:
        count = tx.value(_FAILURES, **self._whose)
        return count if isinstance(count, int) and 0 < count < _MOST_FAILURES else 0


def _end_before(messages: Sequence[Message], keep: int, *, whole: bool) -> int:
    """Return the position after which at least `keep` messages stay and no call is parted from its results; 0 for none.

    Args:
        messages: the newest, oldest first.
        whole: whether there are no older ones; else the first results may be those of an older call.
    """
    kept = 0
    known = messages if whole else list(dropwhile(is_answer, messages))
    for at, group in enumerate(reversed(list(groups(known)))):
        if kept >= keep and (at or not unanswered(group)):
            return group[-1].position or 0
        kept += len(group)
    return 0
