"""One search over every layer of a user: what a person types, what the agent remembers of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import select

from memdb.layers import reading
from memdb.layers.arguments import MAX_LIMIT, check_limit, check_query
from memdb.layers.blocks.stored import LAYER as BLOCKS
from memdb.layers.conversation import LAYER as MESSAGES
from memdb.layers.entity import LAYER as ENTITIES
from memdb.layers.facts.entry import LAYER as HISTORY
from memdb.layers.message import ScoredMessage, is_key
from memdb.layers.neighbours import search_leaning
from memdb.layers.record import Record
from memdb.layers.runtime.stored_results import LAYER as TOOL_RESULTS
from memdb.scope import Scope
from memdb.storage.schema import record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER
from memdb.storage.within import Within
from memdb.text.chat import call_as_text, searchable
from memdb.text.query import parse
from memdb.text.snippet import Marker, Snippet

SOME_MORE = 20
BY_SESSION = (TOOL_RESULTS, BLOCKS)  # beside messages, which have a search of their own
# concat: or SQLite would walk the user's whole index instead of the numbers.
_ABOUT = Statement(
    select(record.c.id, record.c.layer, record.c.session_id, record.c.key).where(
        record.c.id.in_(select(each("ids").c.value)), record.c.user_id.concat("") == param("user_id")
    )
)


class About(NamedTuple):
    """Where a record lies."""

    layer: str
    session_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found.

    Args:
        layer: the layer's name in the file, such as "page" or "item".
        id: the record's id in its layer; of a message its position in the session, of a history entry its number.
        title: its title; of an entity its name, of a message who speaks; '' where the layer has none.
        snippet: the stretch of its text that matched, with the places of the matched words.
        score: its BM25 score, of a message what it makes of its neighbours, too; above 0, higher is better, comparable
            within one answer only.
        created_at: when it was first stored, of a message when it was said, in UTC.
        session_id: the session of a message, tool result or block; '' for layers that live by user.
    """

    layer: str
    id: str
    title: str
    snippet: Snippet
    score: float
    created_at: datetime
    session_id: str = ""


def find(tx: Transaction, scope: Scope, query: str, limit: int = 10, layer: str | None = None) -> list[Hit]:
    """Return the records of a user that match a query best: a read unit, for `db.read(find, scope, query)`.

    Messages lean on their neighbours (memdb.layers.neighbours); among other layers the best of them keeps the score of
    its own, and the others stand below it in proportion. Looking is not recalling: nothing is counted.

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
    found = [] if layer == MESSAGES else _records(tx, scope, query, limit, layer, marker)
    if layer in (None, MESSAGES):
        found += _messages(tx, scope, query, check_limit(limit), marker, alone=layer is not None)
    found.sort(key=lambda hit: (-hit[1].score, hit[0]))
    return [hit for _, hit in found[:limit]]


def _records(
    tx: Transaction, scope: Scope, query: str, limit: int, layer: str | None, marker: Marker
) -> list[tuple[int, Hit]]:
    """Return the best records but for messages, by record id."""

    def hit(found: Record) -> tuple[int, Hit]:
        return found.id, Hit(found.layer, id_of(found), found.title, marker.snippet(text_of(found)), 0.0, found.created)

    # Messages take places away from others only where they are the better ones, so twice as many are asked for.
    most = limit if layer else min(2 * limit, MAX_LIMIT)
    scored = reading.search(tx, Within(scope.user_id, layer), query, most, hit)
    found = [(number, replace(made, score=score)) for (number, made), score in scored if made.layer != MESSAGES]
    of_sessions = [number for number, made in found if made.layer in BY_SESSION]
    known = about(tx, scope.user_id, of_sessions) if of_sessions else {}
    return [(at, replace(made, session_id=known[at].session_id) if at in known else made) for at, made in found]


def about(tx: Transaction, user_id: str, numbers: Iterable[int]) -> dict[int, About]:
    """Return where some records of a user lie, by their numbers; without those that are not there."""
    rows = tx.all(_ABOUT, ids=json.dumps(list(numbers)), user_id=user_id)
    return {number: About(*place) for number, *place in rows}


def _messages(
    tx: Transaction, scope: Scope, query: str, limit: int, marker: Marker, *, alone: bool
) -> list[tuple[int, Hit]]:
    # Some more: the best may have no score of its own, but then the one that lends it its score is close behind.
    hits = search_leaning(tx, Within(scope.user_id, MESSAGES), query, limit + SOME_MORE)
    scale = 1.0 if alone or not hits else max(hit.own for hit in hits) / max(hit.score for hit in hits)
    return [(number, message_hit(hit, scale, marker)) for number, hit in enumerate(hits[:limit])]


def message_hit(hit: ScoredMessage, scale: float, marker: Marker) -> Hit:
    """Return a message as a hit, its score times `scale`."""
    message = hit.message
    text = "\n".join(
        part for part in (searchable(message.content), *map(call_as_text, message.tool_calls or ())) if part
    )
    return Hit(
        MESSAGES,
        str(message.position),
        message.role if message.name is None else f"{message.role} {message.name}",
        marker.snippet(text),
        hit.score * scale,
        message.created_at or datetime.min.replace(tzinfo=UTC),
        hit.session_id,
    )


def id_of(found: Record) -> str:
    """Return what a record is called in its layer: an entry of the history by its number, others by their key."""
    return str(int(found.key)) if found.layer == HISTORY and is_key(found.key) else found.key


def text_of(found: Record) -> str:
    """Return what a snippet is cut from: the summary and the content, without a heading that only repeats the title.

    Of an entity what it is stands in front, and where nothing describes it, its tags.
    """
    if found.layer == ENTITIES:
        said = found.content or ", ".join(found.words("tags"))
        return f"{found.category}: {said}" if said else found.category or ""
    content = found.content.removeprefix(f"# {found.title}\n").lstrip() if found.title else found.content
    said_again = content.startswith(found.summary)  # a note's first paragraph is its summary
    return content if said_again else f"{found.summary}\n{content}"
