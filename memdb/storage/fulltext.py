"""The index: terms in, the best k records out.

FTS5 never ends early: a query costs about 1 us a matching row, and a question of common words matches nearly all of
them (10 words, 500,000 rows: 580 ms). So a search is pruned as MaxScore does (Turtle and Flood 1995), exactly, with
stock FTS5: rows are selected by the rare terms alone, common terms only add to their scores, and the answer stands once
its k-th score reaches what a row of common terms alone could have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from memdb.storage.expressions import expression, term_expression
from memdb.storage.own_counts import MOST_ROWS, MOST_SHARE, OwnIndex, own_index, own_scores
from memdb.storage.plan import Plan, Query, make_plan, memory_pays, own_memory_pays, token_pays, widened
from memdb.storage.postings.connections import kept_by, make_room
from memdb.storage.postings.kept import KeptPostings
from memdb.storage.postings.own import OwnScored
from memdb.storage.postings.reading import Wanted
from memdb.storage.postings.search import Scored, fits
from memdb.storage.schema import RANK
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER, frequencies
from memdb.storage.within import MINE, Hits, ScopeIndex, Within, enough, scope_of
from memdb.text.query import MAX_TERMS, Term, limited

MOSTLY_OWN = 0.25  # a scope with this share of the rows drops foreign ones afterwards

# bm25() as an expression: ORDER BY rank sorts all matches in FTS5 first and is 1.3 to 2 times slower. Rowid and score
# only; the few winners are joined afterwards.
_RANKED = f"""
SELECT hit.id, -hit.score,
       {MINE} AS mine
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
   AND {MINE}
 LIMIT :limit
"""


def search(
    tx: Transaction, terms: Counter[Term], within: Within, limit: int, *, prune: bool | None = None, own: bool = True
) -> Hits:
    """Return the records that match best.

    Args:
        terms: the query, from memdb.text.query.parse.
        within: whose records.
        limit: how many at most.
        prune: whether to prune; None chooses by cost. Either way the scores are the same, but for at most
            2.2e-6 (LEAST_IDF * K1_PLUS_1) for each word that is in over half the rows.
        own: whether a user with a smaller share of the rows gets the scores of a file of their own
            (memdb.storage.own_counts); else all rows of the file count. Not beside `prune`.

    Returns:
        (record id, BM25 score > 0), best first, ties by id.
    """
    scope = scope_of(tx, within)
    if scope is None or limit < 1:
        return []
    kept = kept_by(tx) if prune is None else None
    if kept is not None and not kept.catch_up(tx):
        kept = None
    # A scope that alone has too many rows spares the look at its user.
    if own and prune is None and scope.records <= min(MOST_ROWS, MOST_SHARE * scope.size.rows):
        mine = own_index(tx, within.user_id, scope.size)
        if mine is not None:
            return _by_own_counts(tx, kept, terms, scope, mine, within, limit)
    query = _understand(tx, terms, scope, kept)
    if query is None:
        return []
    if kept is not None and (scored := _scored(tx, kept, query)) is not None:
        found = enough(tx, within, limit, _some_more(limit, query.share), scored.best)
        if len(found) == limit or not scored.left_out:
            return found
    if kept is not None:
        make_room(kept)  # short lists were read to count their rows
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
    token = within.token(tx)
    if token is None:
        return []
    start = "^ " if first else ""
    forms = dict.fromkeys((Term(term.text, term.phrase), term))
    words = " OR ".join(f"{column} : {start}{form.match()}" for form in forms)
    match = f'scope : "{token}" AND ({words})'
    rows = tx.rows(_MATCHING, {**within.values(now=tx.now, match=match), "limit": limit})
    return [record_id for (record_id,) in rows]


def _understand(
    tx: Transaction, terms: Counter[Term], scope: ScopeIndex, kept: KeptPostings | None = None
) -> Query | None:
    """Return the query with its counts, or None when nothing can match."""
    size = scope.size
    tokens = STEMMER.tokens(word for term in terms for word in term.text.split())
    asked = [token for found in tokens.values() for token in found]
    rows = kept.rows_with(tx, asked, size.rows) if kept is not None else {}
    rows |= frequencies(tx, missing) if (missing := [token for token in asked if token not in rows]) else {}
    rows_with: dict[Term, int] = {}
    single: dict[Term, str] = {}
    for term in terms:
        cut = [token for word in term.text.split() for token in tokens[word]]
        whole = cut[:-1] if term.prefix else cut
        if not cut or not all(rows.get(token) for token in whole):
            continue
        rows_with[term] = min((rows[token] for token in whole), default=size.rows)
        if len(cut) == 1 and not term.prefix:
            single[term] = cut[0]
    rarest = sorted(rows_with, key=lambda term: rows_with[term])[:MAX_TERMS]
    if not rarest:
        return None
    # A number may also be a scope's token, so its count says too much.
    exact = frozenset(term for term, word in single.items() if not word.isdigit())
    counted = limited({term: terms[term] for term in rarest})
    return Query(counted, rows_with, exact, single, size, scope.token, scope.records)


def _wanted(query: Query, term: Term) -> Wanted:
    """Return what postings a term needs: of its token, or of all that an expression matches."""
    token = query.tokens.get(term)
    return Wanted("match", term_expression(term)) if token is None else Wanted("token", token)


def _missing(kept: KeptPostings, wanted: Mapping[Term, Wanted]) -> dict[Term, int]:
    """Return the terms whose postings are not in memory, with how often each was asked."""
    return {term: kept.asked(word) for term, word in wanted.items() if not kept.has(word)}


def _scored(tx: Transaction, kept: KeptPostings, query: Query) -> Scored | None:
    """Return what matches, scored over postings in memory; None where FTS5 is quicker, or they would be too many.

    Words in over half the rows, which weigh nothing, are left out: their postings are the longest.
    """
    half = query.size.rows / 2
    wanted = {
        term: _wanted(query, term) for term in query.terms if term not in query.exact or query.rows_with[term] <= half
    }
    missing = _missing(kept, wanted)
    if wanted and memory_pays(query, missing) and fits(query, wanted):
        return Scored(tx, kept, query, wanted, scope=query.share < MOSTLY_OWN)
    return None


def _some_more(limit: int, share: float) -> int:
    """Return how many rows to look at, so that seldom fewer than `limit` are the scope's own.

    That is the mean and two standard deviations, for a scope with that share of the rows.
    """
    share = max(share, MOSTLY_OWN)
    return limit if share == 1.0 else math.ceil((limit + 2 * math.sqrt(limit * (1 - share))) / share) + 2


def _by_own_counts(
    tx: Transaction,
    kept: KeptPostings | None,
    asked: Counter[Term],
    scope: ScopeIndex,
    mine: OwnIndex,
    within: Within,
    limit: int,
) -> Hits:
    """Return the best rows by the user's own counts; more are asked for than wanted, since some may have expired."""
    fetch = limit + 10 if within.category is None else scope.records
    if kept is not None or len(asked) > MAX_TERMS:
        query = _understand(tx, asked, scope, kept)
        if query is None:
            return []
        if kept is not None and (scored := _scored_by_own(tx, kept, query, mine)) is not None:
            return enough(tx, within, limit, fetch, scored.best)
        if kept is not None:
            make_room(kept)
        chosen = query.terms
    else:  # the rarest of all need not be known
        tokens = STEMMER.tokens(word for term in asked for word in term.text.split())
        chosen = limited({term: asked[term] for term in asked if any(map(tokens.get, term.text.split()))})
    terms = {term_expression(term): times for term, times in chosen.items()}

    def best(count: int) -> Hits:
        return own_scores(tx, mine, scope.size, terms, scope.token, count)[:count]

    return enough(tx, within, limit, fetch, best)


