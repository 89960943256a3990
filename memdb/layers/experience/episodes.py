"""Episodes of one user: the EpisodicMemory of the loki document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement

from memdb.errors import InvalidInput, SerializationError
from memdb.layers import reading, records
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_query
from memdb.layers.experience import cleanup
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.fields import as_moment
from memdb.layers.experience.stored import EPISODE, RecalledExperience
from memdb.layers.experience.stored_episodes import EPISODES, as_episode, episode_of, put_episodes
from memdb.layers.layer import Live, Mode, reads, writes
from memdb.layers.reading import alive, here
from memdb.layers.record import Place, Record
from memdb.storage import fulltext
from memdb.storage.clock import to_text
from memdb.storage.engine import Engine
from memdb.storage.schema import record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.query import parse

TIMELINE_LENGTH = 50  # loki document, "Index and timeline"
ACTION_CHARS = 100
GENERAL = "general"  # the topic of an episode without a phase


class ScoredEpisode(NamedTuple):
    """An episode that a search found.

    Args:
        episode: the episode.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
    """

    episode: EpisodeTrace
    score: float


class TimelineEntry(NamedTuple):
    """An episode's line in the timeline (loki document, "Index and timeline").

    Args:
        timestamp: when it began.
        action: the first 100 characters of its goal.
        outcome: success, failure or partial.
        topic_id: its phase, or "general".
        agent: who worked.
        task_id: the task's id.
        id: its id.
    """

    timestamp: datetime
    action: str
    outcome: str
    topic_id: str
    agent: str
    task_id: str
    id: str


def _listed(*conditions: ColumnElement[bool], newest_first: bool) -> Statement:
    order = [record.c.created_at, record.c.id]
    chosen = EPISODES.select(here(), alive(), *conditions)
    return Statement(
        chosen.order_by(*([column.desc() for column in order] if newest_first else order)).limit(param("limit"))
    )


_RECENT = _listed(newest_first=True)
_SINCE = record.c.created_at >= param("since")
_BETWEEN = _listed(_SINCE, record.c.created_at <= param("until"), newest_first=False)
_FROM = _listed(_SINCE, newest_first=False)


def recent(tx: Transaction, user_id: str, limit: int) -> list[EpisodeTrace]:
    """Return a user's newest episodes, the newest first."""
    return [*reading.shaped(tx, _newest(tx, user_id, limit), episode_of, EPISODES)]


def between(
    tx: Transaction, user_id: str, since: datetime, until: datetime | None = None, limit: int | None = None
) -> list[EpisodeTrace]:
    """Return a user's episodes that began within a time, oldest first.

    Args:
        since, until: both belong to it, to the microsecond; None for no end.
        limit: how many at most; None for all.
    """
    return [*reading.shaped(tx, _within(tx, user_id, since, until, limit), episode_of, EPISODES)]


def scored(tx: Transaction, user_id: str, query: str, k: int) -> list[tuple[EpisodeTrace, float]]:
    """Return a user's episodes that match a query best, with their BM25 scores; ties in the order of storing."""
    within = Place(EPISODE, user_id).within()
    scores = dict(fulltext.search(tx, parse(check_query(query)), within, check_limit(k, "top_k")))
    return reading.ranked(tx, user_id, scores, episode_of, EPISODES)


def timeline(tx: Transaction, user_id: str, limit: int = TIMELINE_LENGTH) -> list[TimelineEntry]:
    """Return the lines of a user's newest episodes, the newest first."""
    return [*reading.shaped(tx, _newest(tx, user_id, limit), _entry, EPISODES)]


