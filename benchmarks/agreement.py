"""Whether two ranked answers are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

TOLERANCE = 1e-5

Answer = Iterable[tuple[str, float]]


class Agreement:
    """How far answers agree with those they should be equal to.

    The same: as many hits, the scores place by place within TOLERANCE, and the same ids but for hits that tie with the
    last. Overlap: the share of the expected hits that were found, a tie with the last counting as found.
    """

    def __init__(self) -> None:
        self._asked = self._same = self._expected = self._common = 0
        self._difference = 0.0

    def add(self, found: Answer, expected: Answer) -> None:
        """Count the answer to one query."""
        ours, theirs = list(found), list(expected)
        last = theirs[-1][1] if theirs else 0.0
        scores = dict(theirs)
        certain = {key for key, score in ours if key in scores and abs(scores[key] - score) <= TOLERANCE}
        tied = sum(key not in scores and abs(score - last) <= TOLERANCE for key, score in ours)
        apart = [abs(one[1] - other[1]) for one, other in zip(ours, theirs, strict=False)]
        common = min(len(certain) + tied, len(theirs))
        self._asked += 1
        self._expected += len(theirs)
        self._common += common
        self._same += len(ours) == len(theirs) == common and max(apart, default=0.0) <= TOLERANCE
        self._difference = max([self._difference, *apart])

    def figures(self) -> dict[str, Any]:
        """Return what a result file holds of it."""
        return {
            "same_answers": f"{self._same}/{self._asked}",
            "overlap": round(self._common / self._expected, 4) if self._expected else None,
            "greatest_difference_of_scores": float(f"{self._difference:.1e}"),
        }
