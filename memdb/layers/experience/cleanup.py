"""Episodes that are old and that nothing refers to go, in steps of a transaction each.

A pattern refers to the episodes that taught it, so after a consolidation most of those that it has seen stay.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import delete, select, tuple_

from memdb.errors import InvalidInput
from memdb.layers.arguments import MAX_LIMIT, check_range, check_score
from memdb.layers.experience.stored import ANY, EPISODE, texts
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage.clock import from_text, to_text
from memdb.storage.schema import record, record_reference
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.text.shown import shown

AT_ONCE = 100  # episodes of one transaction: with 500 a writer beside it waited 0.1 to 0.2 s


class Position(NamedTuple):
    """Where a step ended: the time and the number of the last episode that it looked at."""

    created_at: str
    id: int


class Cleaned(NamedTuple):
    """What a step did.

    Args:
        gone: how many episodes it deleted.
        after: where the next one begins; None when nothing is left.
    """

    gone: int
    after: Position | None


START = Position("", 0)
_kept = record_reference.alias("kept")
_REFERRED_TO = (
    select(_kept.c.source_id)
    .where(
        _kept.c.user_id == record.c.user_id,
        _kept.c.target_layer.in_(texts(EPISODE, ANY)),
        _kept.c.target_key == record.c.key,
    )
    .exists()
)
_OLDEST = Statement(
    select(record.c.created_at, record.c.id, _REFERRED_TO)
    .where(
        here(),
        tuple_(record.c.created_at, record.c.id) > tuple_(param("created_at"), param("id")),
        record.c.created_at < param("until"),
    )
    .order_by(record.c.created_at, record.c.id)
    .limit(param("limit"))
)
_DELETE = Statement(
    delete(record).where(record.c.id.in_(select(each("ids").c.value)), record.c.user_id.concat("") == param("user_id"))
)


def limits(days: float, now: str, at_once: int, name: str = "at_once") -> tuple[str, int]:
    """Return before when an episode is old, in the stored text form, and how many a step looks at.

    Raises:
        InvalidInput: days is no number of at least 0, or the other no whole number from 1 to 10,000.
    """
    if check_score(days, "days") < 0:
        raise InvalidInput(f"days must be at least 0, not {shown(days)}")
    try:
        until = to_text(from_text(now) - timedelta(days=days))
    except OverflowError:  # before the year 1: nothing is as old
        until = ""
    return until, check_range(at_once, name, 1, MAX_LIMIT)


def step(tx: Transaction, place: Place, until: str, after: Position, at_once: int, most: int | None = None) -> Cleaned:
    """Delete those of the next old episodes that nothing refers to; what belongs to them goes along.

    Args:
        until: before this time they are old.
        after: where the last step ended.
        at_once: how many are looked at, at most.
        most: how many of them are deleted, at most; None for all that may be.
    """
    found = tx.all(_OLDEST, **place.values(until=until, limit=at_once, **after._asdict()))
    ids = [number for _, number, is_referred_to in found if not is_referred_to][:most]
    if ids:
        tx.run(_DELETE, ids=json.dumps(ids), user_id=place.user_id)
    end = None if len(found) < at_once else Position(*found[-1][:2])
    return Cleaned(len(ids), end)
