"""A conversation edited by hand: the other messages come, what is broken is set aside, nothing falls over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb.retrieval.find import find
from memdb.scope import Scope
from tests.hostile.shell import NOW, shell

GOOD = ["okapi one", "okapi two", "okapi four", "okapi five"]
CALL = {"id": "c", "function": {"name": "okapi", "arguments": "{}"}}
BAD = {"role": "assistant", "content": ["okapi bad"], "tool_calls": [CALL], "x": 1}
_BODY = f"UPDATE {{}} WHERE {{}} = (SELECT id FROM record WHERE key = '{3:012}')"


def of_record(edit: str) -> str:
    return _BODY.format(f"record SET {edit}", "id")


def of_message(edit: str) -> str:
    return _BODY.format(f"message SET {edit}", "record_id")


def _extra_row(key: str, session: str = "'s'", content: str = "'okapi stray'") -> str:
    return (
        "INSERT INTO record (user_id, layer, session_id, key, created_at, updated_at, content)"
        f" VALUES ('alice', 'message', {session}, {key}, '{NOW}', '{NOW}', {content})"
    )


_EXTRA_BODY = "INSERT INTO message (record_id, user_id, role) SELECT max(id), 'alice', 'user' FROM record"

# What was done -> the statements. Message 3 of 5 is lost by it.
LOST: dict[str, tuple[str, ...]] = {
    "no row in message": (f"DELETE FROM message WHERE record_id = (SELECT id FROM record WHERE key = '{3:012}')",),
    "record deleted": (f"DELETE FROM record WHERE key = '{3:012}'",),
    "role is a BLOB": (of_message("role = x'75ff'"),),
    "role is no UTF-8": (of_message("role = CAST(x'ff' AS TEXT)"),),
    "name is no UTF-8": (of_message("name = CAST(x'ff' AS TEXT)"),),
    "content is a BLOB": (of_record("content = x'00ff'"),),
    "content is no UTF-8": (of_record("content = CAST(x'6fff' AS TEXT)"),),
    "body is no JSON": (of_message("body = '{'"),),
    "body is a BLOB": (of_message("body = x'5b5d'"),),
    "body is deep": (of_message(f"body = '{'[' * 5000}{']' * 5000}'"),),
    "body is no UTF-8": (of_message("body = CAST(x'22ff22' AS TEXT)"),),
    "calls are no JSON": (of_message("tool_calls = 'x'"),),
    "calls are an object": (of_message("""tool_calls = '{"id": 1}'"""),),
    "calls are a text": (of_message("""tool_calls = '"call"'"""),),
    "extra is no JSON": (of_message("extra = ''"),),
    "extra is a list": (of_message("extra = '[1]'"),),
    "created_at is garbage": (of_record("created_at = 'zz'"),),
    "created_at is a BLOB": (of_record("created_at = x'32'"),),
    "created_at is no UTF-8": (of_record("created_at = CAST(x'ff' AS TEXT)"),),
    "key is a word": (of_record("key = 'three'"),),
    "key is short": (of_record("key = '3'"),),
    "key is of another script": (of_record("key = '００００００００００３３'"),),
    "key is a BLOB": (of_record("key = x'303030303030303030303033'"),),
    "key is no UTF-8": (of_record("key = CAST(x'30ff' AS TEXT)"),),
    "session is a BLOB": (of_record("session_id = x'73'"),),
    "session is no UTF-8": (of_record("session_id = CAST(x'73ff' AS TEXT)"),),
    "session is empty": (of_record("session_id = ''"),),
    "layer is another": (of_record("layer = 'item'"),),
}
# Message 3 is still there.
BORNE: dict[str, tuple[str, ...]] = {
    "tokens are text": (of_message("tokens = 'many'"),),
    "tokens are a BLOB": (of_message("tokens = NULL"),),
    "tokens are negative": (of_message("tokens = -5"),),
    "calls are junk": (of_message("""tool_calls = '[1, null, {"id": {}}, {"function": 7}]'"""),),
    "session's metadata is no JSON": ("UPDATE session SET metadata = '{'",),
    "session's metadata is a list": ("UPDATE session SET metadata = '[1]'",),
    "session's metadata is no UTF-8": ("UPDATE session SET metadata = CAST(x'ff' AS TEXT)",),
    "session's metadata is a BLOB": ("UPDATE session SET metadata = x'ff'",),
    "session's times are garbage": ("UPDATE session SET created_at = 'x', updated_at = x'00'",),
    "session's cursor is text": ("UPDATE session SET consolidated_id = 'x'",),
    "session's cursor is negative": ("UPDATE session SET consolidated_id = -7",),
    "session's cursor is far off": ("UPDATE session SET consolidated_id = 9000000000000000000",),
    "session row is gone": ("DELETE FROM session",),
    "session of a BLOB": (f"INSERT INTO session VALUES ('alice', x'00', '{NOW}', '{NOW}', 0, '{{}}')",),
    "scopes are gone": ("DELETE FROM scope WHERE session_id = 's'",),
    "scopes count nonsense": ("UPDATE scope SET records = 77 WHERE session_id = 's'",),
    "stray row": (_extra_row("'zzz'"),),
    "stray row with a body": (_extra_row("'zzz'"), _EXTRA_BODY),
    "stray row below": (_extra_row("''"), _EXTRA_BODY),
    "negative position": (_extra_row("'-00000000007'"), _EXTRA_BODY),
    "13 digits": (_extra_row("'1000000000000'"), _EXTRA_BODY),
    "BLOB for a position": (_extra_row("x'303030303030303030303939'"), _EXTRA_BODY),
    "digits with a letter": (_extra_row("'00000000000x'"), _EXTRA_BODY),
    "no session": (_extra_row(f"'{1:012}'", "''"), _EXTRA_BODY),
    "two trailing spaces": (_extra_row(f"'{5:012}  '"), _EXTRA_BODY),
}


async def use(db: memdb.Database) -> list[Any]:
    """Call everything; return the contents of the session's messages."""
    memory = db.memory("alice", "s")
    talk = memory.conversation
    await db.sessions("alice")
    await talk.last_consolidated()
    for query in ("okapi", "okapi three bad", "stray"):
        for all_sessions in (False, True):
            for hit in await talk.search(query, k=50, all_sessions=all_sessions):
                assert isinstance(hit.score, float)
        await db.read(find, Scope("alice", "s"), query)
    await talk.get_history()
    await db.memory("alice", "other").conversation.get_history()
    await db.stats()
    for view in ("v_messages", "v_sessions", "v_scopes", "v_quarantine"):
        shell(Path(db.path), f"SELECT * FROM {view}")
    return [message.content for message in await talk.messages()]