def _scored_by_own(tx: Transaction, kept: KeptPostings, query: Query, mine: OwnIndex) -> OwnScored | None:
    """Return what matches, scored over postings in memory; None where FTS5 is quicker, or they would be too many."""
    wanted = {term: _wanted(query, term) for term in query.terms}
    missing = _missing(kept, wanted)
    if own_memory_pays(query, missing, mine.rows / query.size.rows) and fits(query, wanted):
        terms = Counter[Wanted]()  # two words may be one token
        for term, word in wanted.items():
            terms[word] += query.terms[term]
        return OwnScored(tx, kept, mine, terms, query.token if query.records < mine.rows else None)
    return None


def _ask(tx: Transaction, query: Query, plan: Plan, within: Within, limit: int) -> Hits:
    """Run a plan until `limit` rows of the scope are found or none is left."""
    # A pruned plan names the token anyway; once more, to keep foreign rows out, pays where most rows are foreign.
    scoped = query.share < MOSTLY_OWN if plan.common else token_pays(query, plan)
    match = expression(query, plan, scoped=scoped)
    values = within.values(now=tx.now, match=match)
    share = 1.0 if scoped else query.share
    # Some more than needed cost nothing beside a second question, which would double the time.
    fetch = limit if share == 1.0 else math.ceil(1.5 * limit / max(share, 0.001)) + 10
    while True:
        rows = tx.rows(_RANKED, {**values, "fetch": fetch})
        found = sorted(((row[0], row[1]) for row in rows if row[2]), key=lambda hit: (-hit[1], hit[0]))
        if len(found) >= limit or len(rows) < fetch:
            return found[:limit]
        fetch *= 4
