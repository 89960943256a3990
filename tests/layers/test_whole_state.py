"""The state of one scope as a file: equal after a round trip, into any scope, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import (
    AgentCheckpoint,
    AlreadyExists,
    Database,
    GraphEntity,
    GraphRelation,
    InvalidInput,
    KnowledgePage,
    Memory,
    MemoryItem,
    MissingFile,
    StorageError,
)
from memdb.layers.layer import Live
from memdb.markdown.facts.folder import FactFolder
from memdb.storage.transfer import export_user, import_user
from memdb.testing import HashingEmbedder
from tests.hostile.shell import shell

KEY = "sk-0123456789abcdef"
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


async def fill(memory: Memory[Live], said: str = "tea") -> None:
    """Something in every layer, with a past where a layer keeps one."""
    await memory.items.save_many([MemoryItem(id=id, content=f"{said} {id}", metadata={"n": id}) for id in ("b", "a")])
    await memory.items.record_recall("a", 1.5)
    await memory.pages.add_page(KnowledgePage(id="p", title="部署", content=said, tags=["ops"], references=["none"]))
    await memory.notes.write_file("work/a.md", f"# A\n\n{said}")
    await memory.notes.refresh_stale_entries(memory.scope.user_id)
    await memory.graph.add_entities([GraphEntity(id=id, name=f"{said} {id}", entity_type="drink") for id in "xyz"])
    await memory.graph.add_relations([GraphRelation(source_id="z", target_id="x", relation_type="like", weight=0.1)])
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "content": "lone \ud800, NUL \x00", "tool_call_id": "c1"}
    await memory.conversation.add_messages([{"role": "user", "content": said, "mood": 2**70}, call, result])
    await memory.conversation.add_messages([{"role": "user", "content": f"{said} {n}"} for n in range(4)])
    await memory.conversation.compact(3)
    await memory.conversation.record_failure("the model said nothing")
    await memory.manager.update_state({"current_task": said})
    await memory.manager.update_working_memory(f"# Current Goal\n{said}")
    await memory.manager.save_tool_result("r", {"tool": "t", "content": f"{said} " * 20_000})
    for step in range(3):
        await memory.manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"step": step}))
    for text in ("first", "second", "third"):
        await memory.facts.write_long_term(f"{text} {said}", author=f"author of the {text}")
    await memory.facts.append_history(f"[2026-01-01 12:00] {said}")
    told: Any = {"origin": "raw", "chunk": said, "first_position": 1, "last_position": 3}
    await memory.facts.append_chunk([f"{said} was had"], session_id=memory.scope.session_id, **told)
    blocks: Any = {"persona": {"size": 40, "initial_value": said}, "human": {"size": 9, "priority": 3}}
    await memory.blocks.configure(blocks, {"eviction_strategy": "archive_only", "total_size": 45})
    await memory.blocks.append_to_memory("persona", f"{said} " * 60, author="ana")
    await memory.blocks.undo("persona")
    await memory.archive.insert(f"{said} is archived", importance=0.9, tags=["drink"], source="tool", source_id="r")


async def told(memory: Memory[Live]) -> dict[str, Any]:
    """What every layer says."""
    talk, manager, facts, blocks = memory.conversation, memory.manager, memory.facts, memory.blocks
    names = list(await blocks.block_configs())
    pages = [await memory.pages.get_page(entry.id) for entry in await memory.pages.get_index()]
    return {
        "items": await memory.items.list(),
        "recalls": await memory.items.recall_stats("a"),
        "pages": pages,
        "referenced": await memory.pages.referenced_by("none"),
        "stale": await memory.notes.get_stale_entries(memory.scope.user_id),
        "graph": await memory.graph.get_related("z", depth=2),
        "messages": [(m.model_dump(), m.model_extra) for m in await talk.messages()],
        "history for a model": await talk.get_history(),
        "cursor": (await talk.last_consolidated(), await talk.failures()),
        "state": await manager.get_state(),
        "working memory": (await manager.get_working_memory(), await manager.working_memory_revision()),
        "result": await manager.load_tool_result("r"),
        "checkpoints": await manager.checkpoint_history("run"),
        "long term": await facts.long_term(),
        "versions": await facts.versions(),
        "entries": [entry._replace(session_id=None) for entry in await facts.history()],
        "blocks": (await blocks.get_memory(), await blocks.block_configs(), await blocks.config()),
        "block info": await blocks.get_block_info(),
        "edits": {name: await blocks.edits(name) for name in names},
        "archive": [one.model_copy(update={"session_id": None}) for one in await memory.archive.list()],
        "found": [hit.item.id for hit in await memory.items.search("tea", limit=9)],
    }


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_equal_in_another_file_under_another_name(db: Database, tmp_path: Path) -> None:
    memory, path = db.memory("alice", "s1"), tmp_path / "state.jsonl"
    await fill(memory)
    await db.memory("alice", "s2").blocks.configure({"other": {"size": 5}})
    await db.memory("bob", "s1").items.save(MemoryItem(id="a", content="bob's"))
    done = await memory.export_state(path)
    head, *rest = lines(path)
    assert (head["user_id"], head["session_id"], head["and_user"]) == ("alice", "s1", True)
    assert {line.get("session_id", "") for line in rest} == {"", "s1"}
    said = await told(memory)
    async with memdb.open(tmp_path / "other.db") as other:
        for there in (other.memory("alice", "s1"), other.memory("zoe", "evening")):
            stored = await there.import_state(path)
            assert (stored.user_id, stored.records) == (there.scope.user_id, done.records)
            assert await told(there) == said
            again = await there.import_state(path)
            assert (again.records, again.replaced, again.relations, again.sessions) == (0, 0, 0, 0)
            assert await told(there) == said
        zoe = other.memory("zoe", "evening")
        assert {entry.session_id for entry in await zoe.facts.history()} == {None, "evening"}
        assert {one.session_id for one in await zoe.archive.list()} <= {None, "evening"}
        assert [info.session_id for info in await other.sessions("zoe")] == ["evening"]
        await zoe.export_state(tmp_path / "back.jsonl")
        assert (await other.check()).problems == []
    back = (tmp_path / "back.jsonl").read_text().replace('"evening"', '"s1"').splitlines()[1:]
    assert back == path.read_text().splitlines()[1:]
    assert await memory.import_state(tmp_path / "back.jsonl", replace=True)
    assert await told(memory) == said


async def test_the_same_scope_goes_back_and_keeps_what_came_since(memory: Memory[Live], tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    await fill(memory)
    await memory.export_state(path)
    said = await told(memory)
    await memory.facts.write_long_term("written since")
    await memory.items.save(MemoryItem(id="a", content="changed since"))
    await memory.items.save(MemoryItem(id="new", content="new"))
    await memory.import_state(path)
    now = await told(memory)
    assert [item.id for item in now["items"]] == ["b", "a", "new"]
    assert now["items"][1] == said["items"][1]
    assert [text.content for text in now["versions"]] == [
        "third tea", "written since", "third tea", "second tea", "first tea"
    ]  # fmt: skip
    assert (now["messages"], now["blocks"], now["archive"]) == (said["messages"], said["blocks"], said["archive"])
    await memory.import_state(path, replace=True)
    assert await told(memory) == said


async def test_replacing_empties_this_scope_alone(db: Database, tmp_path: Path) -> None:
    memory, other, path = db.memory("alice", "s1"), db.memory("alice", "s2"), tmp_path / "state.jsonl"
    await memory.export_state(path)  # an empty scope has a state, too
    await fill(memory)
    await fill(db.memory("bob", "s1"))
    await other.conversation.add_message({"role": "user", "content": "of s2"})
    await other.blocks.configure({"persona": {"size": 5}})
    await other.manager.update_state({"of": "s2"})
    bob = await told(db.memory("bob", "s1"))
    await memory.import_state(path, replace=True)
    assert await memory.items.list() == await memory.conversation.messages() == await memory.facts.versions() == []
    assert (await memory.blocks.get_memory(), await memory.manager.get_state()) == ({}, {})
    assert {row.layer for row in (await db.stats()).layers if row.user_id == "alice"} == {"message", "block", "state"}
    assert [info.session_id for info in await db.sessions("alice")] == ["s2"]
    assert [message.content for message in await other.conversation.messages()] == ["of s2"]
    assert await told(db.memory("bob", "s1")) == bob


async def test_no_secret_and_no_setting_of_a_client_is_in_it(path: Path, tmp_path: Path) -> None:
    model = memdb.OpenAIChat("qwen3", "http://models.example/v1", KEY, options={"temperature": 0.123})
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        memory = db.memory("alice", "s1")
        memory.blocks.with_llm(model)
        memdb.WorkingMemoryCompressor(memory, model)
        memory.conversation.configure(memdb.ConversationMemoryConfig(max_items=50))
        await fill(memory)
        await memory.notes.hybrid_search("tea")
        await memory.export_state(tmp_path / "state.jsonl")
    text = (tmp_path / "state.jsonl").read_text()
    for secret in (KEY, "models.example", "0.123", "qwen3", str(path), "vector", "hashing"):
        assert secret not in text


# -- whole or not at all ----------------------------------------------------------------------------------------------


DAMAGE = [
    ('"kind":"record"', '"kind":"rekord"', "line .*: its kind is 'rekord'"),
    ('"layer":"fact"', '"layer":"fax"', "line .*: its layer is 'fax'"),
    ('"session_id":"default","key"', '"session_id":"s9","key"', "line .*: it is of the session 's9', the file of 'd"),
    (',"and_user":true', " ", "not the state of one user and session"),
    ('"schema":', '"schema":9', "written by a newer memdb"),
    ('"memdb":"export"', '"memdb":"backup"', "is no export"),
    ('"text":"', '"text":"x', "what its hash says|has no chunk"),
    ('{"kind":"end"', '{"kind":"end","records":1}{', "cut short"),
    ('{"kind":"end"', "", "cut short"),
]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("old", "new", "reason"), DAMAGE, ids=[new or old for old, new, _ in DAMAGE])
async def test_a_damaged_file_changes_nothing(
    db: Database, tmp_path: Path, old: str, new: str, reason: str, replace: bool
) -> None:
    memory, path = db.memory("zoe", "evening"), tmp_path / "state.jsonl"
    await fill(db.memory())
    await db.memory().export_state(path)
    await fill(memory, "coffee")
    said, text = await told(memory), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if new else text[: text.index(old)])
    with pytest.raises(InvalidInput, match=reason) as refused:
        await memory.import_state(path, replace=replace)
    assert isinstance(refused.value, ValueError)
    assert "\n" not in str(refused.value)
    assert await told(memory) == said


@pytest.mark.parametrize("content", ["", '{"role": "user", "content": "x"}\n', "\x00" * 100, "{" * 100_000])
async def test_another_file_is_no_state(memory: Memory[Live], tmp_path: Path, content: str) -> None:
    (tmp_path / "state.jsonl").write_text(content)
    with pytest.raises(InvalidInput, match="is no export"):
        await memory.import_state(tmp_path / "state.jsonl", replace=True)


async def test_paths_that_cannot_be_read_or_written(memory: Memory[Live], db: Database, tmp_path: Path) -> None:
    await fill(memory)
    with pytest.raises(MissingFile, match=r"there is no file .*none.jsonl") as missing:
        await memory.import_state(tmp_path / "none.jsonl")
    assert isinstance(missing.value, FileNotFoundError)
    with pytest.raises(MissingFile):
        await memory.export_state(tmp_path / "none" / "state.jsonl")
    for call in (memory.import_state, memory.export_state):
        with pytest.raises(InvalidInput, match="is a folder"):
            await call(tmp_path)
        for bad in ("", "a\x00b", 5, None, b"a"):
            with pytest.raises(InvalidInput, match="must be a file path"):
                await call(bad)  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="replace must be True or False"):
        await memory.import_state(tmp_path / "none.jsonl", replace="yes")  # type: ignore[arg-type]
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(AlreadyExists):
        await memory.export_state(tmp_path / "diary.txt")
    assert (tmp_path / "diary.txt").read_text() == "mine"
    with pytest.raises(StorageError, match="cannot write"):
        await memory.export_state(tmp_path / ("n" * 300))
    if db.path != ":memory:":
        for own in (db.path, f"{db.path}-wal"):
            with pytest.raises(InvalidInput, match="belongs to the database itself"):
                await memory.export_state(own)
        with pytest.raises(InvalidInput, match="is a database, no export"):
            await memory.import_state(db.path)


async def test_an_older_state_is_replaced_whole(memory: Memory[Live], tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    await memory.items.save(MemoryItem(id="a", content="one"))
    await memory.export_state(str(path))
    await memory.items.save(MemoryItem(id="a", content="two"))
    before = {found.name for found in tmp_path.iterdir()}
    await memory.export_state(path)
    assert "two" in path.read_text()
    assert {found.name for found in tmp_path.iterdir()} == before


async def test_not_inside_a_unit(memory: Memory[Live], tmp_path: Path) -> None:
    for name in ("export_state", "import_state"):
        with pytest.raises(InvalidInput, match="a unit must be a plain function"):
            await memory.atomic(lambda m, name=name: getattr(m, name)(tmp_path / "state.jsonl"))  # type: ignore[misc]
    assert list(tmp_path.glob("*.jsonl")) == []


async def test_any_reader_of_exports_takes_a_state_but_not_the_other_way(db: Database, tmp_path: Path) -> None:
    memory, path = db.memory("alice", "s1"), tmp_path / "state.jsonl"
    await fill(memory)
    await memory.export_state(path)
    async with memdb.open(":memory:") as other:
        await import_user(other.engine, path)
        assert await told(other.memory("alice", "s1")) == await told(memory)
    for session in (None, "s1"):
        await export_user(db.engine, "alice", path, session_id=session)
        with pytest.raises(InvalidInput, match="not the state of one user and session; take it in with `memdb import`"):
            await memory.import_state(path)


async def test_what_cannot_be_read_goes_along_as_its_bytes(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path) as db:
        memory = db.memory("alice", "s1")
        await fill(memory)
        shell(path, "UPDATE record SET metadata = '{' WHERE key = 'b'", careless=True)
        done = await memory.export_state(tmp_path / "state.jsonl")
        assert (done.damaged, done.quarantine) == (1, 1)
        zoe = db.memory("zoe", "evening")
        assert (await zoe.import_state(tmp_path / "state.jsonl", replace=True)).quarantine == 1
        assert [item.id for item in await zoe.items.list()] == ["a"]
        assert (await zoe.import_state(tmp_path / "state.jsonl", replace=True)).quarantine == 1
        rows = await db.read(lambda tx: tx.execute("SELECT key FROM quarantine WHERE user_id = 'zoe'"))
        assert rows == [("b",)]


@pytest.mark.parametrize("replace", [False, True])
async def test_a_folder_of_facts_follows_or_says_that_it_cannot(
    memory: Memory[Live], tmp_path: Path, replace: bool
) -> None:
    folder = FactFolder(memory, tmp_path / "facts")
    await folder.append_history("one")
    await folder.write_long_term("before")
    await memory.export_state(tmp_path / "state.jsonl")
    await folder.append_history("two")
    await folder.write_long_term("since")
    other = (tmp_path / "state.jsonl").read_text().replace('"content":"one"', '"content":"another"')
    (tmp_path / "state.jsonl").write_text(other)
    await memory.import_state(tmp_path / "state.jsonl", replace=replace)
    report = await folder.sync()
    assert (tmp_path / "facts" / "MEMORY.md").read_text() == "before"
    assert [conflict.file for conflict in report.conflicts] == ["HISTORY.md"]
    assert (tmp_path / "facts" / "HISTORY.md").read_text() == "one\n\ntwo\n\n", "never overwritten"


async def test_recalls_that_wait_do_not_reach_what_is_imported(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path) as db:
        memory = db.memory("alice", "s1")
        await fill(memory)
        await memory.export_state(tmp_path / "state.jsonl")
        before = await memory.items.recall_stats("a")
        await memory.retriever.retrieve("tea")
        await memory.import_state(tmp_path / "state.jsonl", replace=True)
        assert await memory.items.recall_stats("a") == before
        counts = "SELECT coalesce(sum(recall_count), 0) FROM recall"
        assert await db.read(lambda tx: tx.execute(counts)) == [(1,)]
