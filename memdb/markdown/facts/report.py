"""What a sync of a fact folder says of its work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

TEXT_FILE, HISTORY_FILE = "MEMORY.md", "HISTORY.md"


class Conflict(NamedTuple):
    """A file that was changed while the memory was changed otherwise. Neither was touched.

    Args:
        file: "MEMORY.md" or "HISTORY.md".
        reason: what stands against what.
    """

    file: str
    reason: str


@dataclass(slots=True)
class FolderReport:
    """What a sync of a fact folder did. Files are called by their names in the folder.

    Args:
        taken_in: files of which something was taken into the memory.
        written: files to which something was written.
        conflicts: files that `resolve` must settle.
    """

    taken_in: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether anything is other than before, or stands in conflict."""
        return bool(self.taken_in or self.written or self.conflicts)
