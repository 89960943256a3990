"""Recall statistics are writes caused by reads: counted in memory, carried to the file by the next batch of writes.

A retrieval never waits for them. They reach the file with the next write of the handle, after FLUSH_DELAY_S at the
latest, before they are read, and on close; a crash may lose what was counted since, never a record.

Episodes, patterns and skills gain importance by being recalled (loki document, boost_on_retrieval). Where they age,
what time has taken since comes off first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import func, select

from memdb.storage.aging import AGING_LAYERS, aged, boosted, missing_after, recalled_at
from memdb.storage.schema import aging, recall, record
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction

FLUSH_DELAY_S = 1.0  # how long a count waits at most for a write to carry it
MAX_BUFFERED = 10_000  # records whose counts wait; with more they are written at once


class Recalled(NamedTuple):
    """A record that was recalled.

    Args:
        user_id, layer, session_id, key: its identity.
        score: the score that it had.
        at: when, in the stored text form.
    """

    user_id: str
    layer: str
    session_id: str
    key: str
    score: float
    at: str


def _count(*, boost: bool) -> Statement:
    """Return what adds counts, from `record`, so that what was deleted meanwhile gets no statistics."""
    here = [record.c[name] == param(name) for name in ("user_id", "layer", "session_id", "key")]
    columns = ["record_id", "recall_count", "total_score", "last_recall_at"]
    values = [record.c.id, func.abs(param("times")), param("score"), param("at")]
    rows = select(*values)
    if boost:
        columns.append("importance")
        aged_at, rate = (
            select(column)
            .where(
                aging.c.user_id == param("user_id"),
                aging.c.layer == param("layer"),
                aging.c.session_id == param("session_id"),
            )
            .scalar_subquery()
            for column in (aging.c.aged_at, aging.c.rate)
        )
        worth = boosted(aged(aged_at, rate, param("at")))
        rows = select(*values, worth).select_from(record.outerjoin(recall, recall.c.record_id == record.c.id))
    counted = insert(recall).from_select(columns, rows.where(*here))
    new = counted.excluded
    changed = {
        "recall_count": recall.c.recall_count + new.recall_count,
        "total_score": recall.c.total_score + new.total_score,
        "last_recall_at": func.max(func.coalesce(recalled_at(), new.last_recall_at), new.last_recall_at),
    }
    if boost:
        changed["importance"] = new.importance
    return Statement(counted.on_conflict_do_update(index_elements=["record_id"], set_=changed))


_STORE = _count(boost=False)
_STORE_AND_BOOST = _count(boost=True)


class RecallBuffer:
    """Counts that are not in the file yet, a row a record."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, ...], dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, recalls: Iterable[Recalled]) -> None:
        """Count recalls."""
        self.put_back({**recalled._asdict(), "times": 1} for recalled in recalls)

    def take(self) -> list[dict[str, Any]]:
        """Return the rows that `store` takes and forget them."""
        rows, self._rows = list(self._rows.values()), {}
        return rows

    def put_back(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count again what could not be stored."""
        for row in rows:
            identity = (row["user_id"], row["layer"], row["session_id"], row["key"])
            known = self._rows.get(identity)
            if known is None:
                self._rows[identity] = dict(row)
                continue
            known["times"] += row["times"]
            known["score"] += row["score"]
            known["at"] = max(known["at"], row["at"])


def store(tx: Transaction, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add counts to the file: a unit. Nothing happens for a record that is not there (any more).

    Args:
        rows: the fields of Recalled, with `times` for how often and `score` and `at` for their sum and the last time.
    """
    for row in rows:
        if row["layer"] in AGING_LAYERS:
            tx.put(_STORE_AND_BOOST, {**row, "missing": missing_after(row["times"])})
        else:
            tx.put(_STORE, row)


def recalled(tx: Transaction, recalls: Iterable[Recalled]) -> None:
    """Count recalls: in a write transaction at once, in a read transaction when it is over (see Engine.read)."""
    if tx.writing:
        store(tx, ({**one._asdict(), "times": 1} for one in recalls))
    else:
        tx.recalled.extend(recalls)
