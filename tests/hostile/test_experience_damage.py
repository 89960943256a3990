"""Experience that a hand has written to: none is lost, none breaks the rest, and check() passes once it was read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database
from memdb.layers.experience.aging import age
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Live
from memdb.retrieval.find import find
from memdb.scope import Scope
from tests.hostile.shell import BY_HAND, NOW, shell

TIME = datetime(2026, 1, 1, tzinfo=UTC)


class Stores:
    def __init__(self, db: Database) -> None:
        scope = db.memory().scope
        self.episode: EpisodicMemory[Live] = EpisodicMemory(scope, db.engine)
        self.pattern: SemanticMemory[Live] = SemanticMemory(scope, db.engine)
        self.skill: ProceduralMemory[Live] = ProceduralMemory(scope, db.engine)

    def __getitem__(self, layer: str) -> Any:
        return getattr(self, layer)


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with memdb.open(path) as opened:
        stores = Stores(opened)
        for layer in ("episode", "pattern", "skill"):
            title = {"episode": "goal", "pattern": "pattern", "skill": "name"}[layer]
            for id in ("bad", "good"):
                given = {
                    "id": id,
                    title: f"{id} tea",
                    "timestamp": NOW,
                    "task_id": "t",
                    "agent": "a",
                    "importance": 0.9,
                }
                if layer != "episode":
                    del given["timestamp"], given["task_id"], given["agent"]
                await stores[layer].store({**given, "category": "c"} if layer == "pattern" else given)
        yield opened
        problems = [one for one in (await opened.check(repair=True)).problems if BY_HAND not in one]
        assert problems == []


DAMAGE = {
    "title is no UTF-8": "title = CAST(x'ff41' AS TEXT)",
    "content is a BLOB": "content = x'00ff'",
    "metadata is broken JSON": "metadata = '{'",
    "metadata is a list": "metadata = '[]'",
    "metadata is a BLOB": "metadata = x'7b7d'",
    "a field is nothing that it can be": "metadata = json_set(metadata, '$.access_count', json('{}'))",
    "a list is an object": """metadata = json_set(metadata, '$.action_log', json('{"a": 1}'),
                              '$.conditions', json('{}'), '$.steps', json('{"b": 2}'))""",
}
LISTS: dict[str, Any] = {
    "episode": lambda store: store.get_recent(),
    "pattern": lambda store: store.find(anti=None, min_confidence=-1),
    "skill": lambda store: store.list_all(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("layer", LISTS)
@pytest.mark.parametrize("read", ["get", "list"])
async def test_what_cannot_be_read_goes_to_the_quarantine(
    db: Database, path: Path, damage: str, layer: str, read: str
) -> None:
    store = Stores(db)[layer]
    shell(path, f"UPDATE record SET {damage} WHERE (layer, key) = ('{layer}', 'bad')", careless=True)
    found = await store.get("bad") if read == "get" else await LISTS[layer](store)
    assert found is None or [one.id for one in found] == ["good"]
    [(key, raw)] = shell(path, "SELECT key, raw FROM quarantine")
    assert key == "bad"
    assert layer == "skill" or json.loads(raw)[layer]["user_id"] == b"default".hex().upper()
    if layer != "skill":
        assert shell(path, f"SELECT count(*) FROM {layer}") == [(1,)]


@pytest.mark.parametrize("layer", LISTS)
async def test_the_others_are_found_all_the_same(db: Database, path: Path, layer: str) -> None:
    store = Stores(db)[layer]
    shell(path, f"UPDATE record SET metadata = '[]' WHERE (layer, key) = ('{layer}', 'bad')", careless=True)
    assert [getattr(hit, layer).id for hit in await store.search("tea")] == ["good"]
    assert shell(path, "SELECT key FROM quarantine") == [("bad",)]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("layer", LISTS)
@pytest.mark.parametrize("many", [False, True])
async def test_what_is_damaged_can_be_stored_anew(
    db: Database, path: Path, damage: str, layer: str, many: bool
) -> None:
    store = Stores(db)[layer]
    shell(path, f"UPDATE record SET {damage} WHERE (layer, key) = ('{layer}', 'bad')", careless=True)
    given = {"id": "bad", "goal": "new", "pattern": "new", "name": "new"}
    ids = await store.store_many([given, {**given, "id": "other"}]) if many else [await store.store(given)]
    assert ids[0] == "bad"
    assert "new" in (await store.get("bad")).to_json()
    assert shell(path, "SELECT key FROM quarantine") == []


ODD_RECALLS = [
    "importance = 'much'", "importance = x'00'", "importance = NULL", "recall_count = 'often'", "recall_count = -5",
    "recall_count = 2.5", "last_recall_at = 'then'", "last_recall_at = x'ff'", "last_recall_at = 5",
    "last_recall_at = '12:00'", "total_score = 'x'", "importance = 1e999",
]  # fmt: skip


@pytest.mark.parametrize("layer", LISTS)
@pytest.mark.parametrize("odd", ODD_RECALLS)
async def test_statistics_that_say_nothing_hide_nothing(db: Database, path: Path, layer: str, odd: str) -> None:
    store = Stores(db)[layer]
    shell(
        path,
        f"UPDATE recall SET {odd} WHERE record_id = (SELECT id FROM record WHERE (layer, key) = ('{layer}', 'bad'))",
    )
    for _ in range(2):
        assert {one.id for one in await LISTS[layer](store)} == {"bad", "good"}
        await store.recall_stats("bad")
        await store.record_recall("bad", 0.5)
        await store.store(await store.get("bad"))
        await db.write(lambda tx: age(tx, "default"))
    assert (await store.recall_stats("bad")).recall_count >= 1
    assert shell(path, "SELECT count(*) FROM quarantine") == [(0,)]


@pytest.mark.parametrize("aged_at", ["'zzz'", "x'ff'", "''", "5", "'9999-01-01T00:00:00.000000Z'"])
async def test_a_mark_of_ageing_that_says_nothing_is_set_anew(db: Database, path: Path, aged_at: str) -> None:
    store = Stores(db).episode
    shell(path, f"INSERT INTO aging (user_id, layer, aged_at) VALUES ('default', 'episode', {aged_at})")
    await store.record_recall("bad", 0.5)
    assert (await store.recall_stats("bad")).recall_count == 1
    await db.write(lambda tx: age(tx, "default"))
    assert shell(path, "SELECT aged_at > '2026' AND aged_at < '9999' FROM aging WHERE layer = 'episode'") == [(1,)]
    assert 0 < (await store.get("bad")).importance <= 1


@pytest.mark.parametrize("layer", ["episode", "pattern"])
async def test_without_its_own_row_it_is_set_aside_or_stored_anew(db: Database, path: Path, layer: str) -> None:
    store = Stores(db)[layer]
    before = await store.get("bad")
    shell(path, f"DELETE FROM {layer}")
    await store.store(before)
    assert [one.id for one in await LISTS[layer](store)] == ["bad"]
    assert await store.get("bad") == before
    assert shell(path, "SELECT key FROM quarantine") == [("good",)]


async def test_the_timeline_sets_aside_what_it_cannot_tell(db: Database, path: Path) -> None:
    shell(path, "DELETE FROM episode WHERE record_id = (SELECT id FROM record WHERE (layer, key) = ('episode', 'bad'))")
    assert [line.id for line in await Stores(db).episode.timeline()] == ["good"]
    assert shell(path, "SELECT key FROM quarantine") == [("bad",)]


async def test_uses_of_a_pattern_without_its_row_are_not_counted(db: Database, path: Path) -> None:
    shell(path, "DELETE FROM pattern")
    assert not await Stores(db).pattern.increment_usage("bad")
    assert await Stores(db).pattern.get("bad") is None


@pytest.mark.parametrize(
    ("layer", "statement", "field", "value"),
    [
        ("episode", "UPDATE record SET title = 'edited'", "goal", "edited"),
        ("episode", "UPDATE record SET category = 'VERIFY'", "phase", "VERIFY"),
        ("episode", "UPDATE record SET created_at = '2026-01-01T00:00:00Z'", "timestamp", TIME),
        ("episode", "UPDATE episode SET outcome = 'failure'", "outcome", "failure"),
        ("episode", "UPDATE episode SET task_id = 'u', git_commit = 'c'", "git_commit", "c"),
        ("episode", "UPDATE episode SET tokens_used = 7", "tokens_used", 7),
        ("episode", "UPDATE recall SET importance = 0.125", "importance", 0.125),
        ("pattern", "UPDATE record SET title = 'edited'", "pattern", "edited"),
        ("pattern", "UPDATE record SET category = NULL", "category", ""),
        ("pattern", "UPDATE pattern SET confidence = 0.25", "confidence", 0.25),
        ("pattern", "UPDATE pattern SET confidence = 'sure'", "confidence", 0.8),
        ("pattern", "UPDATE pattern SET usage_count = 'often'", "usage_count", 0),
        ("pattern", "UPDATE pattern SET usage_count = 9", "usage_count", 9),
        ("pattern", "UPDATE pattern SET last_used = '2026-01-01'", "last_used", TIME),
        ("pattern", "UPDATE pattern SET last_used = 'then'", "last_used", None),
        ("skill", "UPDATE record SET title = 'edited'", "name", "edited"),
        ("skill", "UPDATE record SET summary = 'edited'", "description", "edited"),
        ("skill", "UPDATE record SET metadata = json_set(metadata, '$.steps', json('[\"one\"]'))", "steps", ["one"]),
    ],
)
async def test_what_a_hand_wrote_is_read(
    db: Database, path: Path, layer: str, statement: str, field: str, value: Any
) -> None:
    where = f"(layer, key) = ('{layer}', 'bad')"
    table = statement.split()[1]
    shell(
        path,
        f"{statement} WHERE " + (where if table == "record" else f"record_id = (SELECT id FROM record WHERE {where})"),
    )
    store = Stores(db)[layer]
    assert getattr(await store.get("bad"), field) == value
    await store.store(await store.get("bad"))
    assert getattr(await store.get("bad"), field) == value


@pytest.mark.parametrize("layer", LISTS)
async def test_a_row_of_an_insert_by_hand(db: Database, path: Path, layer: str) -> None:
    columns = "user_id, layer, key, created_at, updated_at, title"
    shell(path, f"INSERT INTO record ({columns}) VALUES ('default', '{layer}', 'hand', '{NOW}', '{NOW}', 'typed')")
    if layer != "skill":
        shell(path, f"INSERT INTO {layer} (record_id, user_id) SELECT id, user_id FROM record WHERE key = 'hand'")
    store = Stores(db)[layer]
    got = await store.get("hand")
    assert got is not None
    assert "typed" in got.to_json()
    assert "hand" in {one.id for one in await LISTS[layer](store)}
    assert [hit.id for hit in await db.read(lambda tx: find(tx, Scope(), "typed"))] == ["hand"]


async def test_expired_by_hand_is_gone_until_it_is_stored_anew(db: Database, path: Path) -> None:
    store = Stores(db).episode
    shell(path, "UPDATE record SET expires_at = '2020-01-01T00:00:00.000000Z' WHERE (layer, key) = ('episode', 'bad')")
    assert await store.get("bad") is None
    assert [one.id for one in await store.get_recent()] == [line.id for line in await store.timeline()] == ["good"]
    await store.store({"id": "bad", "goal": "again"})
    assert (await store.get("bad")).goal == "again"


async def test_cleanup_goes_on_over_what_is_damaged(db: Database, path: Path) -> None:
    store = Stores(db).episode
    shell(
        path,
        "UPDATE record SET created_at = x'ff', metadata = '[' WHERE (layer, key) = ('episode', 'bad')",
        careless=True,
    )
    assert await store.cleanup_old(0, at_once=1) == 1
    assert [one.id for one in await store.get_recent()] == []
    assert shell(path, "SELECT key FROM quarantine") == [("bad",)]


@pytest.mark.parametrize("kind", ["'other'", "x'00'"])
async def test_a_kind_that_there_is_none_of(db: Database, path: Path, kind: str) -> None:
    shell(path, f"UPDATE pattern SET kind = {kind}", careless=True)
    store = Stores(db).pattern
    assert len(await store.find()) == 2
    await store.store(await store.get("bad"))
    shell(path, "UPDATE pattern SET kind = 'pattern' WHERE kind NOT IN ('pattern')")
