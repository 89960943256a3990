"""Reader pool and writer behind two verbs: read(unit) and write(unit)."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memdb.errors import Closed, SchemaTooNew, StorageError
from memdb.storage import opening
from memdb.storage.begin import check_version
from memdb.storage.clock import Clock
from memdb.storage.connection import WorkerConnection, connect, translate, translated
from memdb.storage.lock import FileLock
from memdb.storage.opening import Options
from memdb.storage.quarantine import Damage, named
from memdb.storage.readers import Outcome, ReaderPool, read_snapshot
from memdb.storage.source import file_uri, read_mode
from memdb.storage.transaction import Transaction
from memdb.storage.writer import Together, Writer

R = TypeVar("R")
log = logging.getLogger("memdb")


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
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the file, making or migrating it first when that is needed."""
        opening.warn_of_old_sqlite()
        self._loop = asyncio.get_running_loop()
        path, options = self.path, self.options
        # Nothing that is started here may refer back to the engine: a dropped handle then ends at once.
        try:
            with translated():
                if options.read_only and path is not None:
                    await self._loop.run_in_executor(None, opening.check_readable, path, options)
                else:
                    connector = partial(opening.open_writer, path, options, self.clock, self.lock)
                    self._writer = Writer(
                        await WorkerConnection.start(connector), self.lock, self.clock, timeout=options.busy_timeout
                    )
        except Exception:
            self.lock.close()
            raise
        self._read_uri = file_uri(path, read_mode(path) if options.read_only and path else "rw")
        connector_of_readers = partial(opening.open_reader, self._read_uri, options)
        self._readers = ReaderPool(
            partial(WorkerConnection.start, connector_of_readers),
            options.readers,
            self.clock,
            counts=not options.read_only,
        )

    # -- the two verbs ------------------------------------------------------------------------------------------------

    async def write(self, unit: Callable[..., R], *args: Any, together: Together | None = None, **kwargs: Any) -> R:
        """Run `unit(tx, *args, **kwargs)` in a write transaction and return its value once it is on disk.

        Args:
            together: does the same as `unit` for many lists of `args` at once; callers that wait side by side share it.

        Raises:
            StorageError: and its kin, when the file could not do it; nothing of the unit was stored.
        """
        self._check_usable()
        if self._writer is None:
            raise StorageError(f"{self.path} is open for reading only; nothing was written: open it without read_only")
        if kwargs:
            return await self._writer.submit(lambda tx: unit(tx, *args, **kwargs))  # type: ignore[no-any-return]
        return await self._writer.submit(unit, *args, together=together)  # type: ignore[no-any-return]

    def read(self, unit: Callable[..., R], *args: Any, **kwargs: Any) -> Coroutine[Any, Any, R]:
        """Run `unit(tx, *args, **kwargs)` in one snapshot and return its value.

        Rows that cannot be read are set aside in the quarantine before the call returns; the unit's value leaves them
        out. What it counts as recalled is written later (see memdb.storage.recalls).
        """
        return self._answer((lambda tx: unit(tx, *args, **kwargs)) if args or kwargs else unit, single=False)

    def read_one(self, unit: Callable[..., R], *args: Any, **kwargs: Any) -> Coroutine[Any, Any, R]:
        """Run a read unit that runs one statement: without a transaction, which such a one does not need."""
        return self._answer(lambda tx: unit(tx, *args, **kwargs), single=True)

    async def _answer(self, unit: Callable[[Transaction], R], *, single: bool) -> R:
        self._check_usable()
        try:
            value, damaged, recalled = await self._read(unit, single)
        except sqlite3.Error as error:
            raise translate(error) from error
        if recalled and self._writer is not None:
            self._writer.count(recalled)
        if damaged:
            await self._set_aside(damaged)
        return value  # type: ignore[no-any-return]

    async def read_counts(self, unit: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run a read unit that sees every recall that was counted before."""
        self._check_usable()
        await self._flush()
        return await self.read(unit, *args, **kwargs)

    async def _flush(self) -> None:
        if self._writer is not None:
            with suppress(StorageError):  # busy or full: the counts wait on, what is in the file can be read
                await self._writer.flush()

    def _read(self, unit: Callable[[Transaction], Any], single: bool) -> Awaitable[Outcome]:
        if self.path is not None:
            assert self._readers is not None
            return self._readers.run(unit, single=single)
        assert self._writer is not None
        clock = self.clock
        return self._writer.connection.post(lambda raw: read_snapshot(raw, unit, clock, alone=True, single=single))

    async def _set_aside(self, damaged: dict[Hashable, Damage]) -> None:
        if self._writer is not None:
            with suppress(StorageError):  # busy, or migrated meanwhile: the reader still gets its answer
                await self._writer.submit(lambda tx: tx.damaged.update(damaged))
                return
        for name, damage in damaged.items():
            log.warning("MEMORY_CORRUPT %s of %s: %s", named(name), self.path, damage.reason)

    # -- maintenance --------------------------------------------------------------------------------------------------

    async def maintain(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Run `work(connection)` on the writing connection, outside a transaction, holding the file's lock."""
        self._check_usable()
        if self._writer is None:
            raise StorageError(f"{self.path} is open for reading only: open it without read_only")
        lock = self.lock

        def locked(connection: sqlite3.Connection) -> R:
            with lock:
                check_version(connection)
                return work(connection)

        with translated():
            return await self._writer.connection.post(locked)

    async def aside(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Run `work(connection)` on a connection of its own, while others read and write.

        An in-memory database has only the one connection, which is used then.
        """
        self._check_usable()
        await self._flush()
        if self.path is None:
            return await self.maintain(work)
        with translated():
            connection = await WorkerConnection.start(
                partial(connect, self._read_uri, (), timeout=self.options.busy_timeout)
            )
            try:
                return await connection.post(work)
            finally:
                await connection.close()

    async def close(self) -> None:
        """Finish what is queued and close. The last close of a file also folds the log into it.

        A caller that is cancelled does not stop the closing; calling again waits for it.
        """
        if self._process != os.getpid():
            self._closed = True  # a forked child: the connections are the parent's
            return
        if self._loop is not asyncio.get_running_loop():
            self._abandon()
            return
        if self._closing is None:
            self._closed = True
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    def _abandon(self) -> None:
        """Close from another event loop: only when the handle's own loop is over, since nobody can wait for it then."""
        if self._loop is not None and not self._loop.is_closed():
            raise Closed("this handle belongs to another event loop that is still there; close it in that loop")
        self._closed = True
        workers = [self._writer.connection] if self._writer is not None else []
        if self._writer is not None:
            self._writer.finish()
        for worker in [*workers, *(self._readers.abandon() if self._readers is not None else [])]:
            worker.stop()

    async def _close(self) -> None:
        await self._flush()
        if self._writer is not None:
            await self._writer.drained()
            self._writer.finish()
        if self._readers is not None:
            await self._readers.close()
        if self._writer is not None:
            await self._writer.connection.post(self._tidy)
            await self._writer.connection.close()
        self.lock.close()

    # -- on a worker's thread -----------------------------------------------------------------------------------------

    def _tidy(self, connection: sqlite3.Connection) -> None:
        # The last close of a file checkpoints, so it takes a turn like any writer. What is busy or full here is left to
        # the next opening: all that was acknowledged is in the log.
        with suppress(StorageError), self.lock:
            with suppress(sqlite3.Error, SchemaTooNew):
                check_version(connection)
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
