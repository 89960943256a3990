"""The files of a folder that is not trusted: links are not followed, and what is too large or no text is told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memdb.errors import InvalidInput, StorageError
from memdb.text.check import is_valid

MAX_JSON_BYTES = 32 * 1024 * 1024  # of what is parsed as a whole: it takes twenty times as much
LINK = "it is a link, and links are not followed"


class File(NamedTuple):
    """A file.

    Args:
        path: in the root, with / between its parts.
        stem: its name without the ending.
        reason: why it is not read; "" where it can be.
    """

    path: str
    stem: str
    reason: str = ""


class Contents(NamedTuple):
    """What a file holds.

    Args:
        raw: its bytes; b"" where they cannot be had.
        modified: when it was last changed.
        reason: why it cannot be taken; "" where it can.
    """

    raw: bytes
    modified: datetime
    reason: str = ""


def files(root: Path, folder: str, ending: str, *, deep: bool = True) -> Iterator[File]:
    """Yield the files of a folder with an ending, sorted; hidden ones and what lies beside is passed over.

    Args:
        folder: in the root; when it is not there, there are none.
        deep: whether the folders in it are looked into, too.

    Raises:
        StorageError: a folder cannot be listed: it is no empty one.
    """
    top = root / folder
    if top.is_symlink():
        yield File(folder, "", LINK)
        return
    for place, folders, names in os.walk(top, onerror=_raised):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()] if deep else []
        folders[:] = sorted(name for name in folders if deep and not name.startswith(".") and name not in links)
        for name in sorted(links):
            yield File(_within(root, here / name), "", LINK)
        for name in sorted(names):
            stem, its = os.path.splitext(name)
            if its.lower() != ending or name.startswith("."):
                continue
            path = here / name
            within = _within(root, path)
            if path.is_symlink():
                yield File(within, stem, LINK)
            elif path.is_file():
                yield File(within, stem, "" if is_valid(within) else "its name is not UTF-8: give it another")


def contents(path: Path, most: int) -> Contents:
    """Return what a file of at most so many bytes holds."""
    try:
        stat = path.stat()
        modified = _moment(stat.st_mtime)
        if stat.st_size > most:
            return Contents(b"", modified, f"it is larger than {most:,} bytes")
        return Contents(path.read_bytes(), modified)
    except OSError as error:
        return Contents(b"", _moment(0), f"it cannot be read ({error.strerror or error})")


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # beyond all years
        return datetime.fromtimestamp(0, UTC)


def as_text(raw: bytes) -> str:
    """Return bytes as text.

    Raises:
        InvalidInput: they are not UTF-8.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 (byte {error.start + 1})") from None


def as_object(raw: bytes) -> dict[str, Any]:
    """Return bytes as a JSON object.

    Raises:
        InvalidInput: they are none.
    """
    try:
        value = json.loads(as_text(raw))
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, InvalidInput) else InvalidInput(f"it is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise InvalidInput("it is no JSON object")
    return value


def _within(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise StorageError(f"cannot read {error.filename}: {error.strerror or error}") from error
