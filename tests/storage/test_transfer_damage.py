"""Rows that cannot be read are exported as their bytes; files that are no whole export are refused by the line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import (
    AgentCheckpoint,
    Database,
    GraphEntity,
    GraphRelation,
    InvalidInput,
    MemoryItem,
    SemanticPattern,
)
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.transfer import export_user, import_user
from tests.hostile.shell import NOW, inserted, shell
from tests.storage.exports import ASIDE, HEAD, ITEM, MESSAGE, RELATION, SESSION, end, exported, imported, written

# -- what cannot be read ----------------------------------------------------------------------------------------------

BROKEN = {
    "no UTF-8": "UPDATE record SET content = CAST(x'FF41' AS TEXT)",
    "bytes": "UPDATE record SET content = x'00FF'",
    "NUL": "UPDATE record SET content = 'a' || char(0)",
    "broken JSON": "UPDATE record SET metadata = '{'",
    "NaN": "UPDATE record SET metadata = 'NaN'",
    "tags": "UPDATE record SET tags = '{}'",
    "a NUL in a tag": "UPDATE record SET tags = '[\"\\u0000\"]'",
    "no time": "UPDATE record SET created_at = 'yesterday'",
    "no key": "UPDATE record SET key = ''",
    "a key of bytes": "UPDATE record SET key = x'FF'",
    "recall": "INSERT INTO recall (record_id, recall_count) SELECT id, 'often' FROM record",
    "no row in message": "UPDATE record SET layer = 'message'",
    "a layer that nobody knows": "UPDATE record SET layer = 'note'",
    "a row of another layer": "INSERT INTO message (record_id, user_id, role) SELECT id, 'alice', 'user' FROM record",
}


@pytest.mark.parametrize("sql", BROKEN.values(), ids=BROKEN)
async def test_a_record_that_cannot_be_read_goes_along_as_its_bytes(path: Path, tmp_path: Path, sql: str) -> None:
    shell(path, inserted("bad", "x", user="alice"), sql, inserted("good", "tea", user="alice"), careless=True)
    async with memdb.open(path, read_only=True) as db:
        done = await export_user(db.engine, "alice", tmp_path / "a.jsonl")
        assert (done.records, done.quarantine, done.damaged, len(done.problems)) == (1, 1, 1, 1)
    raw = shell(path, "SELECT hex(content), hex(id), hex(metadata) FROM record ORDER BY id")[-2]
    async with memdb.open(tmp_path / "b.db") as other:
        stored = await import_user(other.engine, tmp_path / "a.jsonl")
        assert (stored.records, stored.quarantine) == (1, 1)
        kept = json.loads((await other.read(lambda tx: tx.execute("SELECT raw FROM quarantine")))[0][0])
        assert (kept["content"], kept["id"], kept["metadata"]) == raw
        again = await import_user(other.engine, tmp_path / "a.jsonl")
        assert (again.quarantine, again.same) == (0, 2)
        assert (await other.check()).ok


RULED = (
    ("relation", "weight", -450),
    ("relation", "weight", float("inf")),
    ("history", "origin", ""),
    ("block", "size", 0),
    ("block", "priority", -1),
    ("tool_result", "form", "TEXT"),
    ("pattern", "kind", "x"),
    ("checkpoint", "status", "done"),
)


@pytest.mark.parametrize(("table", "column", "value"), RULED)
async def test_what_breaks_a_rule_of_its_table_goes_along_as_its_bytes(
    path: Path, table: str, column: str, value: Any
) -> None:
    """A shell that ignores the rules has written it; a file that obeys them could not take it in."""
    async with memdb.open(path) as db:
        memory = db.memory("alice", "s")
        await memory.graph.add_entities([GraphEntity(id=key, name=key, entity_type="thing") for key in "ab"])
        await memory.graph.add_relations([GraphRelation(source_id="a", target_id="b", relation_type="is", weight=1)])
        await memory.facts.append_history("she likes tea")
        await memory.blocks.configure({"human": {"size": 100}})
        await memory.manager.save_tool_result("t", {"content": "found"})
        await memory.engine.store_pattern(SemanticPattern.create("ask first", "manners"))
        await memory.manager.save_checkpoint(AgentCheckpoint(id="run", status="in_progress", payload={}))
        before = await exported(db)
    shell(path, (f"UPDATE {table} SET {column} = ?", (value,)), careless=True)
    async with memdb.open(path, read_only=True) as db:
        lines = await exported(db)
    assert len(lines) == len(before)
    aside = [line for line in lines if line["kind"] == "quarantine"]
    assert [f"the column {column} holds " in line["reason"] for line in aside] == [True]
    async with memdb.open(":memory:") as other:
        await imported(other, *lines[:-1])
        assert (await other.check()).problems == []
        assert [line for line in await exported(other) if line["kind"] == "quarantine"] == aside


async def test_a_session_and_a_row_of_quarantine_that_cannot_be_read(path: Path, tmp_path: Path) -> None:
    shell(
        path,
        ("INSERT INTO session VALUES ('alice', 's', ?, ?, 0, 'x')", (NOW, NOW)),
        ("INSERT INTO quarantine VALUES (7, 'alice', 'item', '', x'FF', 'no', '{}', ?)", (NOW,)),
        careless=True,
    )
    async with memdb.open(path, read_only=True) as db:
        lines = await exported(db)
    assert lines[-1] == end(0, 0, 2)
    assert json.loads(lines[0]["raw"])["key"] == "FF"
    assert json.loads(lines[1]["raw"])["metadata"] == "78"
    assert lines[1]["layer"] == "session"


async def test_the_quarantine_goes_along_as_often_as_it_holds_a_row(db: Database) -> None:
    await imported(db, ASIDE, ASIDE, {**ASIDE, "raw": "no json \n"})
    lines = await exported(db)
    assert lines == [ASIDE, ASIDE, {**ASIDE, "raw": "no json \n"}, end(0, 0, 3)]
    again = await imported(db, *lines[:-1], ASIDE)
    assert (again.quarantine, again.same) == (1, 3)


async def test_a_record_too_large_for_a_line_is_refused_by_name(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memdb.storage.transfer.content.MAX_LINE_BYTES", 500)
    await db.memory("alice").items.save(MemoryItem(id="large", content="x" * 600))
    with pytest.raises(memdb.SerializationError, match="'large' of layer 'item' takes"):
        await export_user(db.engine, "alice", tmp_path / "a.jsonl")
    assert [found.suffix for found in tmp_path.iterdir() if "jsonl" in found.name] == []


async def test_the_largest_content_goes_there_and_back(db: Database, tmp_path: Path) -> None:
    text = ("é\x01" * (6 * 1024 * 1024))[: 5 * 1024 * 1024]
    await db.memory("alice").items.save(MemoryItem(id="a", content=text))
    await export_user(db.engine, "alice", tmp_path / "a.jsonl")
    await import_user(db.engine, tmp_path / "a.jsonl", user_id="zoe")
    assert (await db.memory("zoe").items.get("a")).content == text


# -- damaged files ----------------------------------------------------------------------------------------------------

BAD_LINES: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "it is no JSON"),
    "no UTF-8": (b'{"a": "\xff"}', "it is not UTF-8"),
    "deep": (b"[" * 100_000, "it is no JSON"),
    "no object": ([1], "it is no object"),
    "a head again": (HEAD, "its kind is None"),
    "no kind": ({"layer": "item"}, "its kind is None"),
    "a kind of a newer memdb": ({"kind": "dream"}, "its kind is 'dream', which this memdb does not know"),
    "a kind that is a list": ({"kind": []}, "its kind is"),
    "a record number": ({**ITEM, "record_id": 1}, "the field 'record_id' is none that this memdb knows"),
    "an id": ({**ITEM, "id": 1}, "the field 'id'"),
    "a user": ({**ITEM, "user_id": "bob"}, "the field 'user_id'"),
    "twins": ({**ITEM, "content_seg": "x"}, "the field 'content_seg'"),
    "a layer of a newer memdb": (
        {**ITEM, "layer": "dream"},
        "its layer is 'dream', which this memdb does not know",
    ),
    "a table of another layer": ({**ITEM, "message": {"role": "user"}}, "the field 'message' is none"),
    "a table of a newer layer": ({**ITEM, "entity": {"kind": "x"}}, "the field 'entity' is none"),
    "no row of its own": ({**MESSAGE, "message": None}, "the field message must be an object"),
    "without its own": ({**ITEM, "layer": "message"}, "a record of layer 'message' needs the field message"),
    "an unknown field of its own": ({**MESSAGE, "message": {"role": "u", "record_id": 1}}, "in message, the field"),
    "no role": ({**MESSAGE, "message": {}}, "in message, the field role is missing"),
    "tokens of a text": ({**MESSAGE, "message": {"role": "u", "tokens": "1"}}, "tokens must be a whole number"),
    "tokens beyond 64 bits": ({**MESSAGE, "message": {"role": "u", "tokens": 2**63}}, "tokens must be a whole number"),
    "no key": ({**ITEM, "key": ""}, "key must not be empty"),
    "a key of 10,000 characters": ({**ITEM, "key": "k" * 10_000}, "key has 10,000 characters"),
    "a key that is missing": ({name: ITEM[name] for name in ITEM if name != "key"}, "the field key is missing"),
    "a NUL": ({**ITEM, "content": "a\x00"}, "content holds a NUL character at position 1"),
    "a lone surrogate": ({**ITEM, "content": "a\ud800"}, "content holds a lone surrogate at position 1"),
    "a number for a text": ({**ITEM, "content": 1}, "content must be text, not int"),
    "NULL for a text": ({**ITEM, "content": None}, "content must be text, not NoneType"),
    "no time": ({**ITEM, "created_at": "soon"}, "'soon' is not a time"),
    "tags of an object": ({**ITEM, "tags": {}}, "tags holds no list of texts"),
    "tags of numbers": ({**ITEM, "tags": [1]}, "tags holds no list of texts"),
    "a lone surrogate in a tag": ({**ITEM, "tags": ["\ud800"]}, "tags holds no list of texts"),
    "NaN": ({**ITEM, "metadata": float("nan")}, "the field metadata holds what JSON cannot say"),
    "a text that is no JSON": ({**ITEM, "metadata_text": "{"}, "the field metadata_text holds no JSON"),
    "SQL": ({**ITEM, "metadata'); DROP TABLE record; --": 1}, "the field \"metadata'); DROP"),
    "references of a text": ({**ITEM, "references": "b"}, "the field references must be a list"),
    "a reference of a text": ({**ITEM, "references": ["b"]}, "the field references must hold objects"),
    "a recall of a number": ({**ITEM, "recall": 1}, "the field recall must be an object"),
    "a recall of text": ({**ITEM, "recall": {"recall_count": "x"}}, "in recall, recall_count must be"),
    "a score of a huge number": ({**ITEM, "recall": {"total_score": 10**400}}, "total_score must be a number"),
    "a session without an id": ({**SESSION, "session_id": ""}, "session_id must not be empty"),
    "a cursor at a page": (
        {**SESSION, "consolidated": {"layer": "page", "key": "a"}},
        "consolidated must name a message",
    ),
    "a cursor at nothing": (
        {**SESSION, "consolidated": {"layer": "message", "key": "000000000009"}},
        "the session 's1' is consolidated up to message '000000000009', which is not there",
    ),
    "a relation to nothing": (RELATION, "the source of the relation, the entity 'a', is not there"),
    "a relation to itself": ({**RELATION, "target": "a"}, "both ends of the relation are 'a'"),
    "a relation without a type": ({**RELATION, "relation_type": None}, "relation_type must be text"),
    "a relation of a key too long": ({**RELATION, "target": "k" * 1_001}, "target has 1,001 characters"),
    "a relation of numbers": ({**RELATION, "source_id": 1}, "the field 'source_id' is none"),
    "a weight of a text": ({**RELATION, "weight": "strong"}, "weight must be a number"),
    "a row of quarantine without a reason": ({**ASIDE, "reason": None}, "reason must be text"),
}


@pytest.mark.parametrize("line", BAD_LINES)
async def test_a_damaged_line_is_named_or_skipped(db: Database, line: str) -> None:
    bad, sentence = BAD_LINES[line]
    with pytest.raises(InvalidInput) as caught:
        await imported(db, ITEM, bad, {**ITEM, "key": "b"})
    assert "line 3: " in str(caught.value)
    assert sentence in str(caught.value)
    assert await db.memory("alice").items.list() == []
    done = await imported(db, ITEM, bad, {**ITEM, "key": "b"}, skip_damaged=True)
    assert [item.id for item in await db.memory("alice").items.list()] == ["a", "b"]
    assert done.skipped == 1 or bad == BAD_LINES["a cursor at nothing"][0]


BAD_HEADS: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "is no export"),
    "no JSON": (b"SQLite format 3", "is no export"),
    "another object": ({"_type": "metadata"}, "is no export"),
    "a list": ([], "is no export"),
    "version 99": ({**HEAD, "version": 99}, "was written by a newer memdb (version 99, this one knows 1)"),
    "a newer schema": ({**HEAD, "schema": SCHEMA_VERSION + 1}, "was written by a newer memdb (schema"),
    "a version of text": ({**HEAD, "version": "1"}, "the version is no number"),
    "no version": ({"memdb": "export"}, "the version is no number"),
    "a negative version": ({**HEAD, "version": -1}, "the version is no number"),
    "no user": ({**HEAD, "user_id": None}, "user_id must be text"),
    "a user of 10,000 characters": ({**HEAD, "user_id": "u" * 10_000}, "user_id has 10,000 characters"),
    "a user with a NUL": ({**HEAD, "user_id": "a\x00"}, "user_id holds a NUL"),
}


@pytest.mark.parametrize("head", BAD_HEADS)
async def test_a_file_that_is_no_export_is_refused_always(db: Database, head: str) -> None:
    value, sentence = BAD_HEADS[head]
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    for skip in (False, True):
        with pytest.raises(InvalidInput) as caught:
            await import_user(db.engine, io.BytesIO(text + b"\n"), user_id="zoe", skip_damaged=skip)
        assert sentence in str(caught.value)


async def test_an_export_of_an_older_schema_is_taken(db: Database) -> None:
    stream = io.BytesIO(b"\n".join(json.dumps(line).encode() for line in ({**HEAD, "schema": 1}, ITEM, end(1))))
    assert (await import_user(db.engine, stream)).records == 1


async def test_a_file_that_is_cut_short_is_refused_at_every_byte(db: Database) -> None:
    whole = written(ITEM, MESSAGE, SESSION, ASIDE).getvalue()
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole) - 1, 7):
        with pytest.raises(InvalidInput, match="cut short"):
            await import_user(db.engine, io.BytesIO(whole[:size]))
    assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM record")) == [(0,)]
    lines = whole[: len(whole) - 20]
    done = await import_user(db.engine, io.BytesIO(lines), skip_damaged=True)
    assert (done.records, done.sessions, done.quarantine) == (2, 1, 1)
    assert done.problems[-1] == "the file is cut short: its closing line is missing"


async def test_lines_that_are_missing_or_too_many_are_seen(db: Database) -> None:
    for counts in (end(2), end(-1, 2), end(0), end(True), {"kind": "end"}):  # type: ignore[arg-type]
        stream = io.BytesIO(b"\n".join(json.dumps(line).encode() for line in (HEAD, ITEM, MESSAGE, counts)))
        if sum(int(v) for v in counts.values() if v != "end") == 2:
            continue
        with pytest.raises(InvalidInput, match="the file is not whole"):
            await import_user(db.engine, stream)
    twice = written(ITEM).getvalue() * 2
    with pytest.raises(InvalidInput, match="line 4: it stands after the closing line"):
        await import_user(db.engine, io.BytesIO(twice))


async def test_a_cursor_whose_message_was_skipped_falls_back(db: Database) -> None:
    second = {**MESSAGE, "key": "000000000002", "content": 5}
    session = {**SESSION, "consolidated": {"layer": "message", "key": "000000000002"}}
    await imported(db, MESSAGE, second, session, skip_damaged=True)
    assert await db.memory("alice", "s1").conversation.last_consolidated() == 1


@pytest.mark.parametrize("size", [200_000_000])
async def test_a_line_that_is_too_long_is_not_read(db: Database, size: int) -> None:
    line = b'{"kind": "record", "content": "' + b"x" * size
    with pytest.raises(InvalidInput, match="line 2: it is longer than"):
        await imported(db, line)


async def test_a_line_of_100_megabytes_is_stored(path: Path) -> None:
    metadata = ["x" * 1_000_000] * 100
    async with memdb.open(path) as db:
        assert (await imported(db, {**ITEM, "metadata": metadata})).records == 1
