"""SIGKILL while a session is consolidated: history, facts and cursor say the same; no message is lost or told twice."""

from __future__ import annotations

import asyncio
import os
import random
import re
from pathlib import Path
from typing import Any

import memdb
from memdb.errors import ModelError
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.text.reply import ChatReply
from tests.processes.helpers import CONTEXT, wait_until

KILLS = 8
FAILING = 7  # every so many answers the model fails three times in a row


class Telling:
    """A model that says which messages it was shown; sometimes it fails, so that they go in as they are."""

    def __init__(self) -> None:
        self.asked = 0

    async def chat(self, messages: Any, **options: Any) -> ChatReply:
        self.asked += 1
        if self.asked % FAILING < 3:
            raise ModelError("down")
        told = re.findall(r"USER: number (\d+)\.", messages[-1]["content"])
        entry = "\n".join(f"USER: number {number}." for number in told)
        arguments = {"history_entry": entry, "memory_update": f"up to {told[-1]}"}
        return ChatReply(None, [{"function": {"name": "save_memory", "arguments": arguments}}], "tool_calls")


def work_on(path: Path, notes: Path) -> None:
    """Talk and consolidate until killed, noting the last message of each consolidation that came back."""
    noted = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def go() -> None:
        async with memdb.open(path) as db:
            memory = db.memory("alice", "s")
            keeper = MemoryConsolidator(memory, Telling(), 600)
            last = (await memory.conversation.messages(1) or [None])[-1]
            number = 0 if last is None else last.position or 0
            while True:
                number += 1
                await memory.conversation.add_message({"role": "user", "content": f"number {number}. " + "word " * 30})
                if await keeper.maybe_consolidate_by_tokens():
                    os.write(noted, f"{await memory.conversation.last_consolidated()}\n".encode())

    asyncio.run(go())


def size_of(notes: Path) -> int:
    return notes.stat().st_size if notes.exists() else 0


async def test_kills_in_the_middle_of_consolidations(tmp_path: Path) -> None:
    path, notes = tmp_path / "a.db", tmp_path / "notes"
    chance, passed = random.Random(11), 0
    for turn in range(KILLS):
        known = size_of(notes)
        process = CONTEXT.Process(target=work_on, args=(path, notes), daemon=True)
        process.start()
        if turn % 4:  # most kills hit a child that consolidates, however long a busy machine takes to start it
            assert await asyncio.to_thread(wait_until, lambda known=known: size_of(notes) > known)
        await asyncio.sleep(0.1 + chance.random() * 0.2)
        process.kill()
        process.join()
        acknowledged = max([0, *map(int, notes.read_text().split())]) if notes.exists() else 0
        async with memdb.open(path) as db:
            memory = db.memory("alice", "s")
            passed = await memory.conversation.last_consolidated()
            entries = await memory.facts.history()
            told = [int(n) for entry in entries for n in re.findall(r"USER: number (\d+)\.", entry.content)]
            assert told == list(range(1, passed + 1)), "an entry without its cursor, or a cursor without its entry"
            assert passed >= acknowledged
            saved = [entry.last_position for entry in entries if entry.origin == "consolidated"]
            assert await memory.facts.read_long_term() == (f"up to {saved[-1]}" if saved else "")
            left, _ = await memory.conversation.unconsolidated()
            everything = await memory.conversation.messages()
            assert [message.position for message in everything] == list(range(1, len(everything) + 1))
            assert left == everything[passed:]
            assert (await db.check()).problems == []
    assert passed > KILLS
