"""Which patterns of a user there are, by what they are and by a search: plain functions of a transaction."""

from __future__ import annotations

import json

from sqlalchemy import ColumnElement, select

from memdb.layers import reading
from memdb.layers.arguments import check_limit, check_query
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.stored import PATTERN
from memdb.layers.experience.stored_patterns import CONFIDENCE, KIND, KINDS, PATTERNS, pattern_of
from memdb.layers.reading import alive, here
from memdb.layers.record import Place
from memdb.storage import fulltext
from memdb.storage.schema import pattern, record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag
from memdb.text.query import parse

ORDER = (record.c.created_at, record.c.id)
_IS_KIND = param("kind") == KIND
_SURE = param("least") <= CONFIDENCE


def listed(*conditions: ColumnElement[bool], newest_first: bool = False) -> Statement:
    """Return the statement that lists patterns in the order of their first storing, or against it."""
    order = [column.desc() for column in ORDER] if newest_first else ORDER
    return Statement(PATTERNS.select(here(), alive(), *conditions).order_by(*order).limit(param("limit")))


# (asked by category, by kind, by confidence) -> the statement: each has its own plan.
_CHOSEN = {
    (category, kind, sure): listed(
        *([record.c.category == param("category")] if category else []),
        *([_IS_KIND] if kind else []),
        *([_SURE] if sure else []),
    )
    for category in (False, True)
    for kind in (False, True)
    for sure in (False, True)
}
_OF_KIND = Statement(
    select(record.c.id)
    .select_from(record.outerjoin(pattern, pattern.c.record_id == record.c.id))
    .where(record.c.id.in_(select(each("ids").c.value)), record.c.user_id.concat("") == param("user_id"), _IS_KIND)
)


def found(
    tx: Transaction,
    user_id: str,
    *,
    category: str | None = None,
    min_confidence: float | None = None,
    anti: bool | None = None,
    limit: int | None = None,
) -> list[SemanticPattern]:
    """Return a user's patterns in the order of their first storing.

    Args:
        category: only those of exactly this one.
        min_confidence: only those of at least this confidence.
        anti: only anti-patterns (True), only others (False), or both (None).
        limit: how many at most; None for all.
    """
    if anti is not None:
        check_flag(anti, "anti")
    asked = (category is not None, anti is not None, min_confidence is not None)
    values = Place(PATTERN, user_id).values(
        now=tx.now,
        category=category,
        kind=KINDS[bool(anti)],
        least=min_confidence,
        limit=-1 if limit is None else limit,
    )
    return [*reading.shaped(tx, tx.all(_CHOSEN[asked], **values), pattern_of, PATTERNS)]


def all_of(tx: Transaction, user_id: str) -> list[SemanticPattern]:
    """Return all patterns of a user, anti-patterns too, in the order of their first storing."""
    return found(tx, user_id)


def scored(
    tx: Transaction, user_id: str, query: str, k: int, *, anti: bool | None = None
) -> list[tuple[SemanticPattern, float]]:
    """Return a user's patterns that match a query best, with their BM25 scores; ties in the order of storing.

    Args:
        k: how many at most.
        anti: only anti-patterns (True), only others (False), or both (None).
    """
    terms, within, most = parse(check_query(query)), Place(PATTERN, user_id).within(), check_limit(k, "top_k")
    if anti is not None:
        check_flag(anti, "anti")
    fetch = most if anti is None else 2 * most + 10
    while True:
        hits = fulltext.search(tx, terms, within, fetch)
        best = hits if anti is None else _of_kind(tx, user_id, hits, anti)
        if len(best) >= most or len(hits) < fetch:
            return reading.ranked(tx, user_id, dict(best[:most]), pattern_of, PATTERNS)
        fetch *= 4


def _of_kind(tx: Transaction, user_id: str, hits: list[tuple[int, float]], anti: bool) -> list[tuple[int, float]]:
    ids = json.dumps([number for number, _ in hits])
    kept = {number for (number,) in tx.all(_OF_KIND, ids=ids, user_id=user_id, kind=KINDS[anti])}
    return [hit for hit in hits if hit[0] in kept]
