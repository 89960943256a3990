"""Tool results: a page of a large one beside the same page of a small one, and a search in it beside loading it whole.

The pages are asked for in turn at places that differ from call to call, so that some lie across two chunks.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb.layers.layer import Live
from memdb.layers.runtime.manager import MemoryManager

Manager = MemoryManager[Live]
PAGE_BYTES = 4_096
PAGE_LINES = 40
Ask = Callable[[Manager, str, "Stored", random.Random], Awaitable[object]]


class Stored:
    """A stored tool result.

    Args:
        size: how many bytes it has.
        lines: how many lines.
    """

    def __init__(self, size: int, lines: int) -> None:
        self.size = size
        self.lines = lines


async def _first(manager: Manager, id: str, stored: Stored, chosen: random.Random) -> object:
    return await manager.read_tool_result(id, size=PAGE_BYTES)


async def _middle(manager: Manager, id: str, stored: Stored, chosen: random.Random) -> object:
    start = chosen.randrange(stored.size // 4, stored.size // 2)
    return await manager.read_tool_result(id, start=start, size=PAGE_BYTES)


async def _tail(manager: Manager, id: str, stored: Stored, chosen: random.Random) -> object:
    return await manager.read_tool_result(id, start=stored.size - PAGE_BYTES, size=PAGE_BYTES)


async def _first_lines(manager: Manager, id: str, stored: Stored, chosen: random.Random) -> object:
    return await manager.read_tool_result_lines(id, count=PAGE_LINES)


async def _middle_lines(manager: Manager, id: str, stored: Stored, chosen: random.Random) -> object:
    first = chosen.randrange(stored.lines // 4, stored.lines // 2)
    return await manager.read_tool_result_lines(id, first=first, count=PAGE_LINES)


PAGES: dict[str, Ask] = {
    "first page": _first,
    "a page from the middle": _middle,
    "last page": _tail,
    "first lines": _first_lines,
    "lines from the middle": _middle_lines,
}


async def run(settings: Settings) -> list[Comparison]:
    """Compare pages of 1 MB and 50 MB with those of 100 kB, and searches of 50 MB with loading it."""
    small, sizes = 100_000, {"1 MB": 1_000_000, "50 MB": settings.size(50_000_000, 2_000_000)}
    results = []
    async with memdb.open(settings.folder / "tool-results.db") as db:
        manager = db.memory("alice").manager
        stored = {"100 kB": await _store(manager, "100 kB", small)}
        for name, size in sizes.items():
            stored[name] = await _store(manager, name, size)
            for what, ask in PAGES.items():
                results.append(await _page(settings, manager, what, ask, name, stored))
        results += await _searches(settings, manager, "50 MB")
    return results


def _id(name: str) -> str:
    return name.replace(" ", "_")


async def _store(manager: Manager, name: str, size: int) -> Stored:
    texts = sentences(2_000, seed=3)
    block = "\n".join(texts) + "\n"
    text = (block * (size // len(block) + 1))[:size]
    await manager.save_tool_result(_id(name), {"tool": "t", "content": text})
    return Stored(len(text), text.count("\n"))


async def _page(
    settings: Settings, manager: Manager, what: str, ask: Ask, name: str, stored: dict[str, Stored]
) -> Comparison:
    result = Comparison(
        f"tool result, {what} of {name}",
        f"{PAGE_BYTES:,} bytes or {PAGE_LINES} lines of a stored result of {name}",
        "the same of one of 100 kB",
        target=1.2,
    )
    chosen = random.Random(5)
    for number in range(-1, settings.size(40, 2)):
        ours, theirs = Times(), Times()
        for _ in range(settings.size(25, 3)):
            for times, which in ((ours, name), (theirs, "100 kB")):
                start = time.perf_counter()
                await ask(manager, _id(which), stored[which], chosen)
                times.add(time.perf_counter() - start)
        if number >= 0:
            result.round(ours, theirs)
    return result


async def _searches(settings: Settings, manager: Manager, name: str) -> list[Comparison]:
    """Compare searches that find nothing, so that all is looked through, and one that finds its first match early."""
    results = []
    for what, query, options in (
        ("a text", "zzz nothing zzz", {}),
        ("a text in any case", "zzz nothing zzz", {"ignore_case": True}),
        ("a pattern", r"zzz\s\w+ \d+$", {"regex": True}),
        ("the first 20 of many", "the", {}),
    ):
        result = Comparison(
            f"tool results, search {name} for {what}",
            f"search_tool_result in {name}, a few chunks in memory at a time",
            "load_tool_result, then str.splitlines and `in`",
        )
        for number in range(-1, settings.size(7, 1)):
            ours, theirs = Times(), Times()
            start = time.perf_counter()
            await manager.search_tool_result(_id(name), query, **options)
            ours.add(time.perf_counter() - start)
            start = time.perf_counter()
            whole = await manager.load_tool_result(_id(name))
            [line for line in whole["content"].splitlines() if query in line][:20]
            theirs.add(time.perf_counter() - start)
            if number >= 0:
                result.round(ours, theirs)
        results.append(result)
    return results
