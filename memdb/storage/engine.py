"""Reader pool and writer behind two verbs: read(unit) and write(unit)."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from memdb.errors import Closed, StorageError
from memdb.storage import connection as connections
from memdb.storage.clock import Clock
from memdb.storage.connection import WorkerConnection, translated
from memdb.storage.lock import FileLock
from memdb.storage.migrate import create_schema, prepare, set_wal
from memdb.storage.quarantine import set_aside
from memdb.storage.readers import ReaderPool, read_snapshot
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.source import check_access, file_uri, identify, read_mode
from memdb.storage.transaction import Transaction
from memdb.storage.writer import Writer

R = TypeVar("R")
log = logging.getLogger("memdb")

BUSY_TIMEOUT_S = 10.0
WAL_SAFE = ((3, 51, 3), (3, 50, 7), (3, 44, 6))  # first releases without the WAL-reset fault, by branch
_warned_of_old_sqlite = False


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is opened. See memdb.open."""

    durability: str = "full"
    read_only: bool = False
    create: bool = True
    migrate: bool = True
    readers: int = 4
    busy_timeout: float = BUSY_TIMEOUT_S


class Engine:
    """One open file.

    Args:
        path: the file's absolute path; None for an in-memory database, which serves reads and writes on one connection.
        options: how to open it.
        clock: the handle's clock.
    """

    def __init__(self, path: Path | None, options: Options, clock: Clock) -> None:
        self.path = path
        self.options = options
        self.clock = clock
        self.lock = FileLock(None if options.read_only else path, options.busy_timeout)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._writer: Writer | None = None
        self._readers: ReaderPool | None = None
        self._read_uri = ""
        self._closed = False

    async def open(self) -> None:
        """Open the file, making or migrating it first when that is needed."""
        warn_of_old_sqlite()
        self._loop = asyncio.get_running_loop()
        options = self.options
        try:
            if not options.read_only:
                opened = await WorkerConnection.start(self._open_writer)
                self._writer = Writer(
                    opened, self.lock, self.clock, schema_version=SCHEMA_VERSION, timeout=options.busy_timeout
                )
            else:
                await asyncio.get_running_loop().run_in_executor(None, self._check_readable)
        except (sqlite3.Error, OverflowError) as error:
            raise connections.translate(error) from error
        self._read_uri = file_uri(self.path, read_mode(self.path) if options.read_only and self.path else "rw")
        self._readers = ReaderPool(self._open_reader, options.readers, self.clock)

    # -- the two verbs ------------------------------------------------------------------------------------------------

    async def write(self, unit: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run `unit(tx, *args, **kwargs)` in a write transaction and return its value once it is on disk.

        Raises:
            StorageError: and its kin, when the file could not do it; nothing of the unit was stored.
        """
        self._check_usable()
        if self._writer is None:
            raise StorageError(f"{self.path} is open for reading only; nothing was written: open it without read_only")
        bound = (lambda tx: unit(tx, *args, **kwargs)) if args or kwargs else unit
        return await self._writer.submit(bound)  # type: ignore[no-any-return]

    async def read(self, unit: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run `unit(tx, *args, **kwargs)` in one snapshot and return its value.

        Rows that cannot be read are set aside in the quarantine before the call returns; the unit's value leaves them
        out.
        """
        self._check_usable()
        bound = (lambda tx: unit(tx, *args, **kwargs)) if args or kwargs else unit
        with translated():
            value, damaged = await self._read(bound)
        if damaged:
            await self._set_aside(damaged)
        return value  # type: ignore[no-any-return]

    async def _read(self, unit: Callable[[Transaction], Any]) -> tuple[Any, dict[int, str]]:
        if self.path is not None:
            assert self._readers is not None
            return await self._readers.run(unit)
        assert self._writer is not None
        clock = self.clock
        return await self._writer.connection.post(lambda raw: read_snapshot(raw, unit, clock, alone=True))

    async def _set_aside(self, damaged: dict[int, str]) -> None:
        for record_id, reason in damaged.items():
            log.warning("MEMORY_CORRUPT record %d of %s: %s", record_id, self.path or "memory", reason)
        if self._writer is not None:
            await self.write(set_aside, damaged)

    # -- maintenance --------------------------------------------------------------------------------------------------

    async def maintain(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Run `work(connection)` on the writing connection, outside a transaction, holding the file's lock."""
        self._check_usable()
        if self._writer is None:
            raise StorageError(f"{self.path} is open for reading only: open it without read_only")
        lock = self.lock

        def locked(connection: sqlite3.Connection) -> R:
            with lock.held():
                return work(connection)

        with translated():
            return await self._writer.connection.post(locked)

    async def aside(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Run `work(connection)` on a connection of its own, while others read and write.

        An in-memory database has only the one connection, which is used then.
        """
        self._check_usable()
        if self.path is None:
            return await self.maintain(work)
        with translated():
            connection = await WorkerConnection.start(
                lambda: connections.connect(self._read_uri, (), timeout=self.options.busy_timeout)
            )
            try:
                return await connection.post(work)
            finally:
                await connection.close()

    async def close(self) -> None:
        """Finish what is queued and close. The last close of a file also folds the log into it."""
        if self._closed:
            return
        self._closed = True
        if self._process != os.getpid():
            return  # a forked child: the connections are the parent's
        try:
            if self._writer is not None:
                await self._writer.drained()
            if self._readers is not None:
                await self._readers.close()
            if self._writer is not None:
                await self._writer.connection.post(self._tidy)
                await self._writer.connection.close()
        finally:
            self.lock.close()

    # -- on a worker's thread -----------------------------------------------------------------------------------------

    def _open_writer(self) -> sqlite3.Connection:
        path, options = self.path, self.options
        if path is not None:
            check_access(path, read_only=False, create=options.create)
        with self.lock.held():
            if path is not None:
                prepare(path, self.clock, timeout=options.busy_timeout, migrate=options.migrate)
            pragmas = (
                *connections.COMMON_PRAGMAS,
                *connections.WRITER_PRAGMAS,
                ("synchronous", connections.SYNCHRONOUS[options.durability], "what a returned write survives"),
            )
            connection = connections.connect(file_uri(path, "rw"), pragmas, timeout=options.busy_timeout)
            if path is None:
                create_schema(connection)
            else:
                set_wal(connection, path)
            return connection

    async def _open_reader(self) -> WorkerConnection:
        pragmas = (*connections.COMMON_PRAGMAS, *connections.READER_PRAGMAS)
        return await WorkerConnection.start(
            lambda: connections.connect(self._read_uri, pragmas, timeout=self.options.busy_timeout)
        )

    def _check_readable(self) -> None:
        assert self.path is not None
        check_access(self.path, read_only=True, create=False)
        state = identify(self.path, SCHEMA_VERSION, timeout=self.options.busy_timeout)
        if state.version != SCHEMA_VERSION:
            raise StorageError(
                f"{self.path} has schema {state.version}, this memdb needs {SCHEMA_VERSION}: open it once without"
                " read_only, or run `memdb migrate`"
            )

    def _tidy(self, connection: sqlite3.Connection) -> None:
        # The last close of a file checkpoints, so it takes a turn like any writer. What is busy or full here is left to
        # the next opening: all that was acknowledged is in the log.
        with suppress(StorageError), self.lock.held():
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA analysis_limit = 400")
                connection.execute("PRAGMA optimize")
            connection.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise Closed(f"{self.path or 'the in-memory database'} is closed; open it again with memdb.open()")
        if self._loop is None:
            raise Closed("the database is not open yet: use `async with memdb.open(path) as db:`")
        if self._process != os.getpid():
            raise Closed("this handle was opened before a fork; the child must open its own with memdb.open()")
        if asyncio.get_running_loop() is not self._loop:
            raise Closed("this handle belongs to another event loop; open one in each loop with memdb.open()")


def warn_of_old_sqlite() -> None:
    """Say once in the log when the SQLite library still has the WAL-reset fault."""
    global _warned_of_old_sqlite
    version = sqlite3.sqlite_version_info
    safe = version >= WAL_SAFE[0] or any(version[:2] == first[:2] and version >= first for first in WAL_SAFE[1:])
    if not safe and not _warned_of_old_sqlite:
        _warned_of_old_sqlite = True
        log.warning(
            "SQLite %s can lose commits when a checkpoint meets a WAL reset (fixed in 3.51.3, 3.50.7, 3.44.6); memdb's"
            " lock keeps its own processes apart, other programs writing to the file are not",
            sqlite3.sqlite_version,
        )
