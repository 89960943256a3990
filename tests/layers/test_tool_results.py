"""memory.manager, L3: tool results are kept whole and read in parts (local-ai document)."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from datetime import UTC, datetime, timedelta

import pytest

import memdb
from memdb import InvalidInput, MissingFile
from memdb.layers.runtime import externalizing
from memdb.layers.runtime.externalizing import ToolResultReference

DOCUMENTED = {
    "id": "abc123",
    "tool": "mcp_filesystem_read_file",
    "created_at": "2026-06-11T12:00:00+00:00",
    "content": "file contents…",
}
LONG = "部署 line\n" * 1_000


async def test_a_result_is_saved_and_loaded(memory, clock):
    manager = memory.manager
    await manager.save_tool_result("abc123", DOCUMENTED)
    assert await manager.load_tool_result("abc123") == DOCUMENTED
    envelope = await manager.tool_result_envelope("abc123")
    assert list(envelope) == ["format_version", "id", "saved_at", "payload"]
    assert (envelope["saved_at"], envelope["payload"]) == (clock().timestamp(), DOCUMENTED)
    (info,) = await manager.tool_results()
    assert info == (
        "abc123",
        "mcp_filesystem_read_file",
        "file contents…",
        16,
        1,
        datetime(2026, 6, 11, 12, tzinfo=UTC),
        None,
    )


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"content": ""},
        {"content": "NUL \0, half \ud800 and \udfff, CRLF \r\n, \u2028 and 部署 🙂"},
        {"content": None, "a": 1},
        {"content": {"rows": [1, 2.5, None]}, "tool": "sql"},
        {"content": "x", "tool": 5, "created_at": 7},
        {"z": 1, "content": "in the middle", "a": {"content": "inner"}},
        {"tool": "\0\ud800", "created_at": "yesterday", "content": "x"},
        {"created_at": "2026-06-11T12:00:00", "content": "no zone"},
        {"created_at": "0001-01-01T00:00:00+14:00", "content": "before all times"},
        {"big": 10**300, "content": "\n" * 70_000},
    ],
)
async def test_any_payload_comes_back_equal(memory, payload, clock):
    await memory.manager.save_tool_result("a", payload)
    loaded = await memory.manager.load_tool_result("a")
    assert loaded == payload
    assert list(loaded) == list(payload)
    (info,) = await memory.manager.tool_results()
    assert info.created_at == clock()


async def test_a_result_that_is_not_there_is_a_missing_file(memory, db):
    await memory.manager.save_tool_result("mine", DOCUMENTED)
    for scope, id in ((("alice", "default"), "nope"), (("bob", "default"), "mine"), (("alice", "s"), "mine")):
        manager = db.memory(*scope).manager
        for call in (
            manager.load_tool_result,
            manager.read_tool_result,
            manager.read_tool_result_lines,
            lambda id, manager=manager: manager.search_tool_result(id, "x"),
        ):
            with pytest.raises(FileNotFoundError, match=f"there is no tool result '{id}'"):
                await call(id)
        assert await manager.tool_result_envelope(id) is None
        assert await manager.delete_tool_result(id) is False
    assert await db.memory("bob").manager.tool_results() == []


async def test_a_result_is_replaced_whole(memory, db):
    manager = memory.manager
    await manager.save_tool_result("a", {"tool": "old", "content": LONG})
    await manager.save_tool_result("b", {"content": "between"})
    await manager.save_tool_result("a", {"tool": "new", "content": "short"})
    assert await manager.load_tool_result("a") == {"tool": "new", "content": "short"}
    assert [(one.id, one.tool, one.size) for one in await manager.tool_results()] == [("a", "new", 5), ("b", "", 7)]
    assert await manager.delete_tool_result("a") is True
    assert await manager.delete_tool_result("a") is False
    assert await db.read(lambda tx: tx.execute("SELECT count(*), sum(size) FROM blob")) == [(1, 7)]


async def test_results_expire(memory, db, clock):
    manager = memory.manager
    await manager.save_tool_result("a", {"content": LONG}, expires_at=clock() + timedelta(seconds=60))
    reference = await manager.externalize("t", LONG, ttl=120)
    assert [one.expires_at for one in await manager.tool_results()] == [
        clock() + timedelta(seconds=120),
        clock() + timedelta(seconds=60),
    ]
    clock.forward(seconds=60)
    for call in (manager.load_tool_result, manager.read_tool_result, manager.read_tool_result_lines):
        with pytest.raises(MissingFile):
            await call("a")
    assert [one.id for one in await manager.tool_results()] == [reference.result_id]
    clock.forward(seconds=60)
    await manager.save_tool_result("a", {"content": "again"})
    assert await manager.load_tool_result("a") == {"content": "again"}
    assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM blob")) == [(1,)]


async def test_results_are_listed_newest_first(memory, clock):
    for n in range(5):
        clock.forward(seconds=1)
        await memory.manager.save_tool_result(str(n), {"content": "x\n" * n})
    listed = await memory.manager.tool_results(3)
    assert [(one.id, one.size, one.lines) for one in listed] == [("4", 8, 4), ("3", 6, 3), ("2", 4, 2)]


async def test_large_output_is_externalised_as_documented(memory, clock, caplog):
    text = "é" * 3_073
    with caplog.at_level(logging.INFO, "memdb"):
        reference = await memory.manager.externalize("mcp_filesystem_read_file", text)
    assert isinstance(reference, ToolResultReference)
    assert re.fullmatch("[0-9a-f]{32}", reference.result_id)
    assert (reference.summary, reference.size) == ("é" * 1000 + "…", 6_146)
    assert json.loads(reference.to_json()) == {
        "result_id": reference.result_id,
        "summary": reference.summary,
        "size": 6_146,
    }
    payload = await memory.manager.load_tool_result(reference.result_id)
    assert list(payload) == ["id", "tool", "created_at", "content"]
    assert payload == {
        "id": reference.result_id,
        "tool": "mcp_filesystem_read_file",
        "created_at": clock().isoformat(),
        "content": text,
    }
    (event,) = [record for record in caplog.records if record.message.startswith("TOOL_RESULT_STORED")]
    assert (event.tool, event.result_id, event.size) == (payload["tool"], reference.result_id, 6_146)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("é" * 3_072, {}),
        ("", {"inline_limit": 0}),
        ("x" * 6_145, {"succeeded": False}),
        ("x" * 100, {"inline_limit": 100}),
    ],
)
async def test_what_stays_inline(memory, text, options):
    assert await memory.manager.externalize("t", text, **options) is text
    assert await memory.manager.externalize("load_tool_result", LONG) is LONG
    assert await memory.manager.tool_results() == []


@pytest.mark.parametrize(
    ("text", "most", "summary"),
    [("abc", 3, "abc"), ("abcd", 3, "abc…"), ("🙂🙂", 1, "🙂…"), ("abc", 0, "…"), ("\ud800\0", 1, "\ud800…")],
)
async def test_summaries_are_cut_by_characters(memory, text, most, summary):
    reference = await memory.manager.externalize("t", text, inline_limit=0, summary_max_chars=most)
    assert reference.summary == summary
    assert json.loads(reference.to_json())["summary"] == summary
    assert (await memory.manager.load_tool_result(reference.result_id))["content"] == text


@pytest.mark.parametrize(
    ("tool", "text", "options"),
    [
        (None, LONG, {}),
        ("t\0", LONG, {}),
        ("t", None, {}),
        ("t", b"bytes", {}),
        ("t", LONG, {"inline_limit": -1}),
        ("t", LONG, {"inline_limit": "6144"}),
        ("t", LONG, {"summary_max_chars": 10_001}),
        ("t", LONG, {"ttl": 0}),
        ("t", LONG, {"ttl": float("nan")}),
        ("t", LONG, {"ttl": "1h"}),
    ],
)
async def test_arguments_of_externalize_are_checked(memory, tool, text, options):
    with pytest.raises(InvalidInput):
        await memory.manager.externalize(tool, text, **options)
    with pytest.raises(InvalidInput):
        await memory.atomic(lambda m: m.manager.externalize(tool, text, **options))
    assert await memory.manager.tool_results() == []


async def test_output_that_cannot_be_stored_stays_inline(path, caplog, monkeypatch):
    async with memdb.open(path, read_only=True) as db:
        manager = db.memory("alice").manager
        assert await manager.externalize("t", "short") == "short"
        assert await manager.externalize("t", LONG) is LONG
    assert "the result of the tool 't' could not be stored and stays inline" in caplog.text
    async with memdb.open(path) as db:
        monkeypatch.setattr(externalizing, "MAX_RESULT_BYTES", 10_000)
        assert await db.memory("alice").manager.externalize("t", LONG) is LONG
        assert await db.memory("alice").manager.tool_results() == []


async def test_externalising_inside_a_unit_lands_with_it(memory, caplog):
    def unit(m, fails):
        reference = m.manager.externalize("t", LONG)
        assert m.manager.externalize("t", "short") == "short"
        assert m.manager.load_tool_result(reference.result_id)["content"] == LONG
        if fails:
            raise RuntimeError("no")
        return reference

    with caplog.at_level(logging.INFO, "memdb"), pytest.raises(RuntimeError, match="no"):
        await memory.atomic(lambda m: unit(m, True))
    assert await memory.manager.tool_results() == []
    assert "TOOL_RESULT_STORED" not in caplog.text
    reference = await memory.atomic(lambda m: unit(m, False))
    assert (await memory.manager.load_tool_result(reference.result_id))["content"] == LONG


@pytest.mark.parametrize(
    ("payload", "options", "complaint"),
    [
        ("text", {}, "the payload must be a dict of JSON values, not str"),
        ({"content": b"x"}, {}, "holds a bytes"),
        ({"content": "x", 1: 2}, {}, "keys must be text"),
        ({"content": "x"}, {"expires_at": datetime(2030, 1, 1)}, "no time zone"),
        ({"content": "x"}, {"expires_at": 5}, "a time must be a datetime"),
        ({"content": {"text": "x" * 17_000_000}}, {}, "at most 16,777,216"),
    ],
)
async def test_what_is_no_result_is_refused(memory, payload, options, complaint):
    await memory.manager.save_tool_result("a", DOCUMENTED)
    with pytest.raises(InvalidInput, match=complaint):
        await memory.manager.save_tool_result("a", payload, **options)
    assert await memory.manager.load_tool_result("a") == DOCUMENTED


async def test_a_text_larger_than_what_is_kept_is_refused(memory, monkeypatch):
    monkeypatch.setattr("memdb.layers.runtime.stored_results.MAX_RESULT_BYTES", 3)
    await memory.manager.save_tool_result("a", {"content": "abc"})
    with pytest.raises(InvalidInput, match="the content has 4 bytes; at most 3 are kept"):
        await memory.manager.save_tool_result("b", {"content": "éé"})


async def test_many_at_once(memory):
    references = await asyncio.gather(*(memory.manager.externalize("t", f"{n}{LONG}") for n in range(20)))
    for n, reference in enumerate(references):
        assert (await memory.manager.load_tool_result(reference.result_id))["content"] == f"{n}{LONG}"


async def test_the_view_shows_them(memory, db):
    await memory.manager.save_tool_result("a", {"tool": "t", "content": "one\ntwo\n"})
    columns = "user_id, session_id, id, tool, summary, size, lines"
    rows = await db.read(lambda tx: tx.execute(f"SELECT {columns} FROM v_tool_results"))
    assert rows == [("alice", "default", "a", "t", "one two ", 8, 2)]
