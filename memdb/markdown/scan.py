"""Which notes a folder holds: Markdown files inside it, and what stands in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memdb.errors import InvalidInput, MissingFile
from memdb.markdown.report import Skipped
from memdb.markdown.resolve import SUFFIXES
from memdb.text.shown import shown

VANISHED = "it vanished while the folder was read"  # for good or to be replaced: the next sync will see


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
        unread: folders and files of which nobody can tell what they hold: their pages stay.
    """

    files: dict[str, File] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)

    def skip(self, path: str, reason: str) -> None:
        """Leave a file or folder out."""
        self.skipped.append(Skipped(_shown(path), reason))
        self.unread.add(path.rstrip("/"))

    def is_unread(self, path: str) -> bool:
        """Whether a file that was not found may still be there."""
        parts = path.split("/")
        return any("/".join(parts[:count]) in self.unread for count in range(1, len(parts) + 1))


def folder_name(folder: str | os.PathLike[str]) -> str:
    """Return a folder's path as text.

    Raises:
        InvalidInput: it is no path, empty (not to be taken for the present folder), or not UTF-8.
    """
    try:
        name = os.fsdecode(folder)
        if name and "\0" not in name and name.encode():
            return name
    except (TypeError, UnicodeEncodeError):
        pass
    raise InvalidInput(f"the folder must be a path in UTF-8, not {shown(folder)}")


def real_folder(folder: str | os.PathLike[str]) -> Path:
    """Return where a folder really is.

    Raises:
        MissingFile: there is nothing.
        InvalidInput: it is no folder, or cannot be read.
    """
    name = folder_name(folder)
    path = folder_name(os.path.realpath(name))
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"there is no folder {name}; nothing was changed") from None
    except OSError as error:
        raise _unreadable(name, error) from None
    if not is_folder:
        raise InvalidInput(f"{name} is no folder; give the folder that holds the notes")
    return Path(path)


def _unreadable(folder: str | Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"the folder {folder} cannot be read ({error.strerror}); nothing was changed")


@contextmanager
def standing(root: Path) -> Iterator[None]:
    """Make sure that a folder is there, and the same one, until the block is left.

    Raises:
        MissingFile: it vanished or was replaced.
    """
    identity = _identity(root)
    yield
    if _identity(root) != identity:
        raise MissingFile(f"the folder {root} was replaced while it was read; nothing was changed")


def _identity(root: Path) -> tuple[int, int]:
    try:
        status = os.stat(root)
    except OSError as error:
        raise _vanished(root, error) from None
    return status.st_dev, status.st_ino


def _vanished(root: Path, error: OSError) -> MissingFile:
    return MissingFile(f"the folder {root} vanished while it was read ({error.strerror}); nothing was changed")


def scan(root: Path) -> Scan:
    """Return a folder's notes. Names that begin with a dot are passed over.

    Raises:
        MissingFile: the folder is not there.
        InvalidInput: it cannot be read.
    """
    found = Scan()
    waiting = [("", str(root))]
    while waiting:
        prefix, real = waiting.pop()
        waiting += reversed(_read_folder(found, root, prefix, real))
    found.skipped.sort()
    return found


def _read_folder(found: Scan, root: Path, prefix: str, real: str) -> list[tuple[str, str]]:
    """Add a folder's notes to what was found; return the folders in it."""
    try:
        with os.scandir(real) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            raise (_vanished(root, error) if gone else _unreadable(root, error)) from None
        found.skip(prefix, f"it cannot be read ({error.strerror})")
        return []
    inner: list[tuple[str, str]] = []
    for entry in entries:
        if not entry.name.startswith("."):
            path = prefix + entry.name
            try:
                _enter(found, root, path, entry, inner)
            except FileNotFoundError:
                found.skip(path, VANISHED)
            except OSError as error:
                found.skip(path, f"it cannot be read ({error.strerror})")
    return inner


def _enter(found: Scan, root: Path, path: str, entry: os.DirEntry[str], inner: list[tuple[str, str]]) -> None:
    is_note = entry.name.lower().endswith(SUFFIXES)
    if entry.is_symlink():
        if is_note or not os.path.isfile(entry.path):
            found.skip(path, _why_not_followed(entry.path, root))
    elif entry.is_dir():
        inner.append((f"{path}/", entry.path))
    elif is_note:
        _add_file(found, path, entry.path, entry.stat(follow_symlinks=False))


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
