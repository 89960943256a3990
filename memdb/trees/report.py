"""What was taken from a tree, or written as one."""

from __future__ import annotations

from dataclasses import dataclass, field

from memdb.markdown.report import Skipped

NAMED = 20  # conflicts and files left out that are named


@dataclass(slots=True)
class TreeReport:
    """What an import of a tree stored, or an export wrote.

    Args:
        states, working_memories, checkpoints, tool_results, notes: how many of each.
        same: files that said what was there already.
        replaced: how many took the place of others.
        others: files of other users, which were passed over.
        old_entries: entries of the index of notes that have another time than the file, and were passed over.
        conflicts: files that say something else than what is there, which stays; `replace` lets the tree win.
        skipped: files that were left out, and why.
    """

    states: int = 0
    working_memories: int = 0
    checkpoints: int = 0
    tool_results: int = 0
    notes: int = 0
    same: int = 0
    replaced: int = 0
    others: int = 0
    old_entries: int = 0
    conflicts: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many things were stored or written."""
        return self.states + self.working_memories + self.checkpoints + self.tool_results + self.notes
