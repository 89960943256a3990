"""Facts, history, blocks, the archive and their earlier texts between files: all that was said, by whom and when."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import memdb
from memdb import AlreadyExists, Database, InvalidInput
from memdb.storage.transfer import import_user
from tests.hostile.shell import NOW
from tests.storage.exports import HEAD, ITEM, exported, imported, written


def day(number: int) -> str:
    return NOW.replace("01-01T", f"01-{number:02}T")


def author(name: str) -> dict[str, str]:
    return {"author": name, "act": "write"}


def fact(content: str, at: int, who: str = "agent") -> dict[str, Any]:
    """The line of the long-term text as it stands."""
    return {
        "kind": "record",
        "layer": "fact",
        "session_id": "",
        "key": "MEMORY",
        "created_at": day(1),
        "updated_at": day(at),
        "metadata": author(who),
        "content": content,
    }


def earlier(number: int, content: str, at: int, until: int, who: str = "agent", **more: Any) -> dict[str, Any]:
    """The line of one that it replaced."""
    return {
        "kind": "version",
        "session_id": "",
        "layer": "fact",
        "key": "MEMORY",
        "number": number,
        "written_at": day(at),
        "replaced_at": day(until),
        "metadata": author(who),
        "content": content,
        **more,
    }


BLOCK = {
    **fact("You are kind.", 3),
    "layer": "block",
    "session_id": "s1",
    "key": "persona",
    "summary": "who I am",
    "block": {"size": 50, "priority": 2, "tokens": 4, "initial_value": "kind"},
}
OLD_BLOCK = earlier(1, "kind", 1, 3, "user", session_id="s1", layer="block", key="persona")
ENTRY = {
    **ITEM,
    "layer": "history",
    "key": "000000000001",
    "content": "[2026-01-01 12:00] Ana came.",
    "history": {
        "origin": "consolidated",
        "source_session_id": "s1",
        "first_position": 1,
        "last_position": 4,
        "chunk": "c1",
    },
}
PASSAGE = {
    **ITEM,
    "layer": "archive",
    "key": "0" * 64,
    "content": "Ana likes tea.",
    "tags": ["ana"],
    "recall": {"importance": 0.7},
    "passage": {"source": "block", "source_id": "persona", "source_session_id": "s1"},
}
SET = [
    {"kind": "memory_config", "session_id": "s1", "updated_at": NOW, "config": {"eviction_strategy": "discard"}},
    {"kind": "consolidation", "session_id": "s1", "failures": 2, "reason": "no call", "failed_at": NOW},
]
LINES = [fact("two", 2), BLOCK, ENTRY, PASSAGE, OLD_BLOCK, earlier(1, "one", 1, 2, "ana"), *SET]


async def texts(db: Database, user: str = "alice") -> list[tuple[Any, ...]]:
    """The texts of the facts, oldest first, the present one last, each with its number, its author and when."""
    query = (
        "SELECT number, content, author, written_at, replaced_at FROM v_versions WHERE user_id = ? AND layer = 'fact'"
    )
    rows = await db.read(lambda tx: tx.execute(f"{query} ORDER BY number", (user,)))
    query = "SELECT version, content, author, updated_at, NULL FROM v_facts WHERE user_id = ?"
    return [*rows, *await db.read(lambda tx: tx.execute(query, (user,)))]


def names(found: list[tuple[Any, ...]]) -> list[tuple[int, str]]:
    return [row[:2] for row in found]


async def test_all_of_it_comes_back_and_again_changes_nothing(db: Database) -> None:
    done = await imported(db, *LINES)
    assert done.layers == {
        "fact": 1,
        "block": 1,
        "history": 1,
        "archive": 1,
        "version": 2,
        "memory_config": 1,
        "consolidation": 1,
    }
    lines = await exported(db)
    assert [{**line, **given, "recall": line.get("recall")} for line, given in zip(lines, LINES[:4], strict=False)] == [
        {**line, "recall": line.get("recall")} for line in lines[:4]
    ]
    assert lines[3]["recall"]["importance"] == 0.7
    assert lines[4:-1] == [OLD_BLOCK, earlier(1, "one", 1, 2, "ana"), *SET]
    counts = {name: lines[-1][name] for name in ("records", "versions", "memory_configs", "consolidations")}
    assert counts == {"records": 4, "versions": 2, "memory_configs": 1, "consolidations": 1}
    for replace in (False, True):
        again = await imported(db, *lines[:-1], replace=replace)
        assert (again.records, again.replaced, again.same) == (0, 0, 8)
    await imported(db, *lines[:-1], user_id="zoe")
    assert await exported(db, "zoe") == await exported(db) == lines
    assert await texts(db, "zoe") == [(1, "one", "ana", day(1), day(2)), (2, "two", "agent", day(2), None)]


async def test_a_session_takes_its_blocks_and_not_the_facts(db: Database) -> None:
    await imported(db, *LINES, {**BLOCK, "session_id": "s2"})
    lines = await exported(db, session_id="s1")
    assert [(line["kind"], line.get("layer")) for line in lines[:-1]] == [
        ("record", "block"),
        ("version", "block"),
        ("memory_config", None),
        ("consolidation", None),
    ]


# -- who wins, and what becomes of the other --------------------------------------------------------------------------

MINE = [fact("mine", 5, "bob"), earlier(1, "my first", 1, 3, "bob"), earlier(2, "my second", 3, 5, "bob")]


@pytest.mark.parametrize(
    ("theirs", "then"),
    [
        # A copy of this very memory, of earlier: what came since stays to be read.
        ([fact("my second", 3, "bob"), MINE[1]], ["my first", "my second", "mine", "my second"]),
        # A copy that has gone on: nothing comes twice.
        (
            [fact("later", 7), *MINE[1:], earlier(3, "mine", 5, 6, "bob"), earlier(4, "between", 6, 7)],
            ["my first", "my second", "mine", "between", "later"],
        ),
        # Another memory altogether: its texts under their numbers, then those that were here, in their order.
        ([fact("theirs", 2)], ["my first", "my second", "mine", "theirs"]),
        ([fact("theirs", 2), earlier(1, "a", 1, 2)], ["a", "my first", "my second", "mine", "theirs"]),
        (
            [fact("theirs", 6), *(earlier(n, f"v{n}", n, n + 1) for n in range(1, 6))],
            ["v1", "v2", "v3", "v4", "v5", "my first", "my second", "mine", "theirs"],
        ),
        # The same text, which came about in another way.
        ([MINE[0], earlier(1, "a", 1, 5)], ["a", "my first", "my second", "mine"]),
    ],
)
async def test_a_text_that_is_replaced_can_be_read_back(
    db: Database, theirs: list[dict[str, Any]], then: list[str]
) -> None:
    await imported(db, *MINE)
    before = await texts(db)
    with pytest.raises(AlreadyExists, match=r"fact 'MEMORY'|version"):
        await imported(db, *theirs)
    assert await texts(db) == before
    await imported(db, *theirs, replace=True)
    after = await texts(db)
    assert [content for _, content, *_ in after] == then
    assert [number for number, *_ in after] == [*range(1, len(after) + 1)]
    given = {(line["number"], line["content"], line["metadata"]["author"]) for line in theirs[1:]}
    assert given <= {row[:3] for row in after}, "the file's own keep their numbers"
    assert {(text, who) for _, text, who, *_ in before} <= {(text, who) for _, text, who, *_ in after}
    again = await imported(db, *theirs, replace=True)
    assert (again.replaced, await texts(db)) == (0, after)
    await imported(db, *(await exported(db))[:-1], user_id="zoe")
    assert await texts(db, "zoe") == after


async def test_what_was_consolidated_once_is_marked_once(db: Database) -> None:
    """Two memories that consolidated the same messages under different numbers."""
    await imported(db, {**ENTRY, "key": "000000000002"})
    with pytest.raises(InvalidInput, match=r"^line 2: it breaks a rule of its table \(UNIQUE"):
        await imported(db, ENTRY)
    assert (await imported(db, ENTRY, replace=True)).records == 1
    lines = await exported(db)
    assert [line["history"].get("chunk") for line in lines[:2]] == [None, "c1"]
    assert (await imported(db, ENTRY, replace=True)).same == 1


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([earlier(1, "x", 1, 2)], "the fact 'MEMORY', of which it is an earlier text, is not there"),
        ([ITEM, earlier(1, "x", 1, 2, layer="item", key="a")], "of which memdb keeps no earlier texts"),
        ([fact("x", 1), earlier(0, "x", 1, 2)], "its number is none from 1 to"),
        ([fact("x", 1), earlier(2**62, "x", 1, 2)], "its number is none from 1 to"),
        ([fact("x", 1), {**earlier(1, "x", 1, 2), "number": "1"}], "number must be a whole number"),
        ([fact("x", 1), earlier(1, "x", 1, 2, key="")], "must not be empty"),
        ([{**BLOCK, "block": {"size": 0}}], "breaks a rule of its table"),
        ([{name: value for name, value in BLOCK.items() if name != "block"}], "needs the field block"),
        ([{**ENTRY, "history": {"origin": "dreamt"}}], "breaks a rule of its table"),
        ([{**PASSAGE, "passage": {}}], "source is missing"),
        ([{**SET[0], "session_id": ""}], "must not be empty"),
        ([{**SET[0], "config_text": "{", "config": None}], "config_text"),
        ([{**SET[1], "failures": "two"}], "failures must be a whole number"),
    ],
)
async def test_damaged_lines_are_named_and_left_out_on_request(
    db: Database, lines: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await imported(db, *lines)
    assert (await db.stats()).layers == []
    done = await import_user(db.engine, written(*lines), skip_damaged=True)
    assert (done.records, done.skipped) == (len(lines) - 1, 1)


async def test_an_earlier_text_of_a_record_that_cannot_be_read_goes_along_as_bytes(path: Any) -> None:
    from tests.hostile.shell import shell

    async with memdb.open(path) as db:
        await imported(db, *LINES)
    shell(path, "UPDATE record SET metadata = '{' WHERE layer = 'fact'", careless=True)
    async with memdb.open(path, read_only=True) as db, memdb.open(":memory:") as other:
        lines = await exported(db)
        aside = [(line["layer"], line["key"]) for line in lines if line["kind"] == "quarantine"]
        assert aside == [("fact", "MEMORY"), ("version", "MEMORY")]
        assert bytes.fromhex(json.loads(lines[-2]["raw"])["content"]) == b"one"
        await imported(other, *lines[:-1])
        assert (await other.check()).ok


@pytest.mark.parametrize("schema", [1, 3, 4])
async def test_exports_of_older_schemas_are_taken(db: Database, schema: int) -> None:
    known = {"records": 1, "sessions": 0, "quarantine": 0, **({"payloads": 0} if schema > 3 else {})}
    lines = [{**HEAD, "schema": schema}, ITEM, {"kind": "end", **known}]
    await import_user(db.engine, io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    assert (await exported(db))[0]["content"] == "tea"
