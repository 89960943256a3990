"""The graph after the sqlite3 shell, and what check() says of it: no call fails, no foreign entity is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

import memdb
from memdb import GraphEntity, GraphRelation, NotFound
from tests.hostile.shell import NOW, shell

LOOSE = "relations do not join two entities of their user"
WEIGHTLESS = "relations have no weight from 0 to 1"


async def fill(path: Path) -> None:
    async with memdb.open(path) as db:
        graph = db.memory("alice").graph
        await graph.add_entities([GraphEntity(id=id, name=f"Node {id}", tags=["t"]) for id in "abc"])
        edges = [("a", "b", 0.9), ("b", "c", 0.5), ("c", "a", 0.1)]
        await graph.add_relations(
            [GraphRelation(source_id=s, target_id=t, relation_type="is", weight=w) for s, t, w in edges]
        )


async def seen(db: memdb.Database, id: str = "a", user: str = "alice") -> tuple[list[str], list[str]]:
    """The other ends of an entity's relations, and what is related to it."""
    graph = db.memory(user).graph
    ends = [one.target_id if one.source_id == id else one.source_id for one in await graph.relations(id)]
    return ends, [one.entity.id for one in await graph.get_related(id, 3, paths=True)]


async def test_an_entity_deleted_in_the_shell_takes_its_relations_with_it(path: Path) -> None:
    await fill(path)
    shell(path, "DELETE FROM record WHERE key = 'b'")
    assert shell(path, "SELECT source, target FROM v_graph_relations") == [("Node c", "Node a")]
    async with memdb.open(path) as db:
        assert await seen(db) == (["c"], ["c"])
        assert (await db.check()).problems == []


async def test_an_entity_given_to_another_user(path: Path) -> None:
    await fill(path)
    shell(path, "UPDATE record SET user_id = 'bob' WHERE key = 'b'")
    async with memdb.open(path) as db:
        assert await seen(db) == (["c"], ["c"])
        assert await seen(db, "b", "bob") == ([], [])
        assert await db.memory("alice").graph.entity_count_by_tag("t") == 2
        with pytest.raises(NotFound):
            await db.memory("bob").graph.remove_relation("a", "b", "is")
        assert (await db.check()).problems == [f"2 {LOOSE}"]
        assert (await db.check(repair=True)).repaired == [f"2 {LOOSE}"]
        assert (await db.check()).problems == []
        assert await seen(db) == (["c"], ["c"])
    assert shell(path, "SELECT count(*) FROM relation") == [(1,)]


@pytest.mark.parametrize(
    ("edit", "left"),
    [
        ("UPDATE record SET layer = 'page' WHERE key = 'b'", (["c"], ["c"])),
        ("UPDATE relation SET source_id = target_id WHERE weight = 0.9", (["c"], ["c", "b"])),
        ("UPDATE relation SET target_id = 999 WHERE weight = 0.9", (["c"], ["c", "b"])),
        ("UPDATE relation SET user_id = 'bob' WHERE weight = 0.9", (["c"], ["c", "b"])),
    ],
)
async def test_relations_that_join_nothing(path: Path, edit: str, left: tuple[list[str], list[str]]) -> None:
    await fill(path)
    shell(path, edit)
    async with memdb.open(path) as db:
        assert await seen(db) == left
        assert (await db.check()).problems in ([f"1 {LOOSE}"], [f"2 {LOOSE}"])
        await db.check(repair=True)
        assert (await db.check()).problems == []
        assert await seen(db) == left


@pytest.mark.parametrize("weight", ["'strong'", "7", "-1", "x'FF'", "9e999"])
async def test_a_weight_that_is_none(path: Path, weight: str) -> None:
    await fill(path)
    shell(path, f"UPDATE relation SET weight = {weight} WHERE weight = 0.9", careless=True)
    async with memdb.open(path) as db:
        assert (await seen(db))[0] == ["c"]
        assert (await db.memory("alice").graph.relations("b"))[0].target_id == "c"
        await db.memory("alice").graph.get_related("a")
        assert (await db.check()).problems == [f"1 {WEIGHTLESS}"]
        assert (await db.check(repair=True)).repaired == [f"1 {WEIGHTLESS}"]
        assert (await db.check()).problems == []
        assert {
            one.target_id: one.weight for one in await db.memory("alice").graph.relations("a", direction="out")
        } == {"b": 0.0 if weight == "-1" else 1.0}


