"""Whatever a user's memory holds: exported, imported and exported again it is the same, line for line."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import Database, GraphEntity, GraphRelation, KnowledgePage, Memory, MemoryItem
from memdb.layers.layer import Live
from memdb.storage.schema import metadata
from memdb.storage.transaction import Transaction
from memdb.storage.transfer import export_user, import_user
from tests.hostile.shell import shell
from tests.properties.running import a_file, run
from tests.storage.exports import a_source
from tests.strategies import (
    CHARS,
    SAME_EVERY_TIME,
    any_text,
    entities,
    ids,
    instants,
    items,
    json_values,
    pages,
    plain,
    texts,
    weights,
)

KEY_OF = {"session": "session_id", "record_reference": "source_id"}  # they have no rowid
SIZES = st.integers(5, 40)
NOW = "2026-01-01T00:00:00.000000Z"
ODD = ("1e400", "-0.0", "1E5", '{"a":1,"a":2}', ' [ "\\u0000" ] ', '"\\ud83d\\ude00"', '"\\udfff"', f"{'9' * 4400}")


def storable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | st.text(CHARS, min_size=1, max_size=9)},
    optional={
        "tool_calls": st.lists(any_json, max_size=2),
        "tool_call_id": ids,
        "name": ids,
        "mood": any_json,
        "created_at": instants,
    },
).flatmap(lambda fields: (texts | any_json).map(lambda content: {**fields, "content": content}))


@dataclass
class Held:
    """What a user's memory holds."""

    items: list[MemoryItem]
    pages: list[KnowledgePage]
    entities: list[GraphEntity]
    weights: list[float]
    talks: dict[str, list[dict[str, Any]]]
    recalls: list[float]
    consolidated: int
    files: list[str]
    known: dict[str, Any]
    aside: list[tuple[str, str]]
    odd: list[str]
    facts: list[tuple[str, str]]
    history: list[str]
    blocks: dict[str, tuple[int, list[str]]]
    archive: list[tuple[str, float]]
    failures: int


held = st.builds(
    Held,
    items=st.lists(items, max_size=4, unique_by=lambda item: item.id),
    pages=st.lists(pages, max_size=3, unique_by=lambda page: page.id),
    entities=st.lists(entities, max_size=4, unique_by=lambda entity: entity.id),
    weights=st.lists(weights, max_size=6),
    talks=st.dictionaries(ids, st.lists(messages, max_size=4), max_size=2),
    recalls=st.lists(st.floats(0, allow_nan=False, allow_infinity=False), max_size=3),
    consolidated=st.integers(0, 4),
    files=st.lists(plain, max_size=3, unique=True),
    known=st.dictionaries(ids, json_values, max_size=2),
    aside=st.lists(st.tuples(plain, texts), max_size=3),
    odd=st.lists(st.sampled_from(ODD), max_size=2),
    facts=st.lists(st.tuples(texts, ids), max_size=3),
    history=st.lists(texts.filter(str.strip), max_size=2),
    blocks=st.dictionaries(ids, st.tuples(SIZES, st.lists(texts, max_size=2)), max_size=2),
    archive=st.lists(st.tuples(texts.filter(str.strip), st.floats(0, 1)), max_size=2),
    failures=st.integers(0, 2),
)


async def fill(db: Database, user: str, what: Held) -> None:
    """Store it, by memdb where it has a way, else as its later layers will."""
    memory = db.memory(user)
    await memory.items.save_many(what.items)
    await memory.pages.add_pages(what.pages)
    await memory.graph.add_entities(what.entities)
    keys = [entity.id for entity in what.entities]
    ends = [(source, target) for source in keys for target in keys if source != target]
    await memory.graph.add_relations(
        GraphRelation(source_id=source, target_id=target, relation_type=f"'{target[:3]}", weight=weight)
        for (source, target), weight in zip(ends, what.weights, strict=False)
    )
    for item in what.items[:2]:
        for score in what.recalls:
            await memory.items.record_recall(item.id, score)
    for session, said in what.talks.items():
        talk = db.memory(user, session).conversation
        await talk.add_messages(said)
        if what.consolidated:
            await talk.compact(what.consolidated)
    await _fill_texts(db.memory(user, "of texts"), what)
    await db.write(_beside, user, what)


async def _fill_texts(memory: Memory[Live], what: Held) -> None:
    for text, author in what.facts:
        await memory.facts.write_long_term(text, author=author[:200])
    for number, entry in enumerate(what.history, 1):
        told: Any = {"chunk": f"{number}", "session_id": "of texts", "first_position": number, "last_position": 9}
        await memory.facts.append_chunk([entry], origin="raw", **told)
    for name, (size, said) in what.blocks.items():
        await memory.blocks.configure({name: {"size": size}}, {"eviction_strategy": "archive_only"})
        for text in said:
            await memory.blocks.append_to_memory(name, text)
    for text, importance in what.archive:
        await memory.archive.insert(text, importance=importance)
    for _ in range(what.failures):
        await memory.conversation.record_failure("no call")


