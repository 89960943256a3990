"""Plans and terms as FTS5 expressions."""

from __future__ import annotations

from collections.abc import Iterable

from memdb.storage.plan import Plan, Query
from memdb.storage.schema import TEXT_COLUMNS
from memdb.text.query import Term

_FILTER = "{" + " ".join(TEXT_COLUMNS) + "}"


def expression(query: Query, plan: Plan, *, scoped: bool) -> str:
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
    return " OR ".join(term_expression(term) for term in terms for _ in range(query.terms[term]))


def term_expression(term: Term) -> str:
    """Return the FTS5 expression of a term."""
    return f"{_FILTER} : {term.match()}" if any(map(str.isdigit, term.text)) else term.match()
