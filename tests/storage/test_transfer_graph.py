"""The graph out of one file and into another: relations by the keys of their ends, and what wins."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import AlreadyExists, Database, GraphEntity, GraphRelation, InvalidInput, KnowledgePage
from memdb.storage.transfer import export_user, import_user
from tests.hostile.shell import shell
from tests.storage.exports import ENTITY, RELATION, end, exported, fill, imported

B = {**ENTITY, "key": "b"}


async def graph(db: Database, user: str = "alice") -> Any:
    return await db.memory(user).graph.relations("a")


async def test_relations_go_along_in_their_order(db: Database) -> None:
    lines = [ENTITY, B, RELATION, {**RELATION, "source": "b", "target": "a"}, {**RELATION, "relation_type": "also"}]
    done = await imported(db, *lines)
    assert (done.records, done.relations, done.layers) == (2, 3, {"entity": 2})
    assert [line for line in await exported(db) if line["kind"] == "relation"] == lines[2:]
    assert (await exported(db))[-1] == end(2, relations=3)
    assert len(await graph(db)) == 3


async def test_under_another_user_and_onto_what_is_there(db: Database) -> None:
    await fill(db)
    lines = await exported(db)
    assert (await imported(db, *lines[:-1], user_id="zoe")).relations == 2
    assert await exported(db, "zoe") == lines
    more = {**RELATION, "source": "x", "target": "z"}  # its ends are in the file, not in the export
    assert (await imported(db, more, user_id="zoe")).relations == 1
    assert len(await db.memory("zoe").graph.relations("x")) == 3
    assert len(await db.memory("alice").graph.relations("x")) == 2


async def test_the_same_again_and_another_weight(db: Database) -> None:
    await imported(db, ENTITY, B, RELATION)
    again = await imported(db, ENTITY, B, RELATION, RELATION)
    assert (again.records, again.relations, again.same) == (0, 0, 4)
    heavier = {**RELATION, "weight": 0.75}
    with pytest.raises(AlreadyExists, match=r"1 of what .* holds is there .* content: relation 'a' is 'b'; nothing"):
        await imported(db, ENTITY, {**B, "key": "new"}, heavier, {**heavier, "target": "new"})
    assert [line["key"] for line in await exported(db) if line["kind"] == "record"] == ["a", "b"]
    done = await imported(db, {**ENTITY, "content": "new"}, heavier, replace=True)
    assert (done.replaced, done.relations) == (2, 0)
    assert [one.weight for one in await graph(db)] == [0.75]
    with pytest.raises(AlreadyExists, match="relation 'a' is 'b'"):
        await imported(db, {**heavier, "created_at": "2026-01-02T00:00:00.000000Z"})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"source": "x"}, "the source of the relation, the entity 'x', is not there"),
        ({"target": "x"}, "the target of the relation, the entity 'x', is not there"),
        ({"weight": 2}, "it breaks a rule of its table"),
        ({"weight": -1}, "it breaks a rule of its table"),
    ],
)
async def test_a_relation_that_cannot_be_is_named_or_skipped(
    db: Database, change: dict[str, Any], sentence: str
) -> None:
    lines = [ENTITY, B, {**RELATION, **change}, {**RELATION, "relation_type": "good"}]
    with pytest.raises(InvalidInput, match=f"line 4: {sentence}"):
        await imported(db, *lines)
    done = await imported(db, *lines, skip_damaged=True)
    assert (done.records, done.relations, done.skipped, len(done.problems)) == (2, 1, 1, 1)
    assert [one.relation_type for one in await graph(db)] == ["good"]


async def test_the_entities_of_another_user_or_session_are_none(db: Database) -> None:
    await imported(db, ENTITY, B, user_id="bob")
    with pytest.raises(InvalidInput, match="the entity 'a', is not there"):
        await imported(db, {**ENTITY, "session_id": "s"}, B, RELATION)
    with pytest.raises(InvalidInput, match="the entity 'a', is not there"):
        await imported(db, {**ENTITY, "layer": "page"}, B, RELATION)


async def test_many_relations(db: Database) -> None:
    keys = [str(n) for n in range(700)]
    entities = [{**ENTITY, "key": key} for key in keys]
    edges = [
        {**RELATION, "source": a, "target": b, "weight": n / 3_000}
        for n, (a, b) in enumerate(
            (keys[i], keys[(i * 31 + k + 1) % 700]) for i in range(700) for k in range(4) if i != (i * 31 + k + 1) % 700
        )
    ]
    assert (await imported(db, *entities, *edges)).relations == len(edges)
    assert [line for line in await exported(db) if line["kind"] == "relation"] == edges
    assert (await imported(db, *entities, *edges)).same == 700 + len(edges)


async def test_one_session_is_exported_without_the_graph(db: Database) -> None:
    await fill(db)
    assert {line["kind"] for line in await exported(db, session_id="s1")} == {"record", "session", "end"}


async def test_what_a_page_handed_on_goes_along(db: Database) -> None:
    for user in ("alice", "zoe"):
        memory = db.memory(user)
        if user == "alice":
            await memory.graph.add_entity(GraphEntity(id="a", name="a", tags=["own"]))
            await memory.pages.add_page(KnowledgePage(id="p", title="p", tags=["x"]))
            await memory.pages.sync_tags("p", ["a"])
            await imported(db, *(await exported(db))[:-1], user_id="zoe")
        assert (await memory.graph.get_entity("a")).tags == ["own", "x"]
        await memory.pages.update_page(KnowledgePage(id="p", title="p"))
        await memory.pages.sync_tags("p", ["a"])
        assert (await memory.graph.get_entity("a")).tags == ["own"]


DAMAGE = {
    "its entity is another user's": "UPDATE record SET user_id = 'bob' WHERE key = 'b'",
    "its entity is an item": "UPDATE record SET layer = 'item' WHERE key = 'b'",
    "its entity is of a session": "UPDATE record SET session_id = 's' WHERE key = 'b'",
    "its entity cannot be read": "UPDATE record SET tags = '{}' WHERE key = 'b'",
    "its weight is a text": "UPDATE relation SET weight = 'strong'",
    "its type is bytes": "UPDATE relation SET relation_type = x'FF'",
    "its type is no UTF-8": "UPDATE relation SET relation_type = CAST(x'FF' AS TEXT)",
    "it has no time": "UPDATE relation SET created_at = 'soon'",
    "it joins one with itself": "UPDATE relation SET target_id = source_id",
    "its entity is none": "UPDATE relation SET target_id = 999",
}


@pytest.mark.parametrize("sql", DAMAGE.values(), ids=DAMAGE)
async def test_a_relation_that_cannot_be_read_goes_along_as_its_bytes(path: Path, tmp_path: Path, sql: str) -> None:
    async with memdb.open(path) as db:
        await db.memory("alice").graph.add_entities([GraphEntity(id=id, name=id) for id in "ab"])
        await db.memory("alice").graph.add_relation(GraphRelation(source_id="a", target_id="b", relation_type="is"))
    shell(path, sql, careless=True)
    raw = shell(path, "SELECT hex(weight), hex(relation_type), hex(target_id) FROM relation")[0]
    out = io.BytesIO()
    async with memdb.open(path, read_only=True) as db:
        done = await export_user(db.engine, "alice", out)
        assert done.relations == 0
        assert done.damaged == done.quarantine >= 1
    async with memdb.open(tmp_path / "b.db") as other:
        stored = await import_user(other.engine, out)
        assert (stored.quarantine, stored.skipped) == (done.quarantine, 0)
        sql = "SELECT raw FROM quarantine WHERE layer = 'relation'"
        ((text,),) = await other.read(lambda tx: tx.execute(sql))
        kept = json.loads(text)
        assert (kept["weight"], kept["relation_type"], kept["target_id"]) == raw
        assert (await other.check()).ok
