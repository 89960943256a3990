"""Searching conversations: turns are short and lean on their neighbours."""

from __future__ import annotations

import json
from collections import defaultdict

from sqlalchemy import select

from memdb.layers import reading
from memdb.layers.arguments import check_query
from memdb.layers.message import MESSAGE, Message, ScoredMessage, message_of
from memdb.layers.record import Record
from memdb.storage import fulltext
from memdb.storage.fulltext import Within
from memdb.storage.schema import record
from memdb.storage.statement import Statement, each
from memdb.storage.transaction import Transaction
from memdb.text.query import parse

POOL = 500
SHARES = {-1: 0.5, 1: 0.3}

_WHERE = Statement(
    select(record.c.id, record.c.session_id, record.c.key).where(record.c.id.in_(select(each("ids").c.value)))
)


def search_leaning(tx: Transaction, within: Within, query: str, limit: int) -> list[ScoredMessage]:
    """Provisional."""
    hits = dict(fulltext.search(tx, parse(check_query(query)), within, max(POOL, limit)))
    placed = {(session, int(key)): number for number, session, key in tx.all(_WHERE, ids=json.dumps(list(hits)))}
    lent: dict[int, dict[int, float]] = defaultdict(dict)
    for (session, position), number in placed.items():
        for distance, share in SHARES.items():
            neighbour = placed.get((session, position + distance))
            if neighbour is not None:
                lent[number][distance] = share * hits[neighbour]
    scores = {number: own + sum(lent[number].values()) for number, own in hits.items()}
    best = dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def shape(found: Record, *own: object) -> tuple[int, Message]:
        return found.id, message_of(found, *own)  # type: ignore[arg-type]

    return [
        ScoredMessage(message, score, "", hits[number], lent[number])
        for (number, message), score in reading.ranked(tx, within.user_id, best, shape, MESSAGE)
    ]
