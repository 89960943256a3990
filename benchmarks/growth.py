"""Growth: what each layer's main act takes beside 100,000 records of its kind and beside 1,000.

Both files hold so many records of every kind, so the large one also pays for its own size. The acts are done in turn,
each side first every other time. A search asks for a word that as many records hold in either file: more matches are
more work in any index, and how that grows is told by the subject `search`.
"""

from __future__ import annotations

import time
from itertools import count

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.growth_acts import READS, WRITES, Act
from benchmarks.growth_sides import Side, fill
from benchmarks.settings import Settings
from benchmarks.texts import sentences

Sides = tuple[Side, Side]

TARGET = 1.3
_seeds = count(3_000_000)


async def run(settings: Settings) -> list[Comparison]:
    """Compare every act in a large file with the same in a small one."""
    sizes = settings.size(100_000, 200), settings.size(1_000, 100)
    async with (
        memdb.open(settings.folder / "growth-large.db") as large_db,
        memdb.open(settings.folder / "growth-small.db") as small_db,
    ):
        sides = Side.of(large_db, sizes[0]), Side.of(small_db, sizes[1])
        for side in sides:
            await fill(side)
        return await measure(settings, sides)


async def measure(settings: Settings, sides: Sides) -> list[Comparison]:
    """Compare every act on two sides that are filled."""
    results = [await _compare(settings, act, sides, f"{act.measured}, durable") for act in WRITES]
    return results + [await _compare(settings, act, sides, act.measured) for act in READS]


async def _compare(settings: Settings, act: Act, sides: Sides, measured: str) -> Comparison:
    large, small = (f"{side.size:,}" for side in sides)
    result = Comparison(f"{act.name}, {large} / {small}", measured, f"the same beside {small}", TARGET)
    for number in range(-1, settings.size(25, 1)):
        times = (Times(), Times())
        for text in sentences(settings.size(12, 2), seed=next(_seeds)):
            for at in (0, 1) if number % 2 else (1, 0):
                if act.before is not None:
                    await act.before(sides[at], text)
                call = act.made(sides[at], text)
                start = time.perf_counter()
                await call()
                times[at].add(time.perf_counter() - start)
        if number >= 0:
            result.round(*times)
    return result
