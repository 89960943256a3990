"""How a query is asked: which terms select rows and which only add, by bounds on their scores and by cost.

MaxScore (Turtle and Flood 1995) on what FTS5 itself counts with. Pure: no statement is run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memdb.storage.bm25 import K1_PLUS_1, idf
from memdb.storage.vocabulary import IndexSize
from memdb.text.query import Term

COMMON = 0.10  # share of the rows from which a term is common; at 0.05 the top 10 needed a second round far more often

# Measured costs in microseconds, to choose a form by: scoring a matching row, walking one posting for its count.
ROW_US, POSTING_US = 1.0, 0.07
# The same of postings in memory: a search, each term that is not there yet, each of its rows.
IN_MEMORY_US, TERM_US, READ_US = 100.0, 40.0, 0.3


@dataclass(frozen=True, slots=True)
class Plan:
    """A query as it is asked: which terms select rows, which only add to their scores.

    Args:
        essential: the terms of which a row must hold one.
        common: the terms that only add.
        left_out: terms in over half the rows, which weigh nothing.
    """

    essential: tuple[Term, ...]
    common: tuple[Term, ...] = ()
    left_out: tuple[Term, ...] = ()

    @property
    def pruned(self) -> bool:
        """Whether rows may exist that hold a term of the query and are not selected."""
        return bool(self.common or self.left_out)


@dataclass(frozen=True, slots=True)
class Query:
    """The terms that can match, with what FTS5 knows of them."""

    terms: Mapping[Term, int]  # term -> how often it was asked
    rows_with: Mapping[Term, int]  # at most so many rows hold it
    exact: frozenset[Term]  # single tokens, whose count is FTS5's own
    tokens: Mapping[Term, str]  # of those that are a single token
    size: IndexSize
    token: int  # the scope's token
    records: int  # how many records the scope holds

    @property
    def share(self) -> float:
        """The scope's share of all rows."""
        return min(1.0, self.records / max(self.size.rows, 1))

    def bound(self, terms: Iterable[Term]) -> float:
        """Return the highest score that a row could have from `terms` alone."""
        rows = self.size.rows
        return sum(self.terms[term] * idf(rows, self.rows_with[term]) * K1_PLUS_1 for term in terms)


def make_plan(query: Query, *, prune: bool | None) -> Plan:
    """Return the first plan to ask.

    Args:
        prune: whether to prune; None chooses by cost.
    """
    whole = Plan(tuple(query.terms))
    if prune is False:
        return whole
    rows = query.size.rows
    by_rarity = sorted(query.terms, key=lambda term: query.rows_with[term])
    bounded = [term for term in by_rarity if term in query.exact and query.rows_with[term] > COMMON * rows]
    if len(bounded) == len(by_rarity):
        bounded = bounded[1:]
    common = tuple(term for term in bounded if query.rows_with[term] * 2 <= rows)
    pruned = Plan(
        tuple(term for term in by_rarity if term not in bounded),
        common,
        tuple(term for term in bounded if term not in common),
    )
    if prune or (pruned.pruned and _cost(query, pruned) < 0.8 * _cost(query, whole)):
        return pruned
    return whole


def widened(query: Query, plan: Plan, threshold: float, limit: int) -> Plan:
    """Return a plan that selects by more terms: so many that its answer must stand, the rarest first.

    `threshold` is a score that k rows have already, so once the rest cannot reach it the next answer is final. With
    fewer than k rows, terms are added until they should bring enough.
    """
    rest = sorted((*plan.common, *plan.left_out), key=lambda term: query.rows_with[term])
    added: list[Term] = []
    while rest:
        term = rest.pop(0)
        added.append(term)
        enough = sum(query.rows_with[term] for term in added) * query.share >= 10 * limit
        if query.bound(rest) <= threshold if threshold else enough:
            break
    left_out = tuple(term for term in plan.left_out if term in rest)
    return Plan((*plan.essential, *added), tuple(term for term in rest if term not in left_out), left_out)


def _matching(query: Query, terms: Iterable[Term]) -> int:
    return min(query.size.rows, sum(query.rows_with[term] for term in terms))


def token_pays(query: Query, plan: Plan) -> bool:
    """Whether the scope's token inside MATCH costs less than dropping foreign rows afterwards."""
    rows = _matching(query, plan.essential)
    return POSTING_US * (query.records + rows) + ROW_US * rows * query.share < ROW_US * rows


def memory_pays(query: Query, missing: Mapping[Term, int]) -> bool:
    """Whether FTS5 takes so long that postings in memory are the quicker way, although some must be read first.

    Args:
        missing: those, and how often each was asked: what was asked before will be asked again, so it may cost more.
    """
    return _cost(query, make_plan(query, prune=None)) > IN_MEMORY_US + _reading(query, missing)


def own_memory_pays(query: Query, missing: Mapping[Term, int], share: float) -> bool:
    """Whether the same holds for a user with that share of the rows, who is ranked by own counts.

    FTS5 walks each term twice, and each of the user's rows is scored under two weights.
    """
    walked = sum(query.rows_with[term] for term in query.terms)
    return 2 * (POSTING_US + ROW_US * share) * walked > IN_MEMORY_US + _reading(query, missing)


def _reading(query: Query, missing: Mapping[Term, int]) -> float:
    return sum((TERM_US + READ_US * query.rows_with[term]) / times for term, times in missing.items())


def _cost(query: Query, plan: Plan) -> float:
    """Return about how long a plan takes, in microseconds."""
    selected = _matching(query, plan.essential)
    if plan.pruned:
        walked = sum(query.rows_with[term] for term in plan.common)
        return ROW_US * selected * query.share + POSTING_US * (walked + 2 * query.records)
    with_token = POSTING_US * (query.records + selected) + ROW_US * selected * query.share
    return min(with_token, ROW_US * selected)
