"""L2, plans and checkpoints: how far runs have come (local-ai document, "L0 agent state and L2 checkpoints")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import BeforeValidator

from memdb.errors import MissingFile
from memdb.layers.arguments import check_limit, check_range
from memdb.layers.json_values import check_exact_json
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.models import Instant, Model
from memdb.layers.runtime import saves
from memdb.layers.runtime.envelope import check_file_id, envelope
from memdb.layers.runtime.saves import STATUSES, CheckpointStatus, Save, check_object, check_status
from memdb.layers.unreadable import finds
from memdb.storage.clock import from_text
from memdb.storage.transaction import Transaction

__all__ = ["STATUSES", "AgentCheckpoint", "CheckpointLayer", "CheckpointStatus"]

MAX_KEPT_SAVES = 1_000_000


def _payload(value: object) -> object:
    check_exact_json(check_object(value), "the payload")
    return value


class AgentCheckpoint(Model):
    """How far a run of an agent has come (local-ai document, "L0 agent state and L2 checkpoints").

    Args:
        id: the run's id: 1 to 200 characters of A-Z, a-z, 0-9, _ and -.
        status: "in_progress" (under way, or ended without a word: it may be resumed), "completed", "interrupted" (told
            to stop: it may be resumed), or None for what save_plan stored.
        payload: what is needed to go on from here: a dict of JSON values, at most 16 MB, kept exactly.
        seq: its place among the saves under the id, from 1; given by memdb.
        saved_at: when it was saved, in UTC; given by memdb.
    """

    id: Annotated[str, BeforeValidator(check_file_id)]
    status: Annotated[CheckpointStatus | None, BeforeValidator(check_status)] = None
    payload: Annotated[dict[str, Any], BeforeValidator(_payload)] = {}
    seq: int | None = None
    saved_at: Instant = None


class CheckpointLayer(Layer[Mode]):
    """The plans and checkpoints of one session. Each save is kept; those before the newest are the id's history."""

    @writes
    def save_plan(self, tx: Transaction, id: str, payload: dict[str, Any]) -> int:
        """Save a plan: a checkpoint without a status. Plans and checkpoints share their ids.

        Args:
            id: 1 to 200 characters of A-Z, a-z, 0-9, _ and -.
            payload: a dict of JSON values, at most 16 MB, kept exactly.

        Returns:
            Its place among the saves under the id, from 1.

        Raises:
            InvalidInput: the id or the payload is not what it must be.
        """
        return saves.add(tx, self.scope, id, None, payload)

    @finds
    def load_plan(self, tx: Transaction, id: str) -> dict[str, Any]:
        """Return the payload of the newest save under an id, whatever its status.

        Raises:
            MissingFile: there is none; it is a FileNotFoundError, as the document says.
            InvalidInput: the id could not be one.
        """
        found = saves.newest(tx, self.scope, check_file_id(id))
        if found is None:
            raise MissingFile(
                f"there is no plan or checkpoint {id!r} of user {self.scope.user_id!r} in session "
                f"{self.scope.session_id!r}; save one with save_plan or save_checkpoint"
            )
        return found.payload

    @reads
    def plan_envelope(self, tx: Transaction, id: str) -> dict[str, Any] | None:
        """Return the newest save under an id as the document lays out its file, or None when there is none.

        Returns:
            {"format_version": 1, "id": ..., "saved_at": seconds since 1970, "payload": {...}}.
        """
        found = saves.newest(tx, self.scope, check_file_id(id))
        return None if found is None else envelope(found.id, found.saved_at, found.payload)

    @writes
    def save_checkpoint(self, tx: Transaction, checkpoint: AgentCheckpoint) -> int:
        """Save a checkpoint; the earlier ones under its id become its history. seq and saved_at are not looked at.

        Returns:
            Its place among the saves under the id, from 1.

        Raises:
            InvalidInput: it is not what it must be.
        """
        return saves.add_many(tx, [(self.scope, *_fields(checkpoint))])[0]

    @save_checkpoint.together
    @staticmethod
    def _save_together(tx: Transaction, calls: Sequence[tuple[CheckpointLayer[Any], AgentCheckpoint]]) -> list[int]:
        return saves.add_many(tx, [(layer.scope, *_fields(checkpoint)) for layer, checkpoint in calls])

    @reads
    def latest_checkpoint(self, tx: Transaction, status: CheckpointStatus | None = None) -> AgentCheckpoint | None:
        """Return the newest of the checkpoints as they stand, each by the last save under its id.

        Args:
            status: of those that have this status now; None for any, plans too.

        Returns:
            None when there is none. Of an id whose last save is damaged, the last one that is not counts.

        Raises:
            InvalidInput: there is no such status.
        """
        return next(map(_shown, saves.current(tx, self.scope, check_status(status))), None)

    @reads
    def checkpoints(
        self, tx: Transaction, limit: int = 100, *, status: CheckpointStatus | None = None
    ) -> list[AgentCheckpoint]:
        """Return the checkpoints as they stand, one an id: the last save of each, newest first.

        Args:
            limit: how many at most, 0 to 10,000.
            status: only those that have this status now; None for all, plans too.
        """
        found = saves.current(tx, self.scope, check_status(status))
        return [*map(_shown, islice(found, check_limit(limit)))]

    @reads
    def checkpoint_history(self, tx: Transaction, id: str, limit: int = 100) -> list[AgentCheckpoint]:
        """Return the saves under an id, newest first.

        Args:
            limit: how many at most, 0 to 10,000.
        """
        return [*map(_shown, islice(saves.history(tx, self.scope, check_file_id(id)), check_limit(limit)))]

    @writes
    def delete_checkpoint(self, tx: Transaction, id: str) -> int:
        """Delete a plan or checkpoint with its history. Returns how many saves went."""
        return saves.remove(tx, self.scope, check_file_id(id))

    @writes
    def prune_checkpoints(self, tx: Transaction, keep: int = 1) -> int:
        """Delete old history: of each id all but its newest saves.

        Args:
            keep: how many saves of an id stay, 1 to 1,000,000.

        Returns:
            How many saves went.
        """
        return saves.prune(tx, self.scope, check_range(keep, "keep", 1, MAX_KEPT_SAVES))


def _fields(checkpoint: AgentCheckpoint) -> tuple[str, str | None, dict[str, Any]]:
    """Return the id, status and payload of what a caller gave; the store checks them: perhaps they never were."""
    if not isinstance(checkpoint, AgentCheckpoint):
        checkpoint = AgentCheckpoint.model_validate(checkpoint)
    id, status, payload = (getattr(checkpoint, name, None) for name in ("id", "status", "payload"))
    return id, status, payload  # type: ignore[return-value]


def _shown(save: Save) -> AgentCheckpoint:
    return AgentCheckpoint.trusted(
        id=save.id, status=save.status, payload=save.payload, seq=save.seq, saved_at=from_text(save.saved_at)
    )
