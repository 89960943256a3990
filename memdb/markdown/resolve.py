"""Which page a link leads to, among the notes of one folder."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

from memdb.markdown.links import PATH, Link
from memdb.text.scripts import ordered_marks

SUFFIXES = (".md", ".markdown")
MAX_PARTS = 8  # of the end of a path by which a [[wiki]] link finds it from anywhere


class Target(NamedTuple):
    """What a link may lead to: a note of the folder and its page."""

    path: str
    id: str
    title: str


def fold(name: str) -> str:
    """Return a name so that letter case and the way an accent is encoded (macOS) do not count."""
    return name.casefold() if name.isascii() else unicodedata.normalize("NFC", ordered_marks(name)).casefold()


def without_suffix(path: str) -> str:
    """Return a path without the ending of a Markdown file."""
    root, ending = posixpath.splitext(path)
    return root if ending.lower() in SUFFIXES else path


def names_of_target(target: Target) -> tuple[str, str]:
    """Return the names by which links may find a target."""
    return fold(posixpath.basename(without_suffix(target.path))), fold(target.title)


def names_of_link(link: Link) -> tuple[str, str]:
    """Return the names of targets to which a link may lead: no other target concerns it."""
    return fold(posixpath.basename(without_suffix(link.target.rstrip("/")))), fold(link.target)


class Resolver:
    """Finds the page of a link.

    Args:
        targets: all notes of the folder that are pages.
    """

    def __init__(self, targets: Collection[Target]) -> None:
        self._targets = targets

    @cached_property
    def _by_path(self) -> dict[str, str]:
        return {target.path: target.id for target in self._targets}

    @cached_property
    def _by_end(self) -> dict[str, _Choice]:
        """The notes by each end of their paths, folded and without suffix: c, b/c and /a/b/c, / being the folder."""
        found: dict[str, _Choice] = {}
        for target in self._targets:
            parts = fold(without_suffix(target.path)).split("/")
            ends = {"/".join(parts[-count:]) for count in range(1, min(len(parts), MAX_PARTS) + 1)}
            for end in (*ends, "/" + "/".join(parts)):
                found.setdefault(end, _Choice()).targets.append(target)
        return found

    @cached_property
    def _by_title(self) -> dict[str, _Choice]:
        found: dict[str, _Choice] = {}
        for target in self._targets:
            found.setdefault(fold(target.title), _Choice()).targets.append(target)
        return found

    def resolve(self, link: Link, path: str) -> str | None:
        """Return the id of the page that a link in the note `path` leads to, or None."""
        if link.kind == PATH:
            return self._file(_joined(path, link.target), path)
        found = self._file(_joined(path, link.target), path) or self._file(_joined("", link.target), path)
        if found is None:
            end = fold(without_suffix(link.target.strip("/")))
            choice = self._by_end.get(end) or self._by_title.get(fold(link.target))
            found = choice.nearest(path) if choice else None
        return found

    def _file(self, at: str | None, path: str) -> str | None:
        """Return the page of a path in the folder: as it is written, with an ending added, in other letter case."""
        if at is None:
            return None
        for exact in (at, *(at + suffix for suffix in SUFFIXES)):
            if exact in self._by_path:
                return self._by_path[exact]
        choice = self._by_end.get("/" + fold(without_suffix(at)))
        return choice.nearest(path) if choice else None


def _joined(path: str, target: str) -> str | None:
    """Return where a relative path leads from the note `path`, / being the folder itself; None when it leaves it."""
    if posixpath.basename(target.rstrip("/")) in ("", ".", ".."):  # a folder
        return None
    folder = "" if target.startswith("/") else posixpath.dirname(path)
    at = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
    return None if at.split("/", 1)[0] == ".." else at


class _Choice:
    """Notes of one name, of which a link means the one that is fewest steps away."""

    def __init__(self) -> None:
        self.targets: list[Target] = []

    def nearest(self, path: str) -> str:
        """Return the page of the note that is nearest to the note `path`; of two in the deeper common folder."""
        if len(self.targets) == 1:
            return self.targets[0].id
        folders = _folders(path)
        ways = [
            (len(folders) + found[0] - 2 * common, -common, found[1])
            for common, folder in enumerate(folders)
            if (found := self._least.get(folder))
        ]
        return min(ways)[2].id

    @cached_property
    def _least(self) -> dict[str, tuple[int, Target]]:
        """In each folder the note that is least deep in it: to look at all of them for each link would be quadratic."""
        least: dict[str, tuple[int, Target]] = {}
        for target in self.targets:
            folders = _folders(target.path)
            found = len(folders), target
            for folder in folders:
                least[folder] = min(found, least.get(folder, found))
        return least


def _folders(path: str) -> list[str]:
    """Return the folders that a note is in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts))]
