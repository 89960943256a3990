"""The nearest vectors: a query's vector in, the k records nearest to it out, exactly.

Every vector of a scope is compared with the query's, first roughly (with numpy in float32, without it in Python), then
those that could be among the best once more in float64, to 9 places. What is equal to 9 places is a tie, which the id
decides, so the answer is the same whether numpy is installed or not.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memdb.storage.transaction import Transaction
from memdb.storage.vectors import BYTES, PLAIN, Comparer, Rough, Space, unpacked

# How far a rough cosine may be from the exact one, by dimension: float32 sums err by 2**-24 for each number at most.
ROUGHNESS = 2.0**-23
BACKGROUND_PLACES = 6  # as good as rough cosines are
SOME_MORE = 50

_BY_IDS = """
SELECT embedding.id, embedding.vector
  FROM json_each(:ids) AS wanted CROSS JOIN embedding ON embedding.id = wanted.value
 WHERE +embedding.user_id = :user_id
"""
_AMONG = """
SELECT record.id FROM json_each(:ids) AS wanted CROSS JOIN record ON record.id = wanted.value
 WHERE +record.user_id = :user_id AND +record.layer = :layer
"""
_ALL = """
SELECT record.id FROM record
 WHERE record.user_id = :user_id AND record.layer = :layer
"""
_ALIVE = " AND (record.expires_at IS NULL OR record.expires_at > :now)"


@dataclass(slots=True)
class Nearest:
    """What a search found.

    Args:
        hits: (record id, cosine), best first, ties by id.
        size: how many parts were compared.
        mean: the mean of their cosines, to 6 places.
        deviation: the standard deviation of their cosines, to 6 places.
        broken: parts that hold no vector, by their id: a shell has written there.
    """

    hits: list[tuple[int, float]] = field(default_factory=list)
    size: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    broken: set[int] = field(default_factory=set)


def nearest(tx: Transaction, space: Space, query: bytes, k: int, comparer: Comparer | None = None) -> Nearest:
    """Return the records nearest to a query; a record of several parts counts by its nearest one.

    Args:
        space: what is searched.
        query: the query's vector, packed.
        k: how many records at most.
        comparer: compares with numpy; None compares in Python, with the same answer.
    """
    found, asked = Nearest(), unpacked(query)
    if k < 1:
        return found
    comparer = comparer or PLAIN
    scores = comparer.scores(tx, space, asked, found.broken)
    found.size = len(scores)
    found.mean, found.deviation = (round(number, BACKGROUND_PLACES) for number in scores.background())
    exact: dict[int, float] = {}
    slack = ROUGHNESS * space.dimensions
    fetch, narrow = 2 * k + SOME_MORE, bool(space.narrow)
    while True:
        rows = scores.top(fetch)
        mine = _among(tx, space, rows)
        seen = [row for row in rows if row.record_id in mine and row.id not in found.broken]
        missing = [part for part in _possible(seen, k, 2 * slack) if part not in exact]
        known = len(found.broken)
        for part, cosine in _compared(tx, space, comparer, asked, missing):
            if math.isnan(cosine):
                found.broken.add(part)
            else:
                exact[part] = cosine
        if len(found.broken) > known:
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


def _compared(
    tx: Transaction, space: Space, comparer: Comparer, query: array[float], parts: list[int]
) -> Iterator[tuple[int, float]]:
    """Yield parts with their exact cosines, not a number for those that hold no vector."""
    rows = tx.rows(_BY_IDS, {"ids": json.dumps(parts), "user_id": space.user_id}) if parts else []
    good: list[tuple[int, bytes]] = []
    for part, stored in rows:
        if type(stored) is bytes and len(stored) == BYTES * space.dimensions:
            good.append((part, stored))
        else:
            yield part, math.nan
    cosines = comparer.cosines(query, [stored for _, stored in good])
    yield from ((part, cosine) for (part, _), cosine in zip(good, cosines, strict=True))


def _best(rows: Iterable[Rough], exact: dict[int, float], k: int) -> list[tuple[int, float]]:
    """Return the k best records by their best part."""
    best: dict[int, float] = {}
    for row in rows:
        if row.id in exact:
            best[row.record_id] = max(exact[row.id], best.get(row.record_id, -math.inf))
    return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]
