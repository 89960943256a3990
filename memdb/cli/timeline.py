"""timeline: what the agent worked on, the newest first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.layers.experience.episode import EpisodeTrace

MAX_GOAL_CHARS = 100  # of a goal in a table (loki document, "Index and timeline")


def timeline(
    file: File,
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most, the newest.")] = 50,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what began then or later: 2026-11-30, ISO 8601.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only what began then or before; of a day, its end.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the episodes of a user, the newest first: when, how it ended, in which phase, who, and for what.

    Times without a zone are UTC. In a pipe the columns are separated by tabs. --json prints goals whole, with the ids.
    Looking does not count as recall.

    Example: memdb timeline agent.db --since 2026-11-01 --limit 20
    """
    begin, end = _moment(since, "--since"), _moment(until, "--until", whole_day=True)
    found = run(_read(file, user, limit, begin, end))
    if as_json:
        output.emit([_as_data(trace) for trace in found])
    if not found:
        where = " in that time" if begin or end else " of that user" if user else " yet"
        output.nothing(f"{file} holds no episodes{where}")
    if not as_json:
        output.table(("time", "outcome", "phase", "agent", "goal"), [_row(trace) for trace in found])


async def _read(
    file: str, user: str | None, limit: int, since: datetime | None, until: datetime | None
) -> list[EpisodeTrace]:
    async with opened(file) as db:
        from memdb.layers.experience.newest import newest

        owner = await owner_of(db, file, user)
        return [] if owner is None else await db.read(newest, owner, limit, since, until)


def _moment(text: str | None, option: str, *, whole_day: bool = False) -> datetime | None:
    """Return a time that was given: of a day its beginning, or its end."""
    if text is None:
        return None
    from memdb.layers.experience.fields import as_moment
    from memdb.storage.clock import to_text

    try:
        moment = as_moment(text)
        if moment is not None:
            to_text(moment)  # which refuses what lies beyond all years
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}") from None
    if moment is None:
        raise InvalidInput(f"{option} is empty; give a time, such as 2026-11-30")
    is_day = len(text.strip()) == len("2026-11-30")
    return moment.replace(hour=23, minute=59, second=59, microsecond=999_999) if whole_day and is_day else moment


def _row(trace: EpisodeTrace) -> tuple[str, ...]:
    goal = output.one_line(trace.goal)
    goal = goal if len(goal) <= MAX_GOAL_CHARS else f"{goal[: MAX_GOAL_CHARS - 1]}…"
    return _time(trace), trace.outcome, trace.phase, trace.agent, goal


def _time(trace: EpisodeTrace) -> str:
    return "" if trace.timestamp is None else f"{trace.timestamp:%Y-%m-%d %H:%M}"


def _as_data(trace: EpisodeTrace) -> dict[str, Any]:
    from memdb.storage.clock import to_text

    return {
        "id": trace.id,
        "timestamp": None if trace.timestamp is None else to_text(trace.timestamp),
        "outcome": trace.outcome,
        "phase": trace.phase,
        "agent": trace.agent,
        "task_id": trace.task_id,
        "goal": trace.goal,
        "duration_seconds": trace.duration_seconds,
        "tokens_used": trace.tokens_used,
    }
