"""Payloads in chunks: stored once a user by their hash, read from anywhere without reading the rest.

Whoever refers to a payload has a column `blob_id`; triggers delete a payload when nothing refers to it any more (see
memdb.storage.schema.blob).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select, update

from memdb.errors import SerializationError
from memdb.storage.schema import blob, blob_chunk
from memdb.storage.statement import InsertRows, Statement, insert, param
from memdb.storage.transaction import Transaction

# A page of a text is read from one or two of them; larger ones made that slower and storing no faster.
CHUNK_BYTES = 32_768
CHUNKS_AT_ONCE = 16  # of those that follow each other


class Blob(NamedTuple):
    """What is known of a payload without reading it.

    Args:
        id: its number.
        hash: SHA-256 of its bytes, in hexadecimal.
        size: how many bytes.
        lines: how many line feeds.
    """

    id: int
    hash: str
    size: int
    lines: int


class Chunk(NamedTuple):
    """A stretch of a payload, cut between two characters.

    Args:
        start: how many bytes stand before it.
        line: how many line feeds stand before it.
        data: its bytes.
    """

    start: int
    line: int
    data: bytes


_MEND = Statement(
    update(blob)
    .where(blob.c.user_id == param("user_id"), blob.c.id == bindparam("number"))
    .values(size=param("size"), lines=param("lines"))
)
_DROP_CHUNKS = Statement(delete(blob_chunk).where(blob_chunk.c.blob_id == param("blob_id")))
_FIND = Statement(select(blob.c.id).where(blob.c.user_id == param("user_id"), blob.c.hash == param("hash")))
_ADD = InsertRows(insert(blob).values({name: param(name) for name in ("user_id", "hash", "size", "lines")}))
_ADD_CHUNKS = InsertRows(
    insert(blob_chunk).values({name: param(name) for name in ("blob_id", "start", "line", "data")})
)
_OF_USER = (blob.c.user_id == param("user_id"), blob.c.id == bindparam("id"))
_ABOUT = Statement(select(blob.c.id, blob.c.hash, blob.c.size, blob.c.lines).where(*_OF_USER))
_CHUNKS = (
    select(blob_chunk.c.start, blob_chunk.c.line, blob_chunk.c.data)
    .join(blob, blob.c.id == blob_chunk.c.blob_id)
    .where(*_OF_USER)
)
_CHUNK_AT = Statement(_CHUNKS.where(blob_chunk.c.start <= param("at")).order_by(blob_chunk.c.start.desc()).limit(1))
_CHUNK_OF_LINE = Statement(
    _CHUNKS.where(blob_chunk.c.line < param("line")).order_by(blob_chunk.c.line.desc(), blob_chunk.c.id.desc()).limit(1)
)
_CHUNKS_AFTER = Statement(
    _CHUNKS.where(blob_chunk.c.start > param("at")).order_by(blob_chunk.c.start).limit(CHUNKS_AT_ONCE)
)


def put(tx: Transaction, user_id: str, data: bytes) -> int:
    """Store a payload, or find the one that is the same, and return its number.

    Args:
        data: text in UTF-8; lone surrogates as Python's "surrogatepass" writes them.
    """
    return put_many(tx, [(user_id, data)])[0]


def put_many(tx: Transaction, payloads: Sequence[tuple[str, bytes]]) -> list[int]:
    """Store payloads, or find those that are the same, and return their numbers in the order given.

    Args:
        payloads: the users and their data, as `put` takes it.
    """
    named = [(user_id, hashlib.sha256(data).hexdigest()) for user_id, data in payloads]
    numbers: dict[tuple[str, str], int] = {}
    new: dict[tuple[str, str], bytes] = {}
    for name, (user_id, data) in zip(named, payloads, strict=True):
        if name in numbers or name in new:
            continue
        found = tx.first(_FIND, {"user_id": user_id, "hash": name[1]})
        if found is None:
            new[name] = data
            continue
        numbers[name] = found[0]
        if not _holds(tx, user_id, found[0], data):  # damaged since: what is stored now makes it whole again
            tx.run(_DROP_CHUNKS, blob_id=found[0])
            tx.run(_MEND, user_id=user_id, number=found[0], size=len(data), lines=data.count(b"\n"))
            tx.insert_many(_ADD_CHUNKS, _chunk_rows(found[0], data))
    if new:
        numbers |= _add(tx, new)
    return [numbers[name] for name in named]


def _add(tx: Transaction, new: Mapping[tuple[str, str], bytes]) -> dict[tuple[str, str], int]:
    """Insert payloads, which are named by their users and hashes, and return their numbers."""
    rows = [
        {"user_id": user_id, "hash": digest, "size": len(data), "lines": data.count(b"\n")}
        for (user_id, digest), data in new.items()
    ]
    if len(rows) == 1:
        numbers = {name: tx.insert_new(_ADD, rows[0]) for name in new}
    else:
        tx.insert_many(_ADD, rows)
        numbers = {(user_id, digest): int(tx.value(_FIND, user_id=user_id, hash=digest)) for user_id, digest in new}
    tx.insert_many(_ADD_CHUNKS, [row for name, data in new.items() for row in _chunk_rows(numbers[name], data)])
    return numbers


def _chunk_rows(number: int, data: bytes) -> list[dict[str, object]]:
    return [{"blob_id": number, "start": one.start, "line": one.line, "data": one.data} for one in cut(data)]


def _holds(tx: Transaction, user_id: str, number: int, data: bytes) -> bool:
    """Return whether a payload is still what it was stored as; to look costs less than to store it again."""
    end = line = 0
    try:
        for chunk in chunks(tx, user_id, number):
            if (chunk.start, chunk.line) != (end, line) or data[end : end + len(chunk.data)] != chunk.data:
                return False
            end, line = end + len(chunk.data), line + chunk.data.count(b"\n")
    except SerializationError:
        return False
    known = about(tx, user_id, number)
    return end == len(data) and known is not None and (known.size, known.lines) == (end, line)


def cut(data: bytes, before: int = 0, line: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of a payload, or of a part of it before which `before` bytes and `line` line feeds stand."""
    start = 0
    while True:
        end = min(start + CHUNK_BYTES, len(data))
        while start < end < len(data) and data[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        chunk = Chunk(before + start, line, data[start:end])
        yield chunk
        start, line = end, line + chunk.data.count(b"\n")
        if start >= len(data):
            return


def about(tx: Transaction, user_id: str, number: int) -> Blob | None:
    """Return what is known of a user's payload, or None when he has none of that number."""
    found = tx.one(_ABOUT, user_id=user_id, id=number)
    return None if found is None else Blob(*found)


def read(tx: Transaction, user_id: str, number: int) -> bytes:
    """Return a whole payload.

    Raises:
        SerializationError: it is not there, or not as it was stored.
    """
    known = about(tx, user_id, number)
    data = b"".join(chunk.data for chunk in chunks(tx, user_id, number))
    if known is None:
        raise SerializationError("the payload is missing")
    if len(data) != known.size or hashlib.sha256(data).hexdigest() != known.hash:
        raise SerializationError(
            f"the payload is not as it was stored: {len(data):,} of {known.size:,} bytes are there"
        )
    return data


def chunks(tx: Transaction, user_id: str, number: int, start: int = 0) -> Iterator[Chunk]:
    """Yield a payload's chunks from the one that holds the byte `start`, in their order, a few at a time in memory."""
    first = tx.one(_CHUNK_AT, user_id=user_id, id=number, at=start)
    yield from () if first is None else _from(tx, user_id, number, _chunk(first))


def chunks_from_line(tx: Transaction, user_id: str, number: int, line: int) -> Iterator[Chunk]:
    """Yield a payload's chunks from the one in which line `line` begins, counted from 0, in their order.

    Line 0 begins with the first byte; every other after a line feed.
    """
    if line <= 0:
        yield from chunks(tx, user_id, number)
        return
    # The chunk before which fewer line feeds stand than the line needs, and the last such: the feed is in it.
    first = tx.one(_CHUNK_OF_LINE, user_id=user_id, id=number, line=line)
    yield from () if first is None else _from(tx, user_id, number, _chunk(first))


def _from(tx: Transaction, user_id: str, number: int, chunk: Chunk) -> Iterator[Chunk]:
    yield chunk
    while rows := tx.all(_CHUNKS_AFTER, user_id=user_id, id=number, at=chunk.start):
        for found in rows:
            chunk = _chunk(found)
            yield chunk


def _chunk(found: tuple[object, ...]) -> Chunk:
    start, line, data = found
    if isinstance(data, str):  # a hand has put text there
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(start, int) or not isinstance(line, int) or not isinstance(data, bytes):
        raise SerializationError("a chunk of the payload is not what it must be")
    return Chunk(start, line, data)
