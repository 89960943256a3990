"""A process of several players on one handle, until it is killed, told to stop, or old."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import memdb
from benchmarks.torture import strangers
from benchmarks.torture.counters import Counters
from benchmarks.torture.faults import Fault
from benchmarks.torture.player import Player
from memdb.testing import HashingEmbedder

BUSY_TIMEOUT = 60.0  # seconds: others are stopped, or vacuum the file
GRACE = 2.0  # seconds
DEADLY = 0.3  # of the workers die by their own hand, inside a transaction


class Work(NamedTuple):
    """What a worker is told.

    Args:
        folder: of the whole run.
        users: the users of its players, each with the row of its counts.
        rows: how many rows of counts there are.
        seed: of its luck.
        lifetime: after how many seconds it closes the file and ends by itself.
        disk_full: whether its disk is full now and then.
    """

    folder: str
    users: list[tuple[str, int]]
    rows: int
    seed: int
    lifetime: float
    disk_full: bool


class Worker:
    """The handle, the players, and what happens beside them."""

    def __init__(self, work: Work, db: memdb.Database) -> None:
        self.work, self.db = work, db
        self.random = random.Random(work.seed)
        self.folder = Path(work.folder)
        self.counters = Counters(self.folder / "counters", work.rows)
        self.sated = 0.0  # since when the disk is not full any more
        self.until = time.monotonic() + work.lifetime
        self.stopped = False
        self.players = [self._player(user, row) for user, row in work.users]

    def _player(self, user: str, row: int) -> Player:
        source = random.Random(self.random.random())

        def count(name: str) -> None:
            self.counters.add(row, name)

        return Player(self.db, user, self.folder / "journals" / user, count, source, self._is_hungry)

    async def run(self) -> None:
        """Recover every scope, then play until it is over."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        await asyncio.gather(*(player.recover() for player in self.players))
        if self.random.random() < DEADLY:
            self._die_inside(self.random.randint(1, 6_000))
        beside: list[Coroutine[Any, Any, None]] = [self._strangers(), self._forks(), self._handles()]
        if self.work.disk_full:
            beside.append(self._hunger())
        async with asyncio.TaskGroup() as group:
            for player in self.players:
                group.create_task(player.play(self.over))
            for one in beside:
                group.create_task(one)

    def over(self) -> bool:
        """Whether it is time to end."""
        return self.stopped or time.monotonic() > self.until

    def _stop(self) -> None:
        self.stopped = True

    async def _each(self, seconds: float, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something again and again, after about so many seconds."""
        due = time.monotonic() + self.random.random() * seconds
        while not self.over():
            await asyncio.sleep(0.02)
            if time.monotonic() > due:
                await act()
                due = time.monotonic() + self.random.expovariate(1 / seconds)

    async def _strangers(self) -> None:
        async def ask() -> None:
            reads = self.random.sample(list(strangers.READS), 12)
            session = self.random.choice("ab")
            await strangers.ask(self.db, "stranger", session, reads)
            for _ in reads:
                self.counters.add(self.work.users[0][1], "asked")

        await self._each(0.5, ask)

    async def _forks(self) -> None:
        await self._each(1.5, self._fork)

    async def _fork(self) -> None:
        """A child that uses the handle it has inherited is told that it must not, and costs the others nothing."""
        child = os.fork()
        if not child:
            _be_forked(self.db)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise Fault(f"a forked child that used the handle of its parent was not refused: it ended with {code}")
        self.counters.add(self.work.users[0][1], "forks")

    async def _handles(self) -> None:
        """A second handle in this process: when it closes, the first must not lose its locks."""

        async def look() -> None:
            how = {"read_only": True} if self.random.random() < 0.5 else {"durability": "normal"}
            async with memdb.open(self.db.path, busy_timeout=BUSY_TIMEOUT, **how) as other:
                await strangers.ask(other, "stranger", "a", self.random.sample(list(strangers.READS), 3))

        await self._each(2, look)

    async def _hunger(self) -> None:
        """The disk is full for a while: this process can make no file longer than so many bytes."""
        await self._each(1.0, self._starve)

    async def _starve(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        longest = max(player.journal.size for player in self.players)
        self.sated = float("inf")
        resource.setrlimit(resource.RLIMIT_FSIZE, (longest + 600_000 + self.random.randrange(2_000_000), hard))
        try:
            await asyncio.sleep(self.random.random() * 0.7)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            self.sated = time.monotonic()

    def _is_hungry(self) -> bool:
        """Whether the disk is full, or was until just now: what was under way then may be told so still."""
        return time.monotonic() < self.sated + GRACE

    def _die_inside(self, step: int) -> None:
        """End this process at a certain step of its writing: in the middle of a transaction, as a rule."""
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        async def arm() -> None:
            await self.db.write(lambda tx: tx._connection.set_progress_handler(count, 20))

        self._arming = asyncio.ensure_future(arm())


def _be_forked(db: memdb.Database) -> None:
    """What a forked child does; it never returns."""
    code = 1
    try:
        for call in (db.memory("stranger").items.get("a"), db.write(lambda tx: None), db.check()):
            try:
                call.send(None)
            except memdb.Closed:
                code = 0
            else:
                code = 2
                break
    finally:
        os._exit(code)


def work(order: dict[str, Any]) -> None:
    """Work as told, until it is over."""
    told = Work(**order)

    async def go() -> None:
        path = Path(told.folder) / "agent.db"
        durability = "normal" if told.seed % 3 == 0 else "full"  # a kill takes nothing from either
        async with memdb.open(
            path, busy_timeout=BUSY_TIMEOUT, embedder=HashingEmbedder(64), durability=durability
        ) as db:
            await Worker(told, db).run()

    gc.freeze()  # what the nursery has loaded is not walked again
    asyncio.run(go())
