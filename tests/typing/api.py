"""Never run, only type-checked: what a user's editor and mypy see of the public names."""

from __future__ import annotations

from typing import assert_type

import memdb
from memdb.layers.layer import Inside, Live


async def live(db: memdb.Database) -> None:
    memory = db.memory(user_id="alice")
    assert_type(memory, memdb.Memory[Live])
    assert_type(await memory.items.get("a"), memdb.MemoryItem | None)
    assert_type(await memory.items.search("words", limit=3), list[memdb.ScoredMemory])
    assert_type(await memory.items.list(memdb.MemoryFilter(prefix="a")), list[memdb.MemoryItem])
    assert_type(await memory.pages.search("words", category="work"), list[memdb.KnowledgePage])
    assert_type(await memory.pages.get_index(), list[memdb.PageIndexEntry])
    await memory.items.save(memdb.MemoryItem(id="a", content="x"))
    await memory.items.save("a")  # type: ignore[arg-type]
    await memory.items.get()  # type: ignore[call-arg]

    def turn(inside: memdb.Memory[Inside]) -> int:
        inside.items.save(memdb.MemoryItem(id="a", content="x"))
        assert_type(inside.items.get("a"), memdb.MemoryItem | None)
        return inside.items.save_many([])

    assert_type(await memory.atomic(turn), int)
    assert_type(await db.check(repair=True), memdb.CheckReport)
    assert_type(await db.forget("bob"), dict[str, int])
