"""Sessions as a whole: which ones a user has, and the end of one in every layer."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memdb.errors import SerializationError
from memdb.storage.clock import from_text
from memdb.storage.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session of a user.

    Args:
        session_id: its id, exactly as it was given.
        created_at: the time of its first record, or what an import says if that is earlier, in UTC.
        updated_at: the time of its last record, or when it was last imported, compacted or cleared if that is later, in
            UTC.
        messages: how many messages it holds.
        metadata: what an import brought with it; {} when nothing did.
    """

    session_id: str
    created_at: datetime
    updated_at: datetime
    messages: int
    metadata: dict[str, Any]


# Counts come from the counters that the triggers keep, times from the two ends of an index (between "0" and ":", above
# all digits: a shell may have left what is no time).
_HELD = """
SELECT session_id, layer, records,
       (SELECT min(created_at) FROM record
         WHERE (user_id, layer, session_id) = (scope.user_id, scope.layer, scope.session_id)
           AND created_at >= '0' AND created_at < ':'),
       (SELECT max(created_at) FROM record
         WHERE (user_id, layer, session_id) = (scope.user_id, scope.layer, scope.session_id)
           AND created_at >= '0' AND created_at < ':')
  FROM scope
 WHERE user_id = :user_id AND session_id != '' AND records > 0
"""
_KNOWN = "SELECT session_id, created_at, updated_at, metadata FROM session WHERE user_id = :user_id"
_TIMES = """
SELECT session_id, min(updated_at), max(updated_at) FROM state WHERE user_id = :user_id GROUP BY session_id
 UNION ALL
SELECT session_id, min(updated_at), max(updated_at) FROM working_memory WHERE user_id = :user_id GROUP BY session_id
 UNION ALL
SELECT session_id, min(saved_at), max(saved_at) FROM checkpoint WHERE user_id = :user_id GROUP BY session_id
"""
# +session_id: with statistics SQLite would skip through the whole index to look for it among all users.
_COUNTS = """
SELECT layer, records FROM scope
 WHERE user_id = :user_id AND +session_id = :session_id AND session_id != '' AND records > 0
"""
_ASIDE = "SELECT count(*) FROM quarantine WHERE user_id = :user_id AND session_id = :session_id"
_DELETE = (
    """DELETE FROM record
        WHERE user_id = :user_id AND session_id = :session_id
          AND layer IN (SELECT layer FROM scope WHERE user_id = :user_id AND +session_id = :session_id)""",
    "DELETE FROM state WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM working_memory WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM checkpoint WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM version WHERE user_id = :user_id AND layer = 'block' AND session_id = :session_id",
    "DELETE FROM memory_config WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM consolidation WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM eviction WHERE user_id = :user_id AND +session_id = :session_id AND session_id != ''",
    "DELETE FROM session WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM quarantine WHERE user_id = :user_id AND session_id = :session_id",
    "DELETE FROM scope WHERE user_id = :user_id AND +session_id = :session_id",
)


def list_sessions(tx: Transaction, user_id: str) -> list[SessionInfo]:
    """Return a user's sessions, the most recently used first, ties by id."""
    times: dict[str, list[datetime]] = {}
    messages: dict[str, int] = {}
    metadata: dict[str, dict[str, Any]] = {}
    for session_id, created_at, updated_at, text in tx.rows(_KNOWN, {"user_id": user_id}):
        times[session_id] = _moments(created_at, updated_at)
        metadata[session_id] = _object(text)
    for session_id, layer, records, first, last in tx.rows(_HELD, {"user_id": user_id}):
        times.setdefault(session_id, []).extend(_moments(first, last))
        if layer == "message":
            messages[session_id] = records
    for session_id, first, last in tx.rows(_TIMES, {"user_id": user_id}):
        times.setdefault(session_id, []).extend(_moments(first, last))
    found = [
        SessionInfo(
            session_id,
            min(moments, default=from_text(tx.now)),
            max(moments, default=from_text(tx.now)),
            messages.get(session_id, 0),
            metadata.get(session_id, {}),
        )
        for session_id, moments in times.items()
        if isinstance(session_id, str)
    ]
    found.sort(key=lambda info: info.session_id)
    return sorted(found, key=lambda info: info.updated_at, reverse=True)


def delete_session(tx: Transaction, user_id: str, session_id: str) -> dict[str, int]:
    """Delete what a session holds in every layer and the quarantine; return how many records went, by layer."""
    whose = {"user_id": user_id, "session_id": session_id}
    counts: dict[str, int] = dict(tx.rows(_COUNTS, whose))
    aside = tx.rows(_ASIDE, whose)[0][0]
    for statement in _DELETE:
        tx.rows(statement, whose)
    return counts | ({"quarantine": aside} if aside else {})


def _moments(*texts: str | None) -> list[datetime]:
    """Return those that are times."""
    moments = []
    for text in texts:
        with suppress(SerializationError):
            moments.append(from_text(text or ""))
    return moments


def _object(text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        return value if isinstance(value, dict) else {}
    return {}
