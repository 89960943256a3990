"""Consolidation of what is stored (loki document, ConsolidationPipeline): read, think, and only then write."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any

from sqlalchemy import bindparam, func, select, tuple_

from memdb.errors import Busy, InvalidInput
from memdb.layers import reading
from memdb.layers.arguments import check_score
from memdb.layers.experience import found_patterns
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry, ErrorEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.stored import EPISODE, PATTERN
from memdb.layers.experience.stored_episodes import EPISODES, episode_of
from memdb.layers.experience.stored_patterns import PATTERNS, Given, pattern_of, put_patterns
from memdb.layers.record import Place, Record
from memdb.retrieval.experience.consolidating import Consolidated, ConsolidationResult, consolidated
from memdb.storage.clock import from_text, to_text
from memdb.storage.engine import Engine
from memdb.storage.schema import record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.shown import shown

TRIES = 3
MAX_EPISODES = 20_000  # of a run, the newest: what is kept of them takes some 60 MB
PAGE = 500  # episodes of one read
PAGE_CHARS = 8_000_000  # of their JSON, if there are several
GOAL_CHARS = 2_000  # of what is kept of one; actions are kept by their tools, errors by their types and resolutions
MAX_ACTIONS = 200
_FIRST = datetime.min.replace(tzinfo=UTC)

_STATE = """
SELECT count(*), total(seg_revision), max(id), max(updated_at) FROM record
 WHERE user_id = :user_id AND layer = 'pattern' AND session_id = ''
"""
# Sizes first: an episode may be 16 MB long.
_SIZES = Statement(
    select(record.c.created_at, record.c.id, func.length(record.c.metadata))
    .where(
        reading.here(),
        record.c.created_at >= param("since"),
        tuple_(record.c.created_at, record.c.id) < tuple_(param("before"), bindparam("before_id")),
    )
    .order_by(record.c.created_at.desc(), record.c.id.desc())
    .limit(param("limit"))
)
_AFTER_ALL = ("~", 0)  # above every time in the stored text form

Cursor = tuple[str, int]


async def consolidate(engine: Engine, user_id: str, since_hours: float) -> ConsolidationResult:
    """Make patterns of a user's episodes of some hours, and store them; see MemoryEngine.consolidate.

    Args:
        since_hours: how far back, in hours before the database's present time. Episodes that began before that are not
            looked at: a first run over a history of two months needs 24 * 60.
    """
    began = time.monotonic()
    hours = check_score(since_hours, "since_hours")
    if hours < 0:
        raise InvalidInput(f"since_hours must be at least 0, not {shown(since_hours)}")
    lived = await _lived(engine, user_id, hours)
    for _ in range(TRIES):
        state, known = await engine.read(_known, user_id)
        think: Callable[[], Consolidated] = partial(consolidated, lived, known)
        found = await asyncio.get_running_loop().run_in_executor(None, think)
        nothing_new = not found.created and not found.changed
        if nothing_new or await engine.write(_store, user_id, found, state):
            return replace(found.result, duration_seconds=time.monotonic() - began)
    raise Busy(
        f"others changed the patterns of {user_id!r} {TRIES} times while they were consolidated; nothing was stored: "
        "call consolidate again"
    )


async def _lived(engine: Engine, user_id: str, hours: float) -> list[EpisodeTrace]:
    """Return the episodes of so many hours, what of them is compared, the newest MAX_EPISODES."""
    now = from_text(engine.clock.text())
    try:
        since = now - timedelta(hours=hours)
    except OverflowError:
        since = _FIRST
    found: list[EpisodeTrace] = []
    before: Cursor | None = _AFTER_ALL
    while before is not None and len(found) < MAX_EPISODES:
        page, before = await engine.read(_page, user_id, to_text(since), before)
        found += page
    return found[:MAX_EPISODES]


def _page(tx: Transaction, user_id: str, since: str, before: Cursor) -> tuple[list[EpisodeTrace], Cursor | None]:
    """Return the next older episodes, and where to go on; None when there are no more."""
    values = Place(EPISODE, user_id).values(since=since, before=before[0], before_id=before[1], limit=PAGE)
    sizes = tx.all(_SIZES, **values)
    fitting = max(1, bisect_right([*accumulate(chars or 0 for *_, chars in sizes)], PAGE_CHARS))
    order = {number: at for at, (_, number, _) in enumerate(sizes[:fitting])}
    rows = sorted(reading.by_ids(tx, user_id, order, EPISODES), key=lambda row: order[row[0]])
    is_last = len(sizes) < PAGE and fitting >= len(sizes)
    return [*reading.shaped(tx, rows, _slim, EPISODES)], None if is_last else sizes[fitting - 1][:2]


def _slim(found: Record, *own: Any) -> EpisodeTrace:
    """Return what of an episode is compared: without what tools were given and gave."""
    trace = episode_of(found, *own)
    return trace.model_copy(
        update={
            "goal": trace.goal[:GOAL_CHARS],
            "action_log": [_used(one.tool) for one in trace.action_log[:MAX_ACTIONS]],
            "errors_encountered": [
                ErrorEntry(error_type=one.error_type, message="", resolution=one.resolution[:GOAL_CHARS])
                for one in trace.errors_encountered
            ],
            "artifacts_produced": [],
            "extra": {},
        }
    )


@lru_cache(maxsize=1_000)
def _used(tool: str) -> ActionEntry:
    """Return that a tool was used: one entry for all episodes, which nothing changes."""
    return ActionEntry(tool=tool)


def _known(tx: Transaction, user_id: str) -> tuple[tuple[Any, ...], list[SemanticPattern]]:
    return _state(tx, user_id), found_patterns.all_of(tx, user_id)


def _state(tx: Transaction, user_id: str) -> tuple[Any, ...]:
    """Return what changes whenever somebody writes a pattern; counting their uses does not."""
    return tx.rows(_STATE, {"user_id": user_id})[0]


def _store(tx: Transaction, user_id: str, found: Consolidated, state: tuple[Any, ...]) -> bool:
    """Store what was found, unless the patterns are not those any more that it was compared with."""
    if _state(tx, user_id) != state:
        return False
    changed = [_as_recalled(tx, user_id, pattern) for pattern in found.changed]
    put_patterns(tx, [Given(user_id, pattern) for pattern in (*found.created, *changed)])
    return True


def _as_recalled(tx: Transaction, user_id: str, pattern: SemanticPattern) -> SemanticPattern:
    """Return a pattern as important as recalls have made it since it was read; counts never go down by storing."""
    now = reading.get(tx, Place(PATTERN, user_id), pattern.id, pattern_of, PATTERNS)
    importance = pattern.importance if now is None else max(now.importance, pattern.importance)
    return pattern.model_copy(update={"importance": importance})
