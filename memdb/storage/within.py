"""Whose records a search sees: the wall that every search keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import IndexSize, size_in

Hits = list[tuple[int, float]]  # (record id, score), best first

# +user_id keeps SQLite from walking the user's whole index instead.
MINE = """+record.user_id = :user_id
       AND (:layer IS NULL OR record.layer = :layer)
       AND (:session_id IS NULL OR record.session_id = :session_id)
       AND (:category IS NULL OR record.category = :category)
       AND (record.expires_at IS NULL OR record.expires_at > :now)"""
_SEEN = f"""
SELECT record.id
  FROM json_each(:ids) AS hit CROSS JOIN record ON record.id = hit.value
 WHERE {MINE}
"""
_SCOPE = """
SELECT (SELECT id FROM scope WHERE (user_id, layer, session_id) = (:user_id, :layer, :session_id)),
       (SELECT sum(records) FROM scope
         WHERE user_id = :user_id AND session_id = :session_id AND (:layer = '' OR layer = :layer)),
       (SELECT block FROM record_search_data WHERE id = 1)
"""


@dataclass(frozen=True, slots=True)
class Within:
    """Whose records a search sees.

    Args:
        user_id: the user; their wall.
        layer: one layer; None for all.
        session_id: one session of a layer that lives by session; None for all.
        category: one category; None for all.
    """

    user_id: str
    layer: str | None = None
    session_id: str | None = None
    category: str | None = None

    def values(self, **more: str) -> dict[str, str | None]:
        """Return the parameters of MINE but for the time, and `more`."""
        return {
            "user_id": self.user_id,
            "layer": self.layer,
            "session_id": self.session_id,
            "category": self.category,
            **more,
        }

    def token(self, tx: Transaction) -> int | None:
        """Return what the rows of this scope are marked with in the index, or None where it never held any."""
        token: int | None = _scope_row(tx, self)[0]
        return token


class ScopeIndex(NamedTuple):
    """What the index knows of a scope.

    Args:
        token: what its rows are marked with.
        records: how many it holds.
        size: of the whole index.
    """

    token: int
    records: int
    size: IndexSize


def scope_of(tx: Transaction, within: Within) -> ScopeIndex | None:
    """Return what is known of the scope of a search, or None where it holds nothing."""
    token, records, block = _scope_row(tx, within)
    return ScopeIndex(token, records, size_in(block)) if token is not None and records else None


def _scope_row(tx: Transaction, within: Within) -> tuple[Any, ...]:
    named = {"user_id": within.user_id, "layer": within.layer or "", "session_id": within.session_id or ""}
    return tx.rows(_SCOPE, named)[0]


def seen(tx: Transaction, within: Within, hits: Hits) -> Hits:
    """Return the hits that a search may see: the scope's own that have not expired."""
    ids = json.dumps([number for number, _ in hits])
    mine = {number for (number,) in tx.rows(_SEEN, within.values(now=tx.now, ids=ids))}
    return [hit for hit in hits if hit[0] in mine]


def enough(tx: Transaction, within: Within, limit: int, fetch: int, best: Callable[[int], Hits]) -> Hits:
    """Return the best `limit` rows that a search may see.

    Args:
        fetch: how many to look at first; then four times as many, until enough are seen or none is left.
        best: returns so many of the best rows of anybody.
    """
    while True:
        hits = best(fetch)
        found = seen(tx, within, hits)
        if len(found) >= limit or len(hits) < fetch:
            return found[:limit]
        fetch *= 4
