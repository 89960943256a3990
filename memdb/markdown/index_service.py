"""Folders of notes, a category each, kept in step with pages and their index while a program runs (local-ai)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from memdb.errors import InvalidInput, MemdbError, MissingFile
from memdb.layers.knowledge import DEFAULT_CATEGORY
from memdb.layers.sources import of_folder
from memdb.markdown.apply import apply
from memdb.markdown.plan import Seen
from memdb.markdown.report import SyncReport
from memdb.markdown.scan import real_folder
from memdb.markdown.sync import sync_folder
from memdb.markdown.watch import INTERVAL_S, LOOK_MS, FolderWatch, watch_folder
from memdb.protocols import ChatModel, check_model
from memdb.retrieval.notes.indexed import checked_categories
from memdb.scope import DEFAULT_USER
from memdb.storage.whole_file import file_path
from memdb.text.query import cleaned
from memdb.text.traced import traced

if TYPE_CHECKING:
    from memdb.database import Database

LOOKS = 2
log = logging.getLogger("memdb")


class MemoryIndexService:
    """Keeps a user's pages and their index in step with folder/<category>/, from start() to stop() (local-ai document).

    Each category is watched as watch_folder does. A category whose folder is not there yet is waited for; when the
    folder goes, its pages go. What is wrong with one category is logged once and does not stop the others. The index is
    made at first, with the model if there is one, and refreshed without it after each sync; in the file it always has
    the present version. A file that is moved to another category is another page.

    Args:
        db: an open database.
        folder: holds a folder a category.
        user_id: whose pages.
        categories: their names, each that of one folder.
        llm: chooses keywords when the index is made; None for keywords by rule.
        interval: seconds between two looks, 0.05 to 3600.
        poll: see watch_folder.

    Attributes:
        reports: of the last sync of each category that went through.
        problems: what is wrong now, by category; that of the index by "".

    Raises:
        InvalidInput: an argument is not what it must be.
        MissingExtra: `poll` is False and the package watchfiles is not installed.
    """

    def __init__(
        self,
        db: Database,
        folder: str | os.PathLike[str],
        *,
        user_id: str = DEFAULT_USER,
        categories: Iterable[str] = (DEFAULT_CATEGORY,),
        llm: ChatModel | None = None,
        interval: float = INTERVAL_S,
        poll: bool | None = None,
    ) -> None:
        if llm is not None:
            check_model(llm)
        self.reports: dict[str, SyncReport] = {}
        self.problems: dict[str, str] = {}
        self._db, self._root, self._user_id, self._llm = db, file_path(folder, "the folder"), user_id, llm
        self._categories = [_folder_name(name) for name in checked_categories(categories) or ()]
        if not self._categories:
            raise InvalidInput("categories must name at least one folder to keep in step")
        self._watch = partial(watch_folder, db, user_id=user_id, interval=interval, poll=poll)
        self._watch(self._root)  # says what is wrong with interval or poll
        self._notes, self._interval = db.memory(user_id).notes, interval
        self._watches: dict[str, FolderWatch] = {}
        self._identity: tuple[int, int] | None = None  # of the folder when the service was started
        self._tasks: list[asyncio.Task[None]] = []
        self._stop, self._changed = asyncio.Event(), asyncio.Event()
        self._indexing = asyncio.Lock()

    async def start(self) -> None:
        """Sync every category once and go on in the background; the index is made there, too (see synced()).

        Raises:
            MissingFile: the folder is not there.
            InvalidInput: it is no folder, or the service runs already.
        """
        if self._tasks:
            raise InvalidInput("this service runs already; stop() it first")
        self._identity = await asyncio.to_thread(_identity, self._root)
        self._stop.clear()
        for category in self._categories:
            await self._tried(category, self._look(category))
        self._changed.set()
        self._tasks = [asyncio.create_task(self._keep(category)) for category in self._categories]
        self._tasks.append(asyncio.create_task(self._keep_index()))

    async def stop(self) -> None:
        """End. A sync that is under way is finished; what the model has answered so far is in the index."""
        self._stop.set()
        tasks, self._tasks = self._tasks, []
        if tasks:
            tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def synced(self) -> dict[str, SyncReport]:
        """Wait until a sync of every category that begins now has gone through and the index is in order.

        Returns:
            The reports by category; of one that cannot be synced the last that went through, see `problems`.
        """
        for category in self._categories:
            await self._tried(category, self._look(category))
        await self._tried("", self._put_in_order())
        return dict(self.reports)

    # -- a category ---------------------------------------------------------------------------------------------------

    async def _keep(self, category: str) -> None:
        while not self._stop.is_set():
            await self._tried(category, self._watched(category))
            await self._pause()

    async def _watched(self, category: str) -> None:
        """Watch a category as long as its folder is there."""
        folder = self._root / category
        if not await asyncio.to_thread(folder.is_dir) or await asyncio.to_thread(_leads_out, folder):
            await self._look(category)
            return
        report = partial(self._report, category)
        async with self._watch(folder, category=category, on_sync=report) as watching:
            self._watches[category] = watching
            self._report(category, watching.report)
            try:
                while not self._stop.is_set() and await asyncio.to_thread(folder.is_dir):
                    await self._pause()
            finally:
                del self._watches[category]

    async def _look(self, category: str) -> None:
        """Sync a category now."""
        folder = self._root / category
        if not await asyncio.to_thread(os.path.lexists, folder):
            await self._remove(category)
        elif await asyncio.to_thread(_leads_out, folder):
            raise InvalidInput(f"{folder} is a link that leads out of {self._root}; nothing was read")
        elif category in self._watches:
            self._report(category, await self._watches[category].synced())
        else:
            self._report(category, await sync_folder(self._db, folder, user_id=self._user_id, category=category))

    async def _remove(self, category: str) -> None:
        """Remove the pages of a category whose folder is gone, while the folder above it is there and can be listed.

        Gone is what two looks do not see: a folder that is replaced by another is away for a moment.
        """
        root = await asyncio.to_thread(real_folder, self._root)
        folder = str(root / category)
        known = await self._db.read(of_folder, self._user_id, folder)
        if not known:
            there = [name for name in await asyncio.to_thread(os.listdir, root) if (root / name).is_dir()]
            others = f"; there are {', '.join(sorted(there)[:10])}" if there else ""
            raise MissingFile(f"there is no folder {category!r} in {root} yet{others}")
        for _ in range(LOOKS):
            if category in await asyncio.to_thread(os.listdir, root):
                return
            await asyncio.sleep(min(self._interval, LOOK_MS / 1000))
        if await asyncio.to_thread(_identity, self._root) != self._identity is not None:
            raise MissingFile(f"{root} is another folder than at the start, without {category!r}; its pages stay")
        report = await self._db.write(apply, self._user_id, folder, Seen(known, category))
        if report is not None:
            self._report(category, report)

    def _report(self, category: str, report: SyncReport) -> None:
        self.reports[category] = report
        self.problems.pop(category, None)
        self._changed.set()

    # -- the index ----------------------------------------------------------------------------------------------------

    async def _keep_index(self) -> None:
        while not self._stop.is_set():
            await self._changed.wait()
            self._changed.clear()
            if not await self._tried("", self._put_in_order()):
                self._changed.set()
                await self._pause()

    async def _put_in_order(self) -> None:
        async with self._indexing:
            notes, categories = self._notes, self._categories
            if not await notes.index_exists() or (self._llm and await notes.awaits_model(categories)):
                await notes.populate_index_from_files(self._user_id, categories, self._llm)
            else:
                await notes.refresh_stale_entries(self._user_id, categories)

    # -- both ---------------------------------------------------------------------------------------------------------

    async def _tried(self, category: str, work: Awaitable[None]) -> bool:
        """Do something and return whether it went well; what goes wrong is logged once, not every three seconds."""
        try:
            await work
        except Exception as error:
            problem = str(error) or type(error).__name__
            if self.problems.get(category) != problem:
                self.problems[category] = problem
                what = f"the category {category!r}" if category else "the index of notes"
                expected = isinstance(error, MemdbError | OSError)
                trace = "" if expected else f"\n{traced(error)}"
                log.warning("%s is not in step: %s%s", what, cleaned(problem), trace)
            return False
        self.problems.pop(category, None)
        return True

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), self._interval)


def _identity(folder: Path) -> tuple[int, int]:
    """Return what tells a folder from another one in its place, such as an empty one where a disk was mounted."""
    status = os.stat(real_folder(folder))
    return status.st_dev, status.st_ino


def _leads_out(folder: Path) -> bool:
    """Return whether a category's folder is a link to somewhere else than into the folder that holds it."""
    return folder.is_symlink() and not folder.resolve().is_relative_to(folder.parent.resolve())


def _folder_name(category: str) -> str:
    """Return a category if it is the name of one folder, and of no other place.

    Raises:
        InvalidInput: it is not.
    """
    if category in (".", "..") or any(sign in category for sign in "/\\"):
        raise InvalidInput(f"the category {category!r} cannot be the name of one folder; choose another name")
    return category
