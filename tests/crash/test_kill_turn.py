"""SIGKILL in the middle of turns over all layers, 200 times: a turn is there whole or not at all, the file is sound."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import memdb
from memdb import (
    AgentCheckpoint,
    EpisodeTrace,
    GraphEntity,
    GraphRelation,
    KnowledgePage,
    MemoryItem,
    ProceduralSkill,
    SemanticPattern,
)
from tests.processes.helpers import CONTEXT

FILES, KILLS = 8, 25  # in each, so that looking over a whole file stays quick
STEPS = 20  # of SQLite's instructions between two looks whether it is time to die
LINE = "a line of a tool's output\n"
OUTPUT = LINE * 1_500  # two chunks
BLOCKS: Any = {"now": {"size": 30}, "log": {"size": 40, "description": "what was done"}}


def turn(m: Any, number: int) -> None:
    """One turn of an agent: every layer says its number."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    m.conversation.add_message({"role": "user", "content": f"question {number}"})
    m.conversation.add_message({"role": "assistant", "content": None, "tool_calls": [call]})
    m.manager.save_tool_result("last", {"tool": "look", "content": f"{number}\n{OUTPUT}"})
    m.conversation.add_message({"role": "tool", "content": f"result {number}", "tool_call_id": f"c{number}"})
    m.manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"turn": number}))
    m.manager.prune_checkpoints(keep=3)
    m.blocks.update_memory("now", f"turn {number}")
    m.blocks.append_to_memory("log", f"In turn {number} the agent looked and answered.")  # the older ones are archived
    m.graph.add_entity(GraphEntity(id=f"e{number}", name=f"Thing {number}", entity_type="thing"))
    if number > 1:
        relation = GraphRelation(source_id=f"e{number}", target_id=f"e{number - 1}", relation_type="follows", weight=1)
        m.graph.add_relation(relation)
    m.facts.write_long_term(f"facts of turn {number}")
    m.facts.append_history(f"turn {number}")
    m.archive.insert(f"passage of turn {number}")
    m.items.save(MemoryItem(id=f"i{number}", content=f"item of turn {number}"))
    m.pages.add_page(KnowledgePage(id=f"p{number}", title=f"Page {number}", content="a page", tags=["of a turn"]))
    m.engine.store_episode(EpisodeTrace.create(f"task {number}", "agent", f"goal of turn {number}"))
    m.engine.store_pattern(SemanticPattern.create(f"pattern of turn {number}", "turns"))
    m.engine.store_skill(ProceduralSkill.create(f"skill of turn {number}", "how to take it", ["take it"]))
    m.manager.update_state({"turn": number})
    m.conversation.add_message({"role": "assistant", "content": f"answer {number}"})


class Countdown:
    """Ends the process at a certain step of its writing; one that never does counts the steps."""

    def __init__(self, until: int) -> None:
        self.steps = 0
        self._until = until

    def __call__(self) -> int:
        self.steps += 1
        if self.steps == self._until:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


async def take_turns(path: Path, notes: Path, countdown: Countdown, turns: int | None = None) -> None:
    """Take turns, until killed or so many, noting each that is acknowledged."""
    noted = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with memdb.open(path) as db:
        memory = db.memory()
        number: int = (await memory.manager.get_state()).get("turn", 0)

        def one(m: Any) -> None:
            m._home._connection.set_progress_handler(countdown, STEPS)
            turn(m, number)

        while turns is None or turns > 0:
            number += 1
            await memory.atomic(one)
            os.write(noted, f"{number}\n".encode())
            turns = None if turns is None else turns - 1
    os.close(noted)


