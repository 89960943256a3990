"""Who lives how long, and what happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.torture import faults
from benchmarks.torture.counters import Counters
from benchmarks.torture.inspector import LOOKS

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds until a process that does not end is a fault
KILLED = -signal.SIGKILL
SHORTLY = 0.1  # of the workers are killed while they open the file, or recover
STOPPED = 0.1  # of the workers are stopped for a while before they are killed
KILLED_LOOKS = 0.2  # of the inspectors


@dataclass
class Plan:
    """What a run shall be.

    Args:
        folder: where all of it lies.
        seed: of all luck. What is drawn follows from it; when which process runs does not.
        seconds: how long; then it ends.
        kills: after how many kills it ends, if that is sooner; None for no such end.
        workers: how many processes write at once.
        tasks: how many scopes each of them has.
        lifetime: how long a worker lives on the average, in seconds.
        disk_full: whether the workers' disk is full now and then.
    """

    folder: Path
    seed: int
    seconds: float
    kills: int | None = None
    workers: int = 4
    tasks: int = 3
    lifetime: float = 1.0
    disk_full: bool = False


class Director:
    """A run. Its counts say how far it is: kills, reopenings, stops, each kind of look.

    Args:
        plan: what it shall be.
        tell: is called now and then, to show how far it is.
    """

    def __init__(self, plan: Plan, tell: Callable[[Director], None] = lambda director: None) -> None:
        self.plan, self.tell = plan, tell
        self.random = random.Random(plan.seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.began = time.monotonic()
        self.users = [f"u{number}" for number in range(plan.workers * plan.tasks)]
        self.counters = Counters(plan.folder / "counters", len(self.users))
        self._nursery: Process | None = None
        self._ends: dict[int, asyncio.Future[int]] = {}
        self._number = 0

    async def run(self) -> list[str]:
        """Run it to its end, or to its first fault; return the faults."""
        errors = (self.plan.folder / "stderr.txt").open("wb")
        words = [sys.executable, "-m", "benchmarks.torture.nursery"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])]),
        }
        self._nursery = await asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=errors, env=environment
        )
        assert self._nursery.stdout is not None
        try:
            if not await self._nursery.stdout.readline():
                self._fault("the nursery could not be started; see stderr.txt")
                return self.faults
            hearing = asyncio.ensure_future(self._hear())
            telling = asyncio.ensure_future(self._tell())
            self.began = time.monotonic()
            await asyncio.gather(*(self._slot(number) for number in range(self.plan.workers)), self._inspections())
            telling.cancel()
            if not self.faults:
                await self._end()
            hearing.cancel()
        finally:
            errors.close()
            await self._close()
        return self.faults

    async def _close(self) -> None:
        """End the nursery, and with it whatever lives still."""
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        self._nursery.stdin.close()
        try:
            await asyncio.wait_for(self._nursery.wait(), 10)
        except TimeoutError:
            self._nursery.kill()
            await self._nursery.wait()

    def over(self) -> bool:
        """Whether it is time to end, or something is wrong."""
        enough = self.plan.kills is not None and self.counts["kills"] >= self.plan.kills
        return bool(self.faults) or enough or time.monotonic() - self.began > self.plan.seconds

    # -- children -----------------------------------------------------------------------------------------------------

    def _start(self, do: str, **order: Any) -> int:
        self._number += 1
        self._ends[self._number] = asyncio.get_running_loop().create_future()
        self._order(number=self._number, do=do, order={"folder": str(self.plan.folder), **order})
        return self._number

    def _signal(self, number: int, which: int) -> None:
        self._order(number=number, signal=which)

    def _order(self, **what: Any) -> None:
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(f"{json.dumps(what)}\n".encode())

    async def _hear(self) -> None:
        assert self._nursery is not None
        assert self._nursery.stdout is not None
        while line := await self._nursery.stdout.readline():
            told = json.loads(line)
            self._ends[told["ended"]].set_result(told["code"])
        self._fault("the nursery has ended; see stderr.txt")
        for end in self._ends.values():
            if not end.done():
                end.set_result(KILLED)

    async def _ended(self, number: int, seconds: float) -> int | None:
        """Wait until a child has ended; return its exit code, or None when it lives on."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._ends[number]), seconds)
        except TimeoutError:
            return None

    async def _tell(self) -> None:
        while True:
            self.tell(self)
            await asyncio.sleep(1)

    def _fault(self, what: str) -> None:
        self.faults.append(what)

    def _judge(self, who: str, code: int, *, killed: bool) -> None:
        """Count how a child ended; a fault when it was not as it should."""
        if code == faults.FAULT_EXIT:
            told = [text for text in faults.found(self.plan.folder) if text not in self.faults]
            self.faults += told or [f"{who} found a fault and did not say which"]
        elif code not in (0, KILLED):
            self._fault(f"{who} ended with {code}; see {self.plan.folder / 'stderr.txt'}")
        elif code == KILLED:
            self.counts["kills" if killed else "deaths inside a transaction"] += 1

    # -- workers ------------------------------------------------------------------------------------------------------

    async def _slot(self, slot: int) -> None:
        """Keep one worker after the other over the same scopes."""
        tasks = self.plan.tasks
        users = [[user, row] for row, user in enumerate(self.users) if row // tasks == slot]
        while not self.over():
            order = {"users": users, "rows": len(self.users), "seed": self.random.getrandbits(48)}
            life = self.random.expovariate(1 / self.plan.lifetime)
            if self.random.random() < SHORTLY:
                life = self.random.random() * 0.05
            old = self.plan.lifetime * 3 if self.random.random() < 0.9 else life / 2
            worker = self._start("work", lifetime=old, disk_full=self.plan.disk_full, **order)
            await self._live(worker, life)

    async def _live(self, worker: int, life: float) -> None:
        """Let a worker live for so many seconds, if it does, and see it end."""
        code = await self._ended(worker, life)
        killed = code is None
        if code is None and self.over():
            self._signal(worker, signal.SIGTERM)
            code = await self._ended(worker, PATIENCE)
            killed = False
        elif code is None:
            if self.random.random() < STOPPED:
                self._signal(worker, signal.SIGSTOP)
                self.counts["stops"] += 1
                await asyncio.sleep(self.random.random())
                if self.random.random() < 0.5:
                    self._signal(worker, signal.SIGCONT)
                    await asyncio.sleep(self.random.random() * 0.2)
            self._signal(worker, signal.SIGKILL)
            code = await self._ended(worker, PATIENCE)
        if code is None:
            self._fault(f"worker {worker} does not end")
            return
        if code == 0:
            self.counts["closed and opened again"] += 1
        self._judge(f"worker {worker}", code, killed=killed)

    # -- looks --------------------------------------------------------------------------------------------------------

    async def _inspections(self) -> None:
        names, weights = list(LOOKS), [weight for weight, _ in LOOKS.values()]
        while not self.over():
            await asyncio.sleep(self.random.random() * 0.7)
            if not self.counters.totals()["acknowledged"]:
                continue  # a shell that looks for the file too early would make an empty one
            how = self.random.choices(names, weights)[0]
            order = {"users": self.users, "seed": self.random.getrandbits(48), "number": self._number + 1}
            look = self._start("inspect", how=how, **order)
            code = None
            if self.random.random() < KILLED_LOOKS:
                code = await self._ended(look, self.random.random() * 0.3)
                if code is None:
                    self._signal(look, signal.SIGKILL)
            code = await self._ended(look, PATIENCE) if code is None else code
            if code is None:
                self._fault(f"the {how} does not end")
                return
            if code == 0:
                self.counts[how] += 1
            self._judge(f"the {how}", code, killed=True)

    async def _end(self) -> None:
        end = self._start("end", users=self.users)
        code = await self._ended(end, PATIENCE)
        if code is None:
            self._fault("the look at the end does not end")
        else:
            self._judge("the look at the end", code, killed=False)
