"""Searching conversations: turns are short and lean on their neighbours.

A turn's score is its own BM25 score and what its neighbours in the session lend it:

    score(t) = own(t) + fit(t) * (0.4 * n1 + 0.2 * n2 + 0.1 * n3 + ...)

n1, n2, ... are the own scores of the turns up to 3 before and after, each times 0.8 for every step beyond the first,
the greatest first. So one good neighbour counts, and many middling ones count little, on whichever side they stand.
fit(t) = min(1.5, 2 * length / (length + mean length)): a word of assent beside the right turn is not the answer.

The constants were not fitted to one set: shares of 0.3 to 0.5, reaches of 2 to 5 and steps of 0.6 to 0.9 lie on one
plateau, measured on eleven beds (ARCHITECTURE.md).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Integer, cast, func, select

from memdb.layers import reading
from memdb.layers.arguments import check_query
from memdb.layers.message import MESSAGE, Message, ScoredMessage, key_of, message_of
from memdb.layers.record import Record
from memdb.storage import fulltext
from memdb.storage.schema import message, record
from memdb.storage.statement import Statement, each, json_field, param
from memdb.storage.transaction import Row, Transaction
from memdb.storage.within import Within
from memdb.text.query import parse

SHARE, NEXT_SHARE = 0.4, 0.5  # the best neighbour lends this share, each next one half as much again
REACH, STEP = 3, 0.8
MAX_FIT = 1.5
PAUSE_DAYS = 1  # turns further apart are no neighbours

# Only the best turns are looked at. On LoCoMo recall@10 is 0.75 with 50 of them, 0.768 with 200, 0.77 with 1,000.
POOL = 300
EXPANDED = 20  # around so many of the best, turns that do not match themselves are looked at too


_SHARES = [SHARE * NEXT_SHARE**rank for rank in range(2 * REACH)]
_STEPS = [(distance, STEP ** (abs(distance) - 1)) for distance in range(-REACH, REACH + 1) if distance]


class Turn(NamedTuple):
    """A message as the leaning sees it."""

    session_id: str
    position: int
    day: int  # when it was said, as days since the year 1
    tokens: int
    own: float


class Leaning(NamedTuple):
    """What a turn scores: see ScoredMessage."""

    score: float
    own: float
    lent: dict[int, float]


_TURN = (
    record.c.id,
    record.c.session_id,
    cast(record.c.key, Integer),
    func.substr(record.c.created_at, 1, 10),
    message.c.tokens,
)
_TURNS = select(*_TURN).join(message, message.c.record_id == record.c.id)
_BY_IDS = Statement(
    _TURNS.where(record.c.id.in_(select(each("ids").c.value)), (record.c.user_id.concat("")) == param("user_id"))
)
_PLACE = each("places").c.value
# All of the key comes from the list: with a user of its own beside it, SQLite would walk that user's whole index.
_BY_PLACES = Statement(
    _TURNS.where(
        *(record.c[name] == json_field(_PLACE, name) for name in ("user_id", "layer", "session_id", "key")),
        (record.c.user_id.concat("")) == param("user_id"),
    )
)


def search_leaning(tx: Transaction, within: Within, query: str, limit: int) -> list[ScoredMessage]:
    """Return the messages that answer a query best; see ConversationMemory.search."""
    leanings = best_leaning(tx, within, query, limit)

    def shape(found: Record, *own: Any) -> tuple[int, Message]:
        return found.id, message_of(found, *own)

    scores = {number: leaning.score for number, (_, leaning) in leanings.items()}
    return [
        ScoredMessage(made, score, leanings[number][0].session_id, leanings[number][1].own, leanings[number][1].lent)
        for (number, made), score in reading.ranked(tx, within.user_id, scores, shape, MESSAGE)
    ]


def best_leaning(tx: Transaction, within: Within, query: str, limit: int) -> dict[int, tuple[Turn, Leaning]]:
    """Return the best turns by record id, best first, ties by id."""
    own = dict(fulltext.search(tx, parse(check_query(query)), within, max(POOL, limit)))
    turns = turns_of(tx, within, own)
    leanings = lean(turns)
    best = sorted(leanings, key=lambda number: (-leanings[number].score, number))[:limit]
    return {number: (turns[number], leanings[number]) for number in best}


def lean(turns: Mapping[int, Turn]) -> dict[int, Leaning]:
    """Return what each turn scores with the help of its neighbours; those of no score are left out. Pure.

    Args:
        turns: by record id; neighbours are found by session and position.
    """
    sessions: dict[str, dict[int, Turn]] = {}
    for turn in turns.values():
        sessions.setdefault(turn.session_id, {})[turn.position] = turn
    mean = sum(turn.tokens for turn in turns.values()) / max(len(turns), 1)
    leanings = {}
    for number, turn in turns.items():
        fit = min(MAX_FIT, 2 * turn.tokens / (turn.tokens + mean))
        offers = sorted(_offers(turn, sessions[turn.session_id]))
        lent = {distance: fit * share * -offer for share, (offer, _, distance) in zip(_SHARES, offers, strict=False)}
        score = turn.own + sum(lent.values())
        if score > 0:
            leanings[number] = Leaning(score, turn.own, lent)
    return leanings


def _offers(turn: Turn, session: Mapping[int, Turn]) -> Iterator[tuple[float, int, int]]:
    """Yield what each neighbour could lend, negative so that sorting puts the most first, then the nearest."""
    for distance, step in _STEPS:
        neighbour = session.get(turn.position + distance)
        if neighbour is not None and neighbour.own > 0 and abs(neighbour.day - turn.day) <= PAUSE_DAYS:
            yield -step * neighbour.own, abs(distance), distance


def turns_of(tx: Transaction, within: Within, own: Mapping[int, float]) -> dict[int, Turn]:
    """Return the turns that match, and those beside the best of them, by record id."""
    matching = _read(tx.all(_BY_IDS, ids=json.dumps(list(own)), user_id=within.user_id), own)
    known = {(turn.session_id, turn.position) for turn in matching.values()}
    best = sorted(matching, key=lambda number: (-own[number], number))[:EXPANDED]
    around = _around(matching[number] for number in best)
    scope = {"user_id": within.user_id, "layer": within.layer}
    places = [{**scope, "session_id": session, "key": key_of(at)} for session, at in sorted(around - known)]
    beside = tx.all(_BY_PLACES, places=json.dumps(places), user_id=within.user_id)
    return matching | _read(beside, {})


def _around(turns: Iterable[Turn]) -> set[tuple[str, int]]:
    """Return the places of turns and of their neighbours."""
    return {
        (turn.session_id, turn.position + distance)
        for turn in turns
        for distance in range(-REACH, REACH + 1)
        if turn.position + distance > 0
    }


def _read(rows: Iterable[Row], own: Mapping[int, float]) -> dict[int, Turn]:
    # A shell may have left other kinds of values: a turn without a session has no neighbours, and is left out.
    return {
        number: Turn(session_id, position, _day(date), _length(tokens), own.get(number, 0.0))
        for number, session_id, position, date, tokens in rows
        if isinstance(session_id, str)
    }


def _length(tokens: object) -> int:
    return max(tokens, 1) if isinstance(tokens, int) else 1


@lru_cache(maxsize=1024)
def _day(date: str) -> int:
    try:
        return datetime.date.fromisoformat(date).toordinal()
    except (ValueError, TypeError):  # a shell has written it
        return 0
