"""The reader pool: each read unit in one hop and one snapshot, on a connection that cannot write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, NamedTuple

from memdb.errors import Closed
from memdb.storage.clock import Clock
from memdb.storage.connection import WorkerConnection, is_undecodable
from memdb.storage.quarantine import Damage
from memdb.storage.recalls import Recalled
from memdb.storage.transaction import Transaction, lenient, run_unit

Unit = Callable[[Transaction], Any]


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
        self._queue: deque[asyncio.Future[None]] = deque()
        self._all: list[WorkerConnection] = []
        self._closed = False

    async def run(self, unit: Unit, *, single: bool = False) -> Outcome:
        """Run a unit, which with `single` runs one statement, and return what it leaves behind.

        A cancelled caller interrupts its statement; the connection goes back to the pool once the thread is done.
        """
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
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # our turn had come: pass it on
                raise
        return self._idle.pop()  # the one used last has the warmest cache

    def _release(self, connection: WorkerConnection) -> None:
        self._idle.append(connection)
        self._wake()

    def _wake(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return

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
