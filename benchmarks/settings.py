"""What a run was asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """A run's settings.

    Args:
        folder: where the databases are made.
        quick: whether this is a smoke run, whose figures mean nothing.
        only: the one subject (speed) or set (quality) to run; None for all.
        pages: sizes of the searched file; empty for the default.
        data: folders of retrieval sets.
    """

    folder: Path
    quick: bool = False
    only: str | None = None
    pages: tuple[int, ...] = ()
    data: tuple[Path, ...] = ()

    def size(self, full: T, quick: T) -> T:
        """Return how much of something this run does."""
        return quick if self.quick else full
