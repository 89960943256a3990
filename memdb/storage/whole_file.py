"""Files beside the database: written whole or not at all, and never over the database itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from memdb.errors import InvalidInput, MemdbError, StorageError
from memdb.text.check import path_text
from memdb.text.shown import shown

_BESIDE = ("", "-wal", "-shm", "-journal", "-lock")  # a database and what lies beside it


def file_path(value: object, what: str) -> Path:
    """Return what a caller gave as a file's path.

    Raises:
        InvalidInput: it is no path, empty, or holds NUL.
    """
    text = path_text(value)
    if not text:
        raise InvalidInput(f"{what} must be a file path, not {shown(value)}")
    return Path(text)


def belongs_to_database(path: Path, database: Path | None) -> bool:
    """Return whether a path is that of the database or of what SQLite keeps beside it."""
    if database is None:
        return False
    own = [Path(f"{database}{ending}") for ending in _BESIDE]
    return path.resolve() in [other.resolve() for other in own] or any(_is_same(path, other) for other in own)


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


@contextmanager
def written_whole(path: Path, like: Path | None) -> Iterator[BinaryIO]:
    """Give a file to write to that takes its path when the block ends well, on disk; else nothing is left of it.

    Args:
        path: the file's path; a file there is replaced.
        like: a file whose readers may read this one too.

    Raises:
        StorageError: it cannot be written; an older file at the path is as it was.
    """
    unfinished = path.with_name(f".{path.name[:200]}.{uuid4().hex}.unfinished")
    with told_of(path):
        try:
            mode = 0o600 if like is None else like.stat().st_mode & 0o666
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb", 1 << 20) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
            sync_folder(path.parent)
        finally:
            with suppress(OSError):
                unfinished.unlink()


@contextmanager
def told_of(path: object, verb: str = "write") -> Iterator[None]:
    """Let what the system says of a file reach the caller as a StorageError: "cannot write x: No space left"."""
    try:
        yield
    except MemdbError:  # some of ours are OSErrors too
        raise
    except OSError as error:
        raise StorageError(f"cannot {verb} {path}: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Let a name that was given in a folder survive a power cut."""
    with suppress(OSError, AttributeError):  # Windows cannot sync a folder
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
