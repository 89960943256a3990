"""manager.run: how a run of an agent stands is in its checkpoints, also when it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import memdb
from memdb import InvalidInput, StorageError
from memdb.layers.runtime.checkpoints import AgentCheckpoint
from memdb.layers.runtime.interrupts import INTERRUPTS
from tests.cli.command_line import hear_ctrl_c
from tests.processes.helpers import PATIENCE, ROOT


async def stands(memory, id="r"):
    """Return the status and payload of the last save, and how many saves there are."""
    history = await memory.manager.checkpoint_history(id)
    return (history[0].status, history[0].payload, len(history))


async def test_a_run_that_ends_is_completed(memory):
    async with memory.manager.run("r", {"n": 0}) as run:
        assert await stands(memory) == ("in_progress", {"n": 0}, 1)
        given = {"n": [1]}
        assert await run.step(given) == 2
        given["n"].append("changed since")
        run.payload["n"].append("changed since")
        assert await stands(memory) == ("in_progress", {"n": [1]}, 2)
        assert (run.id, run.payload, run.resumed) == ("r", {"n": [1]}, None)
    assert await stands(memory) == ("completed", {"n": [1]}, 3)


@pytest.mark.parametrize("error", [ValueError("secret"), KeyError("x"), memdb.NotFound("y")])
async def test_a_run_that_raises_is_interrupted(memory, error, caplog):
    async def work():
        async with memory.manager.run("r") as run:
            await run.step({"n": 1})
            raise error

    with pytest.raises(type(error)):
        await work()
    assert await stands(memory) == ("interrupted", {"n": 1}, 3)
    assert f"the run 'r' was interrupted ({type(error).__name__})" in caplog.text
    assert "secret" not in caplog.text


async def test_a_run_that_is_cancelled_is_interrupted(memory):
    entered = asyncio.Event()

    async def work():
        async with memory.manager.run("r", {"n": 7}):
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await stands(memory) == ("interrupted", {"n": 7}, 2)


@pytest.mark.parametrize("status", ["in_progress", "interrupted", "completed", None])
async def test_what_was_not_completed_is_resumed(memory, status):
    await memory.manager.save_checkpoint(AgentCheckpoint(id="r", status=status, payload={"n": 5}))
    open_still = status in ("in_progress", "interrupted")
    async with memory.manager.run("r", {"n": 0}, resume=True) as run:
        assert run.resumed == ({"n": 5} if open_still else None)
        assert await stands(memory) == ("in_progress", {"n": 5 if open_still else 0}, 2)
    async with memory.manager.run("other", {"n": 0}, resume=True) as run:
        assert run.resumed is None


async def test_without_resume_a_run_begins_anew(memory):
    await memory.manager.save_checkpoint(AgentCheckpoint(id="r", status="interrupted", payload={"n": 5}))
    async with memory.manager.run("r") as run:
        assert run.resumed is None
    assert await stands(memory) == ("completed", {}, 3)


async def test_what_cannot_be_a_run_is_refused(memory):
    for arguments in (("a b",), ("r", [1]), ("r", {"n": object()})):
        with pytest.raises(InvalidInput):
            memory.manager.run(*arguments)
    run = memory.manager.run("r")
    with pytest.raises(InvalidInput, match="is not under way"):
        await run.step({})
    async with run:
        with pytest.raises(InvalidInput, match="the payload must be a dict"):
            await run.step([1])
        with pytest.raises(InvalidInput, match="was entered already"):
            await run.__aenter__()
    with pytest.raises(InvalidInput, match="is not under way"):
        await run.step({})
    with pytest.raises(InvalidInput, match="a unit cannot hold a run"):
        await memory.atomic(lambda m: m.manager.run("r"))
    assert await stands(memory) == ("completed", {}, 2)


async def test_a_run_that_cannot_be_saved(path, caplog):
    async with memdb.open(path, read_only=True) as db:
        with pytest.raises(StorageError, match="reading only"):
            await db.memory().manager.run("r").__aenter__()
    async with memdb.open(path) as db:

        async def work():
            async with db.memory().manager.run("r"):
                await db.close()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        assert "the run 'r' could not be marked as interrupted" in caplog.text
        assert not INTERRUPTS._runs


async def test_handlers_are_as_they_were_after_the_last_run(memory):
    def heard(number, frame):
        raise AssertionError

    kept = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        signal.signal(signal.SIGTERM, heard)
        first, second = memory.manager.run("a"), memory.manager.run("b")
        await first.__aenter__()
        await second.__aenter__()
        assert signal.getsignal(signal.SIGTERM) not in (heard, signal.SIG_DFL)
        await first.__aexit__(None, None, None)
        assert signal.getsignal(signal.SIGTERM) is not heard
        await second.__aexit__(None, None, None)
        assert signal.getsignal(signal.SIGTERM) is heard
        assert signal.getsignal(signal.SIGINT) == kept[0]
        async with memory.manager.run("c"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), kept, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("install", ["in the loop", "with signal.signal"])
async def test_a_handler_of_the_application_still_runs(memory, install):
    """The run is marked, and what comes next is the application's affair."""
    heard, marked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGTERM)
    if install == "in the loop":
        loop.add_signal_handler(signal.SIGTERM, heard.set)
    else:
        signal.signal(signal.SIGTERM, lambda number, frame: heard.set())
    try:
        async with memory.manager.run("r", {"n": 1}) as run:
            marking = run.interrupt

            async def interrupt(reason):
                await marking(reason)
                marked.set()

            run.interrupt = interrupt
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(asyncio.gather(heard.wait(), marked.wait()), PATIENCE)
            assert await stands(memory) == ("interrupted", {"n": 1}, 2)
            await run.step({"n": 2})
        assert await stands(memory) == ("completed", {"n": 2}, 4)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


