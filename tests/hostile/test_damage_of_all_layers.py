"""Random bits of a file of all layers: every method gives an answer or one sentence of memdb's, and none hangs."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import memdb
from memdb import Corrupt, StorageError
from memdb.testing import HashingEmbedder
from tests.hostile.hostile_values import complaint
from tests.properties.test_isolation import CALLS, fill

SEEDS = 24
PATIENCE = 30  # seconds


@pytest.fixture
async def good(path: Path) -> bytes:
    """The bytes of a file with something in every layer, and rows enough for several pages of each index."""
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        await fill(db.memory("alice"))
        for n in range(3):
            other = db.memory(f"other {n}")
            await other.items.save_many(memdb.MemoryItem(id=str(m), content=f"word{m % 7} " * 30) for m in range(100))
            await other.conversation.add_messages({"role": "user", "content": f"said {m}"} for m in range(50))
    return path.read_bytes()


def damaged(good: bytes, seed: int) -> bytes:
    """Return the bytes with a few bits or a whole page changed, or cut off somewhere."""
    chance, data = random.Random(seed), bytearray(good)
    kind = seed % 4
    if kind == 0:
        return good[: chance.randrange(len(good))]
    if kind == 1:
        at = 4096 * chance.randrange(len(good) // 4096)
        data[at : at + 4096] = chance.choice([bytes(4096), chance.randbytes(4096), good[:4096], good[-4096:]])
        return bytes(data)
    within = len(data) if kind == 2 else 4096 * 4  # in the schema and the roots, too
    for _ in range(chance.choice([1, 10, 200])):
        data[chance.randrange(within)] ^= 1 << chance.randrange(8)
    return bytes(data)


async def used(path: Path) -> list[str]:
    """Call every method of every layer as the owner of the data; return what is wrong with the errors."""
    wrong: list[str] = []

    async def attempt(name: str, act: object) -> object:
        try:
            return await asyncio.wait_for(act, PATIENCE)  # type: ignore[arg-type]
        except BaseException as error:
            if fault := complaint(error):
                wrong.append(f"{name}: {fault}: {error!r:.200}")
            return error

    db = memdb.open(path, busy_timeout=1, embedder=HashingEmbedder(16))
    if isinstance(await attempt("open", db.__aenter__()), BaseException):
        return wrong
    memory = db.memory("alice")
    first = await attempt("check", db.check())
    for layer, methods in CALLS.items():
        for method, (call, _) in methods.items():
            try:
                act = call(memory)
            except BaseException as error:
                wrong.append(f"{layer}.{method}: {error!r:.200}")
                continue
            await attempt(f"{layer}.{method}", act)
    last = await attempt("check again", db.check())
    if isinstance(first, memdb.CheckReport) and isinstance(last, memdb.CheckReport) and not first.ok and last.ok:
        wrong.append("the damage was there before the calls, and is not told of after them")
    await attempt("repair", db.check(repair=True))
    await attempt("backup", db.backup(path.with_name("copy.db")))
    await attempt("forget", db.forget("other 1"))
    await attempt("close", db.close())
    return wrong


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_every_method_on_a_damaged_file(tmp_path: Path, good: bytes, seed: int) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(damaged(good, seed))
    assert await used(path) == []


async def test_what_can_still_be_read_is_read(tmp_path: Path, good: bytes) -> None:
    """One page of the items' table is noise: the others are there, and check() says that something is wrong."""
    told, read = 0, 0
    for seed in range(12):
        chance, data = random.Random(seed), bytearray(good)
        at = 4096 * chance.randrange(20, len(good) // 4096)
        data[at : at + 4096] = chance.randbytes(4096)
        path = tmp_path / f"{seed}.db"
        path.write_bytes(data)
        try:
            async with memdb.open(path) as db:
                items = db.memory("other 0").items
                for n in range(100):
                    try:
                        read += await items.get(str(n)) is not None
                    except StorageError:
                        continue
                try:
                    told += not (await db.check()).ok
                except Corrupt:
                    told += 1
        except StorageError:
            told += 1
    assert told >= 11  # a page may be free, or its bytes unused
    assert read > 900
