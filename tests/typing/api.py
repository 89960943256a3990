"""Never run, only type-checked: what a user's editor and mypy see of the public names."""

from __future__ import annotations

from typing import Any, assert_type

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

    manager = memory.manager
    assert_type(manager, memdb.MemoryManager[Live])
    assert_type(await manager.get_state(), dict[str, Any])
    assert_type(await manager.latest_checkpoint("interrupted"), memdb.AgentCheckpoint | None)
    assert_type(await manager.externalize("tool", "text"), str | memdb.ToolResultReference)
    assert_type(await manager.search_tool_result("r", "words"), list[memdb.ToolResultMatch])
    async with manager.run("run-7", {"done": 0}, resume=True) as run:
        assert_type(await run.step({"done": 1}), int)
    await manager.save_plan("p")  # type: ignore[call-arg]
    counter = memdb.TokenCounter()
    assert_type(await memdb.ContextBuilder(memory, counter).build("words", max_tokens=500), memdb.Context)
    assert_type(await memory.notes.bm25_search("words"), list[str])
    assert_type(await memory.hybrid.search("words", layer="message"), list[memdb.Hit])
    llm = memdb.OpenAIChat("model", base_url="http://localhost:8080/v1")
    assert_type(await llm.chat([{"role": "user", "content": "hi"}]), memdb.ChatReply)
    retriever = memdb.KnowledgeRetriever(memory.notes, llm, counter, search_mode="hybrid")
    answer = await retriever.retrieve(query="q", user_id="alice", categories=["knowledge"], max_tokens=2_000)
    assert_type(answer, str)
    assert_type(await memdb.WorkingMemoryCompressor(memory, llm, counter).update_summary([]), memdb.Compression)
    assert_type(await memdb.import_tree(db, "old/"), memdb.TreeReport)
    assert_type(await memory.facts.read_long_term(), str)
    assert_type(await memory.facts.search_history("words", limit=3), list[memdb.ScoredEntry])
    assert_type(await memory.facts.consolidate([], llm), bool)
    assert_type(await memory.blocks.append_to_memory("task", "text"), memdb.BlockChange)
    assert_type(await memory.blocks.get_block_info(), dict[str, memdb.BlockInfo])
    assert_type(await memory.archive.insert("text", importance=0.7), str)
    assert_type(await memory.archive.search("words", k=5), list[memdb.ScoredPassage])
    keeper = memdb.MemoryConsolidator(memory, llm, context_window_tokens=65_536)
    assert_type(await keeper.maybe_consolidate_by_tokens(), memdb.Consolidated)
    async with memdb.ConsolidationService(db, llm) as service:
        service.notice(memory)
    assert_type(memdb.create_memory_tools(memory, llm=llm, counter=counter), memdb.MemoryTools)
    assert_type(await memdb.FactFolder(memory, "workspace").sync(), memdb.FolderReport)
    await memory.export_state("state.jsonl")
    assert_type((await memory.import_state("state.jsonl", replace=True)).records, int)
    memdb.open("agent.db", embedder=memdb.OpenAIEmbedder("model", 384, base_url="http://localhost:8080/v1"))
    assert_type(memdb.Settings.load("config.yaml").memory.working_memory_target_tokens, int)

    def turn(inside: memdb.Memory[Inside]) -> int:
        assert_type(inside.manager.update_state({"a": 1}), dict[str, Any])
        assert_type(inside.manager.save_checkpoint(memdb.AgentCheckpoint(id="a", payload={})), int)
        assert_type(inside.manager.externalize("tool", "text"), str | memdb.ToolResultReference)
        inside.items.save(memdb.MemoryItem(id="a", content="x"))
        assert_type(inside.items.get("a"), memdb.MemoryItem | None)
        assert_type(inside.conversation.messages(), list[memdb.Message])
        assert_type(inside.graph.find_by_keywords(["word"]), list[memdb.GraphEntity])
        inside.conversation.export_jsonl("s1.jsonl")  # type: ignore[misc, unused-coroutine]
        assert_type(inside.facts.append_history("entry"), int)
        assert_type(inside.blocks.replace("task", "a", "b"), memdb.BlockChange)
        assert_type(inside.archive.list(), list[memdb.Passage])
        inside.export_state("state.jsonl")  # type: ignore[misc, unused-coroutine]
        return inside.items.save_many([])

    assert_type(await memory.atomic(turn), int)
    assert_type(await db.check(repair=True), memdb.CheckReport)
    assert_type(await db.forget("bob"), dict[str, int])
