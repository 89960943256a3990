"""One search over every layer of a user: what a person types, what the agent remembers of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import select

from memdb.layers import records
from memdb.layers.records import Record
from memdb.scope import Scope
from memdb.storage.fulltext import Within
from memdb.storage.schema import record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER
from memdb.text.check import check_text
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


_LAYERS_OF = Statement(
    select(record.c.id, record.c.layer).where(
        record.c.id.in_(select(each("ids").c.value)), (record.c.user_id.concat("")) == param("user_id")
    )
)


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
    marker = Marker(parse(check_text(query, "query")), stems=STEMMER.tokens)

    def hit(found: Record) -> tuple[int, Hit]:
        return found.id, Hit("", found.key, found.title, marker.snippet(_text(found)), 0.0, found.created)

    scored = records.search(tx, Within(scope.user_id, layer), query, limit, hit)
    ids = json.dumps([record_id for (record_id, _), _ in scored])
    layers: dict[int, str] = dict(tx.all(_LAYERS_OF, ids=ids, user_id=scope.user_id))
    return [replace(made, layer=layers[record_id], score=score) for (record_id, made), score in scored]


def _text(found: Record) -> str:
    """Return what a snippet is cut from: the summary and the content, without a heading that only repeats the title."""
    content = found.content.removeprefix(f"# {found.title}\n").lstrip() if found.title else found.content
    return f"{found.summary}\n{content}" if found.summary else content
