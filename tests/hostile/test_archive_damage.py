"""Passages that a hand has written to: none is lost, none breaks the rest, and check() passes once they were read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database
from memdb.retrieval.find import find
from memdb.scope import Scope
from tests.hostile.shell import BY_HAND, NOW, shell

BAD, GOOD = "bad tea of the east", "good tea of the west"
BAD_ID, GOOD_ID = (hashlib.sha256(text.encode()).hexdigest() for text in (BAD, GOOD))


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with memdb.open(path) as opened:
        await opened.memory().archive.insert_many(
            [{"content": BAD, "importance": 0.9, "tags": ["t"], "source": "tool"}, {"content": GOOD, "tags": ["t"]}]
        )
        yield opened
        problems = [one for one in (await opened.check(repair=True)).problems if BY_HAND not in one]
        assert problems == []


def edit(path: Path, what: str) -> None:
    shell(path, f"UPDATE record SET {what} WHERE key = '{BAD_ID}'", careless=True)


DAMAGE = {
    "content is no UTF-8": "content = CAST(x'ff41' AS TEXT)",
    "content is a BLOB": "content = x'00ff'",
    "tags are broken JSON": "tags = '[\"a\",'",
    "tags are numbers": "tags = '[1]'",
    "metadata is broken JSON": "metadata = '{'",
    "created_at is garbage": "created_at = '?'",
}
READS: dict[str, Any] = {
    "get": lambda archive: archive.get(BAD_ID),
    "list": lambda archive: archive.list(),
    "list by tag": lambda archive: archive.list(tag="t"),
    "search": lambda archive: archive.search("tea", threshold=0),
    "hybrid_search": lambda archive: archive.hybrid_search("tea", threshold=0),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("read", ["get", "list"])
async def test_a_passage_that_cannot_be_read_goes_to_the_quarantine(
    db: Database, path: Path, damage: str, read: str
) -> None:
    edit(path, damage)
    found = await READS[read](db.memory().archive)
    assert found is None or [one.content for one in found] == [GOOD]
    [(key, raw)] = shell(path, "SELECT key, raw FROM quarantine")
    assert key == BAD_ID
    assert json.loads(raw)["passage"]["source"] == "tool" or "source" in raw
    assert shell(path, "SELECT count(*) FROM passage") == [(1,)]


@pytest.mark.parametrize("read", READS)
async def test_the_others_are_found_all_the_same(db: Database, path: Path, read: str) -> None:
    edit(path, "tags = '{}'")
    found = await READS[read](db.memory().archive)
    if read != "get":
        assert [getattr(one, "passage", one).content for one in found] == [GOOD]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_a_content_whose_row_is_damaged_is_stored_anew(db: Database, path: Path, damage: str) -> None:
    edit(path, damage)
    assert await db.memory().archive.insert(BAD, importance=0.2) == BAD_ID
    got = await db.memory().archive.get(BAD_ID)
    assert got is not None
    assert (got.content, got.importance, got.tags, got.source) == (BAD, 0.2, [], "agent")
    assert shell(path, "SELECT key FROM quarantine") == [(BAD_ID,)]


async def test_an_edited_content_keeps_its_id_until_the_old_one_comes_back(db: Database, path: Path) -> None:
    archive = db.memory().archive
    edit(path, "content = 'edited coffee'")
    got = await archive.get(BAD_ID)
    assert got is not None
    assert got.content == "edited coffee"
    assert [hit.passage.content for hit in await archive.search("coffee")] == ["edited coffee"]
    assert await archive.insert(BAD) == BAD_ID
    new_id = hashlib.sha256(b"edited coffee").hexdigest()
    assert {one.id: one.content for one in await archive.list()} == {
        BAD_ID: BAD, GOOD_ID: GOOD, new_id: "edited coffee",
    }  # fmt: skip


async def test_an_edit_that_makes_two_passages_one(db: Database, path: Path) -> None:
    archive = db.memory().archive
    edit(path, f"content = '{GOOD}'")
    assert await archive.insert_many([BAD, GOOD, "new"]) == [BAD_ID, GOOD_ID, hashlib.sha256(b"new").hexdigest()]
    assert sorted(one.content for one in await archive.list()) == sorted([BAD, GOOD, "new"])


async def test_an_expired_passage_can_be_stored_anew(db: Database, path: Path) -> None:
    archive = db.memory().archive
    edit(path, "expires_at = '2020-01-01T00:00:00.000000Z'")
    assert await archive.get(BAD_ID) is None
    assert [one.content for one in await archive.list()] == [GOOD]
    await archive.insert(BAD)
    assert await archive.get(BAD_ID) is not None


@pytest.mark.parametrize(
    ("statement", "importance", "source"),
    [
        ("UPDATE recall SET importance = 'much'", 0.5, "tool"),
        ("UPDATE recall SET importance = x'ff'", 0.5, "tool"),
        ("UPDATE recall SET importance = 17", 1.0, "tool"),
        ("UPDATE recall SET importance = NULL", 0.5, "tool"),
        ("DELETE FROM recall", 0.5, "tool"),
        ("DELETE FROM passage", 0.9, "agent"),
    ],
)
async def test_what_stands_beside_a_passage_may_be_anything(
    db: Database, path: Path, statement: str, importance: float, source: str
) -> None:
    shell(path, statement)
    got = await db.memory().archive.get(BAD_ID)
    assert got is not None
    assert (got.importance, got.source) == (importance, source)


async def test_a_passage_typed_into_the_shell_is_one(db: Database, path: Path) -> None:
    columns = "user_id, layer, key, created_at, updated_at, content"
    shell(path, f"INSERT INTO record ({columns}) VALUES ('default', 'archive', 'mine', '{NOW}', '{NOW}', 'typed milk')")
    archive = db.memory().archive
    [hit] = await archive.search("milk")
    assert (hit.passage.id, hit.passage.source, hit.passage.importance) == ("mine", "agent", 0.5)
    [found] = await db.read(find, Scope("default"), "milk")
    assert (found.layer, found.id) == ("archive", "mine")
    assert await archive.delete("mine")
