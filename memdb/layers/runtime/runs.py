"""Runs of an agent: how one stands is in its checkpoints, also when it is told to stop (local-ai document, "L2").

    async with memory.manager.run("run-7", {"done": 0}, resume=True) as run:
        for number in range(run.payload["done"], 10):
            ...
            await run.step({"done": number + 1})

A run that ends is "completed"; one that raises, is cancelled, or is told to stop by SIGINT or SIGTERM is "interrupted";
one whose process dies of something else stays "in_progress". The last two can be resumed.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memdb.errors import InvalidInput, StorageError
from memdb.layers.layer import Live
from memdb.layers.runtime.checkpoints import AgentCheckpoint, CheckpointStatus
from memdb.layers.runtime.interrupts import INTERRUPTS
from memdb.text.check import check_flag

if TYPE_CHECKING:
    from memdb.layers.runtime.manager import MemoryManager

log = logging.getLogger("memdb")


class AgentRun:
    """A run of an agent, for `async with`. Made by MemoryManager.run().

    Signals are heeded by runs that are entered in the process's main thread: on SIGINT and SIGTERM every run under way
    is marked, and then the signal does what it did before. A second one does it at once.

    Nothing keeps two processes from resuming the same run while both live: a program that can be started twice must
    see to that itself.

    Args:
        manager: where its checkpoints are kept.
        id: the checkpoint's id.
        payload: what its first checkpoint holds; {} when left out.
        resume: go on from the last checkpoint under the id where that was not completed.

    Raises:
        InvalidInput: the id or the payload is not what it must be.
    """

    def __init__(
        self, manager: MemoryManager[Live], id: str, payload: dict[str, Any] | None = None, *, resume: bool = False
    ) -> None:
        check_flag(resume, "resume")
        first = AgentCheckpoint(id=id, status="in_progress", payload={} if payload is None else payload)
        self.id = first.id
        self._manager = manager
        self._payload = copy.deepcopy(first.payload)
        self._resume = resume
        self._resumed: dict[str, Any] | None = None
        self._status: CheckpointStatus | None = None  # as it was saved last
        self._entered = self._under_way = self._told_to_stop = False

    @property
    def payload(self) -> dict[str, Any]:
        """What was saved last; a copy."""
        return copy.deepcopy(self._payload)

    @property
    def resumed(self) -> dict[str, Any] | None:
        """The payload of the checkpoint that the run goes on from; None when it begins anew."""
        return copy.deepcopy(self._resumed)

    async def __aenter__(self) -> Self:
        if self._entered:
            raise InvalidInput(f"the run {self.id!r} was entered already; call manager.run() for another one")
        self._entered = True
        if self._resume:
            last = next(iter(await self._manager.checkpoint_history(self.id, 1)), None)
            if last is not None and last.status in ("in_progress", "interrupted"):
                self._payload = self._resumed = last.payload
        INTERRUPTS.add(self)  # first: a signal between the save and this would leave it as it is
        try:
            await self._surely("in_progress")
        except asyncio.CancelledError as error:
            await self.interrupt(type(error).__name__)
            INTERRUPTS.remove(self)
            raise
        except BaseException:
            INTERRUPTS.remove(self)
            raise
        self._under_way = True
        return self

    async def step(self, payload: dict[str, Any]) -> int:
        """Save how far the run has come.

        Args:
            payload: what is needed to go on from here: a dict of JSON values, at most 16 MB.

        Returns:
            The checkpoint's place among the saves under its id, from 1.

        Raises:
            InvalidInput: the payload is not what it must be, or the run is not under way.
        """
        if not self._under_way:
            raise InvalidInput(f"the run {self.id!r} is not under way; use `async with manager.run(...) as run:`")
        kept = copy.deepcopy(AgentCheckpoint(id=self.id, payload=payload).payload)
        # Who was told to stop may be gone before the next save: this one must not say that it is under way.
        seq = await self._save("interrupted" if self._told_to_stop else "in_progress", kept)
        self._payload = kept
        return seq

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._under_way = False
        try:
            if kind is None:
                await self._surely("completed")
            elif not issubclass(kind, GeneratorExit):  # nobody runs the coroutine any more, so it cannot await
                await self.interrupt(kind.__name__)
        finally:
            INTERRUPTS.remove(self)

    async def interrupt(self, reason: str) -> None:
        """Mark the run as interrupted, without stopping it: for who is about to. What goes wrong with it is logged.

        Args:
            reason: for the log.
        """
        self._told_to_stop = True
        if self._status == "interrupted":  # by a signal, before the task was cancelled for it
            return
        log.warning("the run %r was interrupted (%s)", self.id, reason)
        try:
            await self._surely("interrupted")
        except StorageError as failure:
            log.warning("the run %r could not be marked as interrupted: %s", self.id, failure)

    async def _surely(self, status: CheckpointStatus) -> None:
        """Save a status also when the task is cancelled meanwhile: nobody else would."""
        saving = asyncio.ensure_future(self._save(status))
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            await asyncio.wait([saving])
            raise

    async def _save(self, status: CheckpointStatus, payload: dict[str, Any] | None = None) -> int:
        kept = self._payload if payload is None else payload
        seq = await self._manager.save_checkpoint(AgentCheckpoint(id=self.id, status=status, payload=kept))
        self._status = status
        return seq
