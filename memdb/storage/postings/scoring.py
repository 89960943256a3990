"""BM25 over postings, as FTS5 reckons it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memdb.storage.bm25 import norm, share
from memdb.storage.matrix import numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 32_768  # postings at once: what is in between stays in the processor's cache


class Weighed(NamedTuple):
    """A term's postings and what it counts.

    Args:
        rows: ascending.
        frequencies: in tenths.
        weight: its idf, times how often it was asked.
    """

    rows: NDArray[Any]
    frequencies: NDArray[Any]
    weight: float


def scores(terms: Sequence[Weighed], lengths: NDArray[Any], average: float) -> NDArray[np.float64]:
    """Return the score of every row, 0 where it holds no term.

    Args:
        lengths: of every row, by its number.
        average: length of a row.
    """
    np = numpy()
    total = np.zeros(len(lengths))
    for term in terms:
        for at in range(0, len(term.rows), BLOCK):
            rows = term.rows[at : at + BLOCK]
            frequency = term.frequencies[at : at + BLOCK] / 10
            total[rows] += term.weight * share(frequency, norm(lengths[rows], average))
    return total  # type: ignore[no-any-return]


def scores_of_few(
    terms: Sequence[Weighed], rows: NDArray[Any], lengths: NDArray[Any], average: float
) -> NDArray[np.float64]:
    """Return the scores of `rows`, to the last bit those that `scores` gives them, in one pass for all terms.

    Args:
        rows: all rows of the terms, ascending.
        lengths: of every row, by its number.
    """
    np = numpy()
    held = np.concatenate([term.rows for term in terms])
    frequency = np.concatenate([term.frequencies for term in terms]) / 10
    weight = np.repeat([term.weight for term in terms], [len(term.rows) for term in terms])
    place = np.searchsorted(rows, held)
    added = weight * share(frequency, norm(lengths[held], average))
    return np.bincount(place, added, len(rows))  # type: ignore[no-any-return]


def scores_among(
    terms: Sequence[Weighed], rows: NDArray[Any], lengths: NDArray[Any], average: float
) -> NDArray[np.float64]:
    """Return the scores of `rows`, to the last bit those that `scores` gives them, without a walk over the postings.

    Args:
        rows: some rows of the terms, ascending.
        lengths: of every row, by its number.
    """
    np = numpy()
    total, added = np.zeros(len(rows)), norm(lengths[rows], average)
    for term in terms:
        place = np.minimum(np.searchsorted(term.rows, rows.astype(term.rows.dtype)), len(term.rows) - 1)
        holding = term.rows[place] == rows
        frequency = term.frequencies[place[holding]] / 10
        total[holding] += term.weight * share(frequency, added[holding])
    return total  # type: ignore[no-any-return]


def best(scores: NDArray[np.float64], rows: Sequence[NDArray[Any]], count: int) -> NDArray[np.int64]:
    """Return the `count` best rows, best first, ties by number.

    Args:
        rows: the postings of each term. The k-th score among those of one is a bound, above which few are left to sort.
    """
    np = numpy()
    bound = np.nextafter(0, 1)
    for among in rows:
        if len(among) >= count:
            bound = max(bound, _kth(scores[among], count))
            break
    found = np.flatnonzero(scores >= bound)
    if len(found) > count:
        found = found[scores[found] >= _kth(scores[found], count)]
    return found[np.lexsort((found, -scores[found]))][:count]  # type: ignore[no-any-return]


def _kth(values: NDArray[np.float64], count: int) -> float:
    return float(numpy().partition(values, len(values) - count)[len(values) - count])
