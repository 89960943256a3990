"""Many processes on one session: each position once, each one's messages in its order; a kill takes nothing back."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import memdb
from tests.processes.helpers import CONTEXT, in_processes

PROCESSES, MESSAGES, KILLS = 4, 150, 10
CALL = {"id": "c", "function": {"name": "f", "arguments": "{}"}}


def append(path: Path, name: int, count: int) -> list[int]:
    """Add messages one by one, side by side with others of this process; return their positions."""

    async def go() -> list[int]:
        async with memdb.open(path) as db:
            talk = db.memory("alice", "s").conversation
            return [await talk.add_message({"role": "user", "content": [name, n]}) for n in range(count)]

    return asyncio.run(go())


def import_from(path: Path, source: Path) -> int:
    async def go() -> int:
        async with memdb.open(path) as db:
            return (await db.memory("alice", "s").conversation.import_jsonl(source)).messages

    return asyncio.run(go())


def write_on(path: Path, notes: Path, name: str) -> None:
    """Add turns until killed: single messages from three tasks, and a call with its result in one act."""
    noted = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def single(talk: Any, task: int) -> None:
        n = 0
        while True:
            n += 1
            position = await talk.add_message({"role": "user", "content": f"{name}.{task} {n}"})
            os.write(noted, f"{position} {name}.{task} {n}\n".encode())

    async def pair(talk: Any) -> None:
        n = 0
        while True:
            n += 1
            call = {"role": "assistant", "tool_calls": [CALL], "content": f"{name}.pair {n}"}
            await talk.add_messages([call, {"role": "tool", "tool_call_id": "c", "content": f"{name}.result {n}"}])

    async def work() -> None:
        async with memdb.open(path) as db:
            talk = db.memory("alice", "s").conversation
            await asyncio.gather(*(single(talk, task) for task in range(3)), pair(talk))

    asyncio.run(work())


async def held(path: Path) -> list[memdb.Message]:
    async with memdb.open(path) as db:
        found = await db.memory("alice", "s").conversation.messages()
        assert (await db.check()).problems == []
    assert [message.position for message in found] == list(range(1, len(found) + 1))
    return found


def test_four_processes_append_to_one_session(path: Path) -> None:
    positions = in_processes(append, [(path, name, MESSAGES) for name in range(PROCESSES)])
    found = asyncio.run(held(path))
    assert len(found) == PROCESSES * MESSAGES
    for name in range(PROCESSES):
        mine = [(m.position, m.content[1]) for m in found if m.content[0] == name]
        assert mine == list(zip(positions[name], range(MESSAGES), strict=True))


def test_four_processes_import_into_one_session(path: Path, tmp_path: Path) -> None:
    sources = []
    for name in range(PROCESSES):
        sources.append(tmp_path / f"{name}.jsonl")
        sources[-1].write_text("".join(f'{{"role": "user", "content": [{name}, {n}]}}\n' for n in range(MESSAGES)))
    assert in_processes(import_from, [(path, source) for source in sources]) == [MESSAGES] * PROCESSES
    found = [message.content for message in asyncio.run(held(path))]
    blocks = [found[at : at + MESSAGES] for at in range(0, len(found), MESSAGES)]
    assert sorted(block[0][0] for block in blocks) == list(range(PROCESSES))
    assert all(block == [[block[0][0], n] for n in range(MESSAGES)] for block in blocks)


async def test_what_was_acknowledged_survives_kills_in_the_middle(path: Path, tmp_path: Path) -> None:
    notes, chance = tmp_path / "notes", random.Random(3)

    def start(name: str) -> Any:
        process = CONTEXT.Process(target=write_on, args=(path, notes, name), daemon=True)
        process.start()
        return process

    writers = [start(f"w{n}") for n in range(2)]
    for kill in range(KILLS):
        await asyncio.sleep(0.1 + chance.random() * 0.25)
        victim = writers.pop(chance.randrange(len(writers)))
        victim.kill()
        victim.join()
        acknowledged = dict(line.split(" ", 1) for line in notes.read_text().splitlines())
        found = {str(message.position): message.content for message in await held(path)}
        assert {position: found.get(position) for position in acknowledged} == acknowledged
        writers.append(start(f"k{kill}"))
    for writer in writers:
        writer.kill()
        writer.join()
    found_at_last = await held(path)
    said: dict[str, list[int]] = {}
    for message in found_at_last:
        name, n = str(message.content).split()
        said.setdefault(name, []).append(int(n))
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in said.values())
    for message, after in zip(found_at_last, [*found_at_last[1:], None], strict=True):
        if ".pair " in str(message.content):
            assert after is not None
            assert after.content == str(message.content).replace(".pair ", ".result ")
    assert len(notes.read_text().splitlines()) > KILLS
