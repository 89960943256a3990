"""The nearest vectors: a query's vector in, the k records nearest to it out, exactly.

Every vector of a scope is compared with the query's, first roughly (with numpy in float32, without it in Python), then
those that could be among the best once more, exactly. So the answer is the same to the last bit whether numpy is
installed or not: the products of two float32 are exact in a Python float, and math.fsum rounds their sum but once.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import mul
from typing import Any, NamedTuple, Protocol

from memdb.errors import ModelError
from memdb.storage.transaction import Row, Transaction

MAX_DIMENSIONS = 65_536
BYTES = 4  # of a float32
BLOCK_BYTES = 8 * 1024 * 1024  # of vectors that are read at once
LENGTH_TOLERANCE = 1e-3  # a vector whose length is further from 1 was not stored by memdb
# How far a rough cosine may be from the exact one, by dimension: float32 sums err by 2**-24 for each number at most.
ROUGHNESS = 2.0**-23
SOME_MORE = 50

_BLOCK = """
SELECT id, record_id, vector FROM embedding
 WHERE user_id = :user_id AND model_id = :model_id AND vector IS NOT NULL AND id > :after
 ORDER BY id LIMIT :limit
"""
_BY_IDS = """
SELECT embedding.id, embedding.vector
  FROM json_each(:ids) AS wanted CROSS JOIN embedding ON embedding.id = wanted.value
 WHERE +embedding.user_id = :user_id
"""
_AMONG = """
SELECT record.id FROM json_each(:ids) AS wanted CROSS JOIN record ON record.id = wanted.value
 WHERE +record.user_id = :user_id AND +record.layer IN (SELECT value FROM json_each(:layers))
"""
_ALL = """
SELECT record.id FROM record
 WHERE record.user_id = :user_id AND record.layer IN (SELECT value FROM json_each(:layers))
"""
_ALIVE = " AND (record.expires_at IS NULL OR record.expires_at > :now)"
_OF_CATEGORIES = " AND record.category IN (SELECT value FROM json_each(:categories))"
_OF_SESSION = " AND record.session_id = :session_id"


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors to search: those of one model, whose records a search sees.

    Args:
        user_id: the user; their wall.
        models: the number in embedding_model of each layer that is searched.
        dimensions: of the model.
        categories: only records of these; None for all.
        session_id: only records of this session; None for all.
    """

    user_id: str
    models: dict[str, int]
    dimensions: int
    categories: Sequence[str] | None = None
    session_id: str | None = None

    @property
    def narrow(self) -> str:
        """SQL that leaves out records of the layers that are not seen; '' where all of them are."""
        category = _OF_CATEGORIES if self.categories is not None else ""
        return category + (_OF_SESSION if self.session_id is not None else "")

    def values(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of the statements here, and `more`."""
        return {
            "user_id": self.user_id,
            "layers": json.dumps(list(self.models)),
            "categories": json.dumps(list(self.categories or ())),
            "session_id": self.session_id,
            **more,
        }


@dataclass(slots=True)
class Nearest:
    """What a search found.

    Args:
        hits: (record id, cosine), best first, ties by id.
        broken: parts that hold no vector, by their id: a shell has written there.
    """

    hits: list[tuple[int, float]] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)


class Rough(NamedTuple):
    """A part's rough cosine."""

    score: float
    id: int
    record_id: int


class Scores(Protocol):
    """The rough cosines of many parts."""

    def __len__(self) -> int: ...

    def top(self, count: int) -> list[Rough]:
        """Return the best, best first."""
        ...

    def only(self, records: set[int]) -> Scores:
        """Return those of some records."""
        ...


class Comparer(Protocol):
    """Compares all vectors of a layer with a query's; see memdb.storage.matrix."""

    def scores(self, tx: Transaction, space: Space, query: array[float], broken: set[int]) -> Scores:
        """Return the rough cosine of every part, and add to `broken` those that have none."""
        ...


def packed(vector: Iterable[Any], dimensions: int) -> bytes:
    """Return a vector as it is stored: of length 1, as float32, little-endian.

    Raises:
        ModelError: it has not so many numbers, one of them is none, or it has no direction.
    """
    try:
        numbers = [float(number) for number in vector if not isinstance(number, str | bytes | bool)]
        length = math.hypot(*numbers)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"a vector is a list of numbers, not {repr(vector)[:40]}") from error
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