class EpisodicMemory(RecalledExperience[Mode]):
    """What an agent has been through (loki document, "Episodic"); an episode belongs to the user, in no session."""

    @property
    def _place(self) -> Place:
        return Place.of(EPISODE, self.scope)

    @writes
    def store(self, tx: Transaction, trace: Any) -> str:
        """Store an episode, or replace the one of the same id (loki document, store_episode).

        One that is replaced keeps how often it was recalled, and its importance unless the new one is given one. It
        stands once in the timeline. An id with 32 random bits, as EpisodeTrace.create makes them, that an episode of
        another task and another time has already, is drawn again: go by the id that is returned.

        Args:
            trace: an EpisodeTrace, its dict, or an object with `to_dict` or `__dict__`. Without an id it gets a new
                one, without a timestamp the present time. What `validate()` would find is stored all the same.

        Returns:
            Its id.

        Raises:
            InvalidInput: it is none of these, or says what cannot be stored.
        """
        return put_episodes(tx, [(self.scope.user_id, as_episode(trace, tx.now))])[0]

    @store.together
    @staticmethod
    def _store_together(tx: Transaction, calls: Sequence[tuple[EpisodicMemory[Any], Any]]) -> list[str]:
        return put_episodes(tx, [(store.scope.user_id, as_episode(trace, tx.now)) for store, trace in calls])

    @writes
    def store_many(self, tx: Transaction, traces: Iterable[Any]) -> list[str]:
        """Store many episodes at once, all or none; see `store`. Of two with one id the later stays.

        Args:
            traces: at most 100,000.

        Returns:
            Their ids, in the order given.

        Raises:
            InvalidInput: one is not what it must be, or there are too many; nothing was stored.
        """
        given = [as_episode(trace, tx.now) for trace in check_bulk(traces, "traces")]
        return put_episodes(tx, [(self.scope.user_id, trace) for trace in given])

    @reads
    def get(self, tx: Transaction, episode_id: str) -> EpisodeTrace | None:
        """Return the episode with this id, or None. Recalls that are not written yet are not in its access_count."""
        return reading.get(tx, self._place, check_key(episode_id, "episode_id"), episode_of, EPISODES)

    @reads
    def get_recent(self, tx: Transaction, limit: int = 10) -> list[EpisodeTrace]:
        """Return the newest episodes by their timestamps, the newest first; of one time, the last stored first.

        Args:
            limit: how many at most, 0 to 10,000.
        """
        return recent(tx, self.scope.user_id, check_limit(limit))

    @reads
    def search(self, tx: Transaction, query: str, top_k: int = 5) -> list[ScoredEpisode]:
        """Return the episodes that match a query best, by their goals, actions, errors, outcomes and files.

        Args:
            query: any text in any language; words in double quotes are a phrase.
            top_k: how many at most, 0 to 10,000.

        Returns:
            Best first, ties in the order of their first storing; empty when nothing matches.
        """
        return [ScoredEpisode(*hit) for hit in scored(tx, self.scope.user_id, query, top_k)]

    @reads
    def get_by_date_range(
        self, tx: Transaction, since: datetime | str, until: datetime | str | None = None
    ) -> list[EpisodeTrace]:
        """Return the episodes that began within a time, oldest first.

        Args:
            since: from then on, to the microsecond; a time without a zone, or ISO 8601 without one, is UTC.
            until: up to then, which belongs to it; None for no end.

        Raises:
            InvalidInput: one is no time.
        """
        end = None if until is None else _time(until, "until")
        return between(tx, self.scope.user_id, _time(since, "since"), end)

    @reads
    def timeline(self, tx: Transaction, limit: int = TIMELINE_LENGTH) -> list[TimelineEntry]:
        """Return the lines of the newest episodes, the newest first (loki document, "Index and timeline").

        Args:
            limit: how many at most, 0 to 10,000.
        """
        return timeline(tx, self.scope.user_id, check_limit(limit))

    @writes
    def delete(self, tx: Transaction, episode_id: str) -> bool:
        """Delete an episode and all that belongs to it. Returns whether it was there."""
        return records.remove(tx, self._place, check_key(episode_id, "episode_id"))

    async def cleanup_old(self: EpisodicMemory[Live], days: float = 30, *, at_once: int = cleanup.AT_ONCE) -> int:
        """Delete episodes that began more than some days ago, but those that a pattern or a skill refers to.

        Patterns refer to the episodes that taught them: after a consolidation most of those that it has seen stay.
        What belongs to them goes with them: index, timeline, vectors, recalls. It takes as many transactions as it
        needs, each of at most `at_once` episodes, so that others read and write meanwhile; when it is cancelled, what
        is gone is gone. Inside an atomic unit, use `cleanup_some`.

        Args:
            days: at least 0; with 0 all that began before now go.
            at_once: how many episodes a transaction looks at, 1 to 10,000.

        Returns:
            How many went.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        if not isinstance(self._home, Engine):
            raise InvalidInput("cleanup_old takes several transactions, which a unit is not: use cleanup_some() here")
        until, step = cleanup.limits(days, self._home.clock.text(), at_once)
        place, gone = self._place, 0
        after: cleanup.Position | None = cleanup.START
        while after is not None:
            cleaned = await self._home.write(cleanup.step, place, until, after, step)
            gone, after = gone + cleaned.gone, cleaned.after
        return gone

    @writes
    def cleanup_some(self, tx: Transaction, days: float = 30, limit: int = cleanup.AT_ONCE) -> int:
        """Delete the oldest of what `cleanup_old` deletes, in this one transaction.

        Args:
            days: at least 0.
            limit: how many at most, 1 to 10,000.

        Returns:
            How many went; fewer than `limit` when no more are so old.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        until, most = cleanup.limits(days, tx.now, limit, "limit")
        gone = 0
        after: cleanup.Position | None = cleanup.START
        while after is not None and gone < most:
            cleaned = cleanup.step(tx, self._place, until, after, cleanup.AT_ONCE, most - gone)
            gone, after = gone + cleaned.gone, cleaned.after
        return gone


def _newest(tx: Transaction, user_id: str, limit: int) -> list[Row]:
    return tx.all(_RECENT, **Place(EPISODE, user_id).values(now=tx.now, limit=limit))


def _within(tx: Transaction, user_id: str, since: datetime, until: datetime | None, limit: int | None) -> Iterator[Row]:
    values = Place(EPISODE, user_id).values(now=tx.now, since=to_text(since), limit=-1 if limit is None else limit)
    if until is None:
        return iter(tx.all(_FROM, **values))
    return iter(tx.all(_BETWEEN, **values, until=to_text(until)))


def _time(value: object, name: str) -> datetime:
    try:
        moment = as_moment(value)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None
    if moment is None:
        raise InvalidInput(f"{name} is missing; give a time, such as 2026-11-30T09:00:00Z")
    return moment


def _entry(found: Record, task_id: str | None, agent: str, outcome: str, *_: Any) -> TimelineEntry:
    if task_id is None:
        raise SerializationError("it has no row in the table episode")
    return TimelineEntry(
        timestamp=found.created,
        action=found.title[:ACTION_CHARS],
        outcome=outcome,
        topic_id=found.category or GENERAL,
        agent=agent,
        task_id=task_id,
        id=found.key,
    )
