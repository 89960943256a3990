"""SIGKILL in the middle of an agent's turns: what was acknowledged is there, and no turn is half there."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import memdb
from memdb.layers.runtime.checkpoints import AgentCheckpoint
from tests.processes.helpers import CONTEXT

KILLS = 6
TEXT = "a line of a tool's output\n" * 6_000  # five chunks


def turn(m: Any, number: int) -> None:
    """One turn of an agent: its state, summary, checkpoint and tool result say the same number."""
    manager = m.manager
    manager.update_state({"turn": number, f"key {number % 7}": number})
    manager.update_working_memory(f"turn {number}")
    manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"turn": number}))
    manager.save_tool_result("last", {"tool": "t", "turn": number, "content": f"{number}\n{TEXT}"})
    if number % 5 == 0:
        manager.prune_checkpoints(keep=3)


def work_on(path: Path, notes: Path) -> None:
    """Take turns until killed, noting each that is acknowledged."""
    noted = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def go() -> None:
        async with memdb.open(path) as db:
            memory = db.memory()
            number = (await memory.manager.get_state()).get("turn", 0)
            while True:
                number += 1
                await memory.atomic(lambda m: turn(m, number))  # noqa: B023 - awaited before the next round
                os.write(noted, f"{number}\n".encode())

    asyncio.run(go())


async def test_kills_in_the_middle_of_turns(tmp_path: Path) -> None:
    path, notes = tmp_path / "a.db", tmp_path / "notes"
    chance, last = random.Random(7), 0
    for _ in range(KILLS):
        process = CONTEXT.Process(target=work_on, args=(path, notes), daemon=True)
        process.start()
        await asyncio.sleep(0.2 + chance.random() * 0.2)
        process.kill()
        process.join()
        acknowledged = max([0, *map(int, notes.read_text().split())]) if notes.exists() else 0
        async with memdb.open(path) as db:
            manager = db.memory().manager
            number = (await manager.get_state()).get("turn", 0)
            assert number - acknowledged in (0, 1)  # one may be stored and not acknowledged
            if number:
                assert await manager.get_working_memory() == f"turn {number}"
                assert await manager.working_memory_revision() == number
                latest = await manager.latest_checkpoint("in_progress")
                assert latest is not None
                assert (latest.payload, latest.seq) == ({"turn": number}, number)
                result = await manager.load_tool_result("last")
                assert result == {"tool": "t", "turn": number, "content": f"{number}\n{TEXT}"}
            blobs = await db.read(lambda tx: tx.execute("SELECT count(*) FROM blob"))
            saves = len(await manager.checkpoint_history("run"))
            assert blobs == [(saves + bool(number),)]
            assert (await db.check()).problems == []
            with notes.open("a") as noted:
                noted.write(f"{number}\n")
            last = number
    assert last > KILLS
