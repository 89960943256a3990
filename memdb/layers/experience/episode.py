"""Episodes: what happened when an agent worked on a task (loki document, "Episodic")."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import field_validator

from memdb.errors import InvalidInput
from memdb.layers.experience import checks
from memdb.layers.experience.checks import Rule
from memdb.layers.experience.fields import Count, Entries, Figure, Moment, Seconds, Short, Texts, as_moment
from memdb.layers.experience.form import Experience, Key, as_text, as_texts
from memdb.layers.experience.parts import OUTCOMES, PHASES, ActionEntry, ErrorEntry, TaskContext, as_entries
from memdb.layers.models import Content
from memdb.storage.clock import to_text, utc_now

_CONTEXT = ("phase", "goal")  # what the JSON keeps under "context"


def new_episode_id(now: datetime, prefix: str = "ep") -> str:
    """Return a new id: ep-2026-11-30-1f0c9a7e, of the day in UTC and 32 random bits.

    Of 10,000 ids of one day two are the same in one case of a hundred.
    """
    return f"{prefix}-{to_text(now)[:10]}-{secrets.token_hex(4)}"


class EpisodeTrace(Experience):
    """What happened when an agent worked on a task (loki document, "Episodic").

    Args:
        id: any text of at most 1,000 characters; see `create`.
        task_id: the task's id.
        timestamp: when it began; without a zone it is UTC. None for when it is stored.
        duration_seconds: how long it took.
        agent: who worked.
        phase: REASON, ACT, REFLECT, VERIFY or "".
        goal: what was to be reached.
        action_log: what was done, in order.
        outcome: success, failure or partial.
        errors_encountered: errors, in order.
        artifacts_produced: paths of what was made.
        git_commit: the commit that holds the work.
        tokens_used: what it cost, in tokens.
        files_read: paths.
        files_modified: paths.
        importance: from 0 to 1.
        last_accessed: when it was last recalled.
        access_count: how often it was recalled.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("id", "id", as_text),
        Key("task_id", "task_id", as_text),
        Key("timestamp", "timestamp", if_set=True),
        Key("duration_seconds", "duration_seconds"),
        Key("agent", "agent", as_text),
        Key("phase", "context.phase", as_text),
        Key("goal", "context.goal", as_text),
        Key("action_log", "action_log", as_entries(ActionEntry)),
        Key("outcome", "outcome", as_text),
        Key("errors_encountered", "errors_encountered", as_entries(ErrorEntry)),
        Key("artifacts_produced", "artifacts_produced", as_texts),
        Key("git_commit", "git_commit", as_text),
        Key("tokens_used", "tokens_used"),
        Key("files_read", "files_read", as_texts),
        Key("files_modified", "files_modified", as_texts),
        Key("importance", "importance"),
        Key("access_count", "access_count"),
        Key("last_accessed", "last_accessed", if_set=True),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (
        checks.required("id", "task_id", "agent", "goal"),
        checks.one_of("phase", PHASES, may_be_empty=True),
        checks.one_of("outcome", OUTCOMES),
        checks.at_least_zero("duration_seconds", "tokens_used", "access_count"),
        checks.shares("importance"),
        checks.entries("action_log", ActionEntry),
        checks.entries("errors_encountered", ErrorEntry),
    )

    id: Short
    task_id: Short
    timestamp: Moment = None
    duration_seconds: Seconds = 0
    agent: Short
    phase: Short = ""
    goal: Content
    action_log: Annotated[list[ActionEntry], Entries] = []
    outcome: Short = "success"
    errors_encountered: Annotated[list[ErrorEntry], Entries] = []
    artifacts_produced: Texts = []
    git_commit: Short | None = None
    tokens_used: Count = 0
    files_read: Texts = []
    files_modified: Texts = []
    importance: Figure = 0.5
    last_accessed: Moment = None
    access_count: Count = 0

    @classmethod
    def create(
        cls,
        task_id: str,
        agent: str,
        goal: str,
        phase: str = "ACT",
        id_prefix: str = "ep",
        *,
        now: datetime | None = None,
    ) -> Self:
        """Return a new episode that begins now, under a new id such as ep-2026-11-30-1f0c9a7e.

        It knows no database: by default its time and the day in its id are those of the system's clock, not of the
        clock that memdb.open() was given. With a clock of your own pass `now`, or leave the time to the store: an
        episode without a timestamp gets the database's present time.

        Args:
            now: the present time with its zone; by default the system's.

        Raises:
            InvalidInput: an argument cannot be stored.
        """
        began = as_moment(now) or utc_now()
        id = new_episode_id(began, id_prefix)
        return cls(id=id, task_id=task_id, timestamp=began, agent=agent, phase=phase, goal=goal)

    @field_validator("extra")
    @classmethod
    def _context_in_extra(cls, value: dict[str, Any]) -> dict[str, Any]:
        context = value.get("context", {})
        if not isinstance(context, dict) or not context.keys().isdisjoint(_CONTEXT):
            raise InvalidInput("its context must be a dict without phase and goal, which are fields")
        _paths(context.get("files_involved"), "its context.files_involved")
        return value

    @property
    def context(self) -> TaskContext:
        """What the task was about; its constraints are those that the JSON had."""
        constraints = self.extra.get("context", {}).get("constraints")
        texts = [one for one in constraints if isinstance(one, str)] if isinstance(constraints, list) else []
        return TaskContext(goal=self.goal, phase=self.phase, files=self._files(), constraints=texts)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, now: datetime | None = None) -> Self:
        """Return what a dict in the document's form says; see Experience.from_dict.

        Args:
            data: JSON. Without files_read, files_involved of its context are taken for them.
            now: what stands in for a missing timestamp; by default the system clock's present time.

        Raises:
            InvalidInput: a value cannot be what it must be, or cannot be stored.
        """
        trace = super().from_dict(_flat(data) if isinstance(data, Mapping) else data)
        if trace.timestamp is None:
            trace.timestamp = now or utc_now()
        return trace

    def to_dict(self) -> dict[str, Any]:
        """Return the document's form of it, fit for JSON; files_involved are all files, in the order first named."""
        form = super().to_dict()
        context = {
            "phase": form.pop("context.phase"),
            "goal": form.pop("context.goal"),
            "files_involved": self._files(),
        }
        return form | {"context": form.get("context", {}) | context}

    def _files(self) -> list[str]:
        others = self.extra.get("context", {}).get("files_involved", [])
        return list(dict.fromkeys([*self.files_read, *self.files_modified, *others]))


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an episode's JSON with what the context says of its fields beside the others."""
    context = data.get("context")
    if isinstance(context, TaskContext):
        context = context.to_dict()
    if context is None:
        return dict(data)
    if not isinstance(context, Mapping):
        raise InvalidInput(f"EpisodeTrace.context: it must be a dict, not {type(context).__name__}")
    flat, rest = dict(data), dict(context)
    del flat["context"]
    for name in _CONTEXT:
        if (value := rest.pop(name, None)) is not None:
            flat[f"context.{name}"] = value
    involved = _paths(
        rest.pop("files_involved", None) or rest.pop("files", None), "EpisodeTrace.context.files_involved"
    )
    if flat.get("files_read") is None:
        flat["files_read"] = involved
    else:
        known = {
            path for name in ("files_read", "files_modified") for path in _paths(flat.get(name), f"EpisodeTrace.{name}")
        }
        if others := [path for path in involved if path not in known]:
            rest["files_involved"] = others
    return flat | {"context": rest} if rest else flat


def _paths(value: object, name: str) -> list[str]:
    try:
        return [] if value is None else as_texts(value)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None
