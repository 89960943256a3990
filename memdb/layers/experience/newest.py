"""The newest episodes within a time."""

from __future__ import annotations

from datetime import datetime

from memdb.layers import reading
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.stored import EPISODE
from memdb.layers.experience.stored_episodes import EPISODES, episode_of
from memdb.layers.reading import alive, here
from memdb.layers.record import Place
from memdb.storage.clock import to_text
from memdb.storage.schema import record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction

_WITHIN = Statement(
    EPISODES.select(here(), alive(), record.c.created_at >= param("since"), record.c.created_at <= param("until"))
    .order_by(record.c.created_at.desc(), record.c.id.desc())
    .limit(param("limit"))
)
_BEYOND = "9999-12-31T23:59:59.999999Z"  # no time is later


def newest(
    tx: Transaction, user_id: str, limit: int, since: datetime | None = None, until: datetime | None = None
) -> list[EpisodeTrace]:
    """Return a user's newest episodes that began within a time, the newest first.

    Args:
        limit: how many at most.
        since, until: aware times; both belong to it, to the microsecond. None for no beginning or no end.
    """
    rows = tx.all(
        _WITHIN,
        **Place(EPISODE, user_id).values(
            now=tx.now,
            limit=limit,
            since="" if since is None else to_text(since),
            until=_BEYOND if until is None else to_text(until),
        ),
    )
    return [*reading.shaped(tx, rows, episode_of, EPISODES)]
