"""Times and ratios: how a comparison is told.

Two sides do the same work in turn within one run, round by round (A B A B ...), so that a slow minute of the machine
falls on both. A round's ratio is our time by theirs; what is told is the median of those. Absolute times stand beside.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Times:
    """Times in microseconds."""

    values: list[float] = field(default_factory=list)

    def add(self, seconds: float, operations: int = 1) -> None:
        """Add the time of one operation, of which `operations` took `seconds` together."""
        self.values.append(seconds * 1e6 / operations)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def p99(self) -> float:
        """The 99th percentile: with fewer than 100 values the greatest."""
        return percentile(self.values, 0.99)

    def figures(self) -> dict[str, float]:
        """Return what a result file holds of them."""
        return {"median": round(self.median, 2), "p99": round(self.p99, 2), "samples": len(self.values)}


@dataclass(slots=True)
class Comparison:
    """What memdb takes against what something else takes.

    Args:
        name: the comparison's name in tables and files.
        measured: what memdb does in one operation.
        against: what the other side does.
        target: the greatest ratio that is good enough; None where none is set.
        notes: other figures that belong to it.
        detail: the most telling of them, in a few words for the table.
        unit: what both sides are counted in.
    """

    name: str
    measured: str
    against: str
    target: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    detail: str = ""
    unit: str = "us"
    ours: Times = field(default_factory=Times)
    theirs: Times = field(default_factory=Times)
    ratios: list[float] = field(default_factory=list)

    def round(self, ours: Times, theirs: Times) -> None:
        """Add a round: both sides' times an operation. Its ratio is that of their medians."""
        self.ours.values += ours.values
        self.theirs.values += theirs.values
        self.ratios.append(ours.median / theirs.median)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(self.ratios)

    @property
    def p99_ratio(self) -> float:
        """Our 99th percentile by theirs, over all rounds."""
        return self.ours.p99 / self.theirs.p99

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        return None if self.target is None else self.ratio <= self.target

    def figures(self) -> dict[str, Any]:
        """Return what a result file holds of it."""
        return {
            "name": self.name,
            "measured": self.measured,
            "against": self.against,
            "ratio": {
                "median": round(self.ratio, 3),
                "p99": round(self.p99_ratio, 3),
                "least": round(min(self.ratios), 3),
                "greatest": round(max(self.ratios), 3),
                "rounds": len(self.ratios),
            },
            "target": self.target,
            "met": self.met,
            f"ours_{self.unit}": self.ours.figures(),
            f"theirs_{self.unit}": self.theirs.figures(),
            "notes": self.notes,
        }


def percentile(values: Iterable[float], share: float) -> float:
    """Return the least value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
