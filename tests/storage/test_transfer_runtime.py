"""States, working summaries, checkpoints and tool results between files: whole, once a payload, or refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import AgentCheckpoint, AlreadyExists, Database, InvalidInput
from memdb.storage.transfer import export_user, import_user
from tests.hostile.shell import shell
from tests.storage.exports import exported, imported, written

ODD = "NUL \x00, half \ud800, 律师\r\n" * 9_000  # several chunks


async def filled(db: Database) -> None:
    for session in ("s1", "s2"):
        manager = db.memory("alice", session).manager
        await manager.update_state({"current_task": session, "big": 10**30, "odd": "\x00"})
        await manager.update_working_memory(f"# Current Goal\n{session}")
        await manager.save_tool_result("r", {"tool": "t", "content": ODD, "more": [1, {"a": None}]})
        for step in range(3):
            await manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={"step": step}))
        await manager.save_plan("plan", {"steps": ["read"]})
    await db.memory("alice").pages.add_page(memdb.KnowledgePage(id="knowledge/a.md", title="A", content="# A\n\nText."))
    await db.memory("alice").notes.refresh_stale_entries("alice")


async def test_all_of_it_comes_back(db: Database, tmp_path: Path) -> None:
    await filled(db)
    path = tmp_path / "alice.jsonl"
    done = await export_user(db.engine, "alice", path)
    assert done.layers == {"tool_result": 2, "page": 1, "state": 2, "working_memory": 2, "checkpoint": 8}
    lines = await exported(db)
    payloads = {line["hash"] for line in lines if line["kind"] == "payload"}
    assert len(payloads) == 5, "each once"
    assert lines[-1]["checkpoints"] == 8
    assert lines[-1]["working_memories"] == 2
    async with memdb.open(tmp_path / "b.db") as other:
        stored = await import_user(other.engine, path)
        assert stored.layers == done.layers
        assert await exported(other) == lines
        again = await import_user(other.engine, path)
        assert (again.records, again.same) == (0, 15)
        manager = other.memory("alice", "s2").manager
        assert await manager.load_tool_result("r") == {"tool": "t", "content": ODD, "more": [1, {"a": None}]}
        latest = await manager.latest_checkpoint(status="in_progress")
        assert latest is not None
        assert (latest.seq, latest.payload) == (3, {"step": 2})
        assert await other.memory("alice").notes.get_stale_entries("alice") == []
        assert (await other.check()).ok


async def test_one_session_takes_only_its_payloads(db: Database) -> None:
    await filled(db)
    await db.memory("alice", "s2").manager.save_plan("own", {"only": "of s2"})
    lines = await exported(db, session_id="s1")
    kinds = [line["kind"] for line in lines]
    assert (kinds.count("state"), kinds.count("checkpoint"), kinds.count("working_memory")) == (1, 4, 1)
    assert len({line["hash"] for line in lines if line["kind"] == "payload"}) == 5


async def test_what_is_there_with_other_content_is_refused_or_replaced(db: Database, tmp_path: Path) -> None:
    await filled(db)
    lines = await exported(db)
    async with memdb.open(tmp_path / "b.db") as other:
        manager = other.memory("alice", "s1").manager
        await manager.update_state({"current_task": "another"})
        await manager.save_checkpoint(AgentCheckpoint(id="run", status="completed", payload={"step": 99}))
        with pytest.raises(AlreadyExists, match="state"):
            await imported(other, *lines[:-1])
        assert await manager.get_state() == {"current_task": "another"}
        assert (await other.stats()).layers[-1].layer == "state", "no payload of the import is left"
        done = await imported(other, *lines[:-1], replace=True)
        assert done.replaced == 2
        assert await manager.get_state() == await db.memory("alice", "s1").manager.get_state()
        assert [save.payload for save in await manager.checkpoint_history("run")] == [{"step": n} for n in (2, 1, 0)]
        assert (await other.check()).ok


def a_payload(text: str, **changed: Any) -> dict[str, Any]:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    return {"kind": "payload", "hash": digest, "size": len(data), "start": 0, "text": text, **changed}


CHECKPOINT = {
    "kind": "checkpoint",
    "session_id": "s1",
    "id": "run",
    "seq": 1,
    "saved_at": "2026-01-01T12:00:00.000000Z",
    "payload": a_payload("{}")["hash"],
}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([CHECKPOINT], "payload .* is not there"),
        ([a_payload("{}", hash="0" * 64), CHECKPOINT | {"payload": "0" * 64}], "not whole or not what its hash says"),
        ([a_payload("{}", size=5), CHECKPOINT], "not whole|not there"),
        ([a_payload("{}", start=7), CHECKPOINT], "begins at byte 7"),
        ([a_payload("{}", start=-1), CHECKPOINT], "no numbers from 0"),
        ([a_payload("{}") | {"text": 5}, CHECKPOINT], "must be text"),
        ([a_payload("{}"), CHECKPOINT | {"status": "asleep"}], "breaks a rule"),
        ([a_payload("{}"), CHECKPOINT | {"id": ""}], "must not be empty"),
        ([{"kind": "state", "session_id": "s1", "updated_at": CHECKPOINT["saved_at"]}], "state is missing"),
        ([{"kind": "working_memory", "session_id": "", "updated_at": CHECKPOINT["saved_at"], "content": ""}], "empty"),
    ],
)
async def test_damaged_lines_are_named_and_left_out_on_request(
    db: Database, lines: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await imported(db, *lines)
    assert (await db.stats()).layers == []
    done = await import_user(db.engine, written(*lines), skip_damaged=True)
    assert done.records == 0
    assert (await db.stats()).layers == [], "no payload is left without what refers to it"


async def test_a_damaged_payload_is_exported_as_bytes(path: Path) -> None:
    async with memdb.open(path) as db:
        await filled(db)
    shell(path, "UPDATE blob_chunk SET data = x'00' WHERE start = 0 AND blob_id = (SELECT min(id) FROM blob)")
    async with memdb.open(path) as db:
        lines = await exported(db)
        kinds = [line["kind"] for line in lines]
        assert kinds.count("quarantine") == 2, "both tool results"
        assert lines[-1]["records"] == 1
        async with memdb.open(":memory:") as other:
            await imported(other, *lines[:-1])
            assert (await other.check()).ok
