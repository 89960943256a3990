"""The reader pool: each read unit in one hop and one snapshot, on a connection that cannot write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, NamedTuple

from memdb.errors import Closed
from memdb.storage.clock import Clock
from memdb.storage.connection import WorkerConnection, is_undecodable, translate
from memdb.storage.quarantine import Damage
from memdb.storage.recalls import Recalled
from memdb.storage.transaction import Transaction, lenient, run_unit

Unit = Callable[[Transaction], Any]

# Reads of one statement that have to wait are answered so many in a hop: 64 callers that get items take 30 us a get in
# place of 100. Others are not: one that takes long would let those behind it wait.
MOST_TOGETHER = 32


class Outcome(NamedTuple):
    """What a read unit leaves behind.

    Args:
        value: what it returned.
        damaged: the rows it could not read, by record id, or by what names a row that has none.
        recalled: the records that it counts as recalled.
    """

    value: Any
    damaged: dict[Hashable, Damage]
    recalled: list[Recalled]


class Waiting(NamedTuple):
    """Who waits for a connection.

    Args:
        told: of a read of one statement, its outcome; None: that it is this caller's turn to take a connection.
        unit: of a read of one statement, what is run; else None.
    """

    told: asyncio.Future[Any]
    unit: Unit | None = None


class ReaderPool:
    """At most `size` reading connections, opened when they are first needed.

    Args:
        connect: opens a reading connection.
        size: how many at most.
        clock: the handle's clock.
        counts: whether recalls are counted.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[WorkerConnection]], size: int, clock: Clock, *, counts: bool
    ) -> None:
        self._connect = connect
        self._room = size
        self._clock = clock
        self._counts = counts
        self._idle: deque[WorkerConnection] = deque()
        self._queue: deque[Waiting] = deque()
        self._all: list[WorkerConnection] = []
        self._closed = False

    async def run(self, unit: Unit, *, single: bool = False) -> Outcome:
        """Run a unit, which with `single` runs one statement, and return what it leaves behind.

        A cancelled caller interrupts its statement; the connection goes back to the pool once the thread is done.
        """
        if single and not (self._idle or self._room or self._closed):
            outcome = await self._in_company(unit)
            if outcome is not None:
                return outcome
        connection = self._idle.pop() if self._idle and not self._closed else await self._acquire()
        try:
            outcome = await connection.post(
                lambda raw: read_snapshot(raw, unit, self._clock, counts=self._counts, single=single)
            )
        except asyncio.CancelledError:
            connection.cancel_statement()
            connection.post(lambda raw: None).add_done_callback(lambda _: self._release(connection))
            raise
        except BaseException:
            self._release(connection)
            raise
        self._release(connection)
        return outcome

    async def _acquire(self) -> WorkerConnection:
        while not self._idle or self._closed:
            if self._closed:
                raise Closed("the database was closed before this read was answered; open it again with memdb.open()")
            if self._room:
                self._room -= 1
                try:
                    connection = await self._connect()
                except BaseException:
                    self._room += 1
                    self._wake()
                    raise
                if self._closed:  # while it was being opened
                    connection.stop()
                    continue
                self._all.append(connection)
                return connection
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(Waiting(turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # our turn had come: pass it on
                raise
        return self._idle.pop()  # the one used last has the warmest cache

    async def _in_company(self, unit: Unit) -> Outcome | None:
        """Run a unit of one statement once a connection is free, in one hop with others that wait.

        Returns:
            What it leaves behind, or None where it was not run: the caller is to take a connection.
        """
        told: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(told, unit))
        try:
            return await told
        except asyncio.CancelledError:
            if told.done() and not told.cancelled() and told.exception() is None and told.result() is None:
                self._wake()
            raise

    def _release(self, connection: WorkerConnection) -> None:
        self._idle.append(connection)
        self._wake()

    def _wake(self) -> None:
        """Turn to whoever has waited longest."""
        while self._queue:
            if self._queue[0].unit is not None and self._idle and not self._closed:
                self._answer(self._idle.pop())
                return
            told = self._queue.popleft().told
            if not told.done():
                told.set_result(None)
                return

    def _answer(self, connection: WorkerConnection) -> None:
        """Run units of one statement that wait, as many as follow one another, and tell their callers."""
        reads: list[tuple[asyncio.Future[Any], Unit]] = []
        while self._queue and (unit := self._queue[0].unit) is not None and len(reads) < MOST_TOGETHER:
            reads.append((self._queue.popleft().told, unit))
        answers: list[Outcome | BaseException] = []

        def answer(raw: sqlite3.Connection) -> None:
            for _, unit in reads:
                try:
                    answers.append(read_snapshot(raw, unit, self._clock, counts=self._counts, single=True))
                except BaseException as error:
                    answers.append(error)

        def tell(error: BaseException | None) -> None:
            self._release(connection)
            for (told, _), found in zip(reads, answers, strict=True):
                if told.done():
                    continue
                if isinstance(found, BaseException):
                    told.set_exception(translate(found))
                else:
                    told.set_result(found)

        connection.post_and_tell(answer, tell)

    async def close(self) -> None:
        """Close every connection after what it is running; reads that still wait for one are told."""
        connections = self.abandon()
        while self._queue:
            self._wake()
        for connection in connections:
            await connection.close()

    def abandon(self) -> list[WorkerConnection]:
        """Take no more reads and return the connections, for the caller to close."""
        self._closed = True
        connections, self._all = self._all, []
        return connections


def read_snapshot(
    connection: sqlite3.Connection,
    unit: Unit,
    clock: Clock,
    *,
    alone: bool = False,
    counts: bool = True,
    single: bool = False,
) -> Outcome:
    """Run a read unit inside one transaction.

    Args:
        connection: a reading connection; with `alone`, the one connection of an in-memory database, which is made
            read-only for the while.
        unit: what to run.
        clock: the handle's clock.
        counts: whether recalls are counted.
        single: whether it runs one statement, which is a snapshot by itself.
    """
    if alone:
        connection.execute("PRAGMA query_only = ON")
    if not single:
        connection.execute("BEGIN")
    try:
        tx = Transaction(connection, clock, writing=False, keeps=not alone, counts=counts, single=single)
        try:
            return Outcome(run_unit(unit, tx), tx.damaged, tx.recalled)
        except sqlite3.OperationalError as error:
            if not is_undecodable(error):
                raise
        tx = Transaction(connection, clock, writing=False, keeps=not alone, counts=counts, single=single)
        with lenient(connection, tx):
            return Outcome(run_unit(unit, tx), tx.damaged, tx.recalled)
    finally:
        if not single:
            connection.rollback()
        if alone:
            connection.execute("PRAGMA query_only = OFF")
