"""The file that an export is written to: never over something else by mistake."""

from __future__ import annotations

import json
import os
from pathlib import Path

from memdb.errors import AlreadyExists, InvalidInput, MissingFile, NotAMemdbFile, StorageError
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.source import LEAST_FILE_BYTES, identify
from memdb.storage.whole_file import belongs_to_database, file_path, told_of

MAX_HEAD_BYTES = 16_384  # of the first line: ids of 1,000 characters, every one escaped


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
    text = file_path(target, "the export")
    with told_of(text):
        path = text.resolve()
        if belongs_to_database(path, database):
            raise InvalidInput(f"{text} belongs to the database itself; give the export another path")
        if path.is_dir():
            raise InvalidInput(f"{text} is a folder; name a file in it, such as {text / 'memory.jsonl'}")
        if not path.parent.is_dir():
            raise MissingFile(f"cannot write {text}: the folder {path.parent} does not exist; make it first")
        if not path.exists():
            return path
        if not path.is_file():
            raise InvalidInput(f"{text} is no regular file; give another path")
        if not force and not _is_export(path):
            raise AlreadyExists(
                f"{text} is there already and is no export; give another path, or `memdb export --force` replaces it"
            )
    return path


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
