"""How good a ranked answer is, as information retrieval measures it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

DEPTH = 20  # how many hits are asked for; nothing below counts


def recall(found: Sequence[str], grades: Mapping[str, int], depth: int) -> float:
    """Return the share of the right documents among the first `depth`."""
    return sum(document in grades for document in found[:depth]) / len(grades)


def reciprocal_rank(found: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return 1 / the place of the first right document, or 0 when none was found."""
    return next((1 / place for place, document in enumerate(found, 1) if document in grades), 0.0)


def ndcg(found: Sequence[str], grades: Mapping[str, int], depth: int) -> float:
    """Return the discounted gain of the first `depth` by the best possible (gain: the grade; discount: log2)."""
    best = _gain(sorted(grades.values(), reverse=True)[:depth])
    return _gain([grades.get(document, 0) for document in found[:depth]]) / best


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def measure(answers: Iterable[tuple[Sequence[str], Mapping[str, int]]]) -> dict[str, float]:
    """Return the means over all queries of what was found and what is right."""
    answers = list(answers)

    def mean(values: Iterable[float]) -> float:
        return round(statistics.fmean(values), 4)

    return {
        **{f"recall@{depth}": mean(recall(*answer, depth) for answer in answers) for depth in (5, 10, DEPTH)},
        "mrr": mean(reciprocal_rank(*answer) for answer in answers),
        "ndcg@10": mean(ndcg(*answer, 10) for answer in answers),
    }
