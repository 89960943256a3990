"""The file that an export is written to: whole or not there, and never over something else by mistake."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from memdb.errors import AlreadyExists, InvalidInput, MemdbError, MissingFile, NotAMemdbFile, StorageError
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.source import LEAST_FILE_BYTES, identify

MAX_HEAD_BYTES = 16_384  # of the first line: ids of 1,000 characters, every one escaped
_BESIDE = ("", "-wal", "-shm", "-journal", "-lock")  # a database and what lies beside it


def check_target(target: str | os.PathLike[str], database: Path | None, *, force: bool) -> Path:
    """Return the path to write to, behind symbolic links.

    Args:
        target: the path that was asked for.
        database: the file that is exported, which cannot be the target.
        force: whether another kind of file that is there may be replaced.

    Raises:
        InvalidInput: the path is empty, a folder, no regular file, or the database itself.
        MissingFile: its folder is not there.
        AlreadyExists: a file is there that is no earlier export.
    """
    text = os.fspath(target)
    if not isinstance(text, str) or not text or "\x00" in text:
        raise InvalidInput(f"the export must be a file path, not {target!r}")
    with _told(Path(text)):
        path = Path(text).resolve()
        if database is not None and any(_is_same(path, Path(f"{database}{ending}")) for ending in _BESIDE):
            raise InvalidInput(f"{text} belongs to the database itself; give the export another path")
        if path.is_dir():
            raise InvalidInput(f"{text} is a folder; name a file in it, such as {Path(text) / 'memory.jsonl'}")
        if not path.parent.is_dir():
            raise MissingFile(f"cannot write {text}: the folder {path.parent} does not exist; make it first")
        if not path.exists():
            return path
        if not path.is_file():
            raise InvalidInput(f"{text} is no regular file; give another path")
        if not force and not _is_export(path):
            raise AlreadyExists(
                f"{text} is there already and is no export; give another path, or --force to replace it"
            )
    return path


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database, by SQLite alone.

    Opening and closing a database that this process has open would drop its locks on it.
    """
    try:
        return identify(path, SCHEMA_VERSION, timeout=1.0).version > 0
    except NotAMemdbFile as error:
        return error.__cause__ is None and path.stat().st_size >= LEAST_FILE_BYTES  # of another program
    except StorageError:
        return True


def _is_export(path: Path) -> bool:
    """Return whether a file begins as an export does, or is empty."""
    if is_database(path):
        return False
    with path.open("rb") as file:
        first = file.readline(MAX_HEAD_BYTES)
    try:
        head = json.loads(first)
    except (ValueError, RecursionError):
        return not first
    return isinstance(head, dict) and head.get("memdb") == "export"


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
    with _told(path):
        try:
            mode = 0o600 if like is None else like.stat().st_mode & 0o666
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb", 1 << 20) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
            _sync_folder(path.parent)
        finally:
            with suppress(OSError):
                unfinished.unlink()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except MemdbError:  # some of ours are OSErrors too
        raise
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    with suppress(OSError, AttributeError):  # Windows cannot sync a folder
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
