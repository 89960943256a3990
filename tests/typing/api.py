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

    assert_type(await memory.conversation.add_message({"role": "user", "content": "hi"}), int)
    assert_type(await memory.conversation.get_history(20), list[memdb.Message])
    assert_type(await memory.conversation.search("words", k=3, all_sessions=True), list[memdb.ScoredMessage])
    assert_type(await memory.conversation.import_jsonl("s1.jsonl"), memdb.ImportReport)
    assert_type(memory.graph.tag_constraints(), memdb.TagConstraints)
    assert_type(await memory.graph.get_entity("e"), memdb.GraphEntity | None)
    assert_type(await memory.graph.get_related("e", 3, relation_types=["is"]), list[memdb.ScoredEntity])
    assert_type(await memory.graph.relations("e", direction="out"), list[memdb.GraphRelation])
    assert_type(await memory.graph.find_tags("gra"), list[str])
    await memory.graph.add_relation(memdb.GraphRelation(source_id="a", target_id="b", relation_type="is", weight=0.5))
    await memory.graph.add_relation("a", "b")  # type: ignore[call-arg, arg-type]
    assert_type(await memory.pages.sync_tags("p", ["e"]), int)
    assert_type(await db.sessions("alice"), list[memdb.SessionInfo])
    assert_type(await memdb.sync_folder(db, "notes/", user_id="alice"), memdb.SyncReport)
    async with memdb.watch_folder(db, "notes/") as watch:
        assert_type(watch.report, memdb.SyncReport)

    def turn(inside: memdb.Memory[Inside]) -> int:
        inside.items.save(memdb.MemoryItem(id="a", content="x"))
        assert_type(inside.items.get("a"), memdb.MemoryItem | None)
        assert_type(inside.conversation.messages(), list[memdb.Message])
        assert_type(inside.graph.find_by_keywords(["word"]), list[memdb.GraphEntity])
        inside.conversation.export_jsonl("s1.jsonl")  # type: ignore[misc, unused-coroutine]
        return inside.items.save_many([])

    assert_type(await memory.atomic(turn), int)
    assert_type(await db.check(repair=True), memdb.CheckReport)
    assert_type(await db.forget("bob"), dict[str, int])