def _beside(tx: Transaction, user: str, what: Held) -> None:
    numbers = tx.execute("SELECT id FROM record WHERE user_id = ? AND layer = 'page' ORDER BY id", (user,))
    for (number,), path in zip(numbers, what.files, strict=False):
        row = {"record_id": number, "user_id": user, **a_source("/notes", path), "modified_ns": -(2**63)}
        marks = ", ".join(f":{name}" for name in row)
        tx.execute(f"INSERT INTO source ({', '.join(row)}) VALUES ({marks})", row)
    for session, known in what.known.items():
        row = (user, session, NOW, NOW, json.dumps(known))
        tx.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, 0, ?)", row)
    for key, raw in what.aside:
        row = (user, "item", "", key, "broken", raw, NOW)
        columns = "user_id, layer, session_id, key, reason, raw, quarantined_at"
        tx.execute(f"INSERT INTO quarantine ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for number, text in enumerate(what.odd):
        row = (user, f"odd {number}", NOW, NOW, text)
        columns = "user_id, layer, key, created_at, updated_at, metadata, seg_revision"
        tx.execute(f"INSERT INTO record ({columns}) VALUES (?, 'item', ?, ?, ?, ?, 1)", row)


def anything(what: Held) -> bool:
    return bool(
        what.items
        or what.pages
        or what.entities
        or any(what.talks.values())
        or what.known
        or what.aside
        or what.odd
        or what.facts
        or what.history
        or what.blocks
        or what.archive
        or what.failures
    )


async def exported(db: Database, user: str) -> bytes:
    out = io.BytesIO()
    done = await export_user(db.engine, user, out)
    assert done.damaged == 0
    return out.getvalue()


def lines(text: bytes) -> list[bytes]:
    return text.split(b"\n")[1:]


@settings(SAME_EVERY_TIME, max_examples=80)
@given(held.filter(anything), held, ids, ids, st.lists(texts, max_size=3))
def test_there_and_back(what: Held, others: Held, user: str, other: str, asked: list[str]) -> None:
    async def go(db: Database) -> None:
        bob, new = f"{other}'", f"{user}\n"
        await fill(db, user, what)
        first = await exported(db, user)
        async with memdb.open(":memory:") as there:
            await fill(there, bob, others)
            before = lines(await exported(there, bob)) if anything(others) else None
            await import_user(there.engine, io.BytesIO(first))
            assert lines(await exported(there, user)) == lines(first)
            await import_user(there.engine, io.BytesIO(first), user_id=new)
            assert lines(await exported(there, new)) == lines(first)
            again = await import_user(there.engine, io.BytesIO(first), replace=True)
            new = (again.records, again.relations, again.sessions, again.quarantine, again.replaced)
            assert new == (0, 0, 0, 0, 0)
            assert before is None or lines(await exported(there, bob)) == before
            report = await there.check()
            assert (report.problems, report.notes) == ([], [])
            for query in [*asked, *(page.title for page in what.pages)]:
                assert {page.id for page in await there.memory(user).pages.search(query, 100)} == {
                    page.id for page in await db.memory(user).pages.search(query, 100)
                }

    run(go)


@settings(SAME_EVERY_TIME, max_examples=150)
@given(held.filter(anything), st.data())
def test_a_file_that_was_changed_is_stored_whole_or_refused(what: Held, data: st.DataObject) -> None:
    """Bytes are cut out or put in anywhere: memdb's own errors, never another, and never half of it."""

    async def go(db: Database) -> None:
        await fill(db, "alice", what)
        text = await exported(db, "alice")
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 40))
        put = data.draw(st.binary(max_size=8) | st.sampled_from([b"\n", b"}", b'","', b"null", b"1e999", b"[" * 2000]))
        changed = text[:at] + put + text[at + size :]
        async with memdb.open(":memory:") as there:
            try:
                await import_user(there.engine, io.BytesIO(changed), user_id="zoe")
            except memdb.MemdbError:
                held = await there.read(lambda tx: tx.execute("SELECT count(*) FROM record"))
                assert held == [(0,)]
            else:
                await import_user(there.engine, io.BytesIO(changed), user_id="zoe", replace=True)
            with suppress(memdb.InvalidInput):  # its head
                await import_user(there.engine, io.BytesIO(changed), user_id="skipping", skip_damaged=True)
            assert (await there.check()).problems == []

    run(go)


COUNTED = ("record", "relation", "session", "quarantine", "version", "memory_config", "consolidation")  # a line a row
TABLES = (*COUNTED, "recall", "message", "source", "record_reference", "history", "block", "passage")
KEPT = ("user_id", "record_id", "source_id", "target_id", "id")  # whose it is, and what belongs together
cells = [(table, c.name) for table in TABLES for c in metadata.tables[table].c if c.name not in KEPT]
values = st.none() | st.binary(max_size=6) | any_text.filter(storable) | st.integers(-(2**63), 2**63 - 1) | st.floats()


@settings(SAME_EVERY_TIME, max_examples=150)
@given(held.filter(anything), st.lists(st.tuples(st.sampled_from(cells), values), min_size=1, max_size=3))
def test_what_a_hand_has_left_in_a_file_is_exported_and_imported(what: Held, edits: list[tuple[Any, Any]]) -> None:
    """Whatever stands in a column: each record is there afterwards, or its bytes are in the quarantine."""

    async def go(path: Path) -> None:
        async with memdb.open(path) as db:
            await fill(db, "alice", what)
        for (table, column), value in edits:
            one = f"(SELECT {KEY_OF.get(table, 'rowid')} FROM {table} LIMIT 1)"
            update = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {KEY_OF.get(table, 'rowid')} = {one}"
            with suppress(sqlite3.IntegrityError):  # NULL where none may be
                shell(path, (update, (value,)), careless=True)
        there = sum(shell(path, f"SELECT count(*) FROM {name}")[0][0] for name in COUNTED)
        out = io.BytesIO()
        async with memdb.open(path, read_only=True) as db, memdb.open(":memory:") as other:
            await export_user(db.engine, "alice", out)
            assert len(lines(out.getvalue())) == there + 2
            done = await import_user(other.engine, out)
            assert done.records + done.relations + done.sessions + done.quarantine + done.same == there
            assert lines(await exported(other, "alice")) == lines(out.getvalue())
            report = await other.check()
            assert (report.problems, report.notes) == ([], [])

    with a_file() as path:
        asyncio.run(go(path))
