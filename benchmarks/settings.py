"""What a run was asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

QUICK_QUERIES = 20


@dataclass(frozen=True, slots=True)
class Settings:
    """A run's settings.

    Args:
        folder: where the databases are made.
        quick: whether this is a smoke run, whose figures mean nothing.
        only: the one subject (speed) or set (quality) to run; None for all.
        pages: sizes of the searched file; empty for the default.
        data: folders of retrieval sets.
        embedders: names of embedders (benchmarks.embedders); empty for the default.
        vectors: where vectors are kept for the next run; None keeps none.
    """

    folder: Path
    quick: bool = False
    only: str | None = None
    pages: tuple[int, ...] = ()
    data: tuple[Path, ...] = ()
    embedders: tuple[str, ...] = ()
    vectors: Path | None = None

    def size(self, full: T, quick: T) -> T:
        """Return how much of something this run does."""
        return quick if self.quick else full

    @property
    def queries(self) -> int | None:
        """How many of a set's queries are asked; None for all."""
        return self.size(None, QUICK_QUERIES)
