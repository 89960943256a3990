"""Which page a link leads to, among the notes of one folder."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from memdb.markdown.links import PATH, Link

SUFFIXES = (".md", ".markdown")


class Target(NamedTuple):
    """What a link may lead to: a note of the folder and its page."""

    path: str
    id: str
    title: str


def fold(name: str) -> str:
    """Return a name so that letter case and the way an accent is encoded (macOS) do not count."""
    return name.casefold() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


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

    def __init__(self, targets: Iterable[Target]) -> None:
        self._by_path: dict[str, str] = {}
        self._folded: dict[str, list[Target]] = {}
        self._by_stem: dict[str, list[Target]] = {}
        self._by_title: dict[str, list[Target]] = {}
        for target in sorted(targets):
            stem, title = names_of_target(target)
            self._by_path[target.path] = target.id
            self._folded.setdefault(fold(without_suffix(target.path)), []).append(target)
            self._by_stem.setdefault(stem, []).append(target)
            self._by_title.setdefault(title, []).append(target)

    def resolve(self, link: Link, path: str) -> str | None:
        """Return the id of the page that a link in the note `path` leads to, or None."""
        if link.kind == PATH:
            return self._file(_joined(path, link.target))
        found = self._file(_joined(path, link.target)) or self._file(_joined("", link.target))
        if found is None:
            name = fold(without_suffix(link.target.strip("/")))
            same_stem = self._by_stem.get(posixpath.basename(name), [])
            named = [at for at in same_stem if ("/" + fold(without_suffix(at.path))).endswith("/" + name)]
            found = _nearest(named or self._by_title.get(fold(link.target), []), path)
        return found

    def _file(self, path: str | None) -> str | None:
        """Return the page of a path in the folder: as it is written, with an ending added, in other letter case."""
        if path is None:
            return None
        for exact in (path, *(path + suffix for suffix in SUFFIXES)):
            if exact in self._by_path:
                return self._by_path[exact]
        return _nearest(self._folded.get(fold(without_suffix(path)), []), path)


def _joined(path: str, target: str) -> str | None:
    """Return where a relative path leads from the note `path`, / being the folder itself; None when it leaves it."""
    at = posixpath.normpath(posixpath.join("/", posixpath.dirname(path), target).lstrip("/"))
    climbs = posixpath.normpath(posixpath.join(posixpath.dirname(path), target.lstrip("/")))
    if at == "." or (not target.startswith("/") and climbs.startswith("..")):
        return None
    return at


def _nearest(targets: list[Target], path: str) -> str | None:
    if len(targets) < 2:
        return targets[0].id if targets else None
    here = posixpath.dirname(path).split("/")

    def far(target: Target) -> tuple[int, int, str]:
        there = posixpath.dirname(target.path).split("/")
        common = len(posixpath.commonprefix([here, there]))
        return len(here) + len(there) - 2 * common, -common, target.path

    return min(targets, key=far).id
