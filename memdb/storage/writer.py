"""Group commit: many callers, one transaction, one fsync.

A durable write costs one fsync whatever it holds (210 to 3500 us here), so all units that wait go into one transaction:
64 callers at FULL write a row in 37 to 74 us each. A unit's future resolves after COMMIT, never before.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from memdb.errors import MemdbError, StorageError
from memdb.storage.begin import begin_immediate, check_version
from memdb.storage.clock import Clock
from memdb.storage.connection import WorkerConnection, is_undecodable, translate
from memdb.storage.lock import FileLock
from memdb.storage.quarantine import Damage, set_aside
from memdb.storage.recalls import FLUSH_DELAY_S, MAX_BUFFERED, RecallBuffer, Recalled, store
from memdb.storage.transaction import Transaction, lenient, run_unit

Unit = Callable[..., Any]
Together = Callable[[Transaction, Sequence[tuple[Any, ...]]], Sequence[Any]]
log = logging.getLogger("memdb")

MAX_BATCH = 512  # units a transaction: beyond it the fsync's share is below 1 us and others wait longer for the lock
CAREFUL_BATCHES = 16  # after a failure, how many batches guard every unit with a savepoint from the start


@dataclass(slots=True, eq=False)
class Job:
    """A waiting unit with its arguments, and the future of its caller.

    Args:
        together: does the same for many argument lists at once, in their order; None where there is no such way.
    """

    unit: Unit
    args: tuple[Any, ...]
    future: asyncio.Future[Any]
    together: Together | None = None
    value: Any = None
    error: BaseException | None = None
    damaged: dict[Hashable, Damage] = field(default_factory=dict)


class Writer:
    """The one writing connection of a handle and the queue before it.

    Args:
        connection: the writing connection.
        lock: the file's advisory lock.
        clock: the handle's clock.
        timeout: how long to try to begin a transaction, in seconds.
    """

    def __init__(self, connection: WorkerConnection, lock: FileLock, clock: Clock, *, timeout: float) -> None:
        self.connection = connection
        self._lock = lock
        self._clock = clock
        self._timeout = timeout
        self._waiting: list[Job] = []
        self._busy = False
        self._careful = 0
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._recalls = RecallBuffer()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._finished = False

    def submit(self, unit: Unit, *args: Any, together: Together | None = None) -> asyncio.Future[Any]:
        """Queue `unit(tx, *args)` and return the future of its value, which resolves once it is on disk.

        A caller that is cancelled before its unit is taken up leaves nothing behind; after that the unit is committed
        or rolled back as a whole.
        """
        loop = asyncio.get_running_loop()
        job = Job(unit, args, loop.create_future(), together)
        self._waiting.append(job)
        if not self._busy:
            # Not at once: all callers that are awake in this turn of the loop share the transaction.
            self._busy = True
            self._idle.clear()
            loop.call_soon(self._dispatch)
        return job.future

    def count(self, recalls: Iterable[Recalled]) -> None:
        """Count recalls: the next batch carries them, which is made after a while if nobody writes."""
        self._recalls.add(recalls)
        self._flush_later()
        if len(self._recalls) >= MAX_BUFFERED and not self._busy:
            self._flush_due()

    async def flush(self) -> None:
        """Wait until every recall that was counted before is on disk, or could not be stored."""
        if self._recalls:
            await self.submit(_nothing)

    def finish(self) -> None:
        """Take no more recalls; those that could not be stored are lost, and the log says so."""
        self._finished = True
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._recalls:
            log.warning("the recalls of %d records could not be stored and are lost", len(self._recalls))

    async def drained(self) -> None:
        """Wait until nothing is queued or under way."""
        await self._idle.wait()

    def _dispatch(self) -> None:
        waiting = [job for job in self._waiting if not job.future.done()]
        batch, self._waiting = waiting[:MAX_BATCH], waiting[MAX_BATCH:]
        if not batch:
            self._busy = False
            self._idle.set()
            return
        if self._recalls:
            batch.insert(0, self._recall_job())
        self.connection.post_and_tell(
            lambda connection: self._commit(connection, batch), lambda failure: self._deliver(batch, failure)
        )

    def _deliver(self, batch: list[Job], failure: BaseException | None) -> None:
        for job in batch:
            error = failure or job.error
            if job.future.done():
                continue
            if error is None:
                job.future.set_result(job.value)
            else:
                job.future.set_exception(translate(error))
        # The callers just woken submit again in this turn of the loop; the next batch takes them along.
        asyncio.get_running_loop().call_soon(self._dispatch)

    def _recall_job(self) -> Job:
        rows = self._recalls.take()
        job = Job(store, (rows,), asyncio.get_running_loop().create_future())
        job.future.add_done_callback(partial(self._recalls_landed, rows))
        return job

    def _recalls_landed(self, rows: list[dict[str, Any]], landed: asyncio.Future[Any]) -> None:
        if landed.cancelled() or (error := landed.exception()) is None:
            return
        log.warning("the recalls of %d records could not be stored yet: %s", len(rows), error)
        self._recalls.put_back(rows)
        self._flush_later()

    def _flush_later(self) -> None:
        if self._flush_timer is None and not self._finished:
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_DELAY_S, self._flush_due)

    def _flush_due(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._recalls:
            self.submit(_nothing).add_done_callback(asyncio.Future.exception)  # its failure is that of the recalls

    # -- on the worker's thread ---------------------------------------------------------------------------------------

    def _commit(self, connection: sqlite3.Connection, batch: list[Job]) -> None:
        with self._lock:
            try:
                self._commit_batch(connection, batch)
            except sqlite3.OperationalError as error:
                if len(batch) == 1 or not getattr(error, "sqlite_errorname", "").startswith(
                    ("SQLITE_FULL", "SQLITE_IOERR")
                ):
                    raise
                self._one_by_one(connection, batch)

    def _commit_batch(self, connection: sqlite3.Connection, batch: list[Job]) -> None:
        if self._careful:
            self._careful -= 1
        elif self._together(connection, batch):
            return
        else:
            self._careful = CAREFUL_BATCHES
        self._apart(connection, batch)

    def _one_by_one(self, connection: sqlite3.Connection, batch: list[Job]) -> None:
        """Give each unit a transaction of its own when the disk had no room for all: what still fits is stored."""
        for job in batch:
            try:
                self._apart(connection, [job])
            except (sqlite3.Error, MemdbError) as error:  # its own: what was committed before it stays acknowledged
                job.error = error

    def _together(self, connection: sqlite3.Connection, batch: list[Job]) -> bool:
        """Run a batch without savepoints: one failure undoes all, and False asks for the guarded way.

        A savepoint makes FTS5 flush its buffer, which nearly doubles a row's cost (256 units: 43 against 77 us each).
        So does every statement with a trigger, so neighbours that can be done as one statement are.
        """
        self._begin(connection)
        try:
            for together, alike in groupby(batch, key=attrgetter("together")):
                jobs = list(alike)
                if together is not None and len(jobs) > 1:
                    if not self._run_alike(connection, together, jobs):
                        connection.rollback()
                        return False
                    continue
                for job in jobs:
                    self._run(connection, job)
                    if job.error is not None or job.damaged:
                        connection.rollback()
                        return len(batch) == 1 and not job.damaged and not is_undecodable(job.error)
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise
        return True

    def _run_alike(self, connection: sqlite3.Connection, together: Together, jobs: list[Job]) -> bool:
        """Run neighbours of one kind as one act; False when it fails, whoever's fault that is."""
        tx = Transaction(connection, self._clock, writing=True)
        try:
            values = run_unit(together, tx, [job.args for job in jobs])
        except Exception:
            return False
        for job, value in zip(jobs, values, strict=True):
            job.value, job.error = value, None
        return connection.in_transaction and not tx.damaged

    def _apart(self, connection: sqlite3.Connection, batch: list[Job]) -> None:
        """Run a batch with a savepoint a unit, so that a failing one costs nobody else anything."""
        waiting = list(batch)
        while waiting:
            self._begin(connection)
            try:
                lost = next((job for job in waiting if not self._guarded(connection, job)), None)
                if lost is None:
                    connection.execute("COMMIT")
                    return
            except BaseException:
                connection.rollback()
                raise
            # The whole transaction went with this unit (a full disk, an interrupt): again, without it.
            waiting.remove(lost)

    def _guarded(self, connection: sqlite3.Connection, job: Job) -> bool:
        """Run a unit in its savepoint; False when the transaction itself is gone afterwards."""
        connection.execute("SAVEPOINT unit")
        self._run(connection, job)
        if is_undecodable(job.error) and connection.in_transaction:
            connection.execute("ROLLBACK TO unit")
            self._run(connection, job, careful=True)
        if not connection.in_transaction:
            return False
        if job.error is not None:
            connection.execute("ROLLBACK TO unit")
        if job.damaged:
            tx = Transaction(connection, self._clock, writing=True)
            with lenient(connection, tx):
                set_aside(tx, job.damaged)
        connection.execute("RELEASE unit")
        return True

    def _run(self, connection: sqlite3.Connection, job: Job, *, careful: bool = False) -> None:
        tx = Transaction(connection, self._clock, writing=True)
        job.value, job.error, job.damaged = None, None, tx.damaged
        try:
            if careful:
                with lenient(connection, tx):
                    job.value = run_unit(job.unit, tx, *job.args)
            else:
                job.value = run_unit(job.unit, tx, *job.args)
            if not connection.in_transaction:
                raise StorageError("the unit's transaction was lost while it ran; nothing of it was stored: try again")
        except BaseException as error:
            job.error = error

    def _begin(self, connection: sqlite3.Connection) -> None:
        begin_immediate(connection, self._timeout)
        try:
            check_version(connection)
        except BaseException:
            connection.rollback()
            raise


def _nothing(tx: Transaction) -> None:
    """A unit that only makes a batch."""
