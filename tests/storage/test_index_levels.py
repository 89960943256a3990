"""The full-text index never gets so many levels that FTS5 refuses it, and one that has them can be made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import memdb
from memdb import Corrupt, MemoryItem
from memdb.storage import upkeep
from memdb.storage.vocabulary import varints
from tests.hostile.shell import shell

STRUCTURE = "SELECT block FROM record_search_data WHERE id = 10"
REFUSED = 2_002  # levels


def levels(path: Path) -> int:
    [(block,)] = shell(path, STRUCTURE)
    return next(iter(varints(block[4:])))


async def test_forgetting_ever_again_leaves_few_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MOST_LEVELS", 12)
    path = tmp_path / "a.db"
    seen = set()
    async with memdb.open(path) as db:
        many = [MemoryItem(id=f"{n}", content=" ".join(f"seal{n * m}" for m in range(20))) for n in range(400)]
        await db.memory("stays").items.save_many([MemoryItem(id="a", content="the walrus stays"), *many])
        for number in range(20):
            for part in range(6):  # a segment each, of which some are merged
                await db.memory("stays").items.save(MemoryItem(id=f"{number} {part}", content="seals stay"))
            await db.memory("goes").items.save(MemoryItem(id="a", content=f"walrus okapi{number}"))
            await db.forget("goes")
            seen.add(levels(path))
            assert [hit.item.id for hit in await db.memory("stays").items.search("walrus")] == ["a"]
        assert (await db.check()).problems == []
    assert 12 <= max(seen) < 20
    assert min(seen) < 3


async def test_an_index_of_too_many_levels_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with memdb.open(path) as db:
        await db.memory("alice").items.save_many([MemoryItem(id=f"{n}", content=f"walrus {n}") for n in range(50)])
        await db.forget("nobody")  # one segment
    [(block,)] = shell(path, STRUCTURE)
    numbers = list(varints(block[4:]))
    [first_level] = [at for at in range(3, len(numbers) - 3) if numbers[at + 1] == 1 and at + 5 == len(numbers)]
    last_level = bytes(numbers[first_level:])  # all below 128
    many = bytes([0x80 | REFUSED >> 7, REFUSED & 127])
    made = block[:4] + many + bytes([1, numbers[2] & 127]) + bytes(2 * (REFUSED - 1)) + last_level
    shell(path, ("UPDATE record_search_data SET block = ? WHERE id = 10", (made,)))
    async with memdb.open(path) as db:
        with pytest.raises(Corrupt, match=r"run check\(repair=True\)"):
            await db.memory("alice").items.save(MemoryItem(id="new", content="walrus"))
        assert (await db.check()).problems
        assert (await db.check(repair=True)).ok
        assert len(await db.memory("alice").items.search("walrus", limit=60)) == 50
        await db.memory("alice").items.save(MemoryItem(id="new", content="walrus"))
        assert (await db.check()).problems == []
    assert levels(path) < 5
