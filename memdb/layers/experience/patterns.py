"""Patterns of one user: the SemanticMemory of the loki document."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, literal_column, select, tuple_

from memdb.errors import InvalidInput, NotFound
from memdb.layers import reading, records
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_score
from memdb.layers.experience.found_patterns import ORDER, found, listed, scored
from memdb.layers.experience.pattern import ANTI_PATTERN, SemanticPattern, new_pattern_id
from memdb.layers.experience.stored import OF_ONE, PATTERN, RecalledExperience
from memdb.layers.experience.stored_patterns import (
    CONFIDENCE,
    KIND,
    KINDS,
    PATTERNS,
    USAGE,
    Given,
    pattern_of,
    put_patterns,
)
from memdb.layers.layer import Mode, reads, writes
from memdb.layers.reading import alive
from memdb.layers.record import Place
from memdb.storage.schema import pattern, record
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction
from memdb.text.check import check_choice

MIN_CONFIDENCE = 0.5


class ScoredPattern(NamedTuple):
    """A pattern that a search found.

    Args:
        pattern: the pattern.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
    """

    pattern: SemanticPattern
    score: float


_NEWEST = listed(newest_first=True)
_BEHIND = listed(tuple_(*ORDER) < tuple_(param("created_at"), param("id")), newest_first=True)
_POSITION = Statement(select(*ORDER).where(OF_ONE, alive()))
_MOST: ColumnElement[int] = literal_column(str(2**63 - 2))  # one more is still an integer
_USED = insert(pattern).from_select(
    ["record_id", "user_id", "kind", "confidence", "usage_count", "last_used"],
    select(record.c.id, record.c.user_id, KIND, CONFIDENCE, func.min(USAGE, _MOST) + literal_column("1"), param("now"))
    .select_from(record.join(pattern, pattern.c.record_id == record.c.id))
    .where(OF_ONE, alive()),
)
_USE = Statement(
    _USED.on_conflict_do_update(
        index_elements=["record_id"],
        set_={"usage_count": _USED.excluded.usage_count, "last_used": _USED.excluded.last_used},
    )
)


class SemanticMemory(RecalledExperience[Mode]):
    """What many episodes taught (loki document, "Semantic"); a pattern belongs to the user, in no session."""

    @property
    def _place(self) -> Place:
        return Place.of(PATTERN, self.scope)

    @writes
    def store(self, tx: Transaction, pattern: Any, *, kind: str | None = None) -> str:
        """Store a pattern, or replace the one of the same id (loki document, store_pattern).

        One that is replaced keeps how often it was recalled and, where that is more than the new one says, how often it
        was used; its importance, too, unless the new one is given one.

        Args:
            pattern: a SemanticPattern, its dict, or an object with `to_dict` or `__dict__`. Without an id it gets a new
                one. What `validate()` would find is stored all the same.
            kind: "pattern" or "anti_pattern"; None for an anti-pattern where the category is "anti-pattern", else for
                what it is already.

        Returns:
            Its id.

        Raises:
            InvalidInput: it is none of these, or says what cannot be stored.
        """
        return self._store(tx, [pattern], kind)[0]

    @writes
    def store_many(self, tx: Transaction, patterns: Iterable[Any], *, kind: str | None = None) -> builtins.list[str]:
        """Store many patterns at once, all or none; see `store`. Of two with one id the later stays.

        Args:
            patterns: at most 100,000.
            kind: that of all of them.

        Returns:
            Their ids, in the order given.

        Raises:
            InvalidInput: one is not what it must be, or there are too many; nothing was stored.
        """
        return self._store(tx, check_bulk(patterns, "patterns"), kind)

    @reads
    def get(self, tx: Transaction, pattern_id: str) -> SemanticPattern | None:
        """Return the pattern with this id, or None. Recalls that are not written yet are not in its access_count."""
        return reading.get(tx, self._place, check_key(pattern_id, "pattern_id"), pattern_of, PATTERNS)

    @reads
    def find(
        self,
        tx: Transaction,
        category: str | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        *,
        anti: bool | None = False,
    ) -> builtins.list[SemanticPattern]:
        """Return patterns in the order of their first storing (loki document, find_patterns).

        Args:
            category: only those of exactly this one; None for all.
            min_confidence: only those of at least this confidence.
            anti: False for patterns alone, True for anti-patterns alone, None for both. What is asked for by the
                category "anti-pattern" is there whatever this says.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        least = check_score(min_confidence, "min_confidence")
        if category is not None and not isinstance(category, str):
            raise InvalidInput(f"category must be text, not {type(category).__name__}")
        if category == ANTI_PATTERN:
            anti = None
        return found(tx, self.scope.user_id, category=category, min_confidence=least, anti=anti)

    @reads
    def anti_patterns(self, tx: Transaction, limit: int | None = None) -> builtins.list[SemanticPattern]:
        """Return what to avoid, in the order of its first storing.

        Args:
            limit: how many at most, 0 to 10,000; None for all.
        """
        return found(tx, self.scope.user_id, anti=True, limit=None if limit is None else check_limit(limit))

    @reads
    def search(
        self, tx: Transaction, query: str, top_k: int = 5, *, anti: bool | None = None
    ) -> builtins.list[ScoredPattern]:
        """Return the patterns that match a query best, by what they say, their category, conditions and approaches.

        Args:
            query: any text in any language; words in double quotes are a phrase.
            top_k: how many at most, 0 to 10,000.
            anti: False for patterns alone, True for anti-patterns alone, None for both.

        Returns:
            Best first, ties in the order of their first storing; empty when nothing matches.
        """
        return [ScoredPattern(*hit) for hit in scored(tx, self.scope.user_id, query, top_k, anti=anti)]

    @writes
    def increment_usage(self, tx: Transaction, pattern_id: str) -> bool:
        """Count that a pattern was used, now. Returns whether it was there."""
        return tx.run(_USE, **self._place.values(key=check_key(pattern_id, "pattern_id"), now=tx.now)) > 0

    @writes
    def delete(self, tx: Transaction, pattern_id: str) -> bool:
        """Delete a pattern and all that belongs to it. Returns whether it was there."""
        return records.remove(tx, self._place, check_key(pattern_id, "pattern_id"))

    @reads
    def list(self, tx: Transaction, limit: int = 100, *, before: str | None = None) -> builtins.list[SemanticPattern]:
        """Return patterns and anti-patterns, the last stored first.

        Args:
            limit: how many at most, 0 to 10,000.
            before: only those that stand behind the pattern with this id; with `limit`, to page through all.

        Raises:
            NotFound: there is no pattern `before`.
        """
        values = self._place.values(limit=check_limit(limit), now=tx.now)
        statement = _NEWEST
        if before is not None:
            position = tx.one(_POSITION, **self._place.values(key=check_key(before, "before"), now=tx.now))
            if position is None:
                raise NotFound(f"there is no pattern {before!r} to go on behind")
            statement = _BEHIND
            values |= {"created_at": position[0], "id": position[1]}
        return [*reading.shaped(tx, tx.all(statement, **values), pattern_of, PATTERNS)]

    def _store(self, tx: Transaction, patterns: Iterable[Any], kind: str | None) -> builtins.list[str]:
        if kind is not None:
            check_choice(kind, "kind", KINDS)
        given = [as_pattern(one) for one in patterns]
        put_patterns(tx, [Given(self.scope.user_id, one, kind) for one in given])
        return [one.id for one in given]


def as_pattern(given: Any) -> SemanticPattern:
    """Return what any form of a pattern says, with an id.

    Raises:
        InvalidInput: it is no form of a pattern, or says what cannot be.
    """
    one = SemanticPattern.from_object(given)
    return one if one.id else one.model_copy(update={"id": new_pattern_id()})
