"""What a store throws away to stay within bounds: the eviction policies of the agcore document (its section 4).

The check is part of the write that makes it due: in the same transaction, so that what a store holds beyond its bound
is never seen. RULES has a row a plain policy, which says in words what its statement does; Hybrid consists of those.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, select, update

from memdb.layers.models import Model
from memdb.layers.policies import Capacity, EvictionConfig, EvictionPolicy, Hybrid, NoEviction, RecallBased, Ttl
from memdb.layers.reading import counted, held, here
from memdb.layers.recall import RecallBasedConfig, value
from memdb.layers.record import Place
from memdb.storage.clock import from_text, to_text
from memdb.storage.schema import eviction, recall, record
from memdb.storage.statement import Statement, each, insert, param
from memdb.storage.transaction import Transaction

WEIGHTS = tuple(RecallBasedConfig.model_fields)


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to choose what goes.

    Args:
        removes: what, in words.
        order: in which order.
        index: by which index it is found, so that a write costs the same in a store of any size.
        evict: does it, over (tx, place, policy, how many were written since the last check).
    """

    removes: str
    order: str
    index: str
    evict: Callable[[Transaction, Place, Any, int], None]


def evict(tx: Transaction, place: Place, config: EvictionConfig, written: int) -> None:
    """Throw away what a policy does not let stay, when the check is due; part of the unit that wrote.

    Args:
        written: how many records the unit has just written there.
    """
    if isinstance(config.policy, NoEviction) or not _due(tx, place, config.check_interval, written):
        return
    for policy in _parts(config.policy):
        RULES[type(policy)].evict(tx, place, policy, max(written, config.check_interval))


def _parts(policy: EvictionPolicy) -> Iterator[EvictionPolicy]:
    """Yield the plain policies that a policy consists of, in the order in which they act."""
    if not isinstance(policy, Hybrid):
        yield policy
        return
    if policy.ttl_secs is not None:
        yield Ttl(ttl_secs=policy.ttl_secs)
    if policy.most is not None and policy.recall is not None:
        yield RecallBased(max_items=policy.most, **policy.recall.weights)
    elif policy.most is not None:
        yield Capacity(max_items=policy.most)


def _here() -> ColumnElement[bool]:
    return and_(*(eviction.c[name] == param(name) for name in _IDENTITY))


_IDENTITY = ("user_id", "layer", "session_id")
_PLACE = {name: param(name) for name in _IDENTITY}
_COUNTED = insert(eviction).values(**_PLACE, writes=param("written"))
_COUNT_WRITES = Statement(
    _COUNTED.on_conflict_do_update(
        index_elements=_IDENTITY, set_={"writes": eviction.c.writes + _COUNTED.excluded.writes}
    ).returning(eviction.c.writes)
)
_CHECKED = Statement(update(eviction).where(_here()).values(writes=0))


def _due(tx: Transaction, place: Place, interval: int, written: int) -> bool:
    """Count writes and say whether a check is due; the count is in the file, so it holds for all handles."""
    if interval == 1:
        return True
    if tx.value(_COUNT_WRITES, **place.values(written=written)) < interval:
        return False
    tx.run(_CHECKED, **place.values())
    return True


_TIME = (record.c.created_at, record.c.id)
_OLD = and_(here(), record.c.created_at <= param("cutoff"))
_ANY_OLD = Statement(select(record.c.id).where(_OLD).limit(1))
_DELETE_OLD = Statement(delete(record).where(_OLD))
_OLDEST = Statement(
    delete(record).where(record.c.id.in_(select(record.c.id).where(here()).order_by(*_TIME).limit(param("surplus"))))
)


def _evict_old(tx: Transaction, place: Place, policy: Ttl, written: int) -> None:
    try:
        cutoff = to_text(from_text(tx.now) - timedelta(seconds=policy.ttl_secs))
    except OverflowError:  # before the year 1
        return
    # Asked first: a DELETE with triggers opens a statement journal even when it finds nothing.
    if tx.one(_ANY_OLD, **place.values(cutoff=cutoff)) is not None:
        tx.run(_DELETE_OLD, **place.values(cutoff=cutoff))


def _evict_oldest(tx: Transaction, place: Place, policy: Capacity, written: int) -> None:
    if surplus := _surplus(tx, place, policy.max_items, written):
        tx.run(_OLDEST, **place.values(surplus=surplus))


