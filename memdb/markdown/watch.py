"""Keeping pages in step with a folder while a program runs."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memdb.errors import InvalidInput, MemdbError, MissingExtra
from memdb.layers.knowledge import DEFAULT_CATEGORY
from memdb.markdown.report import SyncReport
from memdb.markdown.sync import sync_folder
from memdb.scope import DEFAULT_USER
from memdb.text.query import cleaned
from memdb.text.shown import shown
from memdb.text.traced import traced

if TYPE_CHECKING:
    from memdb.database import Database

LOOK_MS = 250
INTERVAL_S = 3.0  # local-ai document: the watcher looks every 3 s
log = logging.getLogger("memdb")


def watch_folder(
    db: Database,
    folder: str | os.PathLike[str],
    *,
    user_id: str = DEFAULT_USER,
    category: str = DEFAULT_CATEGORY,
    interval: float = INTERVAL_S,
    poll: bool | None = None,
    on_sync: Callable[[SyncReport], None] | None = None,
) -> FolderWatch:
    """Keep a user's pages in step with a folder of Markdown notes, until the context is left.

    Entering syncs once. After that the folder is synced when the operating system tells of a change (with the extra
    `watch`) and every `interval` seconds, which also sees changes on network folders.

    Args:
        folder, user_id, category: see sync_folder.
        interval: seconds between two looks, 0.05 to 3600.
        poll: True looks every `interval` seconds only, False demands to be told of changes; None does what can be done.
        on_sync: called with the report of every sync that changed a page or left out another file than the last one.

    Raises:
        InvalidInput: the interval is out of range. Entering raises what sync_folder raises.
        MissingExtra: `poll` is False and the package watchfiles is not installed.
    """
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not 0.05 <= interval <= 3600:
        raise InvalidInput(f"interval must be 0.05 to 3600 seconds, not {shown(interval)}")
    told = poll is not True and find_spec("watchfiles") is not None
    if poll is False and not told:
        raise MissingExtra("watchfiles is not installed: pip install 'memdb[watch]', or let poll be True")
    return FolderWatch(db, folder, user_id, category, float(interval), told, on_sync)


class FolderWatch:
    """A folder that is watched. Made by watch_folder().

    Attributes:
        report: of the last sync that went through.
    """

    def __init__(
        self,
        db: Database,
        folder: str | os.PathLike[str],
        user_id: str,
        category: str,
        interval: float,
        told: bool,
        on_sync: Callable[[SyncReport], None] | None,
    ) -> None:
        self.report = SyncReport()
        self._db, self._folder, self._user_id, self._category = db, folder, user_id, category
        self._interval, self._told, self._on_sync = interval, told, on_sync
        self._stop = asyncio.Event()
        self._syncing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._complaint = ""

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise InvalidInput("this watch was entered already; call watch_folder() for another")
        await self._sync()
        self._task = asyncio.create_task(self._run(), name=f"memdb watches {self._folder}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._task is not None:
            await self._task  # a sync that is under way is finished

    async def synced(self) -> SyncReport:
        """Wait until a sync that begins now has gone through, and return its report."""
        await self._sync()
        return self.report

    async def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._complaint:  # the folder is there again before it is watched again
                    await self._sync()
                async with aclosing(self._changes()) as changes:
                    async for _ in changes:
                        await self._sync()
            except Exception as error:  # on_sync() may raise anything; the next look may go well
                self._complain(error)
                await self._pause()

    async def _changes(self) -> AsyncGenerator[None, None]:
        """Yield whenever the folder may have changed, until the watch is left."""
        if self._told:
            async with aclosing(self._told_changes()) as told:
                async for _ in told:
                    yield
        while not self._stop.is_set() and not self._told:
            await self._pause()
            if not self._stop.is_set():
                yield

    async def _told_changes(self) -> AsyncGenerator[None, None]:
        """Yield when the operating system tells of a change; give that up for good when it cannot."""
        import watchfiles

        changes = watchfiles.awatch(
            os.fspath(self._folder),
            watch_filter=None,
            debounce=200,
            stop_event=self._stop,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
        )
        looked = -self._interval  # once as soon as changes are told: what came before that would be missed
        async with aclosing(changes) as told:
            while (changed := await self._next(told)) is not None:
                if changed or time.monotonic() - looked >= self._interval:
                    yield
                    looked = time.monotonic()

    async def _next(self, told: AsyncGenerator[set[Any], None]) -> set[Any] | None:
        try:
            return await anext(told, None)
        except FileNotFoundError:
            raise
        except (OSError, RuntimeError) as error:  # no more watches to be had, a file system without them
            log.warning("%s: changes are not told (%s); looking every %g s", self._folder, error, self._interval)
            self._told = False
            return None

    async def _sync(self) -> None:
        async with self._syncing:
            report = await sync_folder(self._db, self._folder, user_id=self._user_id, category=self._category)
            other = bool(report) or report.skipped != self.report.skipped
            self.report, self._complaint = report, ""
        if other and self._on_sync is not None:
            self._on_sync(report)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), self._interval)
        except TimeoutError:
            return

    def _complain(self, error: Exception) -> None:
        complaint = str(error) or type(error).__name__
        if complaint != self._complaint:  # once, not every three seconds
            self._complaint = complaint
            expected = isinstance(error, MemdbError | OSError)
            trace = "" if expected else f"\n{traced(error)}"
            log.warning("%s is not in step: %s%s", self._folder, cleaned(complaint), trace)
