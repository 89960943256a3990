"""What time takes from the importance of episodes, patterns and skills (loki document, apply_decay); units."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select, true

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_score
from memdb.layers.experience.importance import HALVING
from memdb.layers.experience.stored import as_time
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage.aging import AGING_LAYERS, HALF_LIFE_DAYS, aged, importance
from memdb.storage.clock import from_text
from memdb.storage.schema import aging, recall, record
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction
from memdb.text.shown import shown

MOST_AHEAD_DAYS = 366  # by which a mark of ageing may lie ahead of a clock that was put back
DAY_CHARS = len("2026-11-30")  # what of a stored time tells its day, in UTC

_AGED_AT = Statement(
    select(aging.c.aged_at).where(
        aging.c.user_id == param("user_id"),
        aging.c.layer == param("layer"),
        aging.c.session_id == param("session_id"),
    )
)
_SET = insert(aging).values({name: param(name) for name in ("user_id", "session_id", "layer", "aged_at", "rate")})
_SET_AGED_AT = Statement(
    _SET.on_conflict_do_update(
        index_elements=["user_id", "layer", "session_id"],
        set_={name: _SET.excluded[name] for name in ("aged_at", "rate")},
    )
)
_left = (
    select(
        record.c.id,
        importance().label("before"),
        aged(param("aged_at"), param("rate"), param("now")).label("after"),
    )
    .select_from(record.outerjoin(recall, recall.c.record_id == record.c.id))
    .where(here())
    .subquery()
)
_AGE = insert(recall).from_select(
    ["record_id", "importance"], select(_left.c.id, _left.c.after).where(_left.c.after < _left.c.before, true())
)
_AGE_ALL = Statement(
    _AGE.on_conflict_do_update(index_elements=["record_id"], set_={"importance": _AGE.excluded.importance})
)


def age(
    tx: Transaction,
    user_id: str,
    layers: Iterable[str] = AGING_LAYERS,
    half_life_days: float = HALF_LIFE_DAYS,
    decay_rate: float = HALVING,
) -> int:
    """Let a user's records age up to now, once a day (in UTC): the second time on one day nothing happens.

    An importance is multiplied by exp(-decay_rate * days / half_life_days), of the days, as a fraction, since the
    record was last aged, recalled (or, never recalled, created) or stored; 0.01 is left at least. So it does not matter
    how often this is called, and after any gap it is what it would be had it been called daily.

    Args:
        layers: of episode, pattern and skill.
        half_life_days: above 0.
        decay_rate: at least 0; with ln 2 half is left after half_life_days, with 0.1, the document's, 0.905.

    Returns:
        How many records are less important now.

    Raises:
        InvalidInput: an argument is not what it must be.
    """
    if check_score(half_life_days, "half_life_days") <= 0:
        raise InvalidInput(f"half_life_days must be above 0, not {shown(half_life_days)}")
    if check_score(decay_rate, "decay_rate") < 0:
        raise InvalidInput(f"decay_rate must be at least 0, not {shown(decay_rate)}")
    return sum(_age(tx, Place(layer, user_id), decay_rate / half_life_days) for layer in checked(layers))


def checked(layers: Iterable[str]) -> list[str]:
    """Return layers, each once, if their records age.

    Raises:
        InvalidInput: one's do not.
    """
    named = [layers] if isinstance(layers, str) else list(dict.fromkeys(layers))
    for layer in named:
        if layer not in AGING_LAYERS:
            raise InvalidInput(f"what ages is of the layers {', '.join(AGING_LAYERS)}, not {shown(layer)}")
    return named


def _age(tx: Transaction, place: Place, rate: float) -> int:
    known = tx.value(_AGED_AT, **place.values())
    aged_at, marked = (known, as_time(known)) if isinstance(known, str) else ("", None)
    ahead = None if marked is None else marked - from_text(tx.now)
    # A clock was put back: what those days took is taken already. A mark far ahead is a mistake, and set anew.
    if ahead is not None and tx.now[:DAY_CHARS] <= aged_at[:DAY_CHARS] and ahead.days <= MOST_AHEAD_DAYS:
        return 0
    changed = tx.run(_AGE_ALL, **place.values(aged_at=aged_at, rate=rate, now=tx.now))
    tx.run(_SET_AGED_AT, **place.values(aged_at=tx.now, rate=rate))
    return changed