def _surplus(tx: Transaction, place: Place, max_items: int, written: int) -> int:
    """Return how many there are too many, by the count that triggers keep.

    Where that says more than can have come since the last check, they are counted: an older store that has just got its
    bound, or a count that a shell has moved, which must cost no record.
    """
    surplus = held(tx, place) - max_items
    if surplus > written:
        surplus = counted(tx, place) - max_items
    return max(0, surplus)


_LOWEST = Statement(
    delete(record).where(
        record.c.id.in_(
            select(record.c.id)
            .select_from(record.outerjoin(recall, recall.c.record_id == record.c.id))
            .where(here())
            .order_by(value(), *_TIME)
            .limit(param("surplus"))
        )
    )
)


def _evict_lowest(tx: Transaction, place: Place, policy: RecallBased, written: int) -> None:
    surplus = _surplus(tx, place, policy.max_items, written)
    # Whatever was recalled is then worth more than all that never was: ln(2) * recall_weight at least, against
    # recency_weight at most.
    if surplus and policy.recall_weight * math.log(2) > policy.recency_weight:
        surplus -= _evict_never_recalled(tx, place, surplus)
    if surplus:
        tx.run(_LOWEST, **place.values(surplus=surplus, now=tx.now, **policy.weights))


_WAS_RECALLED = exists(select(1).where(recall.c.record_id == record.c.id, recall.c.recall_count > 0))


def _never_recalled(*conditions: ColumnElement[bool]) -> Statement:
    found = select(record.c.id, record.c.created_at).where(here(), *conditions, ~_WAS_RECALLED)
    return Statement(found.order_by(*_TIME).limit(param("surplus")))


# Two statements: of a pair (created_at, id) SQLite would use the first alone, and walk all of one bulk save.
_SAME_TIME = _never_recalled(record.c.created_at == param("passed_at"), record.c.id > bindparam("passed_id"))
_LATER = _never_recalled(record.c.created_at > param("passed_at"))
_DELETE = Statement(delete(record).where(record.c.id.in_(select(each("ids").c.value))))
_PASSED = Statement(select(eviction.c.passed_at, eviction.c.passed_id).where(_here()))
_PASS = insert(eviction).values(**_PLACE, passed_at=param("passed_at"), passed_id=bindparam("passed_id"))
_SET_PASSED = Statement(
    _PASS.on_conflict_do_update(
        index_elements=_IDENTITY,
        set_={"passed_at": _PASS.excluded.passed_at, "passed_id": _PASS.excluded.passed_id},
    )
)
_LAST = Statement(
    select(record.c.id, record.c.created_at).where(here()).order_by(*(column.desc() for column in _TIME)).limit(1)
)


def _evict_never_recalled(tx: Transaction, place: Place, surplus: int) -> int:
    """Delete the oldest that were never recalled; return how many there were.

    The recalled ones that stand before them are passed over, and never looked at again: see storage/schema/eviction.py.
    """
    passed_at, passed_id = tx.one(_PASSED, **place.values()) or ("", 0)
    values = place.values(passed_at=passed_at, passed_id=passed_id, surplus=surplus)
    found = tx.all(_SAME_TIME, **values)
    if len(found) < surplus:
        found += tx.all(_LATER, **values | {"surplus": surplus - len(found)})
    if found:
        tx.run(_DELETE, ids=json.dumps([record_id for record_id, _ in found]))
    last = found[-1] if len(found) == surplus else tx.one(_LAST, **place.values())
    if last is not None:
        tx.run(_SET_PASSED, **place.values(passed_at=last[1], passed_id=last[0]))
    return len(found)


# Each plain policy and what it does. Hybrid consists of them (_parts), NoEviction of none.
RULES: dict[type[Model], Rule] = {
    Ttl: Rule("what is older than ttl_secs", "all of it", "record_by_time", _evict_old),
    Capacity: Rule("what is beyond max_items", "created_at, then id", "record_by_time", _evict_oldest),
    RecallBased: Rule(
        "what is beyond max_items",
        "value, then created_at, then id: what was never recalled before all else",
        "record_by_time from eviction.passed_at on; other weights than those may scan",
        _evict_lowest,
    ),
}
