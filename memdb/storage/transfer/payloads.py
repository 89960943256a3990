"""The payloads of an export: a line a chunk, before what refers to them; checked against their hash on both ways."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from memdb.errors import InvalidInput
from memdb.storage import blobs
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.rows import Row, Whose
from memdb.text.shown import shown

_REFERRED = """
SELECT id, hash, size FROM blob
 WHERE user_id = :user_id
   AND (EXISTS (SELECT 1 FROM checkpoint
                 WHERE checkpoint.blob_id = blob.id AND checkpoint.user_id = blob.user_id
                   AND (:session_id IS NULL OR checkpoint.session_id = :session_id))
        OR EXISTS (SELECT 1 FROM tool_result CROSS JOIN record ON record.id = tool_result.record_id
                    WHERE tool_result.blob_id = blob.id AND record.user_id = blob.user_id
                      AND (:session_id IS NULL OR record.session_id = :session_id)))
 ORDER BY id
"""
_CHUNKS = "SELECT start, CAST(data AS BLOB) FROM blob_chunk WHERE blob_id = ? ORDER BY start"
_FIND = "SELECT id FROM blob WHERE (user_id, hash) = (?, ?)"
_ADD = "INSERT INTO blob (user_id, hash, size, lines) VALUES (?, ?, ?, 0)"
_ADD_CHUNK = "INSERT INTO blob_chunk (blob_id, start, line, data) VALUES (?, ?, ?, ?)"
_EMPTY = "DELETE FROM blob_chunk WHERE blob_id = ?"
_RESIZE = "UPDATE blob SET size = ? WHERE id = ?"
_WHOLE = "UPDATE blob SET lines = ? WHERE id = ?"
_DROP = """
DELETE FROM blob
 WHERE id = ? AND (? OR NOT EXISTS (SELECT 1 FROM checkpoint WHERE blob_id = blob.id)
                        AND NOT EXISTS (SELECT 1 FROM tool_result WHERE blob_id = blob.id))
"""


def said_payloads(connection: sqlite3.Connection, whose: Whose, written: set[str]) -> Iterator[dict[str, Any]]:
    """Yield payloads as lines' fields; one that is not as it was stored is left out.

    Args:
        whose: only those that something of this refers to; what refers to payloads is of a session.
        written: is given the hashes of those that were yielded.
    """
    # All at once: they are few words each, and a second cursor over the chunks would be in its way.
    for number, digest, size in connection.execute(
        _REFERRED, {"user_id": whose.user_id, "session_id": whose.session_id}
    ).fetchall():
        if _is_whole(connection, number, digest, size):
            for start, data in connection.execute(_CHUNKS, (number,)):
                text = data.decode("utf-8", "surrogatepass")
                yield {"kind": "payload", "hash": digest, "size": size, "start": start, "text": text}
            written.add(digest)


def _is_whole(connection: sqlite3.Connection, number: int, digest: str, size: int) -> bool:
    check, held = hashlib.sha256(), 0
    for start, data in connection.execute(_CHUNKS, (number,)):
        try:
            data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return False
        if start != held:
            return False
        check.update(data)
        held += len(data)
    return held == size and check.hexdigest() == digest


class Payloads:
    """The payloads of a user, inside a write transaction.

    Args:
        connection: reads text leniently.
        user_id: whose payloads.
    """

    def __init__(self, connection: sqlite3.Connection, user_id: str) -> None:
        self._connection = connection
        self._user_id = user_id
        self._made: dict[int, bool] = {}  # those that were added -> whether they are whole
        self._open: _Open | None = None
        self._passed: str | None = None  # the hash of one that is there already

    def take(self, columns: Row) -> None:
        """Store a chunk.

        Raises:
            InvalidInput: it does not follow on the one before it, or that one ended too early.
        """
        digest, size, start, text = columns
        data = text.encode("utf-8", "surrogatepass")
        if start == 0:
            self.finish()
            found = self._connection.execute(_FIND, (self._user_id, digest)).fetchone()
            if found is not None and (found[0] in self._made or _is_whole(self._connection, found[0], digest, size)):
                self._passed = digest
                return
            self._passed = None
            if found is None:
                number = self._connection.execute(_ADD, (self._user_id, digest, size)).lastrowid
                assert number is not None
                self._made[number] = False
            else:  # damaged since: what the export holds makes it whole again
                number = int(found[0])
                self._connection.execute(_EMPTY, (number,))
                self._connection.execute(_RESIZE, (size, number))
            self._open = _Open(number, digest, size)
        elif digest == self._passed:
            return
        if self._open is None or self._open.hash != digest or self._open.held != start:
            raise InvalidInput(f"the payload {shown(digest)} has no chunk that begins at byte {start}")
        for chunk in blobs.cut(data, start, self._open.lines):
            self._connection.execute(_ADD_CHUNK, (self._open.number, *chunk))
        self._open.add(data)
        if self._open.held >= size:
            self.finish()

    def finish(self) -> None:
        """End the payload that is being stored.

        Raises:
            InvalidInput: it is not what its hash says.
        """
        open_, self._open = self._open, None
        if open_ is None:
            return
        if open_.held != open_.size or open_.check.hexdigest() != open_.hash:
            raise InvalidInput(f"the payload {open_.hash[:12]!r} is not whole or not what its hash says")
        self._connection.execute(_WHOLE, (open_.lines, open_.number))
        if open_.number in self._made:
            self._made[open_.number] = True

    def check(self, entry: Entry) -> None:
        """Refuse a line that refers to a payload that is not there.

        Raises:
            InvalidInput: it does.
        """
        for digest in entry.payloads:
            found = self._connection.execute(_FIND, (self._user_id, digest)).fetchone()
            if found is None or not self._made.get(found[0], True):
                raise InvalidInput(f"its payload {digest[:12]!r} is not there")

    def tidy(self) -> None:
        """Delete what was added and nothing refers to, and what is not whole."""
        for number, whole in self._made.items():
            self._connection.execute(_DROP, (number, not whole))


class _Open:
    """A payload that is being stored."""

    def __init__(self, number: int, digest: str, size: int) -> None:
        self.number, self.hash, self.size = number, digest, size
        self.held = self.lines = 0
        self.check = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.check.update(data)
        self.held += len(data)
        self.lines += data.count(b"\n")
