"""ArchivalMemory: what is put away is there once, whole, and comes back by its id and page by page."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memdb import Database, InvalidInput, Memory, NotFound
from memdb.layers.archive import Passage
from memdb.layers.layer import Live
from memdb.testing import FrozenClock

PYTHON = "User prefers Python for data analysis"
NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def contents(passages: list[Passage]) -> list[str]:
    return [passage.content for passage in passages]


async def test_a_passage_comes_back_as_it_was(db: Database) -> None:
    archive = db.memory("alice", "s1").archive
    text = "Project X uses PostgreSQL\n\t“with 10M records” 数据库"
    id = await archive.insert(
        text, summary="Postgres", importance=0.7, tags=["Data Base", "x", "X"], source="tool", source_id="t/7",
        metadata={"n": [1, None]},
    )  # fmt: skip
    assert id == hashlib.sha256(text.encode()).hexdigest()
    got = await archive.get(id)
    assert got is not None
    assert got.model_dump() == {
        "content": text, "summary": "Postgres", "importance": 0.7, "tags": ["data-base", "x"], "source": "tool",
        "source_id": "t/7", "session_id": "s1", "metadata": {"n": [1, None]}, "id": id, "created_at": NOON,
    }  # fmt: skip
    assert Passage.model_validate(got) == got
    assert await archive.insert_many([got]) == [id]
    assert await archive.get(id) == got


async def test_the_same_content_is_stored_once_and_the_first_stays(db: Database, clock: FrozenClock) -> None:
    first, other = db.memory("alice", "s1").archive, db.memory("alice", "s2").archive
    id = await first.insert(PYTHON, importance=0.4, tags=["a"], source="block", source_id="human", metadata={"v": 1})
    clock.forward(days=1)
    again = await other.insert(PYTHON, importance=0.9, tags=["b", "a"], summary="snake", source="tool", metadata={})
    assert again == id
    assert await first.insert(PYTHON, importance=0.1, summary="another") == id
    [got] = await first.list()
    assert (got.importance, got.tags, got.summary, got.created_at) == (0.9, ["a", "b"], "snake", NOON)
    assert (got.source, got.source_id, got.session_id, got.metadata) == ("block", "human", "s1", {"v": 1})
    assert contents(await first.list(tag="b")) == [PYTHON]
    assert [hit.passage.id for hit in await first.search("snake")] == [id]


async def test_tags_beyond_the_limit_are_left_out_of_a_passage_that_has_them(memory: Memory[Live]) -> None:
    await memory.archive.insert(PYTHON, tags=[f"a{n}" for n in range(40)])
    await memory.archive.insert(PYTHON, tags=[f"b{n}" for n in range(40)])
    [got] = await memory.archive.list()
    assert got.tags == [*(f"a{n}" for n in range(40)), *(f"b{n}" for n in range(24))]


@pytest.mark.parametrize(
    ("given", "kept"), [(-3, 0.0), (0, 0.0), (0.25, 0.25), (1, 1.0), (7.5, 1.0), (math.inf, 1.0), (-(10**400), 0.0)]
)
async def test_importance_is_moved_into_its_bounds(memory: Memory[Live], given: float, kept: float) -> None:
    got = await memory.archive.get(await memory.archive.insert("x", importance=given))
    assert got is not None
    assert got.importance == kept


@pytest.mark.parametrize(
    ("content", "summary"),
    [("short", "short"), ("y" * 100, "y" * 100), ("z" * 101, "z" * 97 + "...")],
)
async def test_without_a_summary_the_beginning_stands_for_it(memory: Memory[Live], content: str, summary: str) -> None:
    got = await memory.archive.get(await memory.archive.insert(content))
    assert got is not None
    assert got.summary == summary
    assert await memory.archive.insert(content, summary=summary) == got.id
    assert await memory.archive.get(got.id or "") == got


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"content": " \n"}, "content: the text is blank"),
        ({"content": 5}, "content: the text must be text, not int"),
        ({"content": "a\x00"}, "NUL"),
        ({"content": "\ud800"}, "lone surrogate"),
        ({"importance": None}, "importance must be a number from 0 to 1, not None"),
        ({"importance": "high"}, "importance must be a number from 0 to 1, not 'high'"),
        ({"importance": math.nan}, "importance must be a number"),
        ({"importance": True}, "importance must be a number"),
        ({"tags": ["x" * 201]}, "tags"),
        ({"tags": [str(n) for n in range(65)]}, "tags has 65 entries"),
        ({"source": " "}, "the source is blank"),
        ({"source": "s" * 101}, "at most 100"),
        ({"source_id": ""}, "source_id"),
        ({"summary": "s" * 10_001}, "summary"),
        ({"metadata": {"x": math.inf}}, "metadata"),
    ],
)
async def test_what_cannot_be_kept_is_refused(memory: Memory[Live], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        await memory.archive.insert(**{"content": "x", **arguments})
    assert await memory.archive.list() == []


async def test_insert_many_lands_whole_or_not_at_all(memory: Memory[Live]) -> None:
    given = [f"number {n % 1200}" for n in range(1300)]
    made = await memory.archive.insert_many(given)
    assert made == [hashlib.sha256(text.encode()).hexdigest() for text in given]
    assert len(await memory.archive.list(limit=10_000)) == 1200
    with pytest.raises(InvalidInput, match="blank"):
        await memory.archive.insert_many(["new", ""])
    with pytest.raises(InvalidInput, match="must be a list, not str"):
        await memory.archive.insert_many("new")
    assert await memory.archive.search("new") == []


@pytest.mark.parametrize("given", [Passage(content="x"), {"content": "x"}])
async def test_one_passage_by_mistake_is_told_where_it_goes(memory: Memory[Live], given: Any) -> None:
    kind = type(given).__name__
    with pytest.raises(InvalidInput, match=f"content must be a text, not {kind}: use insert_many for passages"):
        await memory.archive.insert(given)
    assert len(await memory.archive.insert_many([given])) == 1


async def test_many_forms_go_in_and_repeated_ones_are_joined(memory: Memory[Live]) -> None:
    when = datetime(2020, 5, 1, tzinfo=UTC)
    ids = await memory.archive.insert_many(
        [
            "a text",
            {"content": "a dict", "tags": ["one"], "importance": 3, "session_id": "then", "created_at": when},
            Passage(content="a dict", tags=["two"], importance=0.1, summary="sum"),
        ]
    )
    assert ids[1] == ids[2]
    newest, oldest = await memory.archive.list()
    assert (newest.content, newest.session_id, newest.source) == ("a text", None, "agent")
    assert (oldest.tags, oldest.importance, oldest.summary) == (["one", "two"], 1.0, "sum")
    assert (oldest.session_id, oldest.created_at) == ("then", when)
    with pytest.raises(InvalidInput, match="has no field colour"):
        await memory.archive.insert_many([{"content": "x", "colour": "red"}])


async def test_the_archive_is_listed_page_by_page_newest_first(memory: Memory[Live], clock: FrozenClock) -> None:
    for n in range(6):  # two at a time: the order of insertion decides between them
        await memory.archive.insert(f"n{n}", tags=["even"] if n % 2 == 0 else [], source="odd" if n % 2 else "agent")
        clock.forward(hours=n % 2)
    seen: list[str] = []
    before = None
    while page := await memory.archive.list(4, before=before):
        seen += contents(page)
        before = page[-1].id
    assert seen == ["n5", "n4", "n3", "n2", "n1", "n0"]
    assert contents(await memory.archive.list(2, tag=" EVEN ")) == ["n4", "n2"]
    assert contents(await memory.archive.list(source="odd")) == ["n5", "n3", "n1"]
    assert contents(await memory.archive.list(source="odd", tag="even")) == []
    third = (await memory.archive.list())[3].id
    assert contents(await memory.archive.list(tag="even", before=third)) == ["n0"]
    assert contents(await memory.archive.list(source="odd", before=third)) == ["n1"]
    assert await memory.archive.list(0) == []


async def test_a_page_begins_behind_a_passage_that_is_there(db: Database, memory: Memory[Live]) -> None:
    bobs = await db.memory("bob").archive.insert("x")
    await memory.archive.insert("y")
    with pytest.raises(NotFound, match="no passage"):
        await memory.archive.list(before=bobs)


async def test_delete_says_whether_it_was_there(memory: Memory[Live]) -> None:
    id = await memory.archive.insert("gone soon", importance=0.9, tags=["t"])
    assert await memory.archive.delete(id) is True
    assert await memory.archive.delete(id) is False
    assert await memory.archive.get(id) is None
    assert await memory.archive.search("gone") == await memory.archive.list(tag="t") == []
    await memory.archive.insert("gone soon")
    got = await memory.archive.get(id)
    assert got is not None
    assert (got.importance, got.tags) == (0.5, [])


async def test_users_do_not_see_each_other(db: Database) -> None:
    alice, bob = db.memory("alice").archive, db.memory("bob").archive
    id = await alice.insert("a secret", tags=["t"], importance=0.9)
    assert await bob.get(id) is None
    assert await bob.list() == await bob.list(tag="t") == await bob.list(source="agent") == []
    assert await bob.search("secret", threshold=0) == await bob.recall("secret") == []
    assert await bob.delete(id) is False
    await bob.record_recall(id, 1.0)
    assert await alice.recall_stats(id) is None
    assert await bob.insert("a secret") == id
    got = await bob.get(id)
    assert got is not None
    assert (got.importance, got.tags) == (0.5, [])
    assert await alice.delete(id)
    assert await bob.get(id) is not None


async def test_every_session_of_a_user_has_one_archive(db: Database) -> None:
    id = await db.memory("alice", "s1").archive.insert("shared")
    assert contents(await db.memory("alice", "s2").archive.list()) == ["shared"]
    await db.delete_session(user_id="alice", session_id="s1")
    assert await db.memory("alice", "s2").archive.get(id) is not None


async def test_recalls_are_counted_and_importance_stays(memory: Memory[Live], clock: FrozenClock) -> None:
    id = await memory.archive.insert("green tea", importance=0.8)
    assert await memory.archive.recall_stats(id) is None
    await memory.archive.record_recall(id, 0.5)
    clock.forward(days=1)
    [hit] = await memory.archive.recall("tea")
    assert hit == (await memory.archive.search("tea"))[0]
    stats = await memory.archive.recall_stats(id)
    assert stats is not None
    assert (stats.recall_count, stats.total_score) == (2, 0.5 + hit.score)
    assert stats.last_recall_at == NOON + timedelta(days=1)
    assert hit.passage.importance == 0.8
    assert await memory.archive.recall("coffee") == []


async def test_inside_a_unit_the_archive_is_plain_calls(memory: Memory[Live]) -> None:
    def unit(m: Memory[Any]) -> Any:
        id = m.archive.insert("tea at four")
        hits = m.archive.search("tea")
        with pytest.raises(InvalidInput, match="asks a model"):
            m.archive.hybrid_search("tea").send(None)
        return id, [hit.passage.id for hit in hits]

    id, found = await memory.atomic(unit)
    assert found == [id]
    with pytest.raises(InvalidInput):
        await memory.atomic(lambda m: (m.archive.insert("half"), m.archive.insert(" ")))
    assert contents(await memory.archive.list()) == ["tea at four"]
