"""BM25 as FTS5 reckons it (Robertson and Zaragoza 2009): idf * f * (k1 + 1) / (f + norm), the sum over all terms."""

from __future__ import annotations

import math
from typing import Any, TypeVar

K1, B = 1.2, 0.75
K1_PLUS_1 = K1 + 1  # no term adds more than idf * (k1 + 1) to a score
LEAST_IDF = 1e-6  # what FTS5 gives a term that is in half the rows or more

N = TypeVar("N", float, Any)


def idf(rows: int, rows_with: int) -> float:
    """Return the weight of a term of which `rows_with` of `rows` hold one."""
    return max(math.log((rows - rows_with + 0.5) / (rows_with + 0.5)), LEAST_IDF)


def norm(length: N, mean: float) -> N:
    """Return what is added to a term's frequency in a row.

    Args:
        length: of the row, in tokens; or of many, as an array of numpy.
        mean: the mean length of a row.
    """
    return K1 * (1 - B + B * length / mean)


def share(frequency: N, added: N) -> N:
    """Return how much of a term's weight a row's score takes, from 0 to K1_PLUS_1.

    Args:
        frequency: how often the row holds the term, by the weights of its columns; or of many rows.
        added: the row's norm.
    """
    return frequency * K1_PLUS_1 / (frequency + added)
