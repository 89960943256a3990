"""The folders of the local-ai document: taken whole, written again, and never more than is certain."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import AgentCheckpoint, Database, InvalidInput, KnowledgePage, MissingFile
from memdb.storage.clock import from_text
from tests.trees.writing import put

STATE = {"format_version": 1, "updated_at": 1718123456.5, "state": {"current_task": "auth", "current_step": 2}}
PLAN = {"format_version": 1, "id": "run-7", "saved_at": 1718123457.0, "payload": {"status": "interrupted", "step": 4}}
RESULT = {
    "format_version": 1,
    "id": "a1b2",
    "saved_at": 1718123458.0,
    "payload": {"id": "a1b2", "tool": "read", "created_at": "2026-06-11T12:00:00+00:00", "content": "line\n" * 9_000},
}
ENTRY: dict[str, Any] = {
    "filename": "ann_notes.md",
    "title": "Notes of Ann",
    "description": "What Ann wrote down.",
    "keywords": ["zebra", "notes"],
    "category": "knowledge",
    "last_modified": 1686234567.0,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "local-ai"
    memory, data = root / "memory", root / "memory_data"
    put(memory / "state" / "ann_s1.json", STATE)
    put(memory / "working" / "ann_s1.md", "# Current Goal\nMend the login.")
    put(memory / "plans" / "ann_s1.json", PLAN)
    put(memory / "tool_results" / "a1b2.json", RESULT)
    put(data / "memory_index.json", {"index_version": 3, "last_updated": 1686234567.1, "files": [ENTRY]})
    put(data / "knowledge" / "ann_notes.md", "# Notes\n\nThe violin is with Mr Bassi.")
    put(data / "work" / "ann_todo.md", "# To do\n\nCall the 律师.")
    os.utime(data / "knowledge" / "ann_notes.md", (ENTRY["last_modified"], ENTRY["last_modified"]))
    put(data / ".embeddings" / "x.json", "{}")
    return root


async def test_a_tree_is_taken_whole(db: Database, tree: Path) -> None:
    done = await memdb.import_tree(db, tree, user_id="ann")
    assert (done.states, done.working_memories, done.checkpoints, done.tool_results, done.notes) == (1, 1, 1, 1, 2)
    assert (done.same, done.conflicts, done.skipped, done.others) == (0, [], [], 0)
    manager = db.memory("ann", "s1").manager
    assert await manager.state_envelope() == STATE
    assert await manager.get_working_memory() == "# Current Goal\nMend the login."
    (checkpoint,) = await manager.checkpoints()
    assert (checkpoint.id, checkpoint.status, checkpoint.payload) == ("run-7", "interrupted", PLAN["payload"])
    assert checkpoint.saved_at is not None
    assert checkpoint.saved_at.timestamp() == PLAN["saved_at"]
    assert await db.memory("ann").manager.tool_result_envelope("a1b2") == RESULT
    notes = db.memory("ann").notes
    assert await notes.bm25_search("zebra") == ["ann_notes.md"], "a keyword of the index"
    assert await notes.bm25_search("律师") == ["ann_todo.md"]
    assert await notes.read_file("knowledge/ann_notes.md") == "# Notes\n\nThe violin is with Mr Bassi."
    (entry,) = (await notes.read_index())["files"][:1]
    assert (entry["title"], entry["keywords"]) == ("Notes of Ann", ["zebra", "notes"])
    assert (await db.check()).ok


async def test_importing_again_changes_nothing_and_what_differs_stays_unless_replaced(db: Database, tree: Path) -> None:
    await memdb.import_tree(db, tree, user_id="ann")
    again = await memdb.import_tree(db, tree, user_id="ann")
    assert (again.total, again.same, again.conflicts) == (0, 6, [])
    put(tree / "memory" / "state" / "ann_s1.json", STATE | {"state": {"current_step": 3}})
    put(tree / "memory_data" / "work" / "ann_todo.md", "# To do\n\nNothing.")
    kept = await memdb.import_tree(db, tree, user_id="ann")
    assert kept.conflicts == ["state/ann_s1.json", "work/ann_todo.md"]
    assert await db.memory("ann", "s1").manager.get_state() == STATE["state"]
    won = await memdb.import_tree(db, tree, user_id="ann", replace=True)
    assert (won.replaced, won.conflicts) == (2, [])
    assert await db.memory("ann", "s1").manager.get_state() == {"current_step": 3}, "whole, not merged"
    assert await db.memory("ann").notes.read_file("ann_todo.md") == "# To do\n\nNothing."


async def test_files_of_the_layout_before_scopes(db: Database, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    put(memory / "state.json", STATE)
    put(memory / "working_memory.md", "# Working")
    put(memory / "plans" / "auth-refactor.json", {**PLAN, "id": "auth-refactor", "payload": {"steps": []}})
    put(tmp_path / "memory_data" / "personal" / "notes.md", "no prefix")
    done = await memdb.import_tree(db, tmp_path, user_id="bob", session_id="old")
    assert (done.states, done.working_memories, done.checkpoints, done.notes) == (1, 1, 1, 1)
    manager = db.memory("bob", "old").manager
    assert await manager.load_plan("auth-refactor") == {"steps": []}
    assert await manager.get_state() == STATE["state"]
    assert await db.memory("bob").notes.list_user_files("bob", "personal") == ["notes.md"]


async def test_nobody_gets_what_may_be_anothers(db: Database, tree: Path) -> None:
    memory, data = tree / "memory", tree / "memory_data"
    put(memory / "state" / "ann_b_s1.json", STATE)  # of "ann" with "b_s1", or of "ann_b" with "s1"
    put(memory / "state" / "anna_s1.json", STATE)
    put(data / "knowledge" / "anna_secret.md", "of anna")
    done = await memdb.import_tree(db, tree, user_id="ann")
    assert done.others == 2, "anna's"
    assert await db.memory("ann").notes.list_user_files("ann", "knowledge") == ["ann_notes.md"]
    assert {info.session_id for info in await db.sessions("ann")} == {"b_s1", "default", "s1"}
    everybody = await memdb.import_tree(db, tree)
    named = {skipped.path for skipped in everybody.skipped}
    assert named >= {"state/ann_b_s1.json", "knowledge/ann_notes.md", "knowledge/anna_secret.md"}
    assert all("name the user" in skipped.reason for skipped in everybody.skipped)
    assert await db.memory("anna", "s1").manager.get_state() == STATE["state"]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("memory/state/ann_s2.json", b'{"state": ', "no JSON"),
        ("memory/state/ann_s2.json", b"[1]", "no JSON object"),
        ("memory/state/ann_s2.json", b'{"state": 5}', "no object `state`"),
        ("memory/working/ann_s2.md", b"\xff\xfe", "not UTF-8"),
        ("memory/plans/ann_s2.json", b'{"id": "../x", "payload": {}}', "cannot be kept"),
        ("memory/plans/ann_s2.json", b'{"id": "x"}', "no object `payload`"),
        ("memory/tool_results/zz.json", b"\x00\x01", "no JSON"),
        ("memory_data/work/ann_x.md", b"\xff\xfe\x00", "UTF-"),
    ],
    ids=range(8),
)
async def test_a_damaged_file_costs_the_others_nothing(
    db: Database, tree: Path, file: str, content: bytes, reason: str
) -> None:
    put(tree / file, content)
    done = await memdb.import_tree(db, tree, user_id="ann")
    ((left_out, why),) = done.skipped
    assert file.endswith(left_out)
    assert reason in why
    assert done.total == 6
    assert (await db.check()).ok
    kept = await db.read(lambda tx: tx.rows("SELECT key, raw FROM v_quarantine JOIN quarantine USING (raw)"))
    if file.startswith("memory/") and b"payload" not in content and b"id" not in content and b"5" not in content:
        assert kept[0][0] == left_out
        assert bytes.fromhex(json.loads(kept[0][1])["line"]) == content


async def test_an_export_is_the_same_tree_again(db: Database, tree: Path, tmp_path: Path) -> None:
    await memdb.import_tree(db, tree, user_id="ann")
    out = tmp_path / "out"
    done = await memdb.export_tree(db, out, user_id="ann")
    assert (done.states, done.working_memories, done.checkpoints, done.tool_results, done.notes) == (1, 1, 1, 1, 2)
    for path in ("state/ann_s1.json", "tool_results/a1b2.json"):
        assert json.loads((out / "memory" / path).read_text()) == json.loads((tree / "memory" / path).read_text())
    assert (out / "memory/working/ann_s1.md").read_text() == (tree / "memory/working/ann_s1.md").read_text()
    plan = json.loads((out / "memory/plans/ann_s1.json").read_text())
    assert plan == {**PLAN, "status": "interrupted"}
    for path in ("knowledge/ann_notes.md", "work/ann_todo.md"):
        assert (out / "memory_data" / path).read_text() == (tree / "memory_data" / path).read_text()
    index = json.loads((out / "memory_data/memory_index.json").read_text())
    assert index["index_version"] == 3
    assert index["files"][0] | {"last_modified": 0} == ENTRY | {"last_modified": 0}


ODD = [("a", "b_c"), ("a_b", "c"), ("../up", "s/1"), ("用户", "会话"), ("A", "S"), ("a", "s"), ("a" * 300, "x")]


async def test_any_scope_id_and_name_comes_back(db: Database, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for user, session in ODD:
        manager = db.memory(user, session).manager
        await manager.update_state({"of": [user, session], "nul": "\x00"})
        for id in ("same", "Same", "run"):
            await manager.save_tool_result(id, {"content": f"{user} {session} {id} \ud800"})
            await manager.save_checkpoint(AgentCheckpoint(id=id, status="completed", payload={"id": id, "user": user}))
        pages = db.memory(user).pages
        if await pages.get_page("p/1") is None:
            for id in ("p/1", "work/b.md", "con", "x" * 900, "Work/B.md"):
                page = KnowledgePage(
                    id=id, title="t", content=f"of {user}", category="work", tags=["t"], references=["b"]
                )
                await pages.add_page(page)
    for user in dict.fromkeys(user for user, _ in ODD):
        await memdb.export_tree(db, out, user_id=user)
    async with memdb.open(tmp_path / "other.db") as other:
        done = await memdb.import_tree(other, out)
        assert (done.skipped, done.conflicts, done.others) == ([], [], 0)
        for user, session in ODD:
            mine, theirs = db.memory(user, session), other.memory(user, session)
            assert await theirs.manager.state_envelope() == await mine.manager.state_envelope()
            for id in ("same", "Same", "run"):
                assert await theirs.manager.load_tool_result(id) == await mine.manager.load_tool_result(id)
                assert (await theirs.manager.checkpoint_history(id))[0].payload == {"id": id, "user": user}
                assert (await theirs.manager.checkpoint_history(id))[0].status == "completed"
            for id in ("p/1", "work/b.md", "con", "x" * 900, "Work/B.md"):
                page = await theirs.pages.get_page(id)
                assert page is not None
                assert (page.content, page.tags, page.references) == (f"of {user}", ["t"], ["b"])
        assert (await other.check()).ok


async def test_a_folder_that_holds_something_else(db: Database, tree: Path, tmp_path: Path) -> None:
    await memdb.import_tree(db, tree, user_id="ann")
    with pytest.raises(memdb.AlreadyExists, match="something else"):
        await memdb.export_tree(db, tree, user_id="ann")
    await memdb.export_tree(db, tree, user_id="ann", force=True)
    await memdb.export_tree(db, tree, user_id="ann")  # a tree of memdb by now
    for folder, error in (
        (tmp_path / "none", MissingFile),
        (tmp_path, InvalidInput),
        (tree / "memory_data" / "work", InvalidInput),
    ):
        with pytest.raises(error):
            await memdb.import_tree(db, folder)
    with pytest.raises(memdb.NotFound, match="nobody"):
        await memdb.export_tree(db, tmp_path / "empty", user_id="nobody")
    put(tree / "memory" / "scopes.json", '{"memdb": "tree", "version": 99, "scopes": {}, "results": {}, "notes": {}}')
    with pytest.raises(InvalidInput, match="newer memdb"):
        await memdb.import_tree(db, tree)


async def test_times_are_kept_and_never_lie_ahead(db: Database, tree: Path) -> None:
    put(tree / "memory" / "state" / "ann_s1.json", STATE | {"updated_at": 99_999_999_999.0})
    before = from_text(await db.read(lambda tx: tx.now))
    await memdb.import_tree(db, tree, user_id="ann")
    (info,) = [info for info in await db.sessions("ann") if info.session_id == "s1"]
    assert info.updated_at >= before
    assert info.updated_at.year < 2100


@pytest.mark.parametrize("named", ["", ".loki", ".loki/memory"])
async def test_a_folder_of_loki_is_none_and_the_error_says_what_takes_it(
    db: Database, tmp_path: Path, named: str
) -> None:
    semantic = tmp_path / ".loki/memory/semantic"
    semantic.mkdir(parents=True)
    (semantic / "patterns.json").write_text('{"patterns": []}')
    with pytest.raises(InvalidInput, match=r"memory holds .* import it with memdb\.import_experience\(db, folder\)"):
        await memdb.import_tree(db, tmp_path / named)


async def test_a_memory_folder_that_holds_both_is_a_tree(db: Database, tmp_path: Path) -> None:
    for name in ("semantic", "state"):
        (tmp_path / "memory" / name).mkdir(parents=True)
    (tmp_path / "memory/semantic/patterns.json").write_text('{"patterns": []}')
    assert (await memdb.import_tree(db, tmp_path)).skipped == [], "a tree without files, not refused as one of loki"
