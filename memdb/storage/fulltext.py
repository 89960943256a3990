"""The index: terms in, the best k records out.

FTS5 never ends early: a query costs about 1 us a matching row, and a question of common words matches nearly all of
them (10 words, 500,000 rows: 580 ms). So a search is pruned as MaxScore does (Turtle and Flood 1995), exactly, with
stock FTS5: rows are selected by the rare terms alone, common terms only add to their scores, and the answer stands once
its k-th score reaches what a row of common terms alone could have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from memdb.storage.plan import Plan, Query, make_plan, token_pays, widened
from memdb.storage.schema import RANK, TEXT_COLUMNS
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER, frequencies, index_size
from memdb.text.query import MAX_TERMS, Term, limited

MOSTLY_OWN = 0.25  # a scope with this share of the rows drops foreign ones afterwards

_FILTER = "{" + " ".join(TEXT_COLUMNS) + "}"

# bm25() as an expression: ORDER BY rank sorts all matches in FTS5 first and is 1.3 to 2 times slower. Rowid and score
# only; the few winners are joined afterwards. +user_id keeps SQLite from walking the user's whole index instead.
_MINE = """+record.user_id = :user_id
       AND (:layer IS NULL OR record.layer = :layer)
       AND (:session_id IS NULL OR record.session_id = :session_id)
       AND (:category IS NULL OR record.category = :category)
       AND (record.expires_at IS NULL OR record.expires_at > :now)"""
_RANKED = f"""
SELECT hit.id, -hit.score,
       {_MINE} AS mine
  FROM (SELECT rowid AS id, {RANK.replace("bm25(", "bm25(record_search, ")} AS score
          FROM record_search
         WHERE record_search MATCH :match
         ORDER BY score, id
         LIMIT :fetch) AS hit
  CROSS JOIN record ON record.id = hit.id
"""
_MATCHING = f"""
SELECT record.id
  FROM record_search CROSS JOIN record ON record.id = record_search.rowid
 WHERE record_search MATCH :match
   AND {_MINE}
 LIMIT :limit
"""

_SCOPE = """
SELECT (SELECT id FROM scope WHERE (user_id, layer, session_id) = (:user_id, :layer, :session_id)),
       (SELECT sum(records) FROM scope
         WHERE user_id = :user_id AND session_id = :session_id AND (:layer = '' OR layer = :layer))
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


def search(
    tx: Transaction, terms: Counter[Term], within: Within, limit: int, *, prune: bool | None = None
) -> list[tuple[int, float]]:
    """Return the records that match best.

    Args:
        terms: the query, from memdb.text.query.parse.
        within: whose records.
        limit: how many at most.
        prune: whether to prune; None chooses by cost. Either way the scores are the same, but for at most
            2.2e-6 (LEAST_IDF * K1_PLUS_1) for each word that is in over half the rows.

    Returns:
        (record id, BM25 score > 0), best first, ties by id.
    """
    query = _understand(tx, terms, within)
    if query is None or limit < 1:
        return []
    plan = make_plan(query, prune=False if tx.writing else prune)
    while True:
        found = _ask(tx, query, plan, within, limit)
        if not plan.pruned:
            return found
        threshold = found[-1][1] if len(found) == limit else 0.0
        if threshold >= query.bound((*plan.common, *plan.left_out)):
            return found
        plan = widened(query, plan, threshold, limit)


def matching(tx: Transaction, term: Term, within: Within, *, column: str, first: bool, limit: int) -> list[int]:
    """Return records that hold a term in one column, without ranking.

    Args:
        term: the term; a prefix term also matches its whole words, which stemming may have changed.
        within: whose records, of one layer.
        column: the column.
        first: whether the column must begin with it.
        limit: how many at most.

    Returns:
        Record ids, ascending.
    """
    token, _ = tx.rows(_SCOPE, _scope_values(within))[0]
    if token is None:
        return []
    start = "^ " if first else ""
    forms = dict.fromkeys((Term(term.text, term.phrase), term))
    words = " OR ".join(f"{column} : {start}{form.match()}" for form in forms)
    match = f'scope : "{token}" AND ({words})'
    rows = tx.rows(_MATCHING, {**_values(within), "now": tx.now, "match": match, "limit": limit})
    return [record_id for (record_id,) in rows]


def _understand(tx: Transaction, terms: Counter[Term], within: Within) -> Query | None:
    """Return the query with its counts, or None when nothing can match."""
    token, records = tx.rows(_SCOPE, _scope_values(within))[0]
    if token is None or not records:
        return None
    tokens = STEMMER.tokens(word for term in terms for word in term.text.split())
    rows = frequencies(tx, [token for found in tokens.values() for token in found])
    size = index_size(tx)
    rows_with: dict[Term, int] = {}
    exact: set[Term] = set()
    for term in terms:
        cut = [token for word in term.text.split() for token in tokens[word]]
        whole = cut[:-1] if term.prefix else cut
        if not cut or not all(token in rows for token in whole):
            continue
        rows_with[term] = min((rows[token] for token in whole), default=size.rows)
        # A number may also be a scope's token, so its count says too much.
        if len(cut) == 1 and not term.prefix and not cut[0].isdigit():
            exact.add(term)
    kept = sorted(rows_with, key=lambda term: rows_with[term])[:MAX_TERMS]
    if not kept:
        return None
    return Query(limited({term: terms[term] for term in kept}), rows_with, frozenset(exact), size, token, records)


def _ask(tx: Transaction, query: Query, plan: Plan, within: Within, limit: int) -> list[tuple[int, float]]:
    """Run a plan until `limit` rows of the scope are found or none is left."""
    # A pruned plan names the token anyway; once more, to keep foreign rows out, pays where most rows are foreign.
    scoped = query.share < MOSTLY_OWN if plan.common else token_pays(query, plan)
    match = _match(query, plan, scoped=scoped)
    values = {**_values(within), "now": tx.now, "match": match}
    share = 1.0 if scoped else query.share
    # Some more than needed cost nothing beside a second question, which would double the time.
    fetch = limit if share == 1.0 else math.ceil(1.5 * limit / max(share, 0.001)) + 10
    while True:
        rows = tx.rows(_RANKED, {**values, "fetch": fetch})
        found = sorted(((row[0], row[1]) for row in rows if row[2]), key=lambda hit: (-hit[1], hit[0]))
        if len(found) >= limit or len(rows) < fetch:
            return found[:limit]
        fetch *= 4


def _values(within: Within) -> dict[str, str | None]:
    return {
        "user_id": within.user_id,
        "layer": within.layer,
        "session_id": within.session_id,
        "category": within.category,
    }


def _scope_values(within: Within) -> dict[str, str]:
    return {"user_id": within.user_id, "layer": within.layer or "", "session_id": within.session_id or ""}


def _match(query: Query, plan: Plan, *, scoped: bool) -> str:
    """Return the FTS5 expression of a plan.

    The scope's token holds for every row of the scope and weighs nothing: behind OR it makes the common terms optional.
    """
    token = f'scope : "{query.token}"'
    essential = f"({_any(query, plan.essential)})"
    if plan.common:
        essential = f"{essential} AND ({_any(query, plan.common)} OR {token})"
    return f"{token} AND {essential}" if scoped else essential


def _any(query: Query, terms: Iterable[Term]) -> str:
    # Tokens of scopes are digits: only a term with a digit could meet one, and a filter costs 5 to 13 % of a search.
    return " OR ".join(
        f"{_FILTER} : {term.match()}" if any(map(str.isdigit, term.text)) else term.match()
        for term in terms
        for _ in range(query.terms[term])
    )
