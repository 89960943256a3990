"""What a shell can break in facts, history, blocks and the archive: check() says it and mends it; what ends them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memdb
from memdb import Memory
from memdb.layers.layer import Live
from memdb.testing import HashingEmbedder
from tests.hostile.shell import NOW, shell

LONG = "steady " * 40
IGNORING = "PRAGMA ignore_check_constraints = ON; "
STRAY = f"INSERT INTO version VALUES ('alice', '', '{{}}', '{{}}', 1, '{NOW}', '{NOW}', '{{{{}}}}', 'x')"

# What is done -> what the check says of it, and whether a row then lies in the quarantine.
BROKEN = [
    ("DELETE FROM block", "have no row of their own", True),
    ("DROP TRIGGER block_ad; DELETE FROM record WHERE layer = 'block'", "rows of block belong to no record", False),
    ("DROP TRIGGER history_ad; DELETE FROM record WHERE layer = 'history'", "rows of history belong to no", False),
    ("DROP TRIGGER passage_ad; DELETE FROM record WHERE layer = 'archive'", "rows of passage belong to no", False),
    (IGNORING + "UPDATE block SET size = 0", "blocks have no size from 1 or no priority from 0", True),
    ("UPDATE block SET size = 'much'", "blocks have no size from 1 or no priority from 0", True),
    ("UPDATE block SET priority = 'high'", "blocks have no size from 1 or no priority from 0", True),
    ("UPDATE block SET user_id = 'bob'", "rows of block bear another user than their record", False),
    ("UPDATE history SET user_id = 'bob'", "rows of history bear another user than their record", False),
    ("UPDATE passage SET user_id = 'bob'", "rows of passage bear another user than their record", False),
    ("DROP TRIGGER version_record_ad; DELETE FROM record WHERE layer = 'fact'", "texts are of no fact", False),
    (STRAY.format("item", "a"), "earlier texts are of no fact and no block", False),
    (STRAY.format("fact", "none"), "earlier texts are of no fact and no block", False),
    (IGNORING + "UPDATE version SET metadata = '{'", "earlier texts hold broken JSON", True),
    ("UPDATE version SET number = -1 WHERE layer = 'fact'", "earlier texts have no number from 1", True),
    ("UPDATE version SET number = 'one' WHERE layer = 'fact'", "earlier texts have no number from 1", True),
    ("DROP TRIGGER version_counted_ad; DELETE FROM version", "scopes count their records wrongly", False),
    ("DROP TRIGGER version_counted_au; UPDATE version SET content = 'longer'", "scopes count their records", False),
    (IGNORING + "UPDATE memory_config SET config = '{'", "configurations of blocks hold broken JSON", True),
    ("UPDATE consolidation SET failures = -4", "do not know how often their consolidation failed", False),
    ("UPDATE consolidation SET failures = 'often'", "do not know how often their consolidation failed", False),
    (IGNORING + "UPDATE record SET metadata = '{' WHERE layer = 'fact'", "records hold broken JSON", True),
    ("DROP VIEW v_facts", "the view v_facts is missing", False),
    ("DROP TRIGGER version_record_au", "the trigger version_record_au is missing", False),
]


async def fill(memory: Memory[Live], name: str = "alice") -> None:
    """Something of everything, each with the user's name in it."""
    for text in ("first", "second"):
        await memory.facts.write_long_term(f"the {text} of {name}", author=name)
    await memory.facts.append_history(f"[2026-01-01 12:00] history of {name}")
    told = {"origin": "raw", "chunk": name, "session_id": "s1", "first_position": 1, "last_position": 4}
    await memory.facts.append_chunk([f"chunk of {name}"], **told)
    config = {"eviction_strategy": "archive_only"}
    await memory.blocks.configure({"persona": {"size": 30, "initial_value": f"block of {name}"}}, config)
    await memory.blocks.append_to_memory("persona", f"passage of {name} {LONG}")
    await memory.conversation.add_message({"role": "user", "content": f"message of {name}"})
    await memory.conversation.record_failure(f"reason of {name}")


@pytest.mark.parametrize(("statement", "sentence", "aside"), BROKEN, ids=[what[0][-60:] for what in BROKEN])
async def test_a_check_names_and_mends_it(path: Path, statement: str, sentence: str, aside: bool) -> None:
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        await fill(db.memory("alice", "s1"))
        assert (await db.check()).problems == []
    shell(path, *statement.split("; "))
    async with memdb.open(path) as db:
        found = await db.check()
        assert any(sentence in problem for problem in found.problems), found.problems
        mended = await db.check(repair=True)
        assert mended.ok, mended.problems
        assert (await db.check()).problems == []
        assert bool((await db.stats()).quarantined) == aside
        memory = db.memory("alice", "s1")  # and all of it can be used
        await memory.facts.write_long_term("new")
        await memory.blocks.configure({"persona": {"size": 30}})
        await memory.blocks.update_memory("persona", "new")
        assert (await memory.facts.versions())[0].content == "new"
        assert (await memory.blocks.edits("persona"))[0].content == "new"
        assert (await db.check()).problems == []


