"""memory.manager, L1: the working memory is one text, replaced whole (local-ai document)."""

from __future__ import annotations

import asyncio

import pytest

from memdb import InvalidInput
from memdb.layers.runtime.working_memory import WorkingMemory


async def test_it_is_empty_until_it_is_written(memory, clock):
    manager = memory.manager
    assert await manager.get_working_memory() == ""
    assert await manager.working_memory_revision() == 0
    assert await manager.working_memory() == WorkingMemory("", 0, None)
    assert await manager.update_working_memory("# Working\n\nFocused on login flow.") is True
    assert await manager.update_working_memory("# Current Goal\r\n部署") is True
    assert await manager.get_working_memory() == "# Current Goal\r\n部署"
    assert await manager.working_memory() == ("# Current Goal\r\n部署", 2, clock().timestamp())


async def test_a_write_that_knows_an_older_text_is_refused(memory):
    manager = memory.manager
    assert await manager.update_working_memory("a", if_revision=0) is True
    assert await manager.update_working_memory("b", if_revision=0) is False
    assert await manager.update_working_memory("c", if_revision=1) is True
    assert (await manager.working_memory())[:2] == ("c", 2)


async def test_of_many_that_know_the_same_text_one_writes(memory):
    await memory.manager.update_working_memory("begin")
    written = await asyncio.gather(
        *(memory.manager.update_working_memory(str(n), if_revision=1) for n in range(20)),
        *(memory.manager.store_summary(str(n), if_revision=1, current_task=str(n)) for n in range(20)),
    )
    assert sum(written) == 1
    assert await memory.manager.working_memory_revision() == 2


async def test_a_summary_sets_the_task_with_it_or_neither(memory):
    manager = memory.manager
    await manager.update_state({"current_task": "old", "current_step": 3})
    assert await manager.store_summary("one", if_revision=7, current_task="new") is False
    assert await manager.get_state() == {"current_task": "old", "current_step": 3}
    assert await manager.store_summary("one", if_revision=0, current_task=None) is True
    assert (await manager.get_state())["current_task"] == "old"
    assert await manager.store_summary("two", if_revision=1, current_task="new") is True
    assert await manager.get_state() == {"current_task": "new", "current_step": 3}
    with pytest.raises(InvalidInput, match="the state would have"):
        await manager.store_summary("three", if_revision=2, current_task="x" * 1_100_000)
    assert await manager.get_working_memory() == "two"


async def test_clearing_leaves_nothing_but_the_count_of_writes(memory):
    manager = memory.manager
    assert await manager.clear_working_memory() is False
    assert await manager.working_memory_revision() == 0
    await manager.update_working_memory("secret")
    assert await manager.clear_working_memory() is True
    assert await manager.clear_working_memory() is False
    assert await manager.get_working_memory() == ""
    assert await manager.update_working_memory("of who knew the secret", if_revision=1) is False
    assert await manager.update_working_memory("new", if_revision=2) is True


@pytest.mark.parametrize("foreign", [("bob", "default"), ("alice", "other")])
async def test_nobody_else_sees_or_changes_it(memory, db, foreign):
    await memory.manager.update_working_memory("mine")
    other = db.memory(*foreign).manager
    assert await other.working_memory() == WorkingMemory()
    assert await other.clear_working_memory() is False
    await other.update_working_memory("theirs")
    assert await memory.manager.get_working_memory() == "mine"


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        (None, {}, "the working memory must be text, not NoneType"),
        (b"x", {}, "not bytes"),
        ("a\0", {}, "holds a NUL character at position 1"),
        ("\ud800", {}, "lone surrogate"),
        ("x" * (16 * 1024 * 1024 + 1), {}, "at most 16,777,216"),
        ("a", {"if_revision": "1"}, "if_revision must be a whole number"),
        ("a", {"if_revision": True}, "if_revision must be a whole number"),
    ],
)
async def test_what_is_no_text_is_refused(memory, content, options, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        await memory.manager.update_working_memory(content, **options)
    assert await memory.manager.working_memory_revision() == 0


@pytest.mark.parametrize("options", [{"if_revision": None}, {"if_revision": 0, "current_task": 5}])
async def test_what_is_no_summary_is_refused(memory, options):
    with pytest.raises(InvalidInput, match=r"if_revision must be a whole|current_task must be text"):
        await memory.manager.store_summary("text", **{"current_task": None, **options})
    assert await memory.manager.get_working_memory() == ""


async def test_the_view_shows_it(memory, db):
    await memory.manager.update_working_memory("text")
    rows = await db.read(
        lambda tx: tx.execute("SELECT user_id, session_id, content, revision FROM v_working_summaries")
    )
    assert rows == [("alice", "default", "text", 1)]
