"""How a case says what was done, what was expected and what came."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

from memdb.testing.suite import Skipped

MOST_SHOWN = 300  # characters of a value


def expect(came: object, expected: object, done: str) -> None:
    """Check that what came is what was expected.

    Args:
        done: what was done, as the subject of "must give": "get() of what was saved".
    """
    if came != expected:
        raise AssertionError(f"{done} must give {_shown(expected)}, but gave {_shown(came)}")


def expect_that(true: bool, rule: str, came: object) -> None:
    """Check a rule that is no equality: it is a sentence with "must"."""
    if not true:
        raise AssertionError(f"{rule}, but it was {_shown(came)}")


async def expect_refusal(act: Awaitable[object], error: type[Exception], done: str) -> None:
    """Check that an act raises an error of memdb's family.

    Args:
        act: what is awaited.
        error: the least that it must be.
        done: what was done, as the subject of "must raise".
    """
    try:
        came = await act
    except error:
        return
    except Exception as other:
        raise AssertionError(
            f"{done} must raise memdb.{error.__name__}, but raised {type(other).__name__}: {other}"
        ) from other
    raise AssertionError(f"{done} must raise memdb.{error.__name__}, but returned {_shown(came)}")


def expect_time(moment: object, what: str) -> datetime:
    """Check that something is a time with a zone, and return it in UTC."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise AssertionError(f"{what} must be a time with a zone, but was {_shown(moment)}")
    return moment.astimezone(UTC)


def ability(part: object, name: str) -> Any:
    """Return an optional method of a part; the case is skipped where the part lacks it."""
    method = getattr(part, name, None)
    if not callable(method):
        raise Skipped(f"{type(part).__name__} has no {name}")
    return method


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
