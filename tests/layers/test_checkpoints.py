"""memory.manager, L2: plans and checkpoints, each save kept (local-ai document)."""

from __future__ import annotations

import asyncio

import pytest

import memdb
from memdb import InvalidInput, MissingFile
from memdb.layers.runtime.checkpoints import STATUSES, AgentCheckpoint

BAD_IDS = ["", "a b", "../../etc/passwd", "a/b", "a.b", "a\n", "\n", "é", "٣", "a\0", "x" * 201, None, 5, b"a"]


def checkpoint(id="run-7", status="in_progress", **payload):
    return AgentCheckpoint(id=id, status=status, payload=payload)


def told(found):
    return [(one.id, one.seq, one.status, one.payload) for one in found]


async def test_a_plan_is_saved_and_loaded(memory, clock):
    manager = memory.manager
    plan = {"steps": ["read", "write", "test"]}
    assert await manager.save_plan("auth-refactor", plan) == 1
    clock.forward(seconds=60)
    assert await manager.load_plan("auth-refactor") == plan
    assert await manager.save_plan("auth-refactor", {"steps": []}) == 2
    assert await manager.load_plan("auth-refactor") == {"steps": []}
    envelope = await manager.plan_envelope("auth-refactor")
    assert list(envelope) == ["format_version", "id", "saved_at", "payload"]
    assert envelope == {
        "format_version": 1,
        "id": "auth-refactor",
        "saved_at": clock().timestamp(),
        "payload": {"steps": []},
    }


async def test_a_plan_that_is_not_there_is_a_missing_file(memory, db):
    await memory.manager.save_plan("here", {})
    for manager in (memory.manager, db.memory("bob").manager, db.memory("alice", "other").manager):
        with pytest.raises(FileNotFoundError, match="there is no plan or checkpoint 'nope'") as raised:
            await manager.load_plan("nope")
        assert isinstance(raised.value, MissingFile)
        assert await manager.plan_envelope("nope") is None
        assert await manager.checkpoint_history("nope") == []
        assert await manager.delete_checkpoint("nope") == 0
    with pytest.raises(MissingFile, match="'bob'"):
        await db.memory("bob").manager.load_plan("here")
    with pytest.raises(MissingFile, match="'nope'"):
        await memory.atomic(lambda m: m.manager.load_plan("nope"))


@pytest.mark.parametrize("id", BAD_IDS)
async def test_ids_are_fit_for_the_name_of_a_file(memory, id):
    manager = memory.manager
    for call in (
        lambda: manager.save_plan(id, {}),
        lambda: manager.load_plan(id),
        lambda: manager.checkpoint_history(id),
        lambda: manager.delete_checkpoint(id),
        lambda: manager.save_checkpoint(AgentCheckpoint.model_construct(id=id, status=None, payload={})),
        lambda: manager.save_tool_result(id, {}),
        lambda: manager.load_tool_result(id),
        lambda: manager.delete_tool_result(id),
    ):
        with pytest.raises(ValueError, match="the id"):
            await call()
    with pytest.raises(InvalidInput, match="the id"):
        AgentCheckpoint(id=id)
    assert await manager.checkpoints() == []


@pytest.mark.parametrize("id", ["a", "_", "-", "A-z_09", "x" * 200])
async def test_ids_that_are_fit(memory, id):
    await memory.manager.save_plan(id, {"id": id})
    assert await memory.manager.load_plan(id) == {"id": id}


async def test_the_latest_is_the_one_that_nothing_supersedes(memory):
    manager = memory.manager
    assert await manager.latest_checkpoint() is None
    await manager.save_checkpoint(checkpoint("a", "in_progress", n=1))
    await manager.save_checkpoint(checkpoint("b", "in_progress", n=2))
    await manager.save_checkpoint(checkpoint("b", "interrupted", n=3))
    await manager.save_plan("p", {"n": 4})
    assert told([await manager.latest_checkpoint()]) == [("p", 1, None, {"n": 4})]
    assert told([await manager.latest_checkpoint("in_progress")]) == [("a", 1, "in_progress", {"n": 1})]
    assert told([await manager.latest_checkpoint(status="interrupted")]) == [("b", 2, "interrupted", {"n": 3})]
    assert await manager.latest_checkpoint("completed") is None
    await manager.save_checkpoint(checkpoint("a", "completed", n=5))
    assert await manager.latest_checkpoint("in_progress") is None
    assert told(await manager.checkpoints()) == [
        ("a", 2, "completed", {"n": 5}),
        ("p", 1, None, {"n": 4}),
        ("b", 2, "interrupted", {"n": 3}),
    ]
    assert [one.id for one in await manager.checkpoints(2)] == ["a", "p"]
    assert [one.id for one in await manager.checkpoints(status="interrupted")] == ["b"]
    assert await manager.checkpoints(0) == []


