"""What a file of somebody's folder holds: its bytes, a text, or why it cannot be taken."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memdb.errors import InvalidInput

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
