"""How an episode lies in its record, and how many are stored at once; over a transaction."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import case, func, or_, select, true

from memdb.errors import SerializationError
from memdb.layers import records
from memdb.layers.experience.episode import EpisodeTrace, new_episode_id
from memdb.layers.experience.stored import (
    EPISODE,
    IDENTITY,
    OF_ROW,
    ROW,
    Beside,
    ExperienceColumns,
    Worth,
    as_said,
    as_titled,
    experience_row,
    form_of,
    weigh,
)
from memdb.layers.record import Place, Record
from memdb.storage.clock import from_text
from memdb.storage.schema import episode, record
from memdb.storage.statement import Statement, insert, json_field, param
from memdb.storage.transaction import Transaction

EPISODES = ExperienceColumns(episode)
_OWN = ("task_id", "agent", "outcome", "duration_seconds", "tokens_used", "git_commit")
_WRITTEN = [column.name for column in record.c if column.name not in ("id", "seg_revision")]
_RANDOM = 8  # hexadecimal digits at the end of an id that was drawn
_DRAWN = re.compile(r".*-\d{4}-\d\d-\d\d-[0-9a-f]{8}", re.ASCII | re.DOTALL)
_ENTRY = re.compile(r"(\w+)\[(\d+)\]")  # where in a list a problem is
_logged: set[str] = set()  # the kinds of problems that were told
log = logging.getLogger("memdb")
_DRAWN_GLOB = f"*-{'[0-9]' * 4}-{'[0-9]' * 2}-{'[0-9]' * 2}-{'[0-9a-f]' * _RANDOM}"


def _upsert(statement: Any) -> Any:
    """Make an insert replace the same episode, and leave alone another one that happens to have its id."""
    new = statement.excluded
    changed = {name: new[name] for name in _WRITTEN if name not in IDENTITY}
    changed["seg_revision"] = record.c.seg_revision + 1
    tasks = [
        case((func.json_valid(column.metadata), func.json_extract(column.metadata, "$.task_id")))
        for column in (record.c, new)
    ]
    same = or_(
        record.c.created_at == new.created_at,
        new.key.op("NOT GLOB")(_DRAWN_GLOB),
        tasks[0] == tasks[1],
    )
    return statement.on_conflict_do_update(index_elements=IDENTITY, set_=changed, where=same)


_ONE = insert(record).values({**{name: param(name) for name in _WRITTEN}, "seg_revision": 1})
_EACH = insert(record).from_select(
    [*_WRITTEN, "seg_revision"],
    select(*(json_field(ROW, name).label(name) for name in _WRITTEN), func.abs(1)).where(true()),
)
_PUT = Statement(_upsert(_ONE))
_PUT_EACH = Statement(_upsert(_EACH))
_TAKEN = Statement(
    select(record.c.user_id, record.c.key).where(*OF_ROW, record.c.created_at != json_field(ROW, "created_at"))
)
_BESIDE = Beside(episode, _OWN)


def as_episode(given: Any, now: str) -> EpisodeTrace:
    """Return what any form of an episode says, with an id and a time; what `validate()` finds is logged, once a kind.

    Args:
        given: an EpisodeTrace, the document's dict, or an object with `to_dict` or `__dict__`.
        now: the present time in the stored text form: what one without a time gets.

    Raises:
        InvalidInput: it is none of these, or says what cannot be.
    """
    present = from_text(now)
    if isinstance(given, Mapping):
        trace = EpisodeTrace.from_dict(given, now=present)
    elif not isinstance(given, EpisodeTrace) and callable(make := getattr(given, "to_dict", None)):
        trace = EpisodeTrace.from_dict(make(), now=present)
    elif not isinstance(given, EpisodeTrace | str | bytes) and hasattr(given, "__dict__"):
        trace = EpisodeTrace.from_dict(vars(given), now=present)
    else:
        trace = EpisodeTrace.from_object(given)
    missing: dict[str, Any] = {} if trace.timestamp else {"timestamp": present}
    if not trace.id:
        missing["id"] = new_episode_id(trace.timestamp or present)
    trace = trace.model_copy(update=missing) if missing else trace
    _log_problems(trace)
    return trace


def _log_problems(trace: EpisodeTrace) -> None:
    """Say what is wrong with an episode that is stored all the same; of each kind the first, not every episode's."""
    for problem in trace.validate():
        kind = _ENTRY.sub(r"\1", problem)
        if kind in _logged:
            continue
        _logged.add(kind)
        entry = _ENTRY.match(problem)
        unknown = getattr(trace, entry[1])[int(entry[2])].extra if entry else {}
        keys = f" (its {', '.join(map(repr, unknown))} is unknown, and kept as it is)" if unknown else ""
        log.warning("an episode is stored as it is, but %s%s; others like it are not told", problem, keys)


def episode_row(user_id: str, trace: EpisodeTrace, now: str) -> dict[str, Any]:
    """Return an episode's columns of `record`, `episode` and `recall`."""
    actions = (f"{one.tool} {as_said(one.input)} {as_said(one.output)}".strip() for one in trace.action_log)
    errors = (f"{one.error_type}: {one.message} {one.resolution}".strip() for one in trace.errors_encountered)
    files = dict.fromkeys((*trace.files_read, *trace.files_modified, *trace.artifacts_produced))
    columns = experience_row(
        Place(EPISODE, user_id),
        trace,
        now,
        title=trace.goal,
        said=(*actions, *errors, trace.outcome, *files),
        category=trace.phase or None,
        created_at=trace.timestamp,
    )
    return columns | {name: getattr(trace, name) for name in _OWN}


