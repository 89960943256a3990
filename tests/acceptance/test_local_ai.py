"""The local-ai document, sentence by sentence: its usage examples, its defaults, and the test cases that it names."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

import memdb
from memdb import AgentCheckpoint, ChatReply, Database, InvalidInput, KnowledgeRetriever, Memory, TokenCounter
from memdb.layers.layer import Live
from memdb.testing import FrozenClock, HashingEmbedder, ScriptedModel

COUNTER = TokenCounter()

# -- MemoryManager -----------------------------------------------------------------------------------------------------


async def test_the_usage_example(memory: Memory[Live]) -> None:
    manager = memory.manager
    await manager.update_state({"current_task": "refactor auth", "current_step": 1})
    answer = "# Current Goal\nRefactor the auth module.\n\n# Completed\n* read the code"
    compressor = memdb.WorkingMemoryCompressor(manager, ScriptedModel([answer]), COUNTER, target_tokens=768)
    await compressor.update_summary(
        [
            {"role": "user", "content": "Refactor the auth module."},
            {"role": "assistant", "content": "I'll start by reading the current auth code."},
        ]
    )
    assert (await manager.get_working_memory()).startswith("# Current Goal\nRefactor the auth module.")
    assert await manager.get_state() == {"current_task": "Refactor the auth module.", "current_step": 1}, "L0 sync"
    await manager.update_working_memory("# Working\n\nFocused on login flow.")
    assert await manager.get_working_memory() == "# Working\n\nFocused on login flow."
    await manager.save_plan("auth-refactor", {"steps": ["read", "write", "test"]})
    assert await manager.load_plan("auth-refactor") == {"steps": ["read", "write", "test"]}
    stored = {
        "id": "abc123",
        "tool": "mcp_filesystem_read_file",
        "created_at": "2026-06-11T12:00:00+00:00",
        "content": "file contents…",
    }
    await manager.save_tool_result("abc123", stored)
    assert await manager.load_tool_result("abc123") == stored


async def test_defaults_on_read(memory: Memory[Live]) -> None:
    assert await memory.manager.get_state() == {}
    assert await memory.manager.get_working_memory() == ""
    for load in (memory.manager.load_plan, memory.manager.load_tool_result):
        with pytest.raises(FileNotFoundError):
            await load("none")
    assert await memory.manager.latest_checkpoint() is None


async def test_envelopes(memory: Memory[Live], clock: FrozenClock) -> None:
    now = clock().timestamp()
    await memory.manager.update_state({"current_task": "x"})
    await memory.manager.save_plan("p", {"a": 1})
    await memory.manager.save_tool_result("r", {"content": "c"})
    state = {"format_version": 1, "updated_at": now, "state": {"current_task": "x"}}
    assert await memory.manager.state_envelope() == state
    plan = {"format_version": 1, "id": "p", "saved_at": now, "payload": {"a": 1}}
    assert await memory.manager.plan_envelope("p") == plan
    result = {"format_version": 1, "id": "r", "saved_at": now, "payload": {"content": "c"}}
    assert await memory.manager.tool_result_envelope("r") == result


@pytest.mark.parametrize("id", ["", "../x", "a/b", "a.b", "a b", "a\n", "ä", "a" * 201, None])
async def test_the_rule_for_ids(memory: Memory[Live], id: str) -> None:
    for call in (memory.manager.load_plan, memory.manager.load_tool_result):
        with pytest.raises(ValueError, match="id"):
            await call(id)
    with pytest.raises(InvalidInput):
        await memory.manager.save_plan(id, {})


async def test_scopes_that_one_file_name_would_mix(db: Database) -> None:
    await db.memory("a", "b_c").manager.update_state({"of": 1})
    assert await db.memory("a_b", "c").manager.get_state() == {}, "defect 1"
    await db.memory("a").manager.save_tool_result("r", {"content": "mine"})
    with pytest.raises(FileNotFoundError):
        await db.memory("b").manager.load_tool_result("r")  # defect 2


async def test_statuses_and_resume(memory: Memory[Live]) -> None:
    manager = memory.manager
    for status, step in (("in_progress", 1), ("interrupted", 2)):
        await manager.save_checkpoint(AgentCheckpoint(id="run", status=status, payload={"step": step}))
    interrupted = await manager.latest_checkpoint(status="interrupted")
    assert interrupted is not None
    assert interrupted.payload == {"step": 2}
    async with manager.run("run", resume=True) as run:
        assert run.resumed == {"step": 2}
        await run.step({"step": 3})
    assert await manager.latest_checkpoint(status="interrupted") is None
    last = await manager.latest_checkpoint()
    assert last is not None
    assert (last.status, last.payload) == ("completed", {"step": 3})
    with pytest.raises(InvalidInput, match="status"):
        AgentCheckpoint(id="x", status="paused", payload={})


# -- L3 ----------------------------------------------------------------------------------------------------------------


async def test_externalization(memory: Memory[Live], caplog: pytest.LogCaptureFixture) -> None:
    manager = memory.manager
    assert await manager.externalize("read", "ä" * 3_072) == "ä" * 3_072, "6144 bytes stay"
    text = "ä" * 3_073
    with caplog.at_level(logging.INFO, "memdb"):
        reference = await manager.externalize("read", text)
    assert isinstance(reference, memdb.ToolResultReference)
    assert (reference.summary, reference.size) == ("ä" * 1_000 + "…", 6_146)
    assert json.loads(reference.to_json()) == {
        "result_id": reference.result_id,
        "summary": reference.summary,
        "size": 6_146,
    }
    (event,) = [record for record in caplog.records if "TOOL_RESULT_STORED" in record.getMessage()]
    assert f"tool=read result_id={reference.result_id} size=6146" in event.getMessage()
    stored = await manager.load_tool_result(reference.result_id)
    assert stored["content"] == text
    assert (stored["id"], stored["tool"]) == (reference.result_id, "read")
    assert "+00:00" in stored["created_at"]
    assert await manager.externalize("read", text, succeeded=False) == text, "errors stay inline"
    assert await manager.externalize("load_tool_result", text) == text, "defect 3"
    whole = await manager.externalize("read", "x" * 900, inline_limit=800)
    assert isinstance(whole, memdb.ToolResultReference)
    assert whole.summary == "x" * 900, "no ellipsis where nothing is cut"


# -- the compressor ----------------------------------------------------------------------------------------------------

SECTIONS = ["# Current Goal", "# Completed", "# Important Discoveries", "# Open Issues", "# Decisions"]


async def test_five_sections_in_order_within_the_budget(memory: Memory[Live], caplog: pytest.LogCaptureFixture) -> None:
    long = "# Decisions\n" + "\n".join(f"* decision {n} about the way of things" for n in range(400))
    model = ScriptedModel([long + "\n# Current Goal\nFinish.", long + "\n# Current Goal\nFinish."])
    with caplog.at_level(logging.INFO, "memdb"):
        await memdb.WorkingMemoryCompressor(memory, model, COUNTER).compress([{"role": "user", "content": "go on"}])
    text = await memory.manager.get_working_memory()
    assert COUNTER.count(text) <= 768
    assert [line for line in text.splitlines() if line.startswith("# ")] == SECTIONS
    assert "Finish." in text
    assert "decision 399" in text, "the oldest go first"
    assert len(model.calls) == 2, "one shrink pass"
    assert "WORKING_MEMORY_COMPRESSED mode=full" in caplog.text


@pytest.mark.parametrize("answer", [ConnectionError("down"), "", "   \n", ChatReply(None), ChatReply("", [], "length")])
async def test_a_failure_leaves_the_summary(memory: Memory[Live], answer: object) -> None:
    await memory.manager.update_working_memory("# Current Goal\nKeep me.")
    keeper = memdb.WorkingMemoryCompressor(memory, ScriptedModel([answer] * 3), COUNTER)
    await keeper.update_summary([{"role": "user", "content": "x"}])
    assert await memory.manager.get_working_memory() == "# Current Goal\nKeep me."


async def test_compaction_after_a_run(memory: Memory[Live]) -> None:
    await memory.conversation.add_messages([{"role": "user", "content": str(n)} for n in range(60)])
    await memory.conversation.compact(keep_last=6)
    assert [message.content for message in await memory.conversation.get_history()] == [str(n) for n in range(54, 60)]
    assert len(await memory.conversation.messages()) == 60


# -- notes -------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def stocked(memory: Memory[Live]) -> Memory[Live]:
    for name, text in {
        "knowledge/user1_python.md": "# Python Basics\n\nIntroduction to Python programming.\n\nMore.",
        "knowledge/user1_rust.md": "# Rust Programming\n\nLearning Rust and systems programming.",
        "work/user1_python.md": "# Work\n\nWe deploy on Fridays.",
    }.items():
        await memory.notes.write_file(name, text)
    return memory


async def test_the_three_stages(stocked: Memory[Live]) -> None:
    model = ScriptedModel(['["python", "basics"]', '["rust"]', '["deploy"]', '["knowledge/user1_python.md"]'])
    retriever = KnowledgeRetriever(stocked.notes, model, COUNTER)
    text = await retriever.retrieve(
        query="python programming basics", user_id="alice", categories=["knowledge", "work"], max_tokens=2000
    )
    assert text.startswith("## ")
    assert "Introduction to Python programming." in text
    assert "Fridays" not in text, "defect 6: two files of one name"
    prompt = model.calls[-1].text
    for part in (
        "Python Basics",
        "Introduction to Python programming.",
        "Category: knowledge",
        "python programming basics",
    ):
        assert part in prompt, "rich metadata"
    asked = len(model.calls)
    await stocked.notes.write_file("knowledge/user1_new.md", "# New Topic\n\nImportant content here")
    again = KnowledgeRetriever(stocked.notes, ScriptedModel(['["user1_new.md"]']), COUNTER)
    found = await again.retrieve(query="new topic", user_id="alice", categories=["knowledge"], max_tokens=2000)
    assert found == "## user1_new.md\n# New Topic\n\nImportant content here", "refreshed without a model"
    assert len(model.calls) == asked


@pytest.mark.parametrize("answer", ["no JSON", '{"a": 1}', "[1, 2]", '["not offered.md"]', "[]"])
async def test_a_bad_answer_selects_nothing(stocked: Memory[Live], answer: str) -> None:
    await stocked.notes.refresh_stale_entries("alice")
    retriever = KnowledgeRetriever(stocked.notes, ScriptedModel([answer]), COUNTER)
    assert await retriever.retrieve(query="python", user_id="alice", categories=["knowledge"], max_tokens=500) == ""


@pytest.mark.parametrize("budget", [0, 1, 5, 10, 20, 30, 60])
async def test_the_budget_is_never_exceeded(stocked: Memory[Live], budget: int) -> None:
    await stocked.notes.refresh_stale_entries("alice")
    model = ScriptedModel(['["user1_rust.md", "knowledge/user1_python.md"]'])
    retriever = KnowledgeRetriever(stocked.notes, model, COUNTER, on_overflow="cut")
    text = await retriever.retrieve(query="programming", user_id="alice", categories=["knowledge"], max_tokens=budget)
    assert COUNTER.count(text) <= budget, "defect 9: headings count"


async def test_the_index_has_the_documented_form(stocked: Memory[Live]) -> None:
    assert not await stocked.notes.index_exists()
    await stocked.notes.populate_index_from_files("alice", ["knowledge", "work"], ScriptedModel(['["a", "b"]'] * 3))
    index = await stocked.notes.read_index()
    assert index["index_version"] == 3
    assert isinstance(index["last_updated"], float)
    assert index["files"][0] == {
        "filename": "user1_python.md",
        "title": "Python Basics",
        "description": "Introduction to Python programming.",
        "keywords": ["a", "b"],
        "category": "knowledge",
        "last_modified": index["files"][0]["last_modified"],
    }
    await stocked.notes.delete_file("work/user1_python.md")
    assert len((await stocked.notes.read_index())["files"]) == 2, "defect 5"


async def test_users_are_apart(db: Database, stocked: Memory[Live]) -> None:
    await db.memory("ann").notes.write_file("knowledge/anna_notes.md", "# Python of Ann")
    assert "anna_notes.md" not in await stocked.notes.bm25_search("python"), "defect 7"
    assert await db.memory("anna").notes.list_user_files("anna", "knowledge") == [], "defect 8"
    with pytest.raises(InvalidInput, match="user"):
        await stocked.notes.list_user_files("ann", "knowledge")


async def test_hybrid_search_and_its_fallback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with memdb.open(tmp_path / "a.db", embedder=HashingEmbedder(64)) as db:
        notes = db.memory("alice").notes
        for n in range(12):
            await notes.write_file(f"knowledge/n{n}.md", f"# Note {n}\n\nabout number {n}")
        assert "n7.md" in (await notes.hybrid_search("note number 7", top_n=3, bm25_weight=0.5))[:3]
        assert len(await notes.hybrid_search("note")) == 10, "hybrid_top_n"
    async with memdb.open(tmp_path / "a.db") as db:
        notes = db.memory("alice").notes
        assert await notes.hybrid_search("note number 7") == await notes.bm25_search("note number 7", top_n=10)


# -- settings ----------------------------------------------------------------------------------------------------------


def test_the_documented_defaults() -> None:
    settings = memdb.Settings()
    memory, app = settings.memory, settings.app
    assert memory.search_mode == "bm25"
    assert (memory.hybrid_bm25_weight, memory.hybrid_top_n) == (0.5, 10)
    assert memory.working_memory_enabled is True
    assert (memory.working_memory_target_tokens, memory.working_memory_compact_keep_last) == (768, 6)
    assert (app.tool_result_inline_limit, app.tool_result_summary_max_chars) == (6144, 1000)
    assert memory.categories == ["knowledge"]
