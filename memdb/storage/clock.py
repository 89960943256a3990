"""One clock a handle, and the one text form of a time: UTC, fixed width, sortable."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from memdb.errors import InvalidInput, SerializationError

SECONDS_A_DAY = 86_400
_BEFORE_ZONE = len("2026-11-30T01:09:10.123456")


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    """Return an aware time as it is stored: 2026-11-30T01:09:10.123456Z.

    Raises:
        InvalidInput: the time has no zone, so nobody could say when it is.
    """
    if type(moment) is datetime and moment.tzinfo is UTC:  # the clock's own, for every act: 0.6 us in place of 2
        return f"{moment.isoformat(timespec='microseconds')[:_BEFORE_ZONE]}Z"
    if not isinstance(moment, datetime):
        raise InvalidInput(f"a time must be a datetime, not {type(moment).__name__}")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            f"the time {moment.isoformat()} has no time zone; give one, such as datetime.now(timezone.utc)"
        )
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except OverflowError:
        raise InvalidInput(f"the time {moment.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def from_text(text: str) -> datetime:
    """Return the time that a stored text stands for.

    Raises:
        SerializationError: the text is no such time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise SerializationError(f"{text!r} is not a time") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def days_since(moment: datetime, now: datetime) -> float:
    """Return how many days have passed since a time; 0 for one to come: clocks are put back."""
    return max(0.0, (now - moment).total_seconds() / SECONDS_A_DAY)


class Clock:
    """The clock of a handle.

    Args:
        now: returns an aware time; a test gives one that stands still.
    """

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now

    def text(self) -> str:
        """Return the present time in the stored text form."""
        return to_text(self._now())
