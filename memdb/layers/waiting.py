"""The records that wait for their vectors, and how they get them: units over a transaction.

A record that waits has one part without a vector. A changed text waits anew under another number, so a vector that was
made of the old text finds nothing to replace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select

from memdb.layers import reading
from memdb.layers.embeddings import Kept
from memdb.layers.record import Record
from memdb.storage.schema import embedding, record
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.text.passages import MAX_TEXT_CHARS, passages

NO_VECTOR = b""  # stands for the vector of a record without text: nothing is near it


class Waiting(NamedTuple):
    """A record that waits for its vectors.

    Args:
        part: the number of the part that waits.
        kept: for whom and which model.
        record_id: the record.
        passages: what is to be embedded; empty when the record has no text.
    """

    part: int
    kept: Kept
    record_id: int
    passages: list[str]


_HERE = (embedding.c.user_id == param("user_id"), embedding.c.model_id == bindparam("model_id"))
_READ = [
    func.substr(record.c.content, 1, MAX_TEXT_CHARS) if name == "content" else record.c[name] for name in Record._fields
]


def _waiting(*conditions: Any, newest: bool = False) -> Statement:
    order = embedding.c.id.desc() if newest else embedding.c.id
    without = select(each("without").c.value)
    return Statement(
        select(*_READ, embedding.c.id)
        .join(record, record.c.id == embedding.c.record_id)
        .where(*_HERE, embedding.c.vector.is_(None), embedding.c.id.not_in(without), *conditions)
        .order_by(order)
        .limit(bindparam("limit"))
    )


_WAITING_NEWEST = _waiting(newest=True)
_WAITING_FROM = _waiting(embedding.c.id >= bindparam("start"))
_WAITING_BEFORE = _waiting(embedding.c.id < bindparam("start"))
_WAITING_ENDS = Statement(
    select(func.min(embedding.c.id), func.max(embedding.c.id)).where(*_HERE, embedding.c.vector.is_(None))
)

_TAKE = Statement(
    delete(embedding).where(
        embedding.c.id == bindparam("part"), embedding.c.user_id == param("user_id"), embedding.c.vector.is_(None)
    )
)
_STORE = Statement(
    insert(embedding).values(
        user_id=param("user_id"),
        model_id=bindparam("model_id"),
        record_id=bindparam("record_id"),
        part=bindparam("part"),
        vector=bindparam("vector"),
    )
)

_BROKEN = Statement(
    select(embedding.c.model_id, embedding.c.record_id)
    .where(embedding.c.id.in_(select(each("parts").c.value)), (embedding.c.user_id.concat("")) == param("user_id"))
    .distinct()
)
_REMOVE = Statement(
    delete(embedding).where(
        embedding.c.record_id == bindparam("record_id"),
        embedding.c.model_id == bindparam("model_id"),
        (embedding.c.user_id.concat("")) == param("user_id"),
    )
)
_MARK = Statement(
    insert(embedding).from_select(
        ["user_id", "model_id", "record_id"],
        select(record.c.user_id, bindparam("model_id"), record.c.id).where(
            record.c.id == bindparam("record_id"), (record.c.user_id.concat("")) == param("user_id")
        ),
    )
)


def newest_waiting(tx: Transaction, one: Kept, limit: int, without: Sequence[int] = ()) -> list[Waiting]:
    """Return the records of a layer that wait, the newest first.

    Args:
        limit: how many at most.
        without: parts that are left out.
    """
    return _read(tx, one, _WAITING_NEWEST, limit=limit, without=without)


def waiting_from(tx: Transaction, one: Kept, limit: int, start: int, without: Sequence[int] = ()) -> list[Waiting]:
    """Return records of a layer that wait, from a part on and then from the first on, oldest first.

    Args:
        limit: how many at most.
        start: the number of the part to begin with; it need not be there.
        without: parts that are left out.
    """
    found = _read(tx, one, _WAITING_FROM, limit=limit, without=without, start=start)
    if len(found) < limit:
        found += _read(tx, one, _WAITING_BEFORE, limit=limit - len(found), without=without, start=start)
    return found


def ends(tx: Transaction, one: Kept) -> tuple[int, int]:
    """Return the first and the last part of a layer that waits; zeros when none does."""
    first, last = tx.all(_WAITING_ENDS, user_id=one.user_id, model_id=one.id)[0]
    return first or 0, last or 0


def store(tx: Transaction, vectors: Iterable[tuple[Waiting, Sequence[bytes]]]) -> int:
    """Store the vectors of records that still wait as they were read; the others are left as they are.

    Args:
        vectors: for each record the vectors of its passages, packed (memdb.storage.vectors).

    Returns:
        How many records have vectors now that waited before.
    """
    stored = 0
    for one, parts in vectors:
        user_id = one.kept.user_id
        if tx.run(_TAKE, part=one.part, user_id=user_id):
            place = {"user_id": user_id, "model_id": one.kept.id, "record_id": one.record_id}
            tx.run(_REMOVE, **place)  # a shell may have left other parts beside the one that waits
            for at, vector in enumerate(parts or (NO_VECTOR,)):
                tx.run(_STORE, **place, part=at, vector=vector)
            stored += 1
    return stored


def wait_again(tx: Transaction, user_id: str, parts: Iterable[int]) -> int:
    """Let the records of parts that hold no vector wait for new ones.

    Returns:
        How many records wait.
    """
    broken = tx.all(_BROKEN, parts=json.dumps(list(parts)), user_id=user_id)
    for model_id, record_id in broken:
        tx.run(_REMOVE, model_id=model_id, record_id=record_id, user_id=user_id)
        tx.run(_MARK, model_id=model_id, record_id=record_id, user_id=user_id)
    return len(broken)


def _read(tx: Transaction, one: Kept, statement: Statement, *, without: Sequence[int], **values: Any) -> list[Waiting]:
    rows = tx.all(statement, user_id=one.user_id, model_id=one.id, without=json.dumps(list(without)), **values)
    parts = {row[0]: row[-1] for row in rows}

    def shape(found: Record) -> Waiting:
        return Waiting(parts[found.id], one, found.id, passages(found.title, found.summary, found.content))

    return list(reading.shaped(tx, [row[:-1] for row in rows], shape))