async def test_history_comes_newest_first_and_is_pruned(memory, clock):
    manager = memory.manager
    for n in range(1, 251):
        assert await manager.save_checkpoint(checkpoint("a", n=n)) == n
    await manager.save_checkpoint(checkpoint("b", n=0))
    history = await manager.checkpoint_history("a", 10_000)
    assert [one.payload["n"] for one in history] == [*range(250, 0, -1)]
    assert [one.seq for one in await manager.checkpoint_history("a", 3)] == [250, 249, 248]
    assert history[0].saved_at == clock()
    assert await manager.prune_checkpoints(keep=2) == 248
    assert [one.seq for one in await manager.checkpoint_history("a")] == [250, 249]
    assert await manager.prune_checkpoints() == 1
    assert sorted(one.id for one in await manager.checkpoints()) == ["a", "b"]
    assert await manager.save_checkpoint(checkpoint("a")) == 251
    assert await manager.delete_checkpoint("a") == 2
    assert [one.id for one in await manager.checkpoints()] == ["b"]
    assert await manager.save_checkpoint(checkpoint("a")) == 1


async def test_one_payload_is_stored_once_and_goes_with_its_last_save(memory, db):
    async def payloads():
        return await db.read(lambda tx: tx.execute("SELECT count(*), sum(size) FROM blob"))

    big = {"plan": "x" * 100_000}
    for id in ("a", "a", "b"):
        await memory.manager.save_plan(id, big)
    await db.memory("bob").manager.save_plan("a", big)
    assert await payloads() == [(2, 200_022)]
    await memory.manager.delete_checkpoint("a")
    assert await memory.manager.load_plan("b") == big
    await memory.manager.delete_checkpoint("b")
    assert await payloads() == [(1, 100_011)]
    assert await db.memory("bob").manager.load_plan("a") == big


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"status": "done"}, "status must be 'in_progress', 'completed', 'interrupted' or None, not 'done'"),
        ({"status": ["completed"]}, "status must be"),
        ({"payload": [1]}, "AgentCheckpoint.payload: the payload must be a dict of JSON values, not list"),
        ({"payload": {"a": float("inf")}}, "the payload.a holds inf"),
        ({"payload": {"a": {1: 2}}}, "keys must be text"),
        ({"payload": {"a": "x" * 17_000_000}}, "at most 16,777,216"),
        ({"name": "x"}, "AgentCheckpoint has no field name; its fields are id, status, payload"),
    ],
)
async def test_what_is_no_checkpoint_is_refused(memory, fields, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        AgentCheckpoint(id="a", **fields)
    if "name" not in fields:
        unchecked = AgentCheckpoint.model_construct(**{"id": "a", "status": None, "payload": {}, **fields})
        with pytest.raises(InvalidInput, match=r"status must be|the payload"):
            await memory.manager.save_checkpoint(unchecked)
    assert await memory.manager.checkpoints() == []


async def test_arguments_are_checked(memory):
    manager = memory.manager
    for call in (
        lambda: manager.save_plan("a", None),
        lambda: manager.save_plan("a", [1]),
        lambda: manager.save_checkpoint("a"),
        lambda: manager.latest_checkpoint("done"),
        lambda: manager.checkpoints(-1),
        lambda: manager.checkpoints(10_001),
        lambda: manager.checkpoint_history("a", True),
        lambda: manager.prune_checkpoints(0),
    ):
        with pytest.raises(InvalidInput):
            await call()


async def test_a_checkpoint_may_be_given_as_its_fields(memory):
    await memory.manager.save_checkpoint({"id": "a", "status": "completed"})
    assert told([await memory.manager.latest_checkpoint()]) == [("a", 1, "completed", {})]


async def test_what_was_read_may_be_saved_again(memory):
    await memory.manager.save_checkpoint(checkpoint(n=1))
    again = await memory.manager.latest_checkpoint()
    assert await memory.manager.save_checkpoint(again) == 2


async def test_saves_at_once_each_get_a_place(memory):
    seqs = await asyncio.gather(*(memory.manager.save_checkpoint(checkpoint(n=n)) for n in range(50)))
    assert seqs == [*range(1, 51)]
    assert (await memory.manager.latest_checkpoint("in_progress")).payload == {"n": 49}


async def test_the_view_shows_them(memory, db):
    for status in (*STATUSES, None):
        await memory.manager.save_checkpoint(checkpoint("a", status, s=status))
    columns = "user_id, session_id, id, seq, status, latest, payload"
    rows = await db.read(lambda tx: tx.execute(f"SELECT {columns} FROM v_checkpoints ORDER BY seq"))
    assert rows[0] == ("alice", "default", "a", 1, "in_progress", 0, '{"s":"in_progress"}')
    assert rows[3][4:] == (None, 1, '{"s":null}')


async def test_the_newest_is_found_without_reading_the_others(memory, db):
    plans = await db.read(_plans)
    assert plans == [
        "SEARCH checkpoint USING INDEX checkpoint_latest (user_id=? AND session_id=? AND superseded=? AND status=?"
        " AND number<?)",
        "SEARCH checkpoint USING INDEX checkpoint_current (user_id=? AND session_id=? AND superseded=? AND number<?)",
        "SEARCH checkpoint USING INDEX sqlite_autoindex_checkpoint_1 (user_id=? AND session_id=? AND id=? AND seq<?)",
    ]


def _plans(tx: memdb.storage.transaction.Transaction) -> list[str]:
    from memdb.layers.runtime import saves

    values = {"user_id": "a", "session_id": "s", "status": "completed", "before": 9, "limit": 1, "id": "i"}
    statements = (saves._CURRENT_OF, saves._CURRENT, saves._HISTORY)
    return [tx.rows(f"EXPLAIN QUERY PLAN {one.sql}", one.bind(values))[0][3] for one in statements]
