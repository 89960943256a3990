"""Reading a part of a tool result, by bytes or by lines, from the chunks that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from memdb.errors import SerializationError
from memdb.storage import blobs
from memdb.storage.blobs import Blob, Chunk
from memdb.storage.transaction import Transaction

MAX_SLICE_BYTES = 1024 * 1024  # of one answer
MAX_LINE_NUMBER = 2**40


class ToolResultSlice(NamedTuple):
    """A stretch of a tool result's text.

    Args:
        text: the text; its UTF-8 bytes are those from `start` to `end`.
        start: how many bytes stand before it.
        end: where it ends: ask from here to go on.
        size: how many bytes the whole has.
        more: whether anything stands after it.
    """

    text: str
    start: int
    end: int
    size: int
    more: bool


class ToolResultLines(NamedTuple):
    """Some lines of a tool result's text.

    Args:
        text: the lines, each with its line feed.
        start: how many bytes stand before them.
        end: where they end, in bytes.
        size: how many bytes the whole has.
        more: whether anything stands after them.
        first_line: the number of the first, from 1.
        last_line: the number of the last that is there at least in part; first_line - 1 when there is none.
        lines: how many lines the whole has.
    """

    text: str
    start: int
    end: int
    size: int
    more: bool
    first_line: int
    last_line: int
    lines: int


def _singly(tx: Transaction, user_id: str, blob: Blob, start: int) -> Iterator[Chunk]:
    """Yield chunks from the one that holds the byte `start`, each when it is asked for: a page takes one or two."""
    while (chunk := next(blobs.chunks(tx, user_id, blob.id, start), None)) is not None:
        yield chunk
        start = chunk.start + len(chunk.data)


def joined(blob: Blob, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield chunks of a payload as long as each begins where the one before it ended.

    Raises:
        SerializationError: one is missing, or the last does not end where the payload does.
    """
    before: Chunk | None = None
    for chunk in chunks:
        if before is not None and (chunk.start, chunk.line) != _after(before):
            raise SerializationError(f"a chunk of the payload is missing after byte {before.start:,}")
        yield chunk
        before = chunk
        if chunk.start + len(chunk.data) >= blob.size:
            break
    if before is None or before.start + len(before.data) != blob.size:
        raise SerializationError("the payload does not end where it did when it was stored")


def _after(chunk: Chunk) -> tuple[int, int]:
    return chunk.start + len(chunk.data), chunk.line + chunk.data.count(b"\n")


def line_count(tx: Transaction, user_id: str, blob: Blob) -> int:
    """Return how many lines a payload has: what stands after its last line feed is one, unless it is nothing."""
    if blob.size == 0:
        return 0
    last = next(blobs.chunks(tx, user_id, blob.id, blob.size - 1), None)
    if last is None or last.start + len(last.data) != blob.size:
        raise SerializationError("the payload does not end where it did when it was stored")
    return blob.lines + (not last.data.endswith(b"\n"))


def read_bytes(tx: Transaction, user_id: str, blob: Blob, start: int, size: int) -> ToolResultSlice:
    """Return the characters from the one that holds the byte `start`, in at most `size` bytes; at least one character.

    Raises:
        SerializationError, ValueError: the payload is not as it was stored.
    """
    if start >= blob.size:
        return ToolResultSlice("", blob.size, blob.size, blob.size, False)
    wanted = min(start + size, blob.size)
    data, base = b"", 0
    for chunk in joined(blob, _singly(tx, user_id, blob, start)):
        base = base if data else chunk.start
        data += chunk.data
        if base + len(data) >= wanted:
            break
    begin = _boundary(data, start - base)
    end = _boundary(data, wanted - base)
    if end <= begin:  # less than the one character
        end = begin + 1
        while end < len(data) and _inside(data[end]):
            end += 1
    text = data[begin:end].decode("utf-8", "surrogatepass")
    return ToolResultSlice(text, base + begin, base + end, blob.size, base + end < blob.size)


def read_lines(tx: Transaction, user_id: str, blob: Blob, first: int, count: int, max_bytes: int) -> ToolResultLines:
    """Return `count` lines from number `first`, in at most `max_bytes`: whole ones, or the beginning of a longer one.

    Raises:
        SerializationError, ValueError: the payload is not as it was stored.
    """
    total = line_count(tx, user_id, blob)
    if first > total:
        return ToolResultLines("", blob.size, blob.size, blob.size, False, first, first - 1, total)
    start, data = _from_line(tx, user_id, blob, first - 1, count, max_bytes)
    parts = data.split(b"\n", count)
    end = len(data) - len(parts[-1]) if len(parts) > count else len(data)
    if end > max_bytes:
        end = data.rfind(b"\n", 0, max_bytes) + 1 or _boundary(data, max_bytes)
    kept = data[:end]
    last = first - 1 + kept.count(b"\n") + (not kept.endswith(b"\n"))
    end += start
    text = kept.decode("utf-8", "surrogatepass")
    return ToolResultLines(text, start, end, blob.size, end < blob.size, first, last, total)


def _from_line(tx: Transaction, user_id: str, blob: Blob, line: int, count: int, max_bytes: int) -> tuple[int, bytes]:
    """Return where line `line`, from 0, begins, and what stands from there on: at least what read_lines needs."""
    start, parts, size, feeds = -1, [], 0, 0
    first = [*islice(blobs.chunks_from_line(tx, user_id, blob.id, line), 1)]
    rest = (chunk for one in first for chunk in _singly(tx, user_id, blob, one.start + len(one.data)))
    for chunk in joined(blob, chain(first, rest)):
        data = chunk.data
        if start < 0:
            pieces = data.split(b"\n", max(0, line - chunk.line))
            if chunk.line > line or len(pieces) <= line - chunk.line:  # it begins in a later one
                continue
            data = pieces[-1]
            start = chunk.start + len(chunk.data) - len(data)
        parts.append(data)
        size, feeds = size + len(data), feeds + data.count(b"\n")
        if feeds >= count or size > max_bytes:
            break
    if start < 0:
        raise SerializationError(f"the payload has no line {line + 1:,} where it had one when it was stored")
    return start, b"".join(parts)


def _inside(byte: int) -> bool:
    """Whether a byte of UTF-8 is not the first of its character."""
    return byte & 0xC0 == 0x80


def _boundary(data: bytes, at: int) -> int:
    """Return the place at or before `at` where a character begins."""
    while 0 < at < len(data) and _inside(data[at]):
        at -= 1
    return at