def episode_of(
    found: Record,
    task_id: str | None,
    agent: str,
    outcome: str,
    duration_seconds: float,
    tokens_used: int,
    git_commit: str | None,
    *worth: Any,
) -> EpisodeTrace:
    """Return an episode of what was read: the shape of a row of the columns EPISODES."""
    if task_id is None:
        raise SerializationError("it has no row in the table episode")
    form = form_of(
        found,
        Worth(*worth),
        task_id=task_id,
        agent=agent,
        outcome=outcome,
        tokens_used=tokens_used,
        timestamp=found.created_at,
    )
    if duration_seconds != _as_float(form.get("duration_seconds")):
        form["duration_seconds"] = duration_seconds
    form["git_commit"] = git_commit
    context = form.get("context")
    context = context if isinstance(context, dict) else {}
    context["goal"] = as_titled(found.title, context.get("goal"))
    context["phase"] = found.category or ""
    return EpisodeTrace.from_dict(form | {"context": context})


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def put_episodes(tx: Transaction, given: Sequence[tuple[str, EpisodeTrace]]) -> list[str]:
    """Store episodes; one that is there under the same id is replaced, and keeps its recalls.

    An id that was drawn, such as ep-2026-11-30-1f0c9a7e, has only 32 random bits. Where an episode of another task and
    another time has it already, the new one gets another.

    Args:
        given: users, and their episodes with ids and times. Of two that are the same the later stays.

    Returns:
        Their ids, in the order given.
    """
    ids = [trace.id for _, trace in given]
    waiting = [_Waiting([at], *one) for at, one in enumerate(given)]
    while waiting:
        chosen: dict[tuple[str, str], _Waiting] = {}
        apart = []
        for one in waiting:
            known = chosen.get(one.identity)
            if known is None:
                chosen[one.identity] = one
            elif _is_another(known.trace, one.trace):
                apart.append(one)
            else:
                known.places.extend(one.places)
                chosen[one.identity] = known._replace(trace=one.trace)
        waiting = _settled(tx, chosen, ids)
        for one in apart:  # after the others: it may be the one that was there before
            waiting += _settled(tx, {one.identity: one}, ids)
    return ids


class _Waiting(NamedTuple):
    """An episode that is to be stored, and the places in the answer where its id belongs."""

    places: list[int]
    user_id: str
    trace: EpisodeTrace

    @property
    def identity(self) -> tuple[str, str]:
        return self.user_id, self.trace.id


def _settled(tx: Transaction, chosen: Mapping[tuple[str, str], _Waiting], ids: list[str]) -> list[_Waiting]:
    """Store episodes, note their ids, and return those whose ids are taken by others under another id."""
    taken = _put(tx, {identity: one.trace for identity, one in chosen.items()})
    again = [chosen[identity]._replace(trace=_drawn_again(chosen[identity].trace)) for identity in taken]
    for identity, one in chosen.items():
        for place in one.places:
            ids[place] = identity[1]
    return again


def _put(tx: Transaction, chosen: Mapping[tuple[str, str], EpisodeTrace]) -> list[tuple[str, str]]:
    """Store episodes and return the users and ids of those whose ids are taken by others."""
    rows = [episode_row(user_id, trace, tx.now) for (user_id, _), trace in chosen.items()]
    taken: set[tuple[str, str]] = set()
    for at in range(0, len(rows), records.BULK_ROWS):
        part = rows[at : at + records.BULK_ROWS]
        if len(part) == 1:
            refused = part if tx.put(_PUT, part[0]) == 0 else []
            found = {(one["user_id"], one["key"]) for one in refused}
        else:
            text = json.dumps(part, ensure_ascii=False)
            found = {*map(tuple, tx.all(_TAKEN, rows=text))} if tx.run(_PUT_EACH, rows=text) < len(part) else set()
        stored = [one for one in part if (one["user_id"], one["key"]) not in found] if found else part
        few = (*IDENTITY, *_OWN)
        _BESIDE.put(tx, stored if len(stored) == 1 else [{name: one[name] for name in few} for one in stored])
        weigh(tx, stored)
        taken |= found
    return [identity for identity in chosen if identity in taken]


def _is_another(known: EpisodeTrace, trace: EpisodeTrace) -> bool:
    """Whether an id that was drawn is taken by an episode of another task and another time."""
    return (
        known.task_id != trace.task_id and known.timestamp != trace.timestamp and _DRAWN.fullmatch(trace.id) is not None
    )


def _drawn_again(trace: EpisodeTrace) -> EpisodeTrace:
    """Return an episode with another id, the same each time: who stores it again meets what was stored."""
    told = f"{trace.id} {trace.task_id} {trace.timestamp}"
    return trace.model_copy(update={"id": f"{trace.id[:-_RANDOM]}{sha256(told.encode()).hexdigest()[:_RANDOM]}"})
