"""Which notes a folder holds: Markdown files inside it, and what stands in the way."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from memdb.errors import InvalidInput, MissingFile
from memdb.markdown.report import Skipped
from memdb.markdown.resolve import SUFFIXES


@dataclass(frozen=True, slots=True)
class File:
    """A note on the disk.

    Args:
        path: in its folder, with / between its parts.
        real: where it really is.
        size, modified_ns, changed_ns: what the file system says of it.
    """

    path: str
    real: str
    size: int
    modified_ns: int
    changed_ns: int


@dataclass(slots=True)
class Scan:
    """What a folder holds.

    Args:
        files: the notes, by path.
        skipped: what was left out.
        unread: folders (ending in /) and files of which nobody can tell what they hold: their pages stay.
    """

    files: dict[str, File] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def skip(self, path: str, reason: str, *, unread: bool = True) -> None:
        """Leave something out."""
        self.skipped.append(Skipped(_shown(path), reason))
        if unread:
            self.unread.append(path)

    def is_unread(self, path: str) -> bool:
        """Whether a file that was not found may still be there."""
        return any(path == place or (place.endswith("/") and path.startswith(place)) for place in self.unread)


def real_folder(folder: str | os.PathLike[str]) -> Path:
    """Return where a folder really is.

    Raises:
        MissingFile: there is nothing.
        InvalidInput: it is no folder.
    """
    path = Path(os.path.realpath(folder))
    if not path.exists():
        raise MissingFile(f"there is no folder {folder}; nothing was changed")
    if not path.is_dir():
        raise InvalidInput(f"{folder} is no folder; give the folder that holds the notes")
    return path


def scan(root: Path) -> Scan:
    """Return a folder's notes. Names that begin with a dot are passed over.

    Raises:
        MissingFile: the folder vanished while it was read.
    """
    found = Scan()
    identity = _identity(root)
    waiting = [("", str(root))]
    while waiting:
        prefix, real = waiting.pop()
        waiting += reversed(_read_folder(found, root, prefix, real))
    if _identity(root) != identity:
        raise MissingFile(f"the folder {root} was replaced while it was read; nothing was changed")
    found.skipped.sort()
    return found


def _identity(root: Path) -> tuple[int, int]:
    try:
        status = os.stat(root)
    except OSError as error:
        raise MissingFile(
            f"the folder {root} vanished while it was read ({error.strerror}); nothing was changed"
        ) from None
    return status.st_dev, status.st_ino


def _read_folder(found: Scan, root: Path, prefix: str, real: str) -> list[tuple[str, str]]:
    """Add a folder's notes to what was found; return the folders in it."""
    try:
        with os.scandir(real) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except FileNotFoundError:  # gone since its own folder was read; after the root itself the caller looks
        return []
    except OSError as error:
        found.skip(prefix, f"it cannot be read ({error.strerror})")
        return []
    inner: list[tuple[str, str]] = []
    for entry in entries:
        path = prefix + entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            found.skip(path, _why_not_followed(entry.path, root))
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            found.skip(path, f"it cannot be read ({error.strerror})")
            continue
        if stat.S_ISDIR(status.st_mode):
            inner.append((f"{path}/", entry.path))
        elif entry.name.lower().endswith(SUFFIXES):
            _add_file(found, path, entry.path, status)
    return inner


def _why_not_followed(link: str, root: Path) -> str:
    """Return why a symbolic link is left out: what it leads to is read itself, or is not the folder's."""
    try:
        target = os.path.realpath(link, strict=True)
    except OSError as error:
        return f"it is a link that leads nowhere ({error.strerror})"
    if target == str(root) or target.startswith(str(root).rstrip(os.sep) + os.sep):
        return "it is a link to something in the folder, which is read itself"
    return "it is a link that leads out of the folder"


def _add_file(found: Scan, path: str, real: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        found.skip(path, "it is no ordinary file")
    elif not _is_utf8(path):
        found.skip(path, "its name is not UTF-8")
    else:
        found.files[path] = File(path, real, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()
