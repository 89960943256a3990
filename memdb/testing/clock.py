"""A clock for tests: time passes when the test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memdb.storage.clock import to_text

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class FrozenClock:
    """A clock that stands still until it is told to go on: `memdb.open(path, clock=FrozenClock())`.

    Args:
        now: where it stands, with a time zone.

    Raises:
        InvalidInput: the time has no zone.
    """

    def __init__(self, now: datetime = NOON) -> None:
        to_text(now)
        self.now = now

    def __call__(self) -> datetime:
        """Return where it stands."""
        return self.now

    def forward(self, **delta: float) -> datetime:
        """Go on, or back where an amount is negative: `forward(days=1, seconds=-5)`, as for timedelta.

        Returns:
            Where it stands now.
        """
        self.now += timedelta(**delta)
        return self.now

    def __repr__(self) -> str:
        return f"FrozenClock({self.now.isoformat()})"
