"""What a sync and an export say of their work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Skipped(NamedTuple):
    """A file, folder or page that was left out, and why.

    Args:
        path: the file in its folder, or the page's id.
        reason: one sentence's end: "it is not UTF-8 (byte 12)".
    """

    path: str
    reason: str


@dataclass(slots=True)
class SyncReport:
    """What a sync did. Ids are those of pages.

    Args:
        added: pages of new files.
        changed: pages whose files say something else now.
        renamed: (old id, new id) of pages whose files were renamed or moved, or whose notes have another id now; both
            are equal where the note itself says its id.
        removed: pages whose files are gone.
        skipped: files that were left out; the page that such a file had stays.
        unchanged: how many files were as they were.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    unchanged: int = 0

    def __bool__(self) -> bool:
        """Whether any page is other than before."""
        return bool(self.added or self.changed or self.renamed or self.removed)


@dataclass(slots=True)
class ExportReport:
    """What an export did.

    Args:
        written: files that were written, in the folder.
        unchanged: files that said the same already.
        skipped: pages that were not written.
    """

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
