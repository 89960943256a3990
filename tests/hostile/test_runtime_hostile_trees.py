"""Trees under hostile use: files that say too much, names that are no text, links, and a tree that is written again."""

from __future__ import annotations

import json
import os
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

import memdb
from memdb import Database
from memdb.testing import FrozenClock
from memdb.trees.exporting import export_tree
from memdb.trees.importing import import_tree


def _file(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


async def test_a_state_that_cannot_be_kept_does_not_take_the_present_one_away(db: Database, tmp_path: Path) -> None:
    manager = db.memory("alice", "s1").manager
    await manager.update_state({"present": 1})
    _file(tmp_path, "memory/state/alice_s1.json", json.dumps({"state": {"new": "y" * 1_500_000}}))
    report = await import_tree(db, tmp_path, user_id="alice", replace=True)
    assert [one.path for one in report.skipped] == ["state/alice_s1.json"]
    assert await manager.get_state() == {"present": 1}


@pytest.mark.parametrize("folder", ["memory/state", "memory/working", "memory/plans", "memory/tool_results"])
@pytest.mark.parametrize("user", ["alice", None])
async def test_a_name_that_is_no_text_costs_the_others_nothing(
    db: Database, tmp_path: Path, folder: str, user: str | None
) -> None:
    ending = b".md" if folder.endswith("working") else b".json"
    _file(tmp_path, f"{folder}/alice_ok{ending.decode()}", '{"id": "ok", "state": {}, "payload": {}}')
    (tmp_path / folder / os.fsdecode(b"alice_\xff" + ending)).write_text('{"id": "no", "state": {}, "payload": {}}')
    report = await import_tree(db, tmp_path, user_id=user)
    assert (report.total, len(report.skipped)) == (1, 1)


async def test_a_page_that_is_damaged_costs_the_others_nothing(path: Path, tmp_path: Path) -> None:
    _file(tmp_path, "tree/memory_data/knowledge/alice_a.md", "# A\nbody")
    _file(tmp_path, "tree/memory_data/knowledge/alice_b.md", "# B\nbody")
    async with memdb.open(path) as db:
        await import_tree(db, tmp_path / "tree", user_id="alice")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE record SET tags = '[1]' WHERE title = 'A'")
    connection.commit()
    connection.close()
    async with memdb.open(path) as db:
        assert (await import_tree(db, tmp_path / "tree", user_id="alice")).same == 1


async def test_links_are_not_followed(db: Database, tmp_path: Path) -> None:
    _file(tmp_path, "outside/alice_s.md", "secret")
    _file(tmp_path, "outside/state.json", '{"state": {"secret": 1}}')
    for folder in ("tree/memory", "tree/memory_data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tree/memory/working").symlink_to(tmp_path / "outside")
    (tmp_path / "tree/memory_data/knowledge").symlink_to(tmp_path / "outside")
    (tmp_path / "tree/memory/state.json").symlink_to(tmp_path / "outside/state.json")
    report = await import_tree(db, tmp_path / "tree", user_id="alice")
    assert report.total == 0
    assert [(skipped.path, skipped.reason) for skipped in report.skipped] == [
        ("working", "it is a link, and links are not followed"),
        ("knowledge", "it is a link, and links are not followed"),
    ]


async def test_a_tree_that_is_written_again_holds_nothing_old(db: Database, tmp_path: Path) -> None:
    manager = db.memory("alice", "s1").manager
    await manager.save_plan("a", {"v": 1})
    await manager.save_plan("b", {"v": 1})
    await manager.update_state({"secret": 1})
    await manager.save_tool_result("t", {"content": "secret"})
    await export_tree(db, tmp_path / "tree", user_id="alice")
    await manager.save_plan("a", {"v": 2})
    await manager.clear_state()
    await manager.delete_tool_result("t")
    await export_tree(db, tmp_path / "tree", user_id="alice")
    async with memdb.open(tmp_path / "new.db") as other:
        report = await import_tree(other, tmp_path / "tree")
        found = other.memory("alice", "s1").manager
        assert (await found.load_plan("a"), await found.load_plan("b")) == ({"v": 2}, {"v": 1})
        assert (await found.get_state(), await found.tool_results(), report.conflicts) == ({}, [], [])


async def test_the_longest_ids_have_names(db: Database, tmp_path: Path) -> None:
    for session in ("s" * 100, "t" * 100):
        manager = db.memory("u" * 100, session).manager
        for id in ("a" * 200, "A" * 200, "b" * 200):
            await manager.save_plan(id, {"of": session, "id": id})
            await manager.save_tool_result(id, {"content": session + id})
    await export_tree(db, tmp_path / "tree", user_id="u" * 100)
    async with memdb.open(tmp_path / "new.db") as other:
        assert (await import_tree(other, tmp_path / "tree")).total == 12
        found = other.memory("u" * 100, "t" * 100).manager
        assert await found.load_plan("A" * 200) == {"of": "t" * 100, "id": "A" * 200}


async def test_what_expires_expires_after_the_journey(db: Database, clock: FrozenClock, tmp_path: Path) -> None:
    ends = clock() + timedelta(hours=1)
    await db.memory("alice").manager.save_tool_result("t", {"content": "x"}, expires_at=ends)
    await export_tree(db, tmp_path / "tree", user_id="alice")
    async with memdb.open(tmp_path / "new.db", clock=clock) as other:
        await import_tree(other, tmp_path / "tree")
        assert [one.expires_at for one in await other.memory("alice").manager.tool_results()] == [ends]