@pytest.mark.parametrize("how", LOST | BORNE)
async def test_what_a_careless_hand_does_costs_at_most_that_message(path: Path, tmp_path: Path, how: str) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        given = [{"role": "user", "content": text} for text in GOOD]
        await talk.add_messages([*given[:2], BAD, *given[2:]])
        await talk.compact(5)
        await db.write(
            lambda tx: tx.execute(f"INSERT OR IGNORE INTO session VALUES ('alice', 's', '{NOW}', '{NOW}', 0, '{{}}')")
        )
        await db.memory("alice", "other").conversation.add_message(given[0])
        shell(path, *(LOST | BORNE)[how], careless=True)
        assert await talk.add_message({"role": "user", "content": "okapi six"}) == 6
        found = await use(db)
        assert [text for text in found if text in (*GOOD, "okapi six")] == [*GOOD, "okapi six"]
        assert (["okapi bad"] in found) == (how in BORNE)
        await talk.export_jsonl(tmp_path / "a.jsonl")
        assert (await db.memory("bob", "s").conversation.import_jsonl(tmp_path / "a.jsonl")).skipped == 0
        report = await db.check(repair=True)
        assert report.problems == []
        assert (await db.check()).problems == []
        assert [text for text in await use(db) if text in GOOD] == GOOD
        assert await talk.compact(0) >= 5
        assert await talk.get_history() == []
        assert await talk.clear() >= 5
        assert await talk.add_message({"role": "user", "content": "okapi again"}) == 1
        assert [message.content for message in await talk.get_history()] == ["okapi again"]
        await db.delete_session("s", "alice")
        assert (await db.check(repair=True)).problems == []


@pytest.mark.parametrize("how", [how for how in LOST if "deleted" not in how])
async def test_what_is_lost_is_in_the_quarantine_or_where_the_hand_put_it(path: Path, how: str) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        await talk.add_messages([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, BAD])
        shell(path, *LOST[how], careless=True)
        await talk.messages()
        await db.check(repair=True)
        await talk.search("okapi", all_sessions=True)
        kept = shell(path, "SELECT raw FROM quarantine")
        there = shell(path, "SELECT hex(session_id), layer, hex(key) FROM record WHERE id = 3")
        assert len(kept) + len(there) == 1
        if kept:
            columns = json.loads(kept[0][0])
            assert bytes.fromhex(columns["user_id"]) == b"alice"
            assert how == "no row in message" or bytes.fromhex(columns["message"]["extra"]) in (b'{"x":1}', b"", b"[1]")


@pytest.mark.parametrize("key", ["999999999999", "000000000006"])
async def test_a_last_position_typed_by_hand(path: Path, key: str) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        await talk.add_messages([{"role": "user", "content": text} for text in GOOD])
        shell(path, _extra_row(f"'{key}'"), _EXTRA_BODY)
        assert [message.content for message in await talk.messages()] == [*GOOD, "okapi stray"]
        if key == "999999999999":
            with pytest.raises(memdb.InvalidInput, match="last position; begin another"):
                await talk.add_message({"role": "user", "content": "no"})
        else:
            assert await talk.add_message({"role": "user", "content": "yes"}) == 7
        assert (await talk.search("stray"))[0].message.position == int(key)
        assert (await db.check(repair=True)).problems == []


async def test_many_damaged_messages_cost_one_pass(path: Path) -> None:
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        await talk.add_messages([{"role": "user", "content": f"okapi {n}"} for n in range(3000)])
        shell(path, "UPDATE message SET role = x'ff' WHERE record_id % 3 = 0", careless=True)
        found = await asyncio.gather(*(talk.get_history() for _ in range(4)), talk.messages(), talk.search("okapi 7"))
        assert {len(answer) for answer in found[:5]} == {2000}
        assert (await db.stats()).quarantined == 1000
        assert await talk.compact(10) == 1990
        assert (await db.check()).problems == []


async def test_a_handle_that_may_not_write_reads_past_the_damage(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory("alice", "s").conversation.add_messages([{"role": "user", "content": text} for text in GOOD])
    shell(path, of_message("role = x'ff'"), "UPDATE record SET created_at = 'x' WHERE key LIKE '%4'", careless=True)
    async with memdb.open(path, read_only=True) as db:
        for _ in range(2):
            assert await use(db) == GOOD[:2]
        assert len(await db.sessions("alice")) == 1
