"""The lines of a file of JSON: one at a time in memory, and never longer than a limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from memdb.text.check import MAX_CONTENT_BYTES

MAX_LINE_BYTES = 8 * MAX_CONTENT_BYTES  # the largest text, with every character escaped

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank.

    Args:
        number: its place in the file, from 1.
        raw: its bytes; empty when it is too long to be read.
        size: how many bytes it takes in the file.
        reason: why it cannot be read; "" when it can.
        value: what its JSON says.
    """

    number: int
    raw: bytes
    size: int
    reason: str = ""
    value: Any = None


def json_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of a file in UTF-8, those that hold no JSON with the reason; a file in UTF-16 is one such."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        size = len(raw)
        if size > MAX_LINE_BYTES:
            while not raw.endswith(b"\n") and (raw := file.readline(MAX_LINE_BYTES)):
                size += len(raw)
            yield Line(number, b"", size, f"it is longer than {MAX_LINE_BYTES:,} bytes")
        elif number == 1 and raw.startswith(_UTF16):
            yield Line(number, raw, size, "the file is UTF-16, only UTF-8 is read")
            return
        elif (text := raw.removeprefix(_BOM) if number == 1 else raw).strip():
            yield _line(number, raw, text, size)


def _line(number: int, raw: bytes, text: bytes, size: int) -> Line:
    try:
        return Line(number, raw, size, value=json.loads(text.decode()))
    except UnicodeDecodeError as error:
        return Line(number, raw, size, f"it is not UTF-8 (byte {error.start + 1})")
    except (ValueError, RecursionError) as error:
        return Line(number, raw, size, f"it is no JSON ({error})")
