"""Peers: writing and reading beside the memories of other agent libraries (benchmarks.agent_peers), at their defaults.

The level of each one's commits is told with its figures, beside the time of an fsync in the same rounds. None of the
others keeps a full-text index, so beside each write stands what raw sqlite3 takes for like rows with such an index, as
many a transaction as there are callers: less than that no memory that is searchable at once can take.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from itertools import count
from pathlib import Path

from benchmarks.agent_peers import Act, Peer, Side, langgraph_saver, langgraph_store, openai_session
from benchmarks.figures import Comparison, Times
from benchmarks.machine import fsync_times
from benchmarks.raw import RawFile
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from benchmarks.writes import NOW

Opens = Callable[[Path], AbstractAsyncContextManager[Peer]]

PEERS: dict[str, tuple[str, Opens]] = {
    "LangGraph's store": ("langgraph-checkpoint-sqlite", langgraph_store),
    "openai-agents' session": ("openai-agents", openai_session),
    "LangGraph's checkpoints": ("langgraph-checkpoint-sqlite", langgraph_saver),
}
TARGETS = {1: 1.0, 64: 0.2}  # of writes, by callers: never behind, and five times the rate
_seeds = count(1)


async def run(settings: Settings) -> list[Comparison]:
    """Compare writes and reads at one caller and at 64 with each peer that is installed."""
    results: list[Comparison] = []
    for name, (package, opens) in PEERS.items():
        try:
            results += await _peer(settings, opens)
        except ImportError:
            print(f"{name} is left out: {package} is not installed (pip install 'memdb[bench]')")
    return results


async def _peer(settings: Settings, opens: Opens) -> list[Comparison]:
    async with opens(settings.folder) as peer:
        writes = [await _writes(settings, peer, act, callers) for act in peer.writes for callers in act.callers]
        return writes + [await _reads(settings, act, callers) for act in peer.reads for callers in act.callers]


async def _writes(settings: Settings, peer: Peer, act: Act, callers: int) -> Comparison:
    result, fsync, floor = _comparison(act, callers, "", TARGETS[callers]), Times(), Times()
    size = settings.size(40 if callers == 1 else 1_280, callers)
    with closing(RawFile(settings.folder / f"raw-{next(_seeds)}.db")) as raw:
        for number in range(-1, settings.size(30 if callers == 1 else 12, 2)):
            texts = sentences(size, seed=next(_seeds))
            times = await _round(act, callers, texts, ours_first=number % 2 == 0)
            rows = [("alice", act.name, str(number), str(at), text, "{}", NOW, NOW) for at, text in enumerate(texts)]
            least = raw.in_transactions(rows, callers)
            if number >= 0:  # the first prepares statements, makes logs and opens connections
                result.round(*times)
                floor.values += least.values
                fsync.values += fsync_times(settings.folder, settings.size(10, 2)).values
    share = fsync.median / (result.ours.median * callers)
    result.notes = {
        "their_commits": peer.level,
        "our_commits": "journal wal, FULL",
        "fsync_us": fsync.figures(),
        "raw_sqlite3_rows_with_a_full_text_index_us": floor.figures(),
    }
    result.detail = (
        f"{_rates(result)}; theirs {peer.level}; an fsync {fsync.median:.0f} us, {share:.0%} of our commit;"
        f" raw sqlite3 with a full-text index {floor.median:,.0f} us"
    )
    return result


async def _reads(settings: Settings, act: Act, callers: int) -> Comparison:
    result = _comparison(act, callers, " (read)", 1.0)
    texts = [""] * settings.size(100 if callers == 1 else 640, callers)
    for number in range(-1, settings.size(20, 2)):
        times = await _round(act, callers, texts, ours_first=number % 2 == 0)
        if number >= 0:
            result.round(*times)
    result.detail = _rates(result)
    return result


def _comparison(act: Act, callers: int, kind: str, target: float) -> Comparison:
    many = "one after another" if callers == 1 else f"{callers} callers, time of all by acts"
    name = f"{act.name}{kind}, {callers} {'caller' if callers == 1 else 'callers'}"
    return Comparison(name, f"{act.measured}, {many}", f"{act.against}, {many}", target)


def _rates(result: Comparison) -> str:
    return f"{1e6 / result.ours.median:,.0f} a second against {1e6 / result.theirs.median:,.0f}"


async def _round(act: Act, callers: int, texts: list[str], *, ours_first: bool) -> tuple[Times, Times]:
    """Let both sides do the act with each text, one side after the other."""
    if ours_first:
        ours = await _side(act.ours, callers, texts)
        return ours, await _side(act.theirs, callers, texts)
    theirs = await _side(act.theirs, callers, texts)
    return await _side(act.ours, callers, texts), theirs


async def _side(side: Side, callers: int, texts: list[str]) -> Times:
    """Return the time of each act; with several callers the time of all by the number of acts."""
    times, left = Times(), iter(texts)

    async def caller(number: int) -> None:
        for text in left:
            start = time.perf_counter()
            await side(number, text)
            if callers == 1:
                times.add(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    if callers > 1:
        times.add(time.perf_counter() - start, len(texts))
    return times