@pytest.mark.parametrize("kind", ["x'FF'", "CAST(x'FF' AS TEXT)", "'a' || char(0)"])
async def test_a_type_that_cannot_be_read(path: Path, kind: str) -> None:
    await fill(path)
    shell(path, f"UPDATE relation SET relation_type = {kind} WHERE weight = 0.9", careless=True)
    async with memdb.open(path) as db:
        assert (await seen(db))[0] == ["c"]
        assert await db.memory("alice").graph.relations("b", direction="in") == []


async def test_an_entity_that_cannot_be_read_is_set_aside_with_its_relations(path: Path) -> None:
    await fill(path)
    shell(path, "UPDATE record SET created_at = 'soon' WHERE key = 'b'", careless=True)
    async with memdb.open(path) as db:
        assert await db.memory("alice").graph.get_entity("b") is None
        assert await seen(db) == (["c"], ["c"])
        assert (await db.stats()).quarantined == 1
        assert (await db.check()).problems == []


@pytest.mark.parametrize("kind", ["x'FF'", "CAST(x'FF' AS TEXT)", "NULL", "''", "5"])
async def test_an_entity_whose_type_is_none(path: Path, kind: str) -> None:
    await fill(path)
    shell(path, f"UPDATE record SET category = {kind} WHERE key = 'b'", careless=True)
    async with memdb.open(path) as db:
        graph = db.memory("alice").graph
        assert [one.id for one in await graph.find_by_keywords(["CONCEPT"])] == ["a", "c"]
        await graph.find_by_keywords(["node"])
        assert (await db.check()).problems == []


async def test_an_entity_written_in_the_shell(path: Path) -> None:
    columns = "user_id, layer, key, category, created_at, updated_at, title, content, tags"
    values = f"'alice', 'entity', 'a', 'concept', '{NOW}', '{NOW}', 'Node a', '', '[\"x y\", \"t\"]'"
    shell(path, f"INSERT INTO record ({columns}) VALUES ({values})")
    async with memdb.open(path) as db:
        graph = db.memory("alice").graph
        assert [one.id for one in await graph.find_by_keywords(["node", "t"])] == ["a"]
        assert await graph.find_tags("x") == ["x y"]
        await graph.set_entity_tags("a", ["new"])
        assert (await graph.get_entity("a")).tags == ["new"]
        assert (await db.check()).notes == []


async def test_forgetting_takes_the_graph_and_what_eviction_keeps(path: Path) -> None:
    await fill(path)
    shell(
        path,
        "INSERT INTO eviction (user_id, layer, session_id) VALUES ('alice', 'item', ''), ('alice', 'message', 's'),"
        " ('bob', 'item', '')",
        "UPDATE record SET user_id = 'zoe' WHERE key = 'c'",  # its relations are alice's still
    )
    async with memdb.open(path) as db:
        assert await db.forget("alice") == {"entity": 2}
        assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM relation")) == [(0,)]
        assert await db.read(lambda tx: tx.execute("SELECT user_id FROM eviction")) == [("bob",)]
        assert (await db.check()).problems == []


async def test_a_deleted_session_takes_what_eviction_keeps(path: Path) -> None:
    shell(path, "INSERT INTO eviction (user_id, layer, session_id) VALUES ('a', 'message', 's'), ('a', 'message', 't')")
    async with memdb.open(path) as db:
        await db.memory("a", "s").conversation.add_message({"role": "user", "content": "hi"})
        await db.delete_session("s", user_id="a")
        assert await db.read(lambda tx: tx.execute("SELECT session_id FROM eviction")) == [("t",)]
