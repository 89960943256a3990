"""Vectors: finding the nearest; a search by words and meaning beside one by words; a save where vectors are kept.

The vectors are drawn at random, 384 numbers each, as small models make them; the embedder answers at once, so what is
measured is memdb's own work. Without numpy (the extra `bench`) the subject is left out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import Database, MemoryItem
from memdb.layers import embeddings, waiting
from memdb.layers.embeddings import Kept
from memdb.storage.matrix import MatrixComparer, numpy
from memdb.storage.nearest import nearest
from memdb.storage.vectors import Comparer, Space, packed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZES = (1_000, 10_000, 100_000)
DIMENSIONS = 384
K = 10
BATCH = 2_000


class RandomEmbedder:
    """An embedder that answers at once, with a vector drawn at random."""

    model, dimensions = "random", DIMENSIONS

    def __init__(self) -> None:
        self._drawn = numpy().random.default_rng(5)

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        vectors: list[list[float]] = self._drawn.normal(size=(len(texts), DIMENSIONS)).tolist()
        return vectors


async def run(settings: Settings) -> list[Comparison]:
    """Compare finding at each size, with numpy and without it; searching; saving."""
    if numpy() is None:
        return []
    results: list[Comparison] = []
    for size in settings.size(SIZES, (200,)):
        async with memdb.open(settings.folder / f"vectors-{size}.db", embedder=RandomEmbedder()) as db:
            await _fill(db, size)
            results += await _nearest(db, size, settings)
            results += await _after_writes(db, size, settings)
            results.append(await _hybrid(db, size, settings))
    results.append(await _save(settings))
    return results


async def _fill(db: Database, size: int) -> Kept:
    """Store so many items with a vector each; return what they are kept for."""
    texts = sentences(size, seed=3)
    for at in range(0, size, 50_000):
        await db.memory("alice").items.save_many(
            MemoryItem(id=f"{number}", content=texts[number]) for number in range(at, min(at + 50_000, size))
        )
    return await _embed(db)


async def _embed(db: Database) -> Kept:
    await db.write(embeddings.keep, "alice", ["item"], RandomEmbedder.model, DIMENSIONS)
    kept = (await db.read(embeddings.kept, "alice", RandomEmbedder.model, DIMENSIONS))["item"]
    embedder = RandomEmbedder()
    while chosen := await db.read(waiting.newest_waiting, kept, BATCH):
        vectors = await embedder.embed(["" for _ in chosen])
        made = [(one, [packed(vector, DIMENSIONS)]) for one, vector in zip(chosen, vectors, strict=True)]
        await db.write(waiting.store, made)
    return kept


async def _nearest(db: Database, size: int, settings: Settings) -> list[Comparison]:
    """Compare each way of finding the nearest with the bare product of a matrix in memory."""
    kept = (await db.read(embeddings.kept, "alice", RandomEmbedder.model, DIMENSIONS))["item"]
    matrix = numpy().random.default_rng(1).normal(size=(size, DIMENSIONS)).astype("float32")
    results = []
    for name, comparer, rounds, target in (
        ("numpy", MatrixComparer(), settings.size(50, 3), None),
        ("numpy, nothing kept in memory", MatrixComparer(0), settings.size(10, 3), None),
        ("without numpy", None, settings.size(5, 2), None),
    ):
        result = Comparison(
            f"nearest {K} of {size:,}, {name}",
            f"the {K} nearest of {size:,} vectors of {DIMENSIONS} numbers, in one snapshot of the file",
            "numpy: the product of a matrix in memory with a vector, and its greatest",
            target,
        )
        for number in range(-1, rounds):
            ours, theirs = Times(), Times()
            query = _query(number)
            ours.add(await _timed(partial(_find, db, kept, query, comparer)))
            theirs.add(_product(matrix, query))
            if number >= 0:
                result.round(ours, theirs)
        result.detail = f"{result.ours.median / 1000:.1f} ms"
        results.append(result)
    return results


async def _after_writes(db: Database, size: int, settings: Settings) -> list[Comparison]:
    """Compare finding after something was written with finding when nothing was."""
    kept = (await db.read(embeddings.kept, "alice", RandomEmbedder.model, DIMENSIONS))["item"]
    comparer, results = MatrixComparer(), []
    for name, write in (("a foreign write", _foreign), ("a new item", _added), ("a changed item", _changed)):
        result = Comparison(
            f"nearest {K} of {size:,} after {name}",
            f"the {K} nearest with numpy, after {name}",
            "the same when nothing was written",
        )
        for number in range(-1, settings.size(20, 2)):
            ours, theirs = Times(), Times()
            await write(db, number)
            ours.add(await _timed(partial(_find, db, kept, _query(number), comparer)))
            theirs.add(await _timed(partial(_find, db, kept, _query(number), comparer)))
            if number >= 0:
                result.round(ours, theirs)
        result.detail = f"{result.ours.median / 1000:.1f} ms"
        results.append(result)
    return results


async def _hybrid(db: Database, size: int, settings: Settings) -> Comparison:
    """Compare a search by words and meaning with its words alone."""
    result = Comparison(
        f"hybrid search of {size:,} items",
        f"await memory.hybrid.search(query, layer='item', k={K})",
        "the same by words alone (bm25_weight=1)",
    )
    search, texts = db.memory("alice").hybrid.search, sentences(200, seed=9)
    for number in range(-3, settings.size(100, 3)):
        ours, theirs = Times(), Times()
        query = " ".join(random.Random(number).sample(texts[number % 200].split(), 5))
        ours.add(await _timed(partial(search, query, layer="item", k=K)))
        theirs.add(await _timed(partial(search, query, layer="item", k=K, bm25_weight=1.0)))
        if number >= 0:
            result.round(ours, theirs)
    result.detail = f"{result.ours.median / 1000:.1f} against {result.theirs.median / 1000:.1f} ms"
    return result


async def _save(settings: Settings) -> Comparison:
    """Compare a save into a layer that vectors are kept of with a save into one that they are not."""
    result = Comparison(
        "save where vectors are kept, one caller",
        "await memory.items.save(item), synchronous=FULL: its record is noted to wait for a vector",
        "the same where no vectors are kept, in a file of its own",
        target=1.25,
    )
    texts = sentences(1_000, seed=4)
    async with memdb.open(settings.folder / "kept.db") as kept_db, memdb.open(settings.folder / "bare.db") as bare_db:
        await kept_db.write(embeddings.keep, "alice", ["item"], "random", DIMENSIONS)
        for number in range(-1, settings.size(60, 3)):
            sides = []
            for db in (kept_db, bare_db):
                times = Times()
                for at in range(20):
                    item = MemoryItem(id=f"{number} {at}", content=texts[(20 * number + at) % 1_000])
                    times.add(await _timed(partial(db.memory("alice").items.save, item)))
                sides.append(times)
            if number >= 0:
                result.round(*sides)
    return result


async def _foreign(db: Database, number: int) -> None:
    await db.memory("bob").items.save(MemoryItem(id=f"{number}", content="a note in between"))


async def _added(db: Database, number: int) -> None:
    await db.memory("alice").items.save(MemoryItem(id=f"new {number}", content="something new"))
    await _embed(db)


async def _changed(db: Database, number: int) -> None:
    await db.memory("alice").items.save(MemoryItem(id=f"{abs(number)}", content=f"changed in round {number}"))
    await _embed(db)


def _query(number: int) -> NDArray[np.float32]:
    drawn: NDArray[np.float32] = numpy().random.default_rng(abs(number)).normal(size=DIMENSIONS).astype("float32")
    return drawn


async def _find(db: Database, kept: Kept, query: NDArray[np.float32], comparer: Comparer | None) -> None:
    space = Space("alice", "item", kept.id, DIMENSIONS)
    found = await db.read(nearest, space, packed(query, DIMENSIONS), K, comparer)
    assert len(found.hits) == K, found


def _product(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> float:
    start = time.perf_counter()
    scores = matrix @ query
    best = numpy().argpartition(scores, len(scores) - K)[-K:]
    sorted(zip(scores[best].tolist(), best.tolist(), strict=True), reverse=True)
    return time.perf_counter() - start


async def _timed(act: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await act()
    return time.perf_counter() - start
