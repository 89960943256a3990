"""SIGINT and SIGTERM while runs are under way: they are marked as interrupted, then the signal does what it did before.

Handlers are set with signal.signal and not with the loop's add_signal_handler, which takes the place of a handler that
an application has set in its loop, and cannot give it back. This way the loop's own is called as well.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memdb.layers.runtime.runs import AgentRun

SIGNALS = (signal.SIGINT, signal.SIGTERM)
MARKING_SECONDS = 5.0  # for which a signal waits until the runs are marked

log = logging.getLogger("memdb")
Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Interrupts:
    """The runs that signals reach, and what the signals did before the first of them began."""

    def __init__(self) -> None:
        self._runs: dict[AgentRun, asyncio.AbstractEventLoop] = {}
        self._before: dict[int, Handler] = {}
        self._marking: asyncio.Task[None] | None = None
        self._heard = False  # a signal that waits for its loop, which a call that blocks may hold

    def add(self, run: AgentRun) -> None:
        """Let the signals reach a run where they can: in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._runs:
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: set by what is no Python, and could not be set again
                    self._before[number] = before
                    signal.signal(number, self._hear)
        self._runs[run] = asyncio.get_running_loop()

    def remove(self, run: AgentRun) -> None:
        """Let the signals pass a run by; after the last one they are as they were, unless somebody has set others."""
        if self._runs.pop(run, None) is not None and not self._runs:
            for number, before in self._before.items():
                self._give_back(number, before)
            self._before.clear()
            self._heard = False

    def leave(self) -> None:
        """Forget the runs of the process that this one was forked from: no loop here would ever mark them."""
        for run in list(self._runs):
            self.remove(run)
        self._marking, self._heard = None, False

    def _give_back(self, number: int, before: Handler) -> None:
        if signal.getsignal(number) == self._hear:
            signal.signal(number, before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        before = self._before.get(number)
        loop = next((loop for loop in self._runs.values() if loop.is_running()), None)
        if loop is None or self._heard:  # nobody could mark them, or it is said twice
            self._pass_on(number, before, frame)
        else:
            self._heard = True
            loop.call_soon_threadsafe(self._start, loop, number, before)

    def _start(self, loop: asyncio.AbstractEventLoop, number: int, before: Handler) -> None:
        if self._marking is None:
            self._marking = loop.create_task(self._mark(loop, number, before))

    async def _mark(self, loop: asyncio.AbstractEventLoop, number: int, before: Handler) -> None:
        name = signal.Signals(number).name
        reached = [run for run, its_loop in self._runs.items() if its_loop is loop]
        try:
            async with asyncio.timeout(MARKING_SECONDS):
                await asyncio.gather(*(run.interrupt(name) for run in reached), return_exceptions=True)
        except TimeoutError:
            log.warning("not all runs could be marked as interrupted within %g seconds", MARKING_SECONDS)
        finally:
            self._marking, self._heard = None, False
            self._pass_on(number, before, None)

    def _pass_on(self, number: int, before: Handler, frame: FrameType | None) -> None:
        """Do what the signal did before."""
        if callable(before):
            before(number, frame)
        else:  # the system's own way, which mostly ends the process
            self._give_back(number, before)
            signal.raise_signal(number)


INTERRUPTS = Interrupts()
if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=INTERRUPTS.leave)