def breed(orders: Connection) -> None:
    """Make children that take turns until killed, each by fork: what is slow to load is loaded once.

    Gets a folder, at which step of a turn the child is to end itself, or 0, and else how long after its first turn it
    is ended; tells the signal that ended it. Without a step and a time it begins a new file, takes two turns and tells
    how many steps one takes.
    """
    while (order := orders.recv()) is not None:
        folder, step, seconds = order
        path, notes = folder / "a.db", folder / "notes"
        if step is None:
            countdown = Countdown(-1)
            asyncio.run(begin(path, notes, countdown))
            orders.send(countdown.steps // 2)
            continue
        known = notes.stat().st_size
        child = os.fork()
        if not child:
            asyncio.run(take_turns(path, notes, Countdown(step)))
        ended, status = os.waitpid(child, 0 if step else os.WNOHANG)
        while not ended and notes.stat().st_size == known:
            time.sleep(0.001)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
        orders.send(os.waitstatus_to_exitcode(status))


async def begin(path: Path, notes: Path, countdown: Countdown) -> None:
    async with memdb.open(path) as db:
        await db.memory().blocks.configure(BLOCKS, {"eviction_strategy": "archive_only"})
    await take_turns(path, notes, countdown, turns=2)


@contextmanager
def nursery() -> Iterator[Callable[..., Any]]:
    """Give what asks a nursery for the next child; see breed."""
    orders, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=breed, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that its end is heard

    async def ask(*order: Any) -> Any:
        orders.send(order)
        return await asyncio.to_thread(orders.recv)

    try:
        yield ask
        orders.send(None)
        process.join(10)
    finally:
        process.kill()
        process.join()


async def look(path: Path, acknowledged: int) -> int:
    """Check that the file holds whole turns, all that were acknowledged; return how many."""
    async with memdb.open(path) as db:
        memory = db.memory()
        n: int = (await memory.manager.get_state()).get("turn", 0)
        assert n - acknowledged in (0, 1), "one may be stored and not acknowledged"
        said = [message.content for message in await memory.conversation.messages(4)]
        assert said == [f"question {n}", None, f"result {n}", f"answer {n}"]
        assert len(await memory.conversation.get_history(4)) == 4, "a call without its result"
        saves = await memory.manager.checkpoint_history("run")
        assert [save.payload["turn"] for save in saves] == [*range(n, max(0, n - 3), -1)]
        assert await memory.manager.load_tool_result("last") == {"tool": "look", "content": f"{n}\n{OUTPUT}"}
        blocks = await memory.blocks.get_memory()
        assert blocks["now"] == f"turn {n}"
        assert blocks["log"].endswith(f"In turn {n} the agent looked and answered.")
        assert [scored.entity.id for scored in await memory.graph.get_related(f"e{n}", depth=1)] == [f"e{n - 1}"]
        assert (await memory.facts.long_term())[:2] == (f"facts of turn {n}", n)
        assert [entry.content for entry in await memory.facts.history(1)] == [f"turn {n}"]
        assert len(await memory.archive.list(100, source="agent")) == min(n, 100)
        assert f"passage of turn {n}" in [passage.content for passage in await memory.archive.list(3)]
        counts = {row.layer: row.records for row in (await db.stats()).layers}
        expected = {"message": 4 * n, "entity": n, "history": n, "fact": 1, "block": 2, "tool_result": 1, "state": 1}
        expected |= dict.fromkeys(("item", "page", "episode", "pattern", "skill"), n)
        assert (await memory.items.get(f"i{n}")).content == f"item of turn {n}"
        assert [page.id for page in await memory.pages.search(f"Page {n}", 1)] == [f"p{n}"]
        assert counts.items() >= expected.items()
        assert (await db.check()).problems == []
        return n


async def kill_children(folder: Path, chance: random.Random) -> int:
    """Kill children in the middle of turns over one file after the other; return how many turns there were."""
    turns = 0
    with nursery() as ask:
        for number in range(FILES // 2):
            place = folder / str(number)
            place.mkdir(parents=True)
            notes, steps = place / "notes", await ask(place, None, None)
            for kill in range(KILLS):
                # Half of the children die by their own hand inside a turn's transaction, so that none of them is lucky;
                # the others at any moment: between two turns, in the commit, in its fsync.
                order = (chance.randint(1, 2 * steps), 0) if kill % 2 else (0, chance.random() * 0.04)
                assert await ask(place, *order) == -signal.SIGKILL
                found = await look(place / "a.db", int(notes.read_text().split()[-1]))
                with notes.open("a") as noted:
                    noted.write(f"{found}\n")
            turns += found
    return turns


async def test_kills_in_the_middle_of_turns(tmp_path: Path) -> None:
    turns = await asyncio.gather(*(kill_children(tmp_path / str(n), random.Random(n)) for n in range(2)))
    assert sum(turns) > FILES * KILLS / 2
