"""What a file of somebody's folder holds: its bytes, a text, or why it cannot be taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from memdb.errors import InvalidInput
from memdb.storage.whole_file import told_of

T = TypeVar("T")

MAX_JSON_BYTES = 32 * 1024 * 1024  # of what is parsed as a whole: it takes twenty times as much


class Contents(NamedTuple):
    """What a file holds.

    Args:
        raw: its bytes; b"" where they cannot be had.
        modified: when it was last changed, in seconds since 1970; 0.0 where they cannot be had.
        reason: why it cannot be taken; "" where it can.
    """

    raw: bytes
    modified: float
    reason: str = ""


def contents(path: Path, most: int) -> Contents:
    """Return what a file of at most so many bytes holds."""
    try:
        stat = path.stat()
        if stat.st_size > most:
            return Contents(b"", 0.0, f"it is larger than {most:,} bytes")
        return Contents(path.read_bytes(), stat.st_mtime)
    except OSError as error:
        return Contents(b"", 0.0, f"it cannot be read ({error.strerror or error})")


def as_text(raw: bytes) -> str:
    """Return bytes as text.

    Raises:
        InvalidInput: they are not UTF-8.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 (byte {error.start + 1})") from None


def moment(seconds: float) -> datetime:
    """Return a file's time; that of 1970 where it is beyond all years."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


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


def read_manifest(path: Path, kind: str, version: int, make: Callable[[dict[str, Any]], T]) -> T:
    """Return what `make` makes of a file in which memdb says what it wrote beside it.

    Args:
        kind: what the file says under "memdb".
        version: the newest that this memdb knows.

    Raises:
        InvalidInput: a newer memdb wrote it, or it is damaged.
    """
    with told_of(path, "read"):
        raw = path.read_bytes()
    try:
        value = json.loads(raw)
        written = value["version"]
        if value["memdb"] != kind or not isinstance(written, int):
            raise ValueError("it is none of memdb's")
        if written <= version:
            return make(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}): mend it or move it away") from None
    raise InvalidInput(f"{path} was written by a newer memdb: use that one for this folder")
