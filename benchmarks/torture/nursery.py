"""The process that all others are forked from: it has memdb loaded, so a child works after some milliseconds.

It hears orders as lines of JSON, and tells as lines what becomes of its children. When its parent ends, it kills them.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import memdb
from benchmarks.torture import ending, faults, inspector, model, observe, strangers, worker
from benchmarks.torture.acts import ACTS, Chance, Refused
from memdb.testing import HashingEmbedder

DOES = {"work": worker.work, "inspect": inspector.inspect, "end": ending.end}


class Nursery:
    """Children by the number that their parent's parent has given them."""

    def __init__(self) -> None:
        self.children: dict[int, int] = {}  # process -> number
        self._heard = b""

    def run(self) -> None:
        """Obey until the orders end."""
        while self._hear():
            self._reap()
        for process in self.children:
            os.kill(process, signal.SIGKILL)

    def _hear(self) -> bool:
        """Wait a little for orders; False when there will be no more."""
        if not select.select([0], [], [], 0.004)[0]:
            return True
        read = os.read(0, 1 << 16)
        *lines, self._heard = (self._heard + read).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "signal" in order:
                self._signal(order["number"], order["signal"])
            else:
                self._start(order)
        return bool(read)

    def _start(self, order: dict[str, Any]) -> None:
        process = os.fork()
        if not process:
            _be_a_child(order)
        self.children[process] = order["number"]

    def _signal(self, number: int, which: int) -> None:
        for process, known in self.children.items():
            if known == number:
                os.kill(process, which)

    def _reap(self) -> None:
        while self.children:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            number = self.children.pop(process)
            tell({"ended": number, "code": os.waitstatus_to_exitcode(status)})


def tell(what: dict[str, Any]) -> None:
    """Tell the parent."""
    os.write(1, f"{json.dumps(what)}\n".encode())


def _be_a_child(order: dict[str, Any]) -> NoReturn:
    code = 0
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        DOES[order["do"]](order["order"])
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        faults.save(Path(order["order"]["folder"]), error, f"{order['do']} {order['number']}")
        code = faults.FAULT_EXIT
    finally:
        os._exit(code)


async def warm() -> None:
    """Use everything once, so that children have it loaded and compiled."""
    source = random.Random(1)
    async with memdb.open(":memory:", embedder=HashingEmbedder(64)) as db:
        state = model.empty()
        for number, act in enumerate(ACTS.values()):
            for turn in range(2):
                with suppress(memdb.MemdbError, Refused):
                    args = act.draw(Chance(source, state, 2 * number + turn))
                    if call := act.run(lambda session: db.memory("warm", session), args):
                        await call
                    act.apply(state, args)
        for call, _ in strangers.READS.values():
            with suppress(memdb.MemdbError):
                await call(db.memory("warm", "a"))
        await observe.observe(db, "warm")
        await db.check()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when it is over
    began = time.monotonic()
    asyncio.run(warm())
    tell({"ready": round(time.monotonic() - began, 3)})
    Nursery().run()
    sys.exit(0)
