"""Work on the worker's thread that a cancelled caller stops, and that says how far it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Event
from typing import Any, TypeVar

from memdb.errors import StorageError

R = TypeVar("R")

PROGRESS_S = 0.1  # how often a work says how far it is

Progress = Callable[[int, int], None]  # how much is done, of how much


class Course:
    """How far a work is, and whether it is to stop.

    Args:
        progress: told now and then how much is done, of how much; on the worker's thread.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._told = 0.0
        self._stopped = Event()

    def at(self, done: int, total: int) -> None:
        """Say how far the work is.

        Raises:
            StorageError: it is to stop.
        """
        if self._stopped.is_set():
            raise StorageError("the work was stopped; nothing of it was kept")
        if self._progress is not None and (now := time.monotonic()) - self._told >= PROGRESS_S:
            self._told = now
            self._progress(done, total)

    async def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a work; when the caller is cancelled, stop it and wait until it has tidied up."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._stopped.set()
            with suppress(Exception):
                await task
            raise
