"""Vectors as they are stored, and how those of a scope are compared with a query's."""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import mul
from typing import Any, NamedTuple, Protocol

from memdb.errors import ModelError
from memdb.storage.transaction import Row, Transaction
from memdb.text.shown import shown

MAX_DIMENSIONS = 65_536
BYTES = 4  # of a float32
BLOCK_BYTES = 8 * 1024 * 1024  # of vectors that are read at once
LENGTH_TOLERANCE = 1e-3  # a vector whose length is further from 1 was not stored by memdb
PLACES = 9  # of a cosine: float64 sums of a few thousand products agree to 13, in whatever order they are made

_BLOCK = """
SELECT id, record_id, vector FROM embedding
 WHERE user_id = :user_id AND model_id = :model_id AND vector IS NOT NULL AND id > :after
 ORDER BY id LIMIT :limit
"""
_OF_CATEGORIES = " AND record.category IN (SELECT value FROM json_each(:categories))"
_OF_SESSION = " AND record.session_id = :session_id"


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors to search: those of one model in one layer of a user, whose records a search sees.

    Args:
        user_id: the user; their wall.
        layer: the layer.
        model_id: the number that the two have in embedding_model.
        dimensions: of the model.
        categories: only records of these; None for all.
        session_id: only records of this session; None for all.
    """

    user_id: str
    layer: str
    model_id: int
    dimensions: int
    categories: Sequence[str] | None = None
    session_id: str | None = None

    @property
    def narrow(self) -> str:
        """SQL that leaves out records of the layer that are not seen; '' where all of them are."""
        category = _OF_CATEGORIES if self.categories is not None else ""
        return category + (_OF_SESSION if self.session_id is not None else "")

    def values(self, **more: Any) -> dict[str, Any]:
        """Return the parameters that name what is searched, and `more`."""
        return {
            "user_id": self.user_id,
            "layer": self.layer,
            "categories": json.dumps(list(self.categories or ())),
            "session_id": self.session_id,
            **more,
        }

    def parts(self, **more: Any) -> dict[str, Any]:
        """Return the parameters that name the vectors, and `more`."""
        return {"user_id": self.user_id, "model_id": self.model_id, **more}


class Rough(NamedTuple):
    """A part's rough cosine."""

    score: float
    id: int
    record_id: int


class Scores(Protocol):
    """The rough cosines of many parts."""

    def __len__(self) -> int: ...

    def background(self) -> tuple[float, float]:
        """Return their mean and their standard deviation; zeros when there are none."""
        ...

    def top(self, count: int) -> list[Rough]:
        """Return the best, best first."""
        ...

    def only(self, records: set[int]) -> Scores:
        """Return those of some records."""
        ...


class Comparer(Protocol):
    """Compares vectors with a query's."""

    def scores(self, tx: Transaction, space: Space, query: array[float], broken: set[int]) -> Scores:
        """Return the rough cosine of every part, and add to `broken` those that have none."""
        ...

    def cosines(self, query: array[float], stored: Sequence[bytes]) -> list[float]:
        """Return the cosine of each vector, to PLACES places; not a number for one that is not of length 1."""
        ...


def packed(vector: Iterable[Any], dimensions: int) -> bytes:
    """Return a vector as it is stored: of length 1, as float32, little-endian.

    Raises:
        ModelError: it has not so many numbers, one of them is none, or it has no direction.
    """
    try:
        numbers = array("d", [] if isinstance(vector, str | bytes) else vector)
        greatest = max(map(abs, numbers), default=0.0)
        if 0 < greatest < math.inf and not 1e-150 < greatest < 1e150:  # its square would be nothing, or infinite
            numbers = array("d", (number / greatest for number in numbers))
        length = math.hypot(*numbers)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"a vector is a list of numbers, not {shown(vector)}") from error
    if len(numbers) != dimensions:
        raise ModelError(f"a vector has {len(numbers):,} numbers where {dimensions:,} are expected")
    if not math.isfinite(length):
        raise ModelError("a vector holds a number that is not finite")
    if length == 0:
        raise ModelError("a vector holds nothing but zeros, so it is near to nothing")
    made = array("f", (number / length for number in numbers))
    return _little(made).tobytes()


def unpacked(stored: bytes) -> array[float]:
    """Return the numbers of a stored vector."""
    numbers = array("f")
    numbers.frombytes(stored)
    return _little(numbers)


def blocks(tx: Transaction, space: Space, broken: set[int], after: int = 0) -> Iterator[list[Row]]:
    """Yield the parts (id, record id, stored vector) in the order of their ids, a block at a time, at least one.

    Parts without text, which have no direction, are left out; so are broken ones, which are added to `broken`.

    Args:
        after: only parts with a greater id.
    """
    size = BYTES * space.dimensions
    limit = max(1, BLOCK_BYTES // size)
    while True:
        rows = tx.rows(_BLOCK, space.parts(after=after, limit=limit))
        whole = [row for row in rows if type(row[2]) is bytes and len(row[2]) == size]
        if len(whole) < len(rows):
            good = {row[0] for row in whole}
            broken.update(row[0] for row in rows if row[0] not in good and row[2] != b"")
        yield whole
        if len(rows) < limit:
            return
        after = rows[-1][0]


class PlainScores:
    """Scores in a plain list."""

    def __init__(self, rows: list[Rough]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def background(self) -> tuple[float, float]:
        """Return their mean and their standard deviation; zeros when there are none."""
        size = max(len(self._rows), 1)
        mean = sum(row.score for row in self._rows) / size
        return mean, math.sqrt(sum((row.score - mean) ** 2 for row in self._rows) / size)

    def top(self, count: int) -> list[Rough]:
        """Return the best, best first."""
        return nlargest(count, self._rows)

    def only(self, records: set[int]) -> PlainScores:
        """Return those of some records."""
        return PlainScores([row for row in self._rows if row.record_id in records])


class PlainComparer:
    """Compares in Python: 17 us a vector of 384 numbers."""

    def scores(self, tx: Transaction, space: Space, query: array[float], broken: set[int]) -> Scores:
        """Return the cosine of every part."""
        rows, asked = [], query.tolist()
        for block in blocks(tx, space, broken):
            for part, record_id, stored in block:
                score = sum(map(mul, asked, unpacked(stored)))
                if math.isfinite(score):
                    rows.append(Rough(score, part, record_id))
                else:
                    broken.add(part)
        return PlainScores(rows)

    def cosines(self, query: array[float], stored: Sequence[bytes]) -> list[float]:
        """Return the cosine of each vector, to PLACES places; not a number for one that is not of length 1."""
        asked, found = query.tolist(), []
        for vector in map(unpacked, stored):
            proper = abs(sum(map(mul, vector, vector)) - 1) <= LENGTH_TOLERANCE  # false for not a number, too
            found.append(round(sum(map(mul, asked, vector)), PLACES) if proper else math.nan)
        return found


PLAIN = PlainComparer()


def _little(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