def nearest(tx: Transaction, space: Space, query: bytes, k: int, comparer: Comparer | None = None) -> Nearest:
    """Return the records nearest to a query; a record of several parts counts by its nearest one.

    Args:
        space: what is searched.
        query: the query's vector, packed.
        k: how many records at most.
        comparer: compares with numpy; None compares in Python, with the same answer.
    """
    found, asked = Nearest(), unpacked(query)
    if k < 1 or not space.models:
        return found
    scores = (comparer or PLAIN).scores(tx, space, asked, found.broken)
    exact: dict[int, float] = {}
    slack = ROUGHNESS * space.dimensions
    fetch, narrow = 2 * k + SOME_MORE, bool(space.narrow)
    while True:
        rows = scores.top(fetch)
        mine = _among(tx, space, rows)
        seen = [row for row in rows if row.record_id in mine and row.id not in found.broken]
        if _compare(tx, space, asked, _possible(seen, k, 2 * slack), exact, found.broken):
            continue  # broken ones stood among them: once more without those
        found.hits = _best(seen, exact, k)
        full = len(found.hits) == k and found.hits[-1][1] > rows[-1].score + slack
        if full or fetch >= len(scores):
            return found
        if narrow:  # few may be seen: from here on only those are looked at
            narrow = False
            scores = scores.only({number for (number,) in tx.rows(_ALL + space.narrow, space.values())})
        else:
            fetch *= 4


def blocks(tx: Transaction, space: Space, model_id: int, broken: set[int], after: int = 0) -> Iterator[list[Row]]:
    """Yield the parts (id, record id, stored vector) of a model in the order of their ids, a block at a time.

    Parts without text, which have no direction, are left out; so are broken ones, which are added to `broken`.

    Args:
        after: only parts with a greater id.
    """
    size = BYTES * space.dimensions
    limit = max(1, BLOCK_BYTES // size)
    while True:
        rows = tx.rows(_BLOCK, {"user_id": space.user_id, "model_id": model_id, "after": after, "limit": limit})
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
        for model_id in space.models.values():
            for block in blocks(tx, space, model_id, broken):
                for part, record_id, stored in block:
                    score = sum(map(mul, asked, unpacked(stored)))
                    if math.isfinite(score):
                        rows.append(Rough(score, part, record_id))
                    else:
                        broken.add(part)
        return PlainScores(rows)


PLAIN = PlainComparer()


def _among(tx: Transaction, space: Space, rows: Iterable[Rough]) -> set[int]:
    """Return those records of rows that the search sees."""
    ids = json.dumps(list({row.record_id for row in rows}))
    return {number for (number,) in tx.rows(_AMONG + _ALIVE + space.narrow, space.values(ids=ids, now=tx.now))}


def _possible(rows: Sequence[Rough], k: int, slack: float) -> list[int]:
    """Return the parts that could be among the k best: those not further than `slack` below the k-th record."""
    records: set[int] = set()
    for row in rows:
        records.add(row.record_id)
        if len(records) == k:
            return [other.id for other in rows if other.score >= row.score - slack]
    return [row.id for row in rows]


def _compare(
    tx: Transaction, space: Space, query: array[float], parts: list[int], exact: dict[int, float], broken: set[int]
) -> bool:
    """Add the exact cosines of parts to `exact`, and those that are no vectors of length 1 to `broken`.

    Returns:
        Whether there were such.
    """
    known, alike = len(broken), dict[object, float]()
    ids = json.dumps([part for part in parts if part not in exact])
    for part, stored in tx.rows(_BY_IDS, {"ids": ids, "user_id": space.user_id}):
        if stored not in alike:
            alike[stored] = _cosine(query, stored)
        if math.isnan(alike[stored]):
            broken.add(part)
        else:
            exact[part] = alike[stored]
    return len(broken) > known


def _cosine(query: array[float], stored: object) -> float:
    """Return the exact cosine of two vectors, not a number where `stored` is none of length 1."""
    if type(stored) is not bytes or len(stored) != BYTES * len(query):
        return math.nan
    vector = unpacked(stored)
    if not abs(sum(map(mul, vector, vector)) - 1) <= LENGTH_TOLERANCE:  # a NaN is not, either
        return math.nan
    return math.fsum(map(mul, query, vector))


def _best(rows: Iterable[Rough], exact: dict[int, float], k: int) -> list[tuple[int, float]]:
    """Return the k best records by their best part."""
    best: dict[int, float] = {}
    for row in rows:
        if row.id in exact:
            best[row.record_id] = max(exact[row.id], best.get(row.record_id, -math.inf))
    return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]


def _little(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