async def test_earlier_texts_of_what_is_set_aside_stay(path: Path) -> None:
    async with memdb.open(path) as db:
        memory = db.memory("alice", "s1")
        await fill(memory)
        shell(path, "UPDATE record SET metadata = '{' WHERE layer IN ('fact', 'block')", careless=True)
        assert await memory.facts.read_long_term() == ""
        assert await memory.blocks.get_memory() == {}
        rows = await db.read(lambda tx: tx.execute("SELECT layer, raw FROM quarantine ORDER BY layer DESC"))
        assert [layer for layer, _ in rows] == ["fact", "block"]
        assert bytes.fromhex(json.loads(rows[1][1])["block"]["size"]) == b"30"
        assert (await db.check()).problems == []
        assert (await memory.facts.read_version(1)).content == "the first of alice"
        await memory.facts.write_long_term("written anew")
        assert [text.content for text in await memory.facts.versions()] == ["written anew", "the first of alice"]
        await memory.blocks.configure({"persona": {"size": 30}})
        await memory.blocks.undo("persona")
        assert await memory.blocks.get_memory() == {"persona": "block of alice"}


async def test_forgetting_leaves_nothing(path: Path) -> None:
    async with memdb.open(path, embedder=HashingEmbedder(16)) as db:
        for user in ("alice", "bob"):
            await fill(db.memory(user, "s1"), user)
        shell(path, f"INSERT INTO mirror VALUES ('alice', '/of alice', 'x', 1, 1, '', '{NOW}')")
        counts = await db.forget("alice")
        assert counts == {"fact": 1, "history": 2, "block": 1, "archive": counts["archive"], "message": 1, "version": 2}
        tables = await db.read(
            lambda tx: tx.rows("SELECT name FROM sqlite_master WHERE sql LIKE '%user_id%' AND type = 'table'")
        )
        for (table,) in tables:
            left = await db.read(lambda tx, t: tx.rows(f"SELECT count(*) FROM {t} WHERE user_id = 'alice'"), table)
            assert left == [(0,)], table
        memory = db.memory("bob", "s1")
        assert [text.content for text in await memory.facts.versions()] == ["the second of bob", "the first of bob"]
        assert await memory.conversation.failures() == 1
        assert (await db.check()).problems == []
    assert b"of alice" not in path.read_bytes()
    assert b"of bob" in path.read_bytes()


async def test_a_deleted_session_takes_its_own_and_leaves_what_is_the_users(path: Path) -> None:
    async with memdb.open(path) as db:
        for session in ("s1", "s2"):
            await fill(db.memory("alice", session))
        await db.memory("alice", "blocks only").blocks.configure({"persona": {"size": 9}}, {"total_size": 50})
        assert {info.session_id for info in await db.sessions("alice")} == {"s1", "s2", "blocks only"}
        gone = await db.delete_session("s1", "alice")
        assert gone == {"block": 1, "message": 1, "version": 1}
        assert await db.delete_session("blocks only", "alice") == {"block": 1}
        assert [info.session_id for info in await db.sessions("alice")] == ["s2"]
        memory = db.memory("alice", "s1")
        assert (await memory.blocks.get_memory(), await memory.conversation.failures()) == ({}, 0)
        assert (await memory.blocks.config()).eviction_strategy == "summarize_and_archive"
        assert await memory.facts.read_long_term() == "the second of alice"
        assert len(await memory.facts.versions()) == 4
        assert len(await memory.facts.history()) == 3
        assert (await db.stats()).layers[0].layer == "archive"
        assert [edit.content for edit in await db.memory("alice", "s2").blocks.edits("persona")][-1] == "block of alice"
        assert (await db.check()).problems == []


@pytest.mark.parametrize("cursor", ["-3", "'x'", "9000000000000000000"])
async def test_a_cursor_at_what_never_was_a_message_hides_nothing_for_long(path: Path, cursor: str) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s1").conversation
        await talk.add_messages([{"role": "user", "content": str(n)} for n in range(4)])
        await talk.compact(2)
        shell(path, f"UPDATE session SET consolidated_id = {cursor}")
        assert "consolidated up to what was never a message" in (await db.check()).problems[0]
        assert (await db.check(repair=True)).ok
        assert [message.content for message in await talk.get_history()] == ["0", "1", "2", "3"]
        assert (await db.check()).problems == []
