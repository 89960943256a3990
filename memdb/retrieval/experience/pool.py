"""Which memories of a layer are worth making, of those that match a goal: the pool is ranked before anything is made.

BM25 alone would leave out the newest of many that are worded alike: of equal scores the full-text index gives the first
stored. So more than are wanted are searched for, and what decides between them is read in one statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import case, func, literal_column, select

from memdb.layers.experience.stored import EPISODE, texts
from memdb.layers.experience.stored_patterns import CONFIDENCE, KIND
from memdb.layers.reading import alive
from memdb.layers.record import Place
from memdb.retrieval.experience.relevance import said_again, share
from memdb.storage import fulltext
from memdb.storage.aging import FIRST, is_number
from memdb.storage.schema import pattern, recall, record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.text.query import parse

POOL = 50  # matches of a layer that are ranked at least: with 200 a question of 10 words took a half longer
TIMES = 2  # as many as are wanted
LARGEST_POOL = 4_000  # where so many are as good that the pool's edge may cut off a better one
GOAL_CHARS = 500  # by which episodes are told apart

_POOL = Statement(
    select(
        record.c.id,
        case((is_number(recall.c.importance), recall.c.importance), else_=literal_column(str(FIRST))),
        case((record.c.layer.in_(texts(EPISODE)), record.c.created_at), else_=pattern.c.last_used),
        case((record.c.layer.in_(texts(EPISODE)), func.substr(record.c.title, 1, literal_column(str(GOAL_CHARS))))),
        case((pattern.c.record_id.is_not(None), KIND)),
        case((pattern.c.record_id.is_not(None), CONFIDENCE)),
    )
    .select_from(
        record.outerjoin(recall, recall.c.record_id == record.c.id).outerjoin(
            pattern, pattern.c.record_id == record.c.id
        )
    )
    .where(
        record.c.id.in_(select(each("ids").c.value)),
        record.c.user_id.concat("") == param("user_id"),
        alive(),
    )
)


class Kind(NamedTuple):
    """What of a layer belongs to a source.

    Args:
        kind: only patterns of this kind; None for all records.
        least_confidence: only those of at least this confidence.
    """

    kind: str | None = None
    least_confidence: float = 0.0


class Candidate(NamedTuple):
    """A record that matches.

    Args:
        id: its number.
        bm25: its score.
        importance: how important it is.
        moment: when it began or was last used, in the stored text form; "" for no time.
        goal: the beginning of an episode's goal; "" for others.
        kind: a pattern's kind.
        confidence: a pattern's confidence.
    """

    id: int
    bm25: float
    importance: float
    moment: str
    goal: str
    kind: str | None
    confidence: float

    def belongs(self, wanted: Kind) -> bool:
        """Return whether it belongs to a source."""
        return wanted.kind is None or (self.kind == wanted.kind and self.confidence >= wanted.least_confidence)


def best_of(
    tx: Transaction, user_id: str, layer: str, query: str, wanted: Mapping[str, Kind], most: int
) -> dict[str, dict[int, float]]:
    """Return what of a layer's matches to make, with its BM25 scores, best first: the layer is searched once.

    They are ranked by BM25 * importance factor, of equals the newest first; an episode that says what MOST_ALIKE better
    ones say comes after all others. The best by BM25 is always among them: others are measured by it. The order does
    not depend on `most`, as long as no more than LARGEST_POOL match about as well; of more than those that were stored
    first are ranked.

    Args:
        layer: the layer.
        query: what is searched for.
        wanted: what of it belongs to each source, by the sources' names.
        most: how many of each at most, and one more for the best by BM25.
    """
    terms, within = parse(query), Place(layer, user_id).within()
    fetch = max(POOL, TIMES * most)
    while True:
        hits = fulltext.search(tx, terms, within, fetch)
        pool = list(_read(tx, user_id, dict(hits)))
        ranked = {name: _ranked([one for one in pool if one.belongs(kind)]) for name, kind in wanted.items()}
        is_all = len(hits) < fetch or fetch >= LARGEST_POOL
        if is_all or all(_settled(ones, most, hits[-1][1]) for ones in ranked.values()):
            return {name: _first(ones, most) for name, ones in ranked.items()}
        fetch = max(LARGEST_POOL, fetch)


class _Ranked(NamedTuple):
    """The candidates of a source, best first: those that say something else, and behind them those that do not."""

    best: float
    others: Sequence[tuple[float, Candidate]]
    again: Sequence[tuple[float, Candidate]]


def _read(tx: Transaction, user_id: str, scores: Mapping[int, float]) -> Iterator[Candidate]:
    rows = tx.all(_POOL, ids=json.dumps(list(scores)), user_id=user_id, now=tx.now)
    for number, importance, moment, goal, kind, confidence in rows:
        yield Candidate(number, scores[number], importance, moment or "", goal or "", kind, confidence or 0.0)


def _ranked(candidates: Sequence[Candidate]) -> _Ranked:
    best = max((one.bm25 for one in candidates), default=0.0)
    newest = sorted(candidates, key=lambda one: (one.moment, one.id), reverse=True)
    counted = [(share(one.bm25, best, one.importance), one) for one in newest]
    counted.sort(key=lambda pair: -pair[0])
    again = said_again([one.goal for _, one in counted])
    return _Ranked(
        best,
        [pair for pair, is_again in zip(counted, again, strict=True) if not is_again],
        [pair for pair, is_again in zip(counted, again, strict=True) if is_again],
    )


def _settled(ranked: _Ranked, most: int, edge: float) -> bool:
    """Return whether nothing that was not looked at can be better than the last of the first `most`.

    Args:
        edge: the BM25 score of the last match that was looked at; what comes behind has at most that.
    """
    return len(ranked.others) >= most and ranked.others[most - 1][0] > share(edge, ranked.best, 1.0)


def _first(ranked: _Ranked, most: int) -> dict[int, float]:
    chosen = [one for _, one in (*ranked.others, *ranked.again)][:most]
    measure = [one for _, one in (*ranked.others, *ranked.again) if one.bm25 == ranked.best][:1]
    return {one.id: one.bm25 for one in (*chosen, *measure)}
