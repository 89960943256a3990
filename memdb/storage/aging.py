"""What time takes from the importance of a record, and what a recall gives back; as SQL over `record` and `recall`."""

from __future__ import annotations

import sys
from typing import Any

from sqlalchemy import ColumnElement, Float, and_, case, func, literal_column

from memdb.storage.schema import recall, record
from memdb.storage.statement import param

AGING_LAYERS = ("episode", "pattern", "skill")  # whose records age, and gain by being recalled (loki document)
FIRST = 0.5  # the importance of what has none
LEAST = 0.01  # what time leaves at least
HALF_LIFE_DAYS = 30.0
BOOST = 0.1  # what a recall adds, of what is missing to 1
_MOST = repr(sys.float_info.max)
_TIME = "'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"


def is_number(value: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return SQL that says whether a column holds a finite number: a shell may have left other things there."""
    kinds: list[ColumnElement[str]] = [literal_column("'real'"), literal_column("'integer'")]
    return and_(func.typeof(value).in_(kinds), value.between(literal_column(f"-{_MOST}"), literal_column(_MOST)))


def importance() -> ColumnElement[float]:
    """Return how important a record is: FIRST where `recall` holds no number."""
    return case((is_number(recall.c.importance), recall.c.importance), else_=literal_column(str(FIRST), Float))


def time_in(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return SQL for the time in a column; NULL where there is none, or what stands there is no time."""
    is_time = and_(column.op("GLOB")(literal_column(_TIME)), func.julianday(column).is_not(None))
    return case((is_time, column))


def recalled_at() -> ColumnElement[Any]:
    """Return when a record was last recalled; NULL where it never was."""
    return time_in(recall.c.last_recall_at)


def aged(aged_at: ColumnElement[Any], rate: ColumnElement[Any], now: ColumnElement[Any]) -> ColumnElement[float]:
    """Return how important a record is after the days since it was last of use, as a fraction.

    Those are the days since it was aged, recalled (or, never recalled, created) or stored, whichever was last. What is
    exp(-rate * days) in one step is the same in many.

    Args:
        aged_at: up to when it has been aged; NULL where nothing ages, which leaves the importance as it is.
        rate: what a day takes, as in exp(-rate).
        now: the present time.
    """
    last = func.coalesce(recalled_at(), record.c.created_at)
    begins = func.max(aged_at, last, record.c.updated_at)
    days: ColumnElement[float] = func.max(literal_column("0.0"), func.julianday(now) - func.julianday(begins))
    share = func.coalesce(func.exp(-days * rate), literal_column("1.0"))
    left: ColumnElement[float] = func.max(
        importance() * share, func.min(importance(), literal_column(str(LEAST))), type_=Float
    )
    return left


def boosted(value: ColumnElement[float]) -> ColumnElement[float]:
    """Return an importance after recalls: each adds BOOST of what is missing to 1.

    Its parameter `missing` is what they leave of that, see `missing_after`.
    """
    raised: ColumnElement[float] = func.max(
        literal_column("0.0"),
        func.min(literal_column("1.0"), literal_column("1.0") - (literal_column("1.0") - value) * param("missing")),
        type_=Float,
    )
    return raised


def missing_after(times: int) -> float:
    """Return which share of what was missing to 1 is still missing after so many recalls."""
    return float((1 - BOOST) ** times)