async def test_outside_the_main_thread_signals_are_left_alone(path):
    before = signal.getsignal(signal.SIGTERM)

    async def work():
        async with memdb.open(path) as db, db.memory().manager.run("r") as run:
            assert signal.getsignal(signal.SIGTERM) == before
            await run.step({"n": 1})

    await asyncio.to_thread(asyncio.run, work())
    async with memdb.open(path) as db:
        assert await stands(db.memory()) == ("completed", {"n": 1}, 3)


PROGRAM = """
import asyncio, signal, sys
import memdb

async def work(path, how):
    async with memdb.open(path) as db:
        async with db.memory().manager.run("r", {"n": 0}, resume=True) as run, db.memory().manager.run("other"):
            await run.step({"n": (run.resumed or {"n": 0})["n"] + 1})
            print("ready", flush=True)
            await asyncio.sleep(0.2)  # the signal comes
            if how == "task":
                await asyncio.gather(asyncio.create_task(asyncio.sleep(60)))
            await asyncio.sleep(60)

def caught(number, frame):
    print("caught", number, flush=True)
    sys.exit(7)

path, how = sys.argv[1:]
if how == "own":
    signal.signal(signal.SIGTERM, caught)
if how == "bare":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(work(path, how))
else:
    asyncio.run(work(path, how))
"""


def run_and_send(path: Path, how: str, number: signal.Signals) -> tuple[int, str, str]:
    """Start the program, send it a signal while its run is under way, and return how it ended and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(path), how],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("how", "number", "status"),
    [
        ("run", signal.SIGINT, -signal.SIGINT),  # KeyboardInterrupt ends the interpreter so
        ("task", signal.SIGINT, -signal.SIGINT),
        ("bare", signal.SIGINT, -signal.SIGINT),
        ("run", signal.SIGTERM, -signal.SIGTERM),
        ("bare", signal.SIGTERM, -signal.SIGTERM),
        ("own", signal.SIGTERM, 7),
    ],
)
async def test_a_run_that_is_told_to_stop_is_interrupted(path, how, number, status):
    ended, out, err = await asyncio.to_thread(run_and_send, path, how, number)
    assert ended == status, err
    if number is signal.SIGINT:
        assert err.rstrip().endswith("KeyboardInterrupt")
    assert ("caught" in out) == (how == "own")
    async with memdb.open(path) as db:
        assert await stands(db.memory()) == ("interrupted", {"n": 1}, 3)
        assert await stands(db.memory(), "other") == ("interrupted", {}, 2)
        assert (await db.check()).problems == []


async def test_a_run_that_is_killed_stays_under_way_and_is_resumed(path):
    for n in (1, 2):
        await asyncio.to_thread(run_and_send, path, "run", signal.SIGKILL)
        async with memdb.open(path) as db:
            assert (await stands(db.memory()))[:2] == ("in_progress", {"n": n})
            assert (await db.memory().manager.latest_checkpoint("in_progress")).id == "r"
            assert (await db.check()).problems == []
