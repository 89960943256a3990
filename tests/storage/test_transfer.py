"""A user's whole memory out of one file and into another: what is kept, and what wins where both say something."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import AlreadyExists, Database, InvalidInput, MemoryItem, NotFound
from memdb.storage import transfer
from memdb.storage.schema import metadata
from memdb.storage.transfer import export_user, form, import_user
from tests.hostile.shell import NOW, inserted, shell
from tests.storage.exports import HEAD, ITEM, MESSAGE, SESSION, a_source, end, exported, fill, imported

# -- the schema is covered --------------------------------------------------------------------------------------------


def test_every_table_is_exported_or_named_as_made_anew() -> None:
    """A new table: give its layer a row in LAYERS, or name it in DERIVED, or write lines for it (SPECIAL)."""
    known = [*(own.table.name for own in form.OWN), *(table.name for table in form.SPECIAL), *form.DERIVED]
    assert sorted(known) == sorted(metadata.tables)
    for own in form.OWN:
        assert [column.name for column in own.table.primary_key] == ["record_id"]
        assert [key.parent.name for key in own.table.foreign_keys] == ["record_id"], "another record: translate it"
    for table in metadata.tables.values():
        assert not [column.name for column in table.c if column.name.endswith("_text")]


def test_every_column_is_a_field_or_left_out_for_a_reason() -> None:
    left_out = {"id", "user_id", "record_id", "seg_revision", "consolidated_id", "source_id", "target_id"}
    left_out |= {"number", "superseded"}
    for table, fields in (
        ("record", form.RECORD),
        ("recall", form.RECALL),
        ("session", form.SESSION),
        ("relation", form.RELATION[2:]),
        ("quarantine", form.QUARANTINE),
        *form.OWN_FIELDS.items(),
        *form.STANDING_FIELDS.items(),
    ):
        columns = {column.name for column in metadata.tables[table].c if not column.name.endswith("_seg")}
        left = left_out - {"checkpoint": {"id"}, "version": {"number"}, "passage": {"source_id"}}.get(table, set())
        assert columns - left == {field.column for field in fields}
    kinds = {field.name: field.kind for fields in (form.RECORD, *form.OWN_FIELDS.values()) for field in fields}
    assert {name for name, kind in kinds.items() if kind == "json"} == {
        "tags", "keywords", "metadata", "tool_calls", "body", "extra", "links", "head",
    }  # fmt: skip
    assert form.RECALL[2].kind == "real"
    assert kinds["expires_at"] == "time"


def test_every_layer_of_memdb_is_known() -> None:
    import memdb.layers

    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(memdb.layers.__path__, "memdb.layers.")
    ]
    assert {module.LAYER for module in modules if hasattr(module, "LAYER")} <= set(form.LAYERS)


# -- there and back ---------------------------------------------------------------------------------------------------


async def test_there_and_back(db: Database, tmp_path: Path) -> None:
    await fill(db)
    path = tmp_path / "alice.jsonl"
    done = await export_user(db.engine, "alice", path)
    assert (done.records, done.relations, done.sessions, done.quarantine, done.damaged) == (14, 2, 1, 0, 0)
    assert done.layers == {"item": 2, "page": 2, "message": 7, "entity": 3}
    assert done.bytes == path.stat().st_size
    head = json.loads(path.read_text().split("\n")[0])
    assert head == {**HEAD, "records": 14, "exported_at": "2026-01-01T12:00:00.000000Z"}
    async with memdb.open(tmp_path / "b.db") as other:
        stored = await import_user(other.engine, path)
        assert (stored.records, stored.relations, stored.sessions, stored.layers) == (14, 2, 1, done.layers)
        assert await exported(other) == await exported(db)
        assert (await other.check()).notes == []
        there, here = other.memory("alice", "s1"), db.memory("alice", "s1")
        assert await there.conversation.last_consolidated() == await here.conversation.last_consolidated() == 5
        assert await there.conversation.messages() == await here.conversation.messages()
        assert await there.items.list() == await here.items.list()
        assert await there.graph.get_related("x") == await here.graph.get_related("x") != []
        assert await there.graph.find_by_keywords(["tea"]) == await here.graph.find_by_keywords(["tea"])
        assert await there.items.recall_stats("a") == await here.items.recall_stats("a")
        for query in ("tea", "部署", "state graph", "tokens", "hello 3"):
            assert [hit.item for hit in await there.items.search(query)] == [
                hit.item for hit in await here.items.search(query)
            ]
            assert await there.pages.search(query) == await here.pages.search(query)
        assert await there.pages.referenced_by("none") == ["deploy"]
        assert await other.memory("bob").items.list() == []


async def test_the_same_again_changes_nothing(db: Database, tmp_path: Path) -> None:
    await fill(db)
    path = tmp_path / "alice.jsonl"
    done = await export_user(db.engine, "alice", path)
    before = await exported(db)
    await db.memory("alice").items.record_recall("a", 9.0)  # usage is not content
    again = await import_user(db.engine, path)
    assert (again.records, again.sessions, again.replaced, again.same) == (
        0,
        0,
        0,
        done.records + done.relations + done.sessions,
    )
    assert (await db.memory("alice").items.recall_stats("a")).recall_count == 2
    won = await import_user(db.engine, path, replace=True)
    assert (won.records, won.replaced, won.same) == (0, 1, done.records + done.relations)
    assert await exported(db) == before


async def test_under_another_user_beside_others(db: Database) -> None:
    await fill(db)
    bob = await exported(db, "bob")
    lines = await exported(db)
    stored = await imported(db, *lines[:-1], user_id="al/ice'\n")
    assert stored.user_id == "al/ice'\n"
    assert await exported(db, "al/ice'\n") == lines
    assert await exported(db, "bob") == bob
    assert await exported(db) == lines
    assert [hit.item.id for hit in await db.memory("al/ice'\n").items.search("tea")] == ["b", "a"]


async def test_one_session(db: Database) -> None:
    await fill(db)
    await db.memory("alice", "s2").conversation.add_message({"role": "user", "content": "other"})
    lines = await exported(db, session_id="s1")
    assert {line.get("session_id", "s1") for line in lines} == {"s1"}
    assert lines[-1] == end(7, 1)
    with pytest.raises(NotFound, match="'s3'"):
        await exported(db, session_id="s3")


async def test_expired_records_go_along(db: Database, clock: Any) -> None:
    await db.memory("alice").items.save(MemoryItem(id="a", content="x", expires_at=clock.now))
    lines = await exported(db)
    assert lines[0]["expires_at"] == "2026-01-01T12:00:00.000000Z"
    await imported(db, lines[0], user_id="zoe")
    assert await db.memory("zoe").items.get("a") is None


EXACT = [
    "{}", "[]", "null", "1", "-0.0", "1e400", "1E5", "1.0", "0.1000000000000000055", '{"a":1,"a":2}',
    ' {"a" : 1}\n',
    f"[{'9' * 5000}]", "12345678901234567890123", '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"é"', '"\\u00e9"',
    "[" * 90 + "]" * 90, "[" * 700 + "]" * 700, '{"":{"$.a":[null,true]}}', '"\\/"', '{"a_text":"b"}',
]  # fmt: skip


@pytest.mark.parametrize("text", EXACT, ids=range(len(EXACT)))
async def test_json_comes_back_as_it_stands(path: Path, tmp_path: Path, text: str) -> None:
    shell(path, inserted("a", "x", user="alice"), ("UPDATE record SET metadata = ?", (text,)))
    async with memdb.open(path) as db, memdb.open(tmp_path / "b.db") as other:
        await export_user(db.engine, "alice", tmp_path / "a.jsonl")
        await import_user(other.engine, tmp_path / "a.jsonl")
        assert await other.read(lambda tx: tx.execute("SELECT metadata FROM record")) == [(text,)]
        assert await exported(other) == await exported(db)


async def test_infinity_and_null_in_columns_of_their_own(db: Database) -> None:
    """Two recalls of the highest score add up to more than a number can say."""
    items = db.memory("alice").items
    await items.save(MemoryItem(id="a", content="x"))
    for _ in range(2):
        await items.record_recall("a", 1.7e308)
    await db.memory("alice", "s").conversation.add_message({"role": "user", "content": None})
    lines = await exported(db)
    assert lines[0]["recall"]["total_score"] == "Infinity"
    assert lines[1]["message"]["body"] is None
    await imported(db, *lines[:-1], user_id="zoe")
    assert await exported(db, "zoe") == lines


async def test_a_cursor_at_a_deleted_message_means_the_one_before(db: Database) -> None:
    await fill(db)
    await db.write(lambda tx: tx.execute("DELETE FROM record WHERE key = '000000000005'"))
    lines = await exported(db)
    assert lines[-2]["consolidated"] == {"layer": "message", "key": "000000000004"}
    await db.write(lambda tx: tx.execute("DELETE FROM record WHERE layer = 'message' AND key < '000000000005'"))
    assert "consolidated" not in (await exported(db))[-2]


# -- conflicts --------------------------------------------------------------------------------------------------------


async def test_other_content_is_refused_and_named_before_anything_is_written(db: Database) -> None:
    await fill(db)
    before = await exported(db)
    lines = [{**ITEM, "key": "new"}, ITEM, {**ITEM, "key": "b"}, {**SESSION, "metadata": {"x": 1}}]
    with pytest.raises(
        AlreadyExists, match=r"^3 of what the export holds .*: item 'a', item 'b', session 's1'; nothing"
    ):
        await imported(db, *lines)
    assert await exported(db) == before
    ids = await db.read(
        lambda tx: tx.execute("SELECT key, id FROM record WHERE user_id = 'alice' AND key IN ('a', 'b')")
    )
    done = await imported(db, *lines, replace=True)
    assert (done.records, done.replaced) == (1, 3)
    assert await db.memory("alice").items.get("b") == MemoryItem(
        id="b", content="tea", created_at="2026-01-01T00:00:00Z"
    )
    assert await db.memory("alice").items.recall_stats("a") is None
    assert ids == await db.read(
        lambda tx: tx.execute("SELECT key, id FROM record WHERE user_id = 'alice' AND key IN ('a', 'b')")
    )


@pytest.mark.parametrize(
    "change",
    [
        {"content": "coffee"}, {"title": "x"}, {"category": "x"}, {"metadata": {"a": 1}}, {"tags": ["t"]},
        {"keywords": ["t"]}, {"expires_at": NOW}, {"created_at": NOW.replace("01-01", "01-02")},
        {"references": [{"layer": "item", "key": "b"}]},
    ],
)  # fmt: skip
async def test_every_part_of_the_content_counts(db: Database, change: dict[str, Any]) -> None:
    await imported(db, ITEM)
    with pytest.raises(AlreadyExists, match="item 'a'"):
        await imported(db, {**ITEM, **change})
    assert (await imported(db, {**ITEM, **change}, replace=True)).replaced == 1
    assert (await imported(db, {**ITEM, **change})).same == 1


async def test_a_message_says_the_same_only_with_its_own_row(db: Database) -> None:
    await imported(db, MESSAGE)
    with pytest.raises(AlreadyExists, match="message '000000000001'"):
        await imported(db, {**MESSAGE, "message": {"role": "assistant"}})
    await imported(db, {**MESSAGE, "message": {"role": "assistant", "name": "Al"}}, replace=True)
    (found,) = await db.memory("alice", "s1").conversation.messages()
    assert (found.role, found.name, found.content) == ("assistant", "Al", "tea")


async def test_many_conflicts_are_counted(db: Database) -> None:
    items = [{**ITEM, "key": str(n)} for n in range(1_200)]
    await imported(db, *items)
    with pytest.raises(AlreadyExists, match=r"^1,200 of .* item '4' and 1,195 more; nothing was imported"):
        await imported(db, *({**item, "content": "x"} for item in items))


async def test_a_line_that_comes_twice(db: Database) -> None:
    done = await imported(db, ITEM, ITEM)
    assert (done.records, done.same) == (1, 1)
    with pytest.raises(AlreadyExists, match="item 'b'"):
        await imported(db, {**ITEM, "key": "b"}, {**ITEM, "key": "b", "content": "x"})
    assert await db.memory("alice").items.get("b") is None


async def test_a_file_of_another_page_is_named_by_its_line(db: Database) -> None:
    """`source` has a rule of its own: a file of a folder is one page."""
    source = {**a_source("/n", "a.md"), "links": []}
    page = {**ITEM, "layer": "page", "source": source}
    lines = [page, {**ITEM, "key": "z"}, {**page, "key": "b"}]
    with pytest.raises(InvalidInput, match=r"^line 4: it breaks a rule of its table \(UNIQUE"):
        await imported(db, *lines)
    done = await imported(db, *lines, skip_damaged=True)
    assert (done.records, done.skipped) == (2, 1)
    assert done.problems == ["line 4: it breaks a rule of its table (UNIQUE constraint failed: source.user_id,"
                             " source.folder, source.path); it was left out"]  # fmt: skip
    assert (await exported(db))[0]["source"] == source


async def test_order_is_kept_and_numbers_are_new(db: Database) -> None:
    await db.memory("bob").items.save(MemoryItem(id="x", content="x"))
    keys = [str(n * 7919 % 1_201) for n in range(1_201)]
    await imported(db, *({**ITEM, "key": key} for key in keys))
    rows = await db.read(lambda tx: tx.execute("SELECT key FROM record WHERE user_id = 'alice' ORDER BY id"))
    assert [key for (key,) in rows] == keys


def test_the_documented_form_names_every_part() -> None:
    for name in (
        "record",
        "relation",
        "session",
        "quarantine",
        "end",
        *form.OWN_FIELDS,
        *form.STANDING_FIELDS,
        *form.COUNTED.values(),
        *(layer for layer in form.LAYERS if layer not in form.STANDING),
        "recall",
        "references",
        "consolidated",
    ):
        assert name in str(transfer.__doc__)
