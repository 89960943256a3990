"""Sessions as files of JSON lines: what goes out comes in again, and what is damaged is kept aside."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memdb
from memdb import InvalidInput, Message, MissingFile, StorageError
from memdb.layers import jsonl
from memdb.memory import Memory
from tests.processes.helpers import wait_until

HARD = [
    "plain", "", "a\x00b", "lone \ud83d half", "two\nlines\r\nand \u2028 and \u2029 and \x85 and \x1e", "\ufeffbom",
    None, [], {}, 0, False, 2**70, -(10**300), -0.0, 1.5e300, [{"type": "text", "text": "\udfff"}],
    {"deep": [{"er": [None, True, "ü", {"\ud800": "\x00"}]}]}, "null", '{"a": 1}', "部署方案" * 100,
]  # fmt: skip
CALL = {"id": "c1", "type": "function", "function": {"name": "f\x00", "arguments": '{"p": "\ud800"}'}}


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def told(messages: list[Message]) -> list[object]:
    """What of messages must survive: all but where they stand."""
    return [(m.to_dict(), m.model_extra, m.created_at, m.tokens) for m in messages]


async def kept(db: memdb.Database) -> list[tuple[str, bytes]]:
    rows = await db.read(lambda tx: tx.execute("SELECT key, raw FROM quarantine ORDER BY id"))
    return [(key, bytes.fromhex(json.loads(raw)["line"])) for key, raw in rows]


async def test_what_is_exported_is_imported_as_it_was(memory, db, tmp_path, clock):
    given = [user(content) for content in HARD]
    given += [
        {"role": "assistant", "tool_calls": [CALL, 7, None], "content": None, "_type": "metadata", "cost": 2**80},
        {"role": "tool", "content": "r", "tool_call_id": "c1", "name": "f", "key": "k", "metadata": {}, "": []},
        {"role": "user", "content": "then", "timestamp": "2024-05-06T07:08:09.123456+02:00"},
        {"role": "assistant", "tool_calls": [{}], "last_consolidated": 3, "session": "x", "group": "y"},
    ]
    talk = memory.conversation
    await talk.add_messages(given)
    await talk.compact(4)
    clock.forward(hours=1)
    assert await talk.export_jsonl(tmp_path / "one.jsonl") == len(given)
    again = db.memory("bob", "other").conversation
    report = await again.import_jsonl(tmp_path / "one.jsonl")
    assert (report.messages, report.skipped, report.problems) == (len(given), 0, [])
    assert told(await again.messages()) == told(await talk.messages())
    assert [repr(m.content) for m in await again.messages()] == [repr(m.content) for m in await talk.messages()]
    assert await again.last_consolidated() == await talk.last_consolidated() == len(HARD)
    await again.export_jsonl(tmp_path / "two.jsonl")
    one, two = ((tmp_path / name).read_bytes().split(b"\n") for name in ("one.jsonl", "two.jsonl"))
    assert one[1:] == two[1:]
    assert len(one) == len(given) + 2  # a line each, and the end
    for raw in one[:-1]:
        json.loads(raw.decode())


async def test_the_first_line_is_the_session(memory, db, tmp_path, clock):
    path = tmp_path / "a.jsonl"
    await memory.conversation.add_message(user("hi"))
    begun = clock()
    clock.forward(days=2)
    await memory.conversation.compact(0)
    await memory.conversation.export_jsonl(path)
    head = json.loads(path.read_bytes().split(b"\n")[0])
    assert head == {
        "_type": "metadata",
        "key": "default",
        "created_at": "2026-01-01T12:00:00.000000Z",
        "updated_at": "2026-01-03T12:00:00.000000Z",
        "metadata": {},
        "last_consolidated": 1,
    }
    path.write_bytes(line({**head, "metadata": {"topic": "\ud800"}}) + line(user("hi")))
    await db.memory("bob", "b").conversation.import_jsonl(path)
    (info,) = await db.sessions("bob")
    assert (info.session_id, info.created_at, info.updated_at, info.messages) == ("b", begun, clock(), 1)
    assert info.metadata == {"topic": "\ud800"}
    await db.memory("bob", "b").conversation.export_jsonl(path)
    assert json.loads(path.read_bytes().split(b"\n")[0])["metadata"] == {"topic": "\ud800"}


@pytest.mark.parametrize(
    ("cursor", "count"),
    [
        (2, 2),
        (3, 3),
        (0, 0),
        (4, 0),
        (-1, 0),
        (10**400, 0),
        ("2", 0),
        (True, 0),
        (2.0, 0),
        (None, 0),
        ([2], 0),
        ({}, 0),
    ],
)
async def test_a_bad_cursor_counts_as_none(memory, tmp_path, cursor, count):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line({"_type": "metadata", "last_consolidated": cursor}) + b"".join(map(line, map(user, "abc"))))
    await memory.conversation.import_jsonl(path)
    assert await memory.conversation.last_consolidated() == count
    assert len(await memory.conversation.get_history()) == 3 - count


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ('{"_type": "metadata", "metadata": {"x": NaN}}', "metadata.x holds nan"),
        (json.dumps({"_type": "metadata", "metadata": {"x": json.loads("[" * 100 + "]" * 100)}}), "nested deeper"),
        ('{"_type": "metadata", "metadata": [1]}', ""),
        ('{"_type": "metadata", "metadata": null, "created_at": null, "key": 5}', ""),
        ('{"_type": "metadata", "created_at": "0001-01-01T00:00:00+14:00"}', ""),
        ('{"_type": "metadata", "created_at": "soon"}', ""),
        ('{"_type": "metadata", "created_at": Infinity, "updated_at": {}}', ""),
        ('{"_type": "metadata"}', ""),
    ],
)
async def test_a_first_line_that_says_nonsense_costs_no_message(memory, db, tmp_path, clock, head, problem):
    path = tmp_path / "a.jsonl"
    path.write_bytes(head.encode() + b"\n" + line(user("hi")))
    report = await memory.conversation.import_jsonl(path)
    assert (report.messages, report.skipped, len(report.problems)) == (1, 0, bool(problem))
    assert problem in "".join(report.problems)
    (info,) = await db.sessions("alice")
    assert (info.created_at, info.metadata, info.messages) == (clock(), {}, 1)


async def test_a_file_without_a_first_line_of_its_own(memory, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line({**user("a"), "_type": "metadata"}) + line(user("b"))[:-1])  # and no end of line
    assert (await memory.conversation.import_jsonl(path)).messages == 2
    assert [m.model_extra for m in await memory.conversation.messages()] == [{"_type": "metadata"}, {}]


async def test_a_first_line_in_another_place_is_damage(memory, db, tmp_path):
    path, head = tmp_path / "a.jsonl", line({"_type": "metadata", "last_consolidated": 2})
    path.write_bytes(line(user("a")) + head + line(user("b")))
    report = await memory.conversation.import_jsonl(path)
    assert (report.messages, report.skipped) == (2, 1)
    assert report.problems == ['line 2 was skipped: it is no message such as {"role": "user", "content": "..."}']
    assert await kept(db) == [("line 2", head)]
    assert await memory.conversation.last_consolidated() == 0


DAMAGED = [
    b'{"role": "user", "content": "cut',
    b"\xff\xfe\x00",
    b'{"role": "user", "content": "\xc3"}',
    b"no json",
    b"[]",
    b"7",
    b"null",
    b'"text"',
    b"{}",
    b'{"role": "user"}',
    b'{"content": "x"}',
    b'{"role": null, "content": "x"}',
    b'{"role": "", "content": "x"}',
    b'{"role": ["user"], "content": "x"}',
    b'{"role": "user", "content": NaN}',
    b'{"role": "user", "content": [1e999]}',
    b'{"role": "user", "content": ' + b"1" * 5000 + b"}",
    b'{"role": "user", "content": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"role": "user", "content": ' + b"[" * 90_000 + b"]" * 90_000 + b"}",
    b'{"role": "user", "content": "x", "tool_calls": {}}',
    b'{"role": "user", "content": "x", "tool_call_id": 7}',
    b'{"role": "user", "content": "x", "timestamp": "soon"}',
    b'{"role": "user", "content": "x", "timestamp": true}',
    b'{"role": "user", "content": "x", "timestamp": 1e300}',
    b'{"role": "user", "content": "x", "timestamp": "0001-01-01T00:00:00+14:00"}',
    b'{"role": "user", "content": "x", "\\ud800": 1}',
    b'{"role": "us\\u0000er", "content": "x"}',
    b'{"role": "user", "content": "x"} {"role": "user", "content": "y"}',
    b'{"role": "user", "content": "' + b"x" * 17_000_000 + b'"}',
    b"\x00\x00\x00",
]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
async def test_damaged_lines_are_counted_and_kept_with_their_bytes(memory, db, tmp_path, ending):
    path = tmp_path / "a.jsonl"
    good = [json.dumps(user(str(n))).encode() for n in range(len(DAMAGED))]
    pairs = [raw for pair in zip(good, DAMAGED, strict=True) for raw in pair]
    path.write_bytes(b"".join(raw + ending for raw in pairs) + b" \n\n\t\r\n")
    report = await memory.conversation.import_jsonl(path)
    assert (report.messages, report.skipped, len(report.problems)) == (len(good), len(DAMAGED), 5)
    assert all("\n" not in problem and len(problem) < 300 for problem in report.problems)
    assert [m.content for m in await memory.conversation.messages()] == [str(n) for n in range(len(DAMAGED))]
    found = await kept(db)
    assert [key for key, _ in found] == [f"line {2 * n + 2}" for n in range(len(DAMAGED))]
    assert [raw for _, raw in found] == [raw + ending for raw in DAMAGED]
    assert (await db.stats()).quarantined == len(DAMAGED)


@pytest.mark.parametrize("away", ["forget", "delete_session"])
async def test_what_was_kept_aside_goes_with_its_session(db, tmp_path, away):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"secret-a\n")
    await db.memory("alice", "a").conversation.import_jsonl(path)
    path.write_bytes(b"secret-b\n")
    await db.memory("bob", "a").conversation.import_jsonl(path)
    assert await (db.forget("alice") if away == "forget" else db.delete_session("a", "alice")) == {"quarantine": 1}
    assert await kept(db) == [("line 1", b"secret-b\n")]
    assert (await db.stats()).quarantined == 1


async def test_lines_in_other_clothes(memory, db, tmp_path):
    path = tmp_path / "a.jsonl"
    head = line({"_type": "metadata", "last_consolidated": 1})
    for start in (b"\xef\xbb\xbf", b"\n\n", b"\xef\xbb\xbf\r\n"):
        path.write_bytes(start + head + line(user("a\u2028b")).replace(b"\n", b"\r\n") + "é\u0085".encode() + b"\r")
        talk = db.memory("alice", repr(start)).conversation
        assert ((report := await talk.import_jsonl(path)).messages, report.skipped) == (1, 1)
        assert (await talk.messages())[0].content == "a\u2028b"
    path.write_bytes(json.dumps(user("ü\u0085\u2029"), ensure_ascii=False).encode())
    assert (await memory.conversation.import_jsonl(path)).messages == 1
    assert (await memory.conversation.messages())[0].content == "ü\u0085\u2029"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
async def test_another_encoding_is_damage(memory, db, tmp_path, encoding):
    path = tmp_path / "a.jsonl"
    path.write_bytes((json.dumps(user("a")) + "\n").encode(encoding))
    report = await memory.conversation.import_jsonl(path)
    assert report.messages == 0
    assert report.skipped >= 1
    assert "UTF-16" in report.problems[0] or "no JSON" in report.problems[0] or "not UTF-8" in report.problems[0]
    assert b"".join(raw for _, raw in await kept(db)).startswith(path.read_bytes()[:4])


async def test_nothing_in_the_file(memory, db, tmp_path):
    path = tmp_path / "a.jsonl"
    for raw in (b"", b"\n\n  \n", b"\xef\xbb\xbf"):
        path.write_bytes(raw)
        report = await memory.conversation.import_jsonl(path)
        assert (report.messages, report.skipped, report.problems) == (0, 0, [])
    assert await db.sessions("alice") == []
    assert await memory.conversation.export_jsonl(path) == 0
    assert (await db.memory("alice", "b").conversation.import_jsonl(path)).messages == 0
    assert [info.session_id for info in await db.sessions("alice")] == ["b"]


async def test_paths_that_cannot_be_read_or_written(memory, db, tmp_path):
    talk = memory.conversation
    await talk.add_message(user("hi"))
    with pytest.raises(MissingFile, match=r"there is no file .*none.jsonl to import"):
        await talk.import_jsonl(tmp_path / "none.jsonl")
    for bad in (tmp_path, "/dev/null"):
        with pytest.raises(InvalidInput, match="no file of JSON lines"):
            await talk.import_jsonl(bad)
    for bad in (tmp_path, tmp_path / "none" / "a.jsonl"):
        with pytest.raises(InvalidInput, match="name a file in a folder that is there"):
            await talk.export_jsonl(bad)
    for bad in ("", "a\x00b", 5, None, b"a.jsonl"):
        for call in (talk.export_jsonl, talk.import_jsonl):
            with pytest.raises(InvalidInput, match="must be a file path"):
                await call(bad)
    with pytest.raises(StorageError, match=r"cannot write .*: File name too long"):
        await talk.export_jsonl(tmp_path / ("n" * 300))
    assert await talk.export_jsonl(tmp_path / ("n" * 255)) == 1
    assert len(await talk.messages()) == 1
    if db.path != ":memory:":
        for own in (db.path, f"{db.path}-wal", f"{tmp_path}/../{tmp_path.name}/{Path(db.path).name}"):
            with pytest.raises(InvalidInput, match="belongs to the database itself"):
                await talk.export_jsonl(own)


async def test_an_older_file_is_replaced_whole_and_nothing_else_is_left(memory, tmp_path):
    path, link = tmp_path / "a.jsonl", tmp_path / "link.jsonl"
    path.write_bytes(b"older " * 1000)
    link.symlink_to(path)
    await memory.conversation.add_message(user("hi"))
    before = {found.name for found in tmp_path.iterdir()}
    assert await memory.conversation.export_jsonl(str(link)) == 1
    assert link.is_symlink()
    assert path.read_bytes().count(b"\n") == 2
    assert {found.name for found in tmp_path.iterdir()} == before


async def test_an_export_beside_a_writer_holds_a_beginning_of_the_session(path, tmp_path):
    async with memdb.open(path) as db:
        talk = db.memory("alice", "s").conversation
        await talk.add_messages([user(str(n)) for n in range(2500)])
        stop = asyncio.Event()

        async def write() -> None:
            n = 2500
            while not stop.is_set():
                await talk.add_message(user(str(n)))
                n += 1

        writer = asyncio.create_task(write())
        for round in range(3):
            count = await talk.export_jsonl(tmp_path / f"{round}.jsonl")
            lines = (tmp_path / f"{round}.jsonl").read_bytes().splitlines()[1:]
            assert [json.loads(raw)["content"] for raw in lines] == [str(n) for n in range(count)]
            assert count >= 2500
        stop.set()
        await writer


@pytest.mark.parametrize("anew", [0, 1, 2500])
async def test_a_session_that_is_cleared_during_its_export_is_not_half_written(path, tmp_path, monkeypatch, anew):
    async with memdb.open(path) as db:
        memory, target = db.memory("alice", "s"), tmp_path / "a.jsonl"
        await memory.conversation.add_messages([user(str(n)) for n in range(2500)])
        assert await memory.conversation.export_jsonl(target) == 2500
        before, page, done = target.read_bytes(), jsonl._page, []

        def clear(m: Memory) -> None:
            m.conversation.clear()
            m.conversation.add_messages([user("new")] * anew)

        def after_the_first(tx, *args):
            done.append(args)
            if len(done) == 2:  # its snapshot begins with its first statement
                cleared.wait(10)
            return page(tx, *args)

        cleared = threading.Event()
        monkeypatch.setattr(jsonl, "_page", after_the_first)
        exporting = asyncio.create_task(memory.conversation.export_jsonl(target))
        assert await asyncio.to_thread(wait_until, lambda: bool(done))
        await memory.atomic(clear)
        cleared.set()
        with pytest.raises(StorageError, match="was cleared while it was exported; export it again"):
            await exporting
        assert target.read_bytes() == before
        assert not list(tmp_path.glob(".*unfinished"))
        monkeypatch.undo()
        assert await memory.conversation.export_jsonl(target) == anew


async def test_imports_go_to_the_end_and_one_at_a_time(db, tmp_path):
    path, talk = tmp_path / "a.jsonl", db.memory("alice", "s").conversation
    await talk.add_messages([user("first"), user("second")])
    await talk.compact(1)
    path.write_bytes(
        line({"_type": "metadata", "last_consolidated": 100}) + b"".join(line(user(n)) for n in range(150))
    )
    await asyncio.gather(talk.import_jsonl(path), talk.import_jsonl(path), talk.add_message(user("between")))
    found = [message.content for message in await talk.messages()]
    assert found[:2] == ["first", "second"]
    found.remove("between")
    assert found[2:] == [*range(150), *range(150)]
    assert await talk.last_consolidated() == 1  # its own, not the file's


async def test_messages_as_lightgrep_writes_them(memory, tmp_path):
    path = tmp_path / "telegram_42.jsonl"
    path.write_bytes(
        line({"_type": "metadata", "key": "telegram:42", "created_at": "2024-05-01T08:00:00.5", "last_consolidated": 2})
        + line({"role": "user", "content": "hi", "timestamp": "2024-05-06T07:08:09.123456"})
        + line({"role": "assistant", "content": "ok", "timestamp": 1714979289, "tools_used": ["exec", "read_file"]})
        + line({"role": "user", "content": [{"type": "text", "text": "[image]"}], "timestamp": None})
        + line({"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"})
        + line({"role": "tool", "content": "x", "tool_call_id": "c1", "name": "exec"})
    )
    assert (await memory.conversation.import_jsonl(path)).skipped == 0
    found = await memory.conversation.messages()
    assert found[0].created_at == datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)
    assert found[1].created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert found[1].model_extra == {"tools_used": ["exec", "read_file"]}
    assert found[3].model_extra == {"reasoning_content": "hm"}
    assert [message.position for message in await memory.conversation.get_history()] == [3, 4, 5]


ANSWER = {"role": "tool", "content": "r", "tool_call_id": "c1"}


@pytest.mark.parametrize(
    ("cursor", "lines", "sent"),
    [
        (0, [user("a"), {"role": "assistant", "content": "b"}, ANSWER], ["a", "b"]),  # a trailing orphan hides nothing
        (0, [ANSWER, user("a")], ["a"]),
        (2, [user("a"), {"role": "assistant", "tool_calls": [CALL]}, ANSWER, user("b")], ["b"]),  # a cursor in a group
        (1, [b"damaged\n", user("a"), user("b")], ["a", "b"]),  # it counts the file's lines, not those that were kept
        (2, [user("a"), b"damaged\n", user("b")], ["b"]),
        (3, [user("a"), b"damaged\n", user("b")], []),
        (4, [user("a"), b"damaged\n", user("b")], ["a", "b"]),
    ],
)
async def test_what_a_file_says_never_hides_what_may_be_sent(memory, db, tmp_path, cursor, lines, sent):
    path = tmp_path / "a.jsonl"
    head = line({"_type": "metadata", "last_consolidated": cursor})
    path.write_bytes(head + b"".join(raw if isinstance(raw, bytes) else line(raw) for raw in lines))
    await memory.conversation.import_jsonl(path)
    assert [message.content for message in await memory.conversation.get_history()] == sent
    assert len(await memory.conversation.messages()) == sum(not isinstance(raw, bytes) for raw in lines)
    assert (await db.stats()).quarantined == sum(isinstance(raw, bytes) for raw in lines)


def test_an_import_that_fails_leaves_no_file_open(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line(user("a")) * 2000)

    async def go() -> None:
        async with memdb.open(":memory:") as db:
            memory: Memory = db.memory()
            await memory.conversation.add_message(user("x"))
            await db.write(lambda tx: tx.execute("DROP TABLE message"))
            with pytest.raises(memdb.MemdbError):
                await memory.conversation.import_jsonl(path)

    asyncio.run(go())  # a stream left open would warn, and a warning is an error
