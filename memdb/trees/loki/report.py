"""What was taken from a .loki/memory folder, or written as one."""

from __future__ import annotations

from dataclasses import dataclass, field

from memdb.markdown.report import Skipped


@dataclass(slots=True)
class ExperienceReport:
    """What an import of a .loki/memory folder stored, or an export wrote.

    Args:
        episodes, patterns, anti_patterns, skills: how many of each.
        same: how many were there already and say the same.
        replaced: how many took the place of others.
        users: the users whose memory it is, by namespace; "" for the folder itself.
        conflicts: files that say something else than what is there, which stays; `replace` lets the folder win.
        others: files and folders beside the memory that were not looked into.
        skipped: what was left out, and why. "semantic/patterns.json#3" is the third entry of that file.
    """

    episodes: int = 0
    patterns: int = 0
    anti_patterns: int = 0
    skills: int = 0
    same: int = 0
    replaced: int = 0
    users: dict[str, str] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many things were stored or written."""
        return self.episodes + self.patterns + self.anti_patterns + self.skills
