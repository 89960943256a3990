"""Other processes for the tests: quick to start, because their server has memdb loaded already."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import memdb

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["memdb.database", "memdb.memory", "memdb.layers.items", "memdb.layers.knowledge", "tests.processes.helpers"]
)

ROOT = Path(__file__).parents[2]
NOBODY = 65534
PATIENCE = 60.0  # seconds until a test that hangs is called a failure


def in_processes(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Run function(*call) in a process for each call, all at once; return the values or raise the first error."""
    calls = list(calls)
    with ProcessPoolExecutor(len(calls), mp_context=CONTEXT) as pool:
        return [found.result(PATIENCE) for found in [pool.submit(function, *call) for call in calls]]


def in_process(function: Callable[..., Any], *args: Any) -> Any:
    """Run function(*args) in a process of its own; return its value or raise its error."""
    return in_processes(function, [args])[0]


def as_nobody(function: Callable[..., Any], *args: Any) -> Any:
    """Run function(*args) where permissions bind: in a process that has given up root."""
    return in_process(_give_up_root, function, args)


def _give_up_root(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    asyncio.run(_use_all())  # nobody may not read the interpreter's folder: what is loaded late is loaded now
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return function(*args)


async def _use_all() -> None:
    await asyncio.to_thread(int)
    async with memdb.open(":memory:") as db:
        memory = db.memory()
        await memory.items.save(memdb.MemoryItem(id="a", content="hello"))
        await memory.items.search("hello")
        await db.check()


def script(code: str, *args: object, folder: Path, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Run a whole program in a folder and return what became of it; one that does not exit fails the test."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def wait_until(true: Callable[[], bool]) -> bool:
    """Wait for what other threads are about to do; return whether it came true."""
    deadline = time.monotonic() + 10
    while not true():
        if time.monotonic() > deadline:
            return False
        gc.collect()
        time.sleep(0.01)
    return True


def open_files() -> int:
    """Return how many descriptors this process holds."""
    return len(os.listdir("/proc/self/fd"))
