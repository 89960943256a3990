"""memory.manager, L0: the state is a JSON object changed by patches (local-ai document)."""

from __future__ import annotations

import asyncio

import pytest

from memdb import InvalidInput
from memdb.layers.runtime.state import MAX_STATE_BYTES

FOREIGN = (("bob", "default"), ("alice", "other"), ("alice_default", "x"))


async def test_a_state_is_empty_until_it_is_patched(memory, clock):
    manager = memory.manager
    assert await manager.get_state() == {}
    assert await manager.state_envelope() is None
    assert await manager.update_state({"current_task": "refactor auth", "current_step": 1}) == {
        "current_task": "refactor auth",
        "current_step": 1,
    }
    clock.forward(seconds=5)
    state = await manager.update_state({"current_step": None, "plan_id": "p"})
    assert state == {"current_task": "refactor auth", "current_step": None, "plan_id": "p"}
    assert list(state) == ["current_task", "current_step", "plan_id"]
    assert await manager.get_state() == state
    envelope = await manager.state_envelope()
    assert list(envelope) == ["format_version", "updated_at", "state"]
    assert (envelope["format_version"], envelope["state"]) == (1, state)
    assert envelope["updated_at"] == clock().timestamp()


async def test_objects_are_replaced_not_merged(memory):
    await memory.manager.update_state({"a": {"x": 1}, "b": [1]})
    assert await memory.manager.update_state({"a": {"y": 2}}) == {"a": {"y": 2}, "b": [1]}


async def test_keys_are_removed_and_the_state_cleared(memory):
    manager = memory.manager
    assert await manager.remove_state_keys(["a"]) == {}
    assert await manager.state_envelope() is None
    await manager.update_state({"a": 1, "b": None, "c": 3})
    assert await manager.remove_state_keys(["a", "b", "nope"]) == {"c": 3}
    assert await manager.get_state() == {"c": 3}
    assert await manager.clear_state() is True
    assert await manager.clear_state() is False
    assert await manager.get_state() == {}


async def test_a_hundred_patches_at_once_all_survive(memory):
    await asyncio.gather(*(memory.manager.update_state({f"key {n}": n}) for n in range(100)))
    assert await memory.manager.get_state() == {f"key {n}": n for n in range(100)}


@pytest.mark.parametrize("foreign", FOREIGN)
async def test_nobody_else_sees_or_changes_it(memory, db, foreign):
    await memory.manager.update_state({"a": 1})
    other = db.memory(*foreign).manager
    assert await other.get_state() == {}
    assert await other.clear_state() is False
    assert await other.update_state({"b": 2}) == {"b": 2}
    assert await memory.manager.get_state() == {"a": 1}


@pytest.mark.parametrize(
    "value",
    [
        "NUL \0 and half a character \ud800",
        {"\0": "\udfff"},
        10**400,
        -(2**70),
        1e-300,
        [[], {}, "", None, True],
        '"; DROP TABLE state; --',
        "部署\r\n\u2028",
    ],
)
async def test_any_json_comes_back_equal(memory, value):
    await memory.manager.update_state({"value": value, "'": 1})
    assert await memory.manager.get_state() == {"value": value, "'": 1}


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [
        ([("a", 1)], "the patch must be a dict of keys and JSON values, not list"),
        (None, "not NoneType"),
        ({1: 2}, "has the key 1; keys must be text"),
        ({"a": {2: 3}}, "keys must be text"),
        ({"a": float("nan")}, "the patch.a holds nan"),
        ({"a": {1}}, "holds a set"),
        ({"a": object()}, "holds a object"),
        ({"a": "x" * MAX_STATE_BYTES}, "the state would have 1,048,593 bytes as JSON; at most 1,048,576 are kept"),
        ({"a": 10**5000}, "cannot be kept"),
    ],
)
async def test_what_is_no_patch_is_refused_and_changes_nothing(memory, patch, complaint):
    await memory.manager.update_state({"kept": 1})
    with pytest.raises(InvalidInput, match=complaint):
        await memory.manager.update_state(patch)
    assert await memory.manager.get_state() == {"kept": 1}


async def test_the_limit_holds_for_the_whole_state(memory):
    half = "é" * (MAX_STATE_BYTES // 4)  # two bytes each
    await memory.manager.update_state({"a": half})
    with pytest.raises(InvalidInput, match="remove keys"):
        await memory.manager.update_state({"b": half})
    assert await memory.manager.update_state({"b": half[:-20]}) == {"a": half, "b": half[:-20]}


@pytest.mark.parametrize("keys", ["abc", None, [1], {"a": 1}])
async def test_keys_to_remove_are_a_list_of_texts(memory, keys):
    await memory.manager.update_state({"a": 1})
    with pytest.raises(InvalidInput, match="keys must be a list"):
        await memory.manager.remove_state_keys(keys)


async def test_what_is_returned_is_the_callers_own(memory):
    given = {"a": {"b": [1]}}
    state = await memory.manager.update_state(given)
    state["a"]["b"].append(2)
    (await memory.manager.get_state())["a"]["b"].append(3)
    given["a"]["b"].append(4)
    assert await memory.manager.get_state() == {"a": {"b": [1]}}


async def test_a_unit_lands_whole_or_not_at_all(memory):
    def turn(m, fails):
        m.manager.update_state({"a": 1})
        assert m.manager.remove_state_keys(["a"]) == {}
        m.manager.update_state({"b": 2})
        m.manager.update_working_memory("text")
        m.manager.save_plan("p", {"c": 3})
        assert m.manager.state_envelope()["state"] == {"b": 2}
        if fails:
            raise RuntimeError("no")
        return m.manager.get_state()

    with pytest.raises(RuntimeError, match="no"):
        await memory.atomic(lambda m: turn(m, True))
    assert await memory.manager.get_state() == {}
    assert await memory.manager.checkpoints() == []
    assert await memory.atomic(lambda m: turn(m, False)) == {"b": 2}
    assert await memory.manager.get_working_memory() == "text"
    assert await memory.manager.load_plan("p") == {"c": 3}


async def test_the_view_shows_it(memory, db):
    await memory.manager.update_state({"current_task": "t", "current_step": 2, "plan_id": "p"})
    columns = "user_id, session_id, format_version, current_task, current_step, plan_id"
    rows = await db.read(lambda tx: tx.execute(f"SELECT {columns} FROM v_states"))
    assert rows == [("alice", "default", 1, "t", 2, "p")]
