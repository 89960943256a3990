"""Arguments that all layers check alike."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TypeVar

from memdb.errors import InvalidInput
from memdb.text.check import check_id
from memdb.text.shown import shown

T = TypeVar("T")

MAX_LIMIT = 10_000  # rows of one answer
MAX_BULK = 100_000  # records of one call


def check_limit(limit: object, name: str = "limit") -> int:
    """Return `limit` if it is a whole number from 0 to MAX_LIMIT.

    Raises:
        InvalidInput: it is not.
    """
    return check_range(limit, name, 0, MAX_LIMIT)


def check_range(value: object, name: str, least: int, most: int) -> int:
    """Return `value` if it is a whole number from `least` to `most`.

    Raises:
        InvalidInput: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name} must be a whole number from {least} to {most:,}, not {shown(value)}")
    return value


def check_whole(value: object, name: str) -> int:
    """Return `value` if it is a whole number of at most 64 bits.

    Raises:
        InvalidInput: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise InvalidInput(f"{name} must be a whole number, not {shown(value)}")
    return value


def check_query(query: object) -> str:
    """Return `query` if it is text; any text is a query.

    Raises:
        InvalidInput: it is not text.
    """
    if not isinstance(query, str):
        raise InvalidInput(f"query must be text, not {type(query).__name__}")
    return query


def check_bulk(values: Iterable[T], name: str) -> list[T]:
    """Return many values as a list.

    Raises:
        InvalidInput: more than MAX_BULK, or text in place of a list.
    """
    if type(values) is not list and (isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable)):
        raise InvalidInput(f"{name} must be a list, not {type(values).__name__}")
    listed_values = [*islice(values, MAX_BULK + 1)]  # no more of one that does not end
    if len(listed_values) > MAX_BULK:
        raise InvalidInput(f"{name} has more than {MAX_BULK:,} entries; at most {MAX_BULK:,} go into one call")
    return listed_values


def check_key(key: object, name: str = "id") -> str:
    """Return `key` if it can be an id."""
    return check_id(key, name)


def check_score(score: object, name: str = "score") -> float:
    """Return `score` if it is a finite number.

    Raises:
        InvalidInput: it is not.
    """
    if isinstance(score, int | float) and not isinstance(score, bool) and abs(score) <= sys.float_info.max:
        return float(score)
    raise InvalidInput(f"{name} must be a finite number, not {shown(score)}")
