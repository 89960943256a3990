"""What a memory is worth: a first estimate, what time takes away, what use gives back (loki document; pure)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_score
from memdb.layers.experience.fields import as_moment
from memdb.layers.experience.form import Experience
from memdb.storage.aging import BOOST, FIRST, HALF_LIFE_DAYS, LEAST
from memdb.text.scripts import fold, tokens
from memdb.text.shown import shown

HALVING = math.log(2)  # the rate at which a half-life is one
PLACES = 3  # to which calculate_importance rounds

_LASTING = ("last_accessed", "timestamp", "last_used")  # where decay begins: the first that says a time
_BY_OUTCOME = {"success": 0.1, "failure": -0.1}


class Decayed(NamedTuple):
    """What is left of an importance.

    Args:
        importance: the new one, not rounded: what is rounded every day may never fall.
        decayed_at: until when it has been decayed; keep it, and decay from there the next time.
    """

    importance: float
    decayed_at: datetime | None


def calculate_importance(memory: Experience | Mapping[str, Any], task_type: str | None = None) -> float:
    """Return what a memory is worth (loki document, calculate_importance).

    It starts at its importance (0.5 without one). A success adds 0.1 and 0.05 for each error it met, at most 3; a
    failure takes 0.1. Recalls add 0.05 * ln(1 + access_count). Where it has a confidence, the mean of both counts. With
    a task type a phase and a category that name it add 0.1 each. An empty phase or category names nothing, and "act"
    does not name "refactoring": one must stand in the other at the beginning of a word.

    Args:
        memory: an episode, pattern or skill, or its dict.
        task_type: the kind of task that it shall be worth something for; None or "" for none.

    Returns:
        0 to 1, rounded to 3 places.
    """
    form = memory.to_dict() if isinstance(memory, Experience) else memory
    worth = _number(form.get("importance"), FIRST) + _BY_OUTCOME.get(str(form.get("outcome")), 0.0)
    errors = form.get("errors_encountered")
    if form.get("outcome") == "success" and isinstance(errors, list):
        worth += 0.05 * min(len(errors), 3)
    worth += 0.05 * math.log1p(max(0.0, _number(form.get("access_count"), 0.0)))
    if form.get("confidence") is not None:
        worth = (worth + _number(form["confidence"], 0.0)) / 2
    if task_type:
        context = form.get("context")
        phase = context.get("phase") if isinstance(context, Mapping) else None
        worth += sum(0.1 for name in (phase or form.get("phase"), form.get("category")) if _names(name, task_type))
    return round(_clamped(worth), PLACES)


def decay_factor(days: float, *, half_life_days: float = HALF_LIFE_DAYS, decay_rate: float = HALVING) -> float:
    """Return what is left of 1 after some days: exp(-decay_rate * days / half_life_days).

    Args:
        days: at least 0; less counts as 0.
        half_life_days: above 0; after so many days half is left.
        decay_rate: ln 2 for a true half-life. With 0.1, the document's, 0.905 is left after half_life_days.

    Raises:
        InvalidInput: half_life_days or decay_rate is not what it must be.
    """
    if check_score(half_life_days, "half_life_days") <= 0:
        raise InvalidInput(f"half_life_days must be above 0, not {shown(half_life_days)}")
    if check_score(decay_rate, "decay_rate") < 0:
        raise InvalidInput(f"decay_rate must be at least 0, not {shown(decay_rate)}")
    return math.exp(-decay_rate * max(0.0, days) / half_life_days)


def decayed(
    importance: float,
    since: datetime | None,
    now: datetime,
    *,
    decayed_at: datetime | None = None,
    half_life_days: float = HALF_LIFE_DAYS,
    decay_rate: float = HALVING,
) -> Decayed:
    """Return what is left of an importance, by whole days: on one day a second time changes nothing.

    After any gap it is what it would be after a daily run.

    Args:
        importance: as it was at `since`, or at `decayed_at` where that is later.
        since: when the memory was last of use, see decay_begins; None or a time to come leaves the importance.
        now: the present time.
        decayed_at: what the last run returned.
        half_life_days: see decay_factor; so is decay_rate.

    Returns:
        The importance, at least 0.01 (or what it was, if that is less), and until when it is decayed.

    Raises:
        InvalidInput: half_life_days or decay_rate is not what it must be.
    """
    if since is None:
        return Decayed(importance, decayed_at)
    begins = max(since, decayed_at) if decayed_at else since
    days = max(0, (now - begins).days)
    factor = decay_factor(days, half_life_days=half_life_days, decay_rate=decay_rate)
    if days == 0:
        return Decayed(importance, decayed_at)
    return Decayed(max(importance * factor, min(importance, LEAST)), begins + timedelta(days=days))


def decay_begins(memory: Experience | Mapping[str, Any]) -> datetime | None:
    """Return when a memory was last of use: the first of last_accessed, timestamp and last_used that says a time."""
    for name in _LASTING:
        value = getattr(memory, name, None) if isinstance(memory, Experience) else memory.get(name)
        with suppress(InvalidInput):
            if (moment := as_moment(value)) is not None:
                return moment
    return None


def boosted(importance: float, boost: float = BOOST) -> float:
    """Return an importance after a recall: it goes up by a share of what is missing to 1 (loki document).

    Args:
        boost: that share, 0 to 1.

    Raises:
        InvalidInput: boost is out of range.
    """
    if not 0 <= check_score(boost, "boost") <= 1:
        raise InvalidInput(f"boost must be a number from 0 to 1, not {shown(boost)}")
    return _clamped(importance + boost * (1 - importance))


def _number(value: object, otherwise: float) -> float:
    with suppress(InvalidInput):
        return check_score(value)
    return otherwise


def _clamped(worth: float) -> float:
    return min(1.0, max(0.0, worth))


def _names(name: object, task_type: str) -> bool:
    """Return whether one of two names stands in the other, at the beginning of a word."""
    one, other = (f" {' '.join(tokens(fold(str(text or ''))))}" for text in (name, task_type))
    return one != " " != other and (one in other or other in one)
