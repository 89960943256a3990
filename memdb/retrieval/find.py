"""One search over every layer of a user: what a person types, what the agent remembers of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from memdb.layers import reading
from memdb.layers.arguments import check_query
from memdb.layers.record import Record
from memdb.scope import Scope
from memdb.storage.fulltext import Within
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER
from memdb.text.query import parse
from memdb.text.snippet import Marker, Snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found.

    Args:
        layer: the layer's name in the file, such as "page" or "item".
        id: the record's id in its layer.
        title: its title; '' where the layer has none.
        snippet: the stretch of its text that matched, with the places of the matched words.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
        created_at: when it was first stored, in UTC.
    """

    layer: str
    id: str
    title: str
    snippet: Snippet
    score: float
    created_at: datetime


def find(tx: Transaction, scope: Scope, query: str, limit: int = 10, layer: str | None = None) -> list[Hit]:
    """Return the records of a user that match a query best: a read unit, for `db.read(find, scope, query)`.

    Looking is not recalling: nothing is counted.

    Args:
        scope: whose memory; every session of the user is searched.
        query: any text in any language; words in double quotes are a phrase.
        limit: how many at most, 0 to 10,000.
        layer: only this layer, by its name in the file; None for all.

    Returns:
        Best first, ties in the order of their first saving; empty when nothing matches.

    Raises:
        InvalidInput: the query is no text, or the limit is out of range.
    """
    marker = Marker(parse(check_query(query)), stems=STEMMER.tokens)

    def hit(found: Record) -> Hit:
        return Hit(found.layer, found.key, found.title, marker.snippet(_text(found)), 0.0, found.created)

    scored = reading.search(tx, Within(scope.user_id, layer), query, limit, hit)
    return [replace(made, score=score) for made, score in scored]


def _text(found: Record) -> str:
    """Return what a snippet is cut from: the summary and the content, without a heading that only repeats the title."""
    content = found.content.removeprefix(f"# {found.title}\n").lstrip() if found.title else found.content
    return f"{found.summary}\n{content}" if found.summary else content
