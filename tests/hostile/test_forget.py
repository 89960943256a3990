"""After forget() and close() a word of the user's is nowhere in the file, its log included."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import memdb
from memdb import KnowledgePage, Memory, MemoryItem
from memdb.layers.layer import Live
from tests.hostile.shell import shell

SECRET = "zqxjkvbpytl"  # stems to itself; no part of it occurs elsewhere
PARTS = [SECRET.encode()[:9], SECRET.upper().encode()[:9]]

Deed = Callable[[memdb.Database, Memory[Live], Path], Awaitable[object]]


async def _replaced(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    await memory.items.save(MemoryItem(id="a", content=f"{SECRET} " * 50))
    await memory.items.save(MemoryItem(id="a", content="harmless"))


async def _deleted(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    await memory.items.save(MemoryItem(id="a", content=SECRET))
    await memory.items.delete("a")


async def _quarantined(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    await memory.items.save(MemoryItem(id="a", content=SECRET))
    shell(path, "UPDATE record SET metadata = '{' WHERE user_id = 'bob'", careless=True)
    assert await memory.items.get("a") is None


async def _expired(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    long_ago = memdb.MemoryItem(id="a", content=SECRET, expires_at="2000-01-01T00:00:00Z")  # type: ignore[arg-type]
    await memory.items.save(long_ago)
    await memory.items.save(MemoryItem(id="b", content="purges"))


async def _edited(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    await memory.items.save(MemoryItem(id="a", content=SECRET))
    shell(path, "UPDATE record SET content = 'harmless' WHERE user_id = 'bob'")


async def _imported(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    source = path.parent / "session"
    lines = ({"_type": "metadata", "key": "x", "metadata": {SECRET: SECRET}}, {"role": "user", "content": SECRET})
    source.write_text("\n".join((*map(json.dumps, lines), SECRET)))
    await memory.conversation.import_jsonl(source)


async def _synced(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    notes = path.parent / SECRET
    notes.mkdir()
    (notes / f"{SECRET}.md").write_text(f"# {SECRET}\n\n[[{SECRET}x]] {SECRET}\n")
    await memdb.sync_folder(db, notes, user_id=memory.scope.user_id)


async def _cleared(db: memdb.Database, memory: Memory[Live], path: Path) -> None:
    await memory.conversation.add_message({"role": "user", "content": [SECRET], SECRET: SECRET})
    await memory.conversation.clear()


DEEDS: dict[str, Deed] = {
    "content": lambda db, memory, path: memory.items.save(MemoryItem(id="a", content=f"the {SECRET} of bob")),
    "long content": lambda db, memory, path: memory.items.save(MemoryItem(id="a", content=f"x {SECRET} y " * 5000)),
    "metadata": lambda db, memory, path: memory.items.save(MemoryItem(id="a", content="x", metadata={SECRET: SECRET})),
    "id": lambda db, memory, path: memory.items.save(MemoryItem(id=SECRET, content="x")),
    "many": lambda db, memory, path: memory.items.save_many(
        [MemoryItem(id=f"{SECRET}{n}", content=f"{SECRET}{n} {n}") for n in range(3000)]
    ),
    "page": lambda db, memory, path: memory.pages.add_page(
        KnowledgePage(id="a", title=SECRET, summary=SECRET, tags=[SECRET], category=SECRET, keywords=[SECRET],
                      references=[SECRET])
    ),
    "message": lambda db, memory, path: memory.conversation.add_message(
        {"role": SECRET, "content": [{"type": "text", "text": SECRET}], "name": SECRET, "tool_call_id": SECRET,
         "tool_calls": [{"function": {"name": SECRET, "arguments": {SECRET: SECRET}}}], SECRET: SECRET}
    ),
    "imported": _imported,
    "synced": _synced,
    "cleared": _cleared,
    "recalled": lambda db, memory, path: memory.atomic(
        lambda m: (m.items.save(MemoryItem(id=SECRET, content=SECRET)), m.items.record_recall(SECRET, 0.5))
    ),
    "replaced": _replaced,
    "deleted": _deleted,
    "quarantined": _quarantined,
    "expired": _expired,
    "edited by hand": _edited,
}  # fmt: skip


def traces(path: Path) -> list[str]:
    return [
        file.name
        for file in path.parent.iterdir()
        if file.name.startswith(path.name) and any(part in file.read_bytes() for part in PARTS)
    ]


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_forgotten_word_is_nowhere_in_the_file(path: Path, deed: str) -> None:
    async with memdb.open(path) as db:
        others = db.memory("alice").items
        await others.save_many([MemoryItem(id=str(n), content=f"of alice {n}") for n in range(200)])
        bob = db.memory("bob")
        await DEEDS[deed](db, bob, path)
        await others.save(MemoryItem(id="later", content="of alice"))
        await db.forget("bob")
        assert traces(path) == [], "while it is open"
        assert await bob.items.list() == await bob.items.search(SECRET) == await bob.pages.get_index() == []
        assert len(await others.search("alice", limit=500)) == 201
        assert (await db.check()).problems == []
    assert traces(path) == []


async def test_the_owner_of_a_forgotten_name_is_forgotten_too(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory(SECRET).items.save(MemoryItem(id="a", content="x"))
        await db.memory("alice").items.save(MemoryItem(id="a", content="x"))
        assert await db.forget(SECRET) == {"item": 1}
        assert (await db.stats()).users == ["alice"]
        assert await db.forget(SECRET) == {}
    assert traces(path) == []


async def test_a_word_is_forgotten_although_the_file_was_closed_and_deleted_from_before(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory("bob").items.save_many([MemoryItem(id=str(n), content=f"{SECRET} {n}") for n in range(100)])
        await db.memory("alice").items.save(MemoryItem(id="a", content="stays"))
    async with memdb.open(path) as db:
        for n in range(100):
            await db.memory("bob").items.delete(str(n))
    async with memdb.open(path) as db:
        await db.forget("bob")
        assert (await db.check()).problems == []
    assert traces(path) == []


async def test_forgetting_waits_for_a_reader_or_says_that_the_log_still_holds_it(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader of another program pins the log, which cannot be emptied under it."""
    import sqlite3

    async with memdb.open(path, busy_timeout=0.3) as db:
        await db.memory("bob").items.save(MemoryItem(id="a", content=SECRET))
        pinning = sqlite3.connect(path, isolation_level=None)
        pinning.execute("BEGIN")
        pinning.execute("SELECT count(*) FROM record").fetchall()
        told = False
        try:
            await db.forget("bob")
        except memdb.Busy:
            told = True
        assert told or traces(path) == [] or any("log" in record.message for record in caplog.records)
        pinning.close()
        await db.forget("bob")
        assert traces(path) == []
        assert (await db.check()).problems == []


async def test_others_write_and_read_while_one_is_forgotten(path: Path) -> None:
    chance = random.Random(6)
    async with memdb.open(path) as db:
        bob, alice = db.memory("bob").items, db.memory("alice").items
        await bob.save_many([MemoryItem(id=str(n), content=f"{SECRET} {chance.random()}") for n in range(500)])
        saves = [alice.save(MemoryItem(id=str(n), content="of alice")) for n in range(100)]
        searches = [alice.search("alice", limit=200) for _ in range(20)]
        answers = await asyncio.gather(*saves[:50], db.forget("bob"), *searches, *saves[50:])
        assert answers[50] == {"item": 500}
        assert len(await alice.search("alice", limit=200)) == 100
        assert (await db.check()).problems == []
    assert traces(path) == []
