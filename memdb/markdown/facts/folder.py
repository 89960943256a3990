"""Facts and history as a folder with MEMORY.md and HISTORY.md, which others may edit (LightGrep document)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

from memdb.errors import Busy, InvalidInput, MemdbError
from memdb.layers.facts.store import FactStore, HistoryEntry, LongTerm, ScoredEntry, Version
from memdb.layers.layer import Live
from memdb.markdown.facts.files import Moved, alone
from memdb.markdown.facts.history import HistoryLog
from memdb.markdown.facts.owner import OWNER_FILE, Owner
from memdb.markdown.facts.report import HISTORY_FILE, TEXT_FILE, Conflict, FolderReport
from memdb.markdown.facts.text import TextFile
from memdb.markdown.scan import folder_name, real_folder
from memdb.memory import Memory
from memdb.storage.engine import Engine
from memdb.storage.whole_file import belongs_to_database, told_of
from memdb.text.shown import shown

TRIES = 20
NAMES = (TEXT_FILE, HISTORY_FILE)
log = logging.getLogger("memdb")
R = TypeVar("R")
_turns: WeakValueDictionary[tuple[int, Path], asyncio.Lock] = WeakValueDictionary()


def _turn(root: Path) -> asyncio.Lock:
    """Return the lock of a folder in this event loop; who waits for it comes first."""
    key = (id(asyncio.get_running_loop()), root)
    lock = _turns.get(key)
    if lock is None:
        lock = _turns[key] = asyncio.Lock()
    return lock


class FactFolder:
    """The facts of a memory beside a folder with MEMORY.md and HISTORY.md.

    The memory is in the database; the files are what people and tools see of it. Each method first takes in what was
    edited outside, as far as it concerns it, and after a change writes the file. A missing file is written anew, never
    taken for forgetting. MEMORY.md is the long-term text. HISTORY.md holds the entries, each with a blank line
    behind it; what is appended outside becomes entries, cut at blank lines. Where file and memory were both changed,
    neither is touched: sync() reports a conflict, the log names it once, and resolve() settles it. Until then what is
    written goes into the memory alone, and a file in conflict stays as it stands.

    The first user who syncs a folder gets it: .memdb.json in it says whose it is, and no other user may use it.

    A change that is stored but could not be written to its file is logged; the next call writes it. What changes the
    memory by another way than this object is written by the next sync(). Database.forget does not reach the files.

    Args:
        memory: whose facts; live, not inside a unit.
        folder: where the files are; made when it is missing.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(self, memory: Memory[Live], folder: str | os.PathLike[str]) -> None:
        engine = getattr(memory, "_home", None)
        if not isinstance(memory, Memory) or not isinstance(engine, Engine):
            raise InvalidInput(f"memory must be a Memory outside of a unit, not {type(memory).__name__}")
        self._engine, self._scope = engine, memory.scope
        self._facts: FactStore[Live] = memory.facts
        self._folder = folder_name(folder)
        self._root: Path | None = None
        self._files: tuple[Owner, TextFile, HistoryLog] | None = None
        self._running: set[asyncio.Task[FolderReport]] = set()
        self._told: set[Conflict] = set()

    # -- the folder ---------------------------------------------------------------------------------------------------

    async def sync(self) -> FolderReport:
        """Bring folder and memory together: take in what was edited outside, write out what changed in the memory.

        Raises:
            InvalidInput: the folder is kept for another user, or a file is no UTF-8, too large, a link or a folder;
                nothing of it was changed.
            StorageError: a file cannot be read or written.
            Busy: others change file or memory again and again.
        """
        return await self._sync(NAMES)

    async def resolve(self, keep: Literal["file", "memory"], *, name: str | None = None) -> FolderReport:
        """Settle conflicts for one side. Nothing is lost.

        MEMORY.md: the text that loses is kept as a version. HISTORY.md: "file" leaves the file as it stands, takes in
        what is new in it and appends what never was in it; "memory" gives the file the name HISTORY.md.orig and writes
        another. A file that is in no conflict is brought in step as sync() does.

        Args:
            keep: which side is right.
            name: settle only this file, "MEMORY.md" or "HISTORY.md".

        Raises:
            InvalidInput: an argument is not what it must be. And what sync() raises.
        """
        if keep not in ("file", "memory"):
            raise InvalidInput(f'keep must be "file" or "memory", not {shown(keep)}')
        if name is not None and name not in NAMES:
            raise InvalidInput(f"name must be one of {', '.join(NAMES)}, not {shown(name)}")
        return await self._sync(NAMES if name is None else (name,), keep)

    async def _sync(self, names: Iterable[str], keep: str | None = None) -> FolderReport:
        """Sync some of the files. A caller that is cancelled does not stop it in the middle."""
        task = asyncio.create_task(self._sync_alone(tuple(names), keep))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[FolderReport]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that is gone asks no more

    async def _sync_alone(self, names: tuple[str, ...], keep: str | None) -> FolderReport:
        root = await asyncio.to_thread(self._make)
        if self._files is None or root != self._root:
            self._root, engine, scope = root, self._engine, self._scope
            owner = Owner(root, scope.user_id, engine.path, engine.options.read_only)
            self._files = owner, TextFile(engine, scope, root), HistoryLog(engine, scope, root)
        owner, text, history = self._files
        report = FolderReport()
        # In turn within this process: callers that all ask for the lock would overtake each other until it is given up.
        async with _turn(root), alone(root):
            await self._until_still(OWNER_FILE, owner.check)
            for file in (text, history):
                if file.name in names:
                    await self._until_still(file.name, partial(file.sync, report, keep))
        self._tell(names, report)
        return report

    async def _until_still(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        for _ in range(TRIES):
            try:
                return await step()
            except Moved:
                await asyncio.sleep(0)
        raise Busy(f"{name} in {self._folder} was changed again and again while it was brought in step; try again")

    def _make(self) -> Path:
        try:
            os.makedirs(self._folder, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{self._folder} cannot be made a folder ({error.strerror})") from None
        root = real_folder(self._folder)
        with told_of(root, "use"):
            own = [name for name in (*NAMES, OWNER_FILE) if belongs_to_database(root / name, self._engine.path)]
        if own:
            raise InvalidInput(f"{root / own[0]} belongs to the database itself; choose another folder")
        return root

    def _tell(self, names: tuple[str, ...], report: FolderReport) -> None:
        for conflict in report.conflicts:
            if conflict not in self._told:
                log.warning(
                    "FACTS_CONFLICT %s in %s: %s; neither was touched, settle it with FactFolder.resolve()",
                    conflict.file,
                    self._folder,
                    conflict.reason,
                )
        self._told = {told for told in self._told if told.file not in names} | set(report.conflicts)

    async def _read(self, name: str, call: Callable[[], Awaitable[R]]) -> R:
        await self._sync((name,))
        return await call()

    async def _write(self, name: str, call: Callable[[], Awaitable[R]]) -> R:
        """Take in what was edited outside, make a change, and write it out."""
        await self._sync((name,))
        value = await call()
        await self._written((name,))
        return value

    async def _written(self, names: Iterable[str]) -> None:
        try:
            await self._sync(names)
        except MemdbError as error:
            log.warning("the change is stored, but not yet written to %s: %s", self._folder, error)

    # -- the long-term text -------------------------------------------------------------------------------------------

    async def read_long_term(self) -> str:
        """See FactStore.read_long_term."""
        return await self._read(TEXT_FILE, self._facts.read_long_term)

    async def long_term(self) -> LongTerm:
        """See FactStore.long_term."""
        return await self._read(TEXT_FILE, self._facts.long_term)

    async def get_memory_context(self) -> str:
        """See FactStore.get_memory_context."""
        return await self._read(TEXT_FILE, self._facts.get_memory_context)

    async def write_long_term(self, content: str, *, author: str = "agent", if_version: int | None = None) -> bool:
        """See FactStore.write_long_term.

        While MEMORY.md is in conflict the memory is written and the file is not; the conflict stays until resolve().
        """
        return await self._write(
            TEXT_FILE, lambda: self._facts.write_long_term(content, author=author, if_version=if_version)
        )

    async def versions(self, limit: int = 100, *, before: int | None = None) -> list[Version]:
        """See FactStore.versions."""
        return await self._read(TEXT_FILE, lambda: self._facts.versions(limit, before=before))

    async def read_version(self, number: int) -> Version:
        """See FactStore.read_version."""
        return await self._read(TEXT_FILE, lambda: self._facts.read_version(number))

    # -- the history --------------------------------------------------------------------------------------------------

    async def append_history(self, entry: str, *, origin: str = "written", created_at: datetime | None = None) -> int:
        """See FactStore.append_history. While HISTORY.md is in conflict the memory alone has it, until resolve()."""
        return await self._write(
            HISTORY_FILE, lambda: self._facts.append_history(entry, origin=origin, created_at=created_at)
        )

    async def append_entries(self, texts: list[str], *, origin: str = "written") -> list[int]:
        """See FactStore.append_entries. While HISTORY.md is in conflict the memory alone has them, until resolve()."""
        return await self._write(HISTORY_FILE, lambda: self._facts.append_entries(texts, origin=origin))

    async def append_chunk(
        self,
        texts: list[str],
        *,
        origin: Literal["consolidated", "raw"],
        chunk: str,
        session_id: str,
        first_position: int,
        last_position: int,
    ) -> int:
        """See FactStore.append_chunk. While HISTORY.md is in conflict the memory alone has them, until resolve()."""
        return await self._write(
            HISTORY_FILE,
            lambda: self._facts.append_chunk(
                texts,
                origin=origin,
                chunk=chunk,
                session_id=session_id,
                first_position=first_position,
                last_position=last_position,
            ),
        )

    async def history(self, limit: int | None = None, *, before: int | None = None) -> list[HistoryEntry]:
        """See FactStore.history."""
        return await self._read(HISTORY_FILE, lambda: self._facts.history(limit, before=before))

    async def search_history(
        self, query: str, limit: int = 10, *, order: Literal["time", "score"] = "time"
    ) -> list[ScoredEntry]:
        """See FactStore.search_history."""
        return await self._read(HISTORY_FILE, lambda: self._facts.search_history(query, limit, order=order))

    async def grep_history(
        self, pattern: str, limit: int = 100, *, literal: bool = False, ignore_case: bool = False
    ) -> list[HistoryEntry]:
        """See FactStore.grep_history."""
        return await self._read(
            HISTORY_FILE,
            lambda: self._facts.grep_history(pattern, limit, literal=literal, ignore_case=ignore_case),
        )

    async def consolidate(
        self, messages: Iterable[Mapping[str, Any] | object], llm: Any, *, counter: Any = None
    ) -> bool:
        """See FactStore.consolidate. A file in conflict is not written; the conflict stays until resolve()."""
        await self.sync()
        done = await self._facts.consolidate(messages, llm, counter=counter)
        await self._written(NAMES)
        return done
