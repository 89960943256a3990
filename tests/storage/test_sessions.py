"""Sessions as a whole: which a user has, in which order, and the end of one."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

import memdb
from memdb import InvalidInput, MemoryItem

NAMES = [
    "a:b", "a_b", "A:b", "a:B", "a b", "a:b ", " a:b", "a\tb", "a\nb", "á:b", "a\u0301:b", "a/b", "../b", "a%b", "a_%",
    "''", '"', "'; DROP TABLE record; --", "ａ:b", "Ａ", "straße", "STRASSE", "İ", "i", "部署", "ユーザー", "한국어",
    "ผู้ใช้", "हिन्दी", "שָׁלוֹם", "مرحبا", "🔥", "👩‍👩‍👧", "\u200b", "\u202e", "\ufeff", "\x7f", "\x85", "\x01", "1", "01",
    "1.0", "null", "default", "\U0010ffff", "x" * 1000,
]  # fmt: skip


def user(text: str, **more: object) -> dict[str, object]:
    return {"role": "user", "content": text, **more}


async def names(db: memdb.Database, user_id: str = "alice") -> list[str]:
    return [info.session_id for info in await db.sessions(user_id)]


async def test_the_most_recently_used_comes_first_ties_by_id(db, clock):
    for name in ("b", "a", "c"):
        await db.memory("alice", name).conversation.add_message(user(name))
    assert await names(db) == ["a", "b", "c"]
    clock.forward(seconds=1)
    await db.memory("alice", "b").conversation.add_message(user("again"))
    assert await names(db) == ["b", "a", "c"]
    clock.forward(seconds=1)
    await db.memory("alice", "c").conversation.compact(0)
    assert await names(db) == ["c", "b", "a"]
    clock.forward(seconds=1)
    await db.memory("alice", "a").conversation.clear()
    assert await names(db) == ["a", "c", "b"]
    assert await names(db, "bob") == []


async def test_times_are_those_of_the_earliest_and_the_latest_message(db, clock):
    talk = db.memory("alice", "s").conversation
    await talk.add_messages(
        [
            user("b", timestamp="2024-05-06T07:08:09Z"),
            user("a", timestamp="2023-01-01T00:00:00+05:00"),
            user("c", timestamp="2024-01-01T00:00:00Z"),
        ]
    )
    (info,) = await db.sessions("alice")
    assert info.created_at == datetime.fromisoformat("2022-12-31T19:00:00+00:00")
    assert info.updated_at == datetime.fromisoformat("2024-05-06T07:08:09+00:00")
    assert (info.messages, info.metadata) == (3, {})
    await talk.compact(0)
    (info,) = await db.sessions("alice")
    assert (info.created_at.year, info.updated_at) == (2022, clock())


async def test_names_of_every_script_stay_apart(db):
    for number, name in enumerate(NAMES):
        talk = db.memory("alice", name).conversation
        assert await talk.add_messages([user(f"okapi {n}") for n in range(number % 3 + 1)]) == number % 3 + 1
        await db.memory(name, "s").conversation.add_message(user("okapi"))
    assert {info.session_id: info.messages for info in await db.sessions("alice")} == {
        name: number % 3 + 1 for number, name in enumerate(NAMES)
    }
    for number, name in enumerate(NAMES):
        found = await db.memory("alice", name).conversation.search("okapi", k=100)
        assert [hit.session_id for hit in found] == [name] * (number % 3 + 1)
        assert await names(db, name) == ["s"]
    assert await db.delete_session("a:b", "alice") == {"message": 1}
    assert await db.delete_session("a_%", "alice") == {"message": NAMES.index("a_%") % 3 + 1}
    assert sorted(await names(db)) == sorted(set(NAMES) - {"a:b", "a_%"})
    for name in NAMES:
        assert len(await db.memory(name, "s").conversation.messages()) == 1


@pytest.mark.parametrize("name", ["", "x" * 1001, "a\x00", "\ud800", None, 5, b"a"])
async def test_what_cannot_be_a_name(db, name):
    for call in (db.sessions, db.delete_session):
        with pytest.raises(InvalidInput):
            await call(name)


async def test_a_deleted_session_is_gone_and_begins_anew(db, tmp_path, clock):
    memory, path = db.memory("alice", "s"), tmp_path / "a.jsonl"
    path.write_text(
        '{"_type": "metadata", "metadata": {"topic": 1}, "last_consolidated": 1}\n{"role": "user", "content": 1}\n'
    )
    await memory.conversation.import_jsonl(path)
    await db.memory("alice", "t").conversation.import_jsonl(path)
    await db.memory("bob", "s").conversation.import_jsonl(path)
    await memory.items.save(MemoryItem(id="i", content="kept: items live by user"))
    assert await db.delete_session("s", "alice") == {"message": 1}
    assert await db.delete_session("s", "alice") == {}
    assert await db.delete_session("none", "alice") == {}
    assert await names(db) == ["t"]
    assert await memory.conversation.messages() == []
    assert await memory.conversation.last_consolidated() == 0
    assert await memory.conversation.search("kept", all_sessions=True) == []
    assert await memory.items.get("i") is not None
    (info,) = await db.sessions("bob")
    assert (info.messages, info.metadata) == (1, {"topic": 1})
    clock.forward(days=1)
    assert await memory.conversation.add_message(user("new")) == 1
    new = next(info for info in await db.sessions("alice") if info.session_id == "s")
    assert (new.created_at, new.metadata, new.messages) == (clock(), {}, 1)


async def test_a_session_of_only_a_cursor_or_only_what_was_set_aside(db, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"damaged\n")
    await db.memory("alice", "aside").conversation.import_jsonl(path)
    assert await names(db) == []
    assert await db.delete_session("aside", "alice") == {"quarantine": 1}
    assert (await db.stats()).quarantined == 0
    path.write_bytes(b'{"_type": "metadata", "metadata": {"a": 1}}\n')
    await db.memory("alice", "known").conversation.import_jsonl(path)
    assert [(info.session_id, info.messages, info.metadata) for info in await db.sessions("alice")] == [
        ("known", 0, {"a": 1})
    ]
    await db.memory("alice", "known").conversation.clear()
    assert (await db.sessions("alice"))[0].metadata == {"a": 1}
    assert await db.delete_session("known", "alice") == {}
    assert await names(db) == []


async def test_reading_makes_no_session(db):
    talk = db.memory("alice", "s").conversation
    await talk.messages()
    await talk.get_history()
    await talk.search("x")
    await talk.last_consolidated()
    await talk.compact(3)
    await talk.add_messages([])
    assert await names(db) == []


async def test_forgetting_a_user_takes_all_sessions(db, tmp_path):
    for user_id in ("alice", "bob"):
        for session in ("s", "t"):
            await db.memory(user_id, session).conversation.add_message(user("x"))
            await db.memory(user_id, session).conversation.compact(0)
    assert await db.forget("alice") == {"message": 2}
    assert (await names(db), await names(db, "bob")) == ([], ["s", "t"])
    assert await db.read(lambda tx: tx.execute("SELECT DISTINCT user_id FROM session")) == [("bob",)]


async def test_the_view_says_the_same(db, clock):
    for n in range(4):
        clock.forward(days=1)
        await db.memory("alice", f"s{n}").conversation.add_messages([user(str(m)) for m in range(n)] + [user("x")])
    await db.memory("alice", "s1").conversation.compact(0)
    await db.memory("alice", "s2").conversation.clear()
    rows = await db.read(
        lambda tx: tx.execute(
            "SELECT session_id, messages, created_at, updated_at FROM v_sessions WHERE user_id = 'alice'"
        )
    )
    view = {(name, count, datetime.fromisoformat(a), datetime.fromisoformat(b)) for name, count, a, b in rows}
    assert view == {(i.session_id, i.messages, i.created_at, i.updated_at) for i in await db.sessions("alice")}


async def test_a_session_is_deleted_whole_while_eight_write(path: Path) -> None:
    async with memdb.open(path) as db:
        talk, other = db.memory("alice", "s").conversation, db.memory("alice", "t").conversation
        stop = asyncio.Event()

        async def write(name: int) -> None:
            n = 0
            while not stop.is_set():
                n += 1
                await asyncio.gather(
                    talk.add_messages([user(f"{name} {n} a"), user(f"{name} {n} b")]),
                    other.add_message(user(f"{name} {n}")),
                )

        writers = [asyncio.create_task(write(name)) for name in range(8)]
        gone = 0
        for _ in range(15):
            await asyncio.sleep(0.02)
            gone += (await db.delete_session("s", "alice")).get("message", 0)
            found = await talk.messages()
            assert [message.position for message in found] == list(range(1, len(found) + 1))
            assert len(found) % 2 == 0
        stop.set()
        await asyncio.gather(*writers)
        found, rest = await talk.messages(), await other.messages()
        assert gone + len(found) == 2 * len(rest)
        assert [message.position for message in rest] == list(range(1, len(rest) + 1))
        assert (await db.check()).problems == []
