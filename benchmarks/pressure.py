"""Memory under pressure: what the main act of each layer costs beside 100,000 records of its kind and beside 1,000.

The two sides lie in files of their own, so that the large one also pays for the size of its file. A turn of an agent
over seven layers is compared with the same acts one by one, each durable by itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import AgentCheckpoint, BlockConfig, GraphEntity, GraphRelation, Memory, MemoryConsolidator
from memdb.layers.layer import Inside, Live
from memdb.testing import ScriptedModel

Act = Callable[[Memory[Live], str], Awaitable[object]]
PER_CALL = 5_000
LIVE = 50  # messages that are not consolidated yet
_numbers = count()


async def run(settings: Settings) -> list[Comparison]:
    """Compare each layer's main act at two sizes, and a turn in one transaction with one act after another."""
    large, small = settings.size(100_000, 2_000), settings.size(1_000, 100)
    results = []
    async with (
        memdb.open(settings.folder / "pressure-large.db") as large_db,
        memdb.open(settings.folder / "pressure-small.db") as small_db,
    ):
        sides = (large_db.memory("alice", "s1"), small_db.memory("alice", "s1"))
        for memory, size in zip(sides, (large, small), strict=True):
            await _fill(memory, size)
        for name, what, act in _ACTS:
            results.append(await _compare(settings, f"{name}, {large:,} / {small:,}", what, act, sides))
        results.append(await _turns(settings, sides[1]))
    return results


async def _fill(memory: Memory[Live], size: int) -> None:
    """Let the archive, the history, the facts' versions and the session hold `size` records each."""
    for at in range(0, size, PER_CALL):
        texts = sentences(min(PER_CALL, size - at), seed=at + 1)
        await memory.archive.insert_many(texts)

        def units(m: Memory[Inside], texts: list[str] = texts) -> None:
            for text in texts:
                m.facts.append_history(text)
                m.facts.write_long_term(text)

        await memory.atomic(units)
        await memory.conversation.add_messages({"role": "user", "content": text} for text in texts)
    await memory.conversation.compact(keep_last=LIVE)
    await memory.blocks.configure({"task": BlockConfig(size=2_000)})
    await memory.graph.add_entities([GraphEntity(id="atlas", name="Atlas"), GraphEntity(id="ana", name="Ana")])


async def _history(memory: Memory[Live], text: str) -> object:
    return await memory.facts.append_history(text)


async def _facts(memory: Memory[Live], text: str) -> object:
    return await memory.facts.write_long_term(text)


async def _insert(memory: Memory[Live], text: str) -> object:
    return await memory.archive.insert(text)


async def _edit(memory: Memory[Live], text: str) -> object:
    return await memory.blocks.update_memory("task", text)


async def _read(memory: Memory[Live], text: str) -> object:
    return await memory.facts.get_memory_context()


async def _render(memory: Memory[Live], text: str) -> object:
    return await memory.blocks.render()


async def _estimate(memory: Memory[Live], text: str) -> object:
    return await MemoryConsolidator(memory, ScriptedModel([])).maybe_consolidate_by_tokens()


_ACTS: tuple[tuple[str, str, Act], ...] = (
    ("append_history", "await memory.facts.append_history(entry), durable", _history),
    ("write_long_term", "await memory.facts.write_long_term(text), durable, the earlier text kept", _facts),
    ("archive.insert", "await memory.archive.insert(text), durable", _insert),
    ("edit a block", "await memory.blocks.update_memory('task', text), durable, the earlier text kept", _edit),
    ("get_memory_context", "await memory.facts.get_memory_context()", _read),
    ("render the blocks", "await memory.blocks.render()", _render),
    ("a look whether to consolidate", f"maybe_consolidate_by_tokens() with {LIVE} live messages, no model", _estimate),
)


async def _compare(
    settings: Settings, name: str, what: str, act: Act, sides: tuple[Memory[Live], Memory[Live]]
) -> Comparison:
    result = Comparison(name, what, "the same in a file with few records of its kind", target=1.5)
    for number in range(-1, settings.size(60, 3)):
        times = (Times(), Times())
        for text in sentences(settings.size(20, 3), seed=1_000_000 + next(_numbers)):
            for side in (0, 1) if number % 2 else (1, 0):
                start = time.perf_counter()
                await act(sides[side], text)
                times[side].add(time.perf_counter() - start)
        if number >= 0:
            result.round(*times)
    return result


def _turn(m: Memory[Inside], number: int, text: str) -> None:
    m.conversation.add_message({"role": "user", "content": text})
    m.manager.save_tool_result(f"r{number}", {"tool": "search", "content": text})
    m.manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"step": number}))
    m.blocks.update_memory("task", text)
    m.graph.add_relation(GraphRelation(source_id="ana", target_id="atlas", relation_type="works_on", weight=0.5))
    m.archive.insert(text)
    m.conversation.add_message({"role": "assistant", "content": text})


async def _one_by_one(memory: Memory[Live], number: int, text: str) -> None:
    await memory.conversation.add_message({"role": "user", "content": text})
    await memory.manager.save_tool_result(f"r{number}", {"tool": "search", "content": text})
    await memory.manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"step": number}))
    await memory.blocks.update_memory("task", text)
    await memory.graph.add_relation(
        GraphRelation(source_id="ana", target_id="atlas", relation_type="works_on", weight=0.5)
    )
    await memory.archive.insert(text)
    await memory.conversation.add_message({"role": "assistant", "content": text})


async def _turns(settings: Settings, memory: Memory[Live]) -> Comparison:
    result = Comparison(
        "a turn over six layers",
        "await memory.atomic(turn): two messages, a tool result, a checkpoint, a block, a relation, a passage",
        "the same seven acts awaited one after another, each a transaction of its own",
    )
    for number in range(-1, settings.size(60, 3)):
        ours, theirs = Times(), Times()
        texts: list[Any] = sentences(settings.size(20, 4), seed=2_000_000 + next(_numbers))
        for text, other in zip(texts[::2], texts[1::2], strict=True):
            first, second = next(_numbers), next(_numbers)
            start = time.perf_counter()
            await memory.atomic(lambda m, first=first, text=text: _turn(m, first, text))
            ours.add(time.perf_counter() - start)
            start = time.perf_counter()
            await _one_by_one(memory, second, other)
            theirs.add(time.perf_counter() - start)
        if number >= 0:
            result.round(ours, theirs)
    return result
