"""Counts that outlive a kill: a file of numbers that every process has mapped; each player writes a row of its own."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

NAMES = ("acknowledged", "refused", "cancelled", "hungry", "looked", "asked", "forks", "recovered")
_NUMBER = struct.Struct("<Q")


class Counters:
    """The counts of all players.

    Args:
        path: the file.
        rows: how many players there are.
    """

    def __init__(self, path: Path, rows: int) -> None:
        size = rows * len(NAMES) * _NUMBER.size
        if not path.exists():
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)
        self.rows = rows

    def add(self, row: int, name: str) -> None:
        """Count one more."""
        at = (row * len(NAMES) + NAMES.index(name)) * _NUMBER.size
        _NUMBER.pack_into(self._map, at, _NUMBER.unpack_from(self._map, at)[0] + 1)

    def totals(self) -> dict[str, int]:
        """Return the sums over all players."""
        values = [value for (value,) in _NUMBER.iter_unpack(self._map[:])]
        return {name: sum(values[at :: len(NAMES)]) for at, name in enumerate(NAMES)}
