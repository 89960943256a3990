"""MemoryStore: what a user of key-value items sees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memdb import InvalidInput, MemoryFilter, MemoryItem

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


async def test_a_saved_item_comes_back_as_it_was(memory):
    item = MemoryItem(id="a/ü/1", content="Tea, not coffee\n\t“always”", metadata={"n": [1, 2.5, None, True, "é"]})
    await memory.items.save(item)
    got = await memory.items.get("a/ü/1")
    assert (got.id, got.content, got.metadata) == (item.id, item.content, item.metadata)
    assert got.created_at == NOON
    assert got == MemoryItem.model_validate(got)


async def test_an_unknown_id_is_none(memory):
    assert await memory.items.get("nothing") is None


async def test_saving_again_replaces_and_keeps_the_time_of_creation(memory, clock):
    await memory.items.save(MemoryItem(id="a", content="old words", metadata={"v": 1}))
    clock.forward(days=1)
    await memory.items.save(MemoryItem(id="a", content="new text"))
    got = await memory.items.get("a")
    assert (got.content, got.metadata, got.created_at) == ("new text", {}, NOON)
    assert await memory.items.search("old") == []
    assert [hit.item.id for hit in await memory.items.search("new")] == ["a"]


async def test_a_given_time_of_creation_is_kept_in_utc(memory):
    tokyo = datetime(2020, 5, 1, 9, 0, tzinfo=timezone(timedelta(hours=9)))
    await memory.items.save(MemoryItem(id="a", content="x", created_at=tokyo))
    got = await memory.items.get("a")
    assert got.created_at == tokyo
    assert got.created_at.utcoffset() == timedelta(0)


async def test_delete_says_whether_it_was_there(memory):
    await memory.items.save(MemoryItem(id="a", content="gone soon"))
    assert await memory.items.delete("a") is True
    assert await memory.items.delete("a") is False
    assert await memory.items.get("a") is None
    assert await memory.items.search("gone") == []


async def test_list_is_oldest_first_by_prefix_time_and_limit(memory, clock):
    for name in ("b/2", "a/1", "b/1", "b_x", "B/3"):
        await memory.items.save(MemoryItem(id=name, content="x"))
        clock.forward(hours=1)
    assert [item.id for item in await memory.items.list()] == ["b/2", "a/1", "b/1", "b_x", "B/3"]
    assert [item.id for item in await memory.items.list(MemoryFilter(prefix="b/"))] == ["b/2", "b/1"]
    assert [item.id for item in await memory.items.list(MemoryFilter(prefix="b/", limit=1))] == ["b/2"]
    since = NOON + timedelta(hours=2)
    assert [item.id for item in await memory.items.list(MemoryFilter(since=since))] == ["b/1", "b_x", "B/3"]
    assert [item.id for item in await memory.items.list(MemoryFilter(prefix="b", since=since))] == ["b/1", "b_x"]
    assert await memory.items.list(MemoryFilter(limit=0)) == []


@pytest.mark.parametrize("prefix", ["%", "_", "a*", "\U0010ffff", "\ud7ff", "'"])
async def test_a_prefix_is_exact_text(memory, prefix):
    await memory.items.save_many([MemoryItem(id=prefix + "1", content="x"), MemoryItem(id="zz", content="x")])
    assert [item.id for item in await memory.items.list(MemoryFilter(prefix=prefix))] == [prefix + "1"]


async def test_save_many_lands_whole_or_not_at_all(memory):
    good = [MemoryItem(id=f"k{n}", content=f"number {n}") for n in range(1200)]
    assert await memory.items.save_many(good) == 1200
    assert len(await memory.items.list()) == 1200
    bad = MemoryItem.model_construct(id="", content="x", metadata={}, created_at=None, expires_at=None)
    with pytest.raises(InvalidInput, match="id"):
        await memory.items.save_many([MemoryItem(id="new", content="x"), bad])
    assert await memory.items.get("new") is None


async def test_of_two_with_one_id_the_later_stays(memory):
    await memory.items.save_many([MemoryItem(id="a", content="first"), MemoryItem(id="a", content="second")])
    assert (await memory.items.get("a")).content == "second"


async def test_search_ranks_by_relevance_and_breaks_ties_by_age(memory):
    await memory.items.save_many(
        [
            MemoryItem(id="1", content="the cat sat on the mat with another cat"),
            MemoryItem(id="2", content="a dog and a cat"),
            MemoryItem(id="3", content="cat"),
            MemoryItem(id="4", content="cat"),
            MemoryItem(id="5", content="birds"),
            MemoryItem(id="6", content="trees"),
            MemoryItem(id="7", content="stones"),
            MemoryItem(id="8", content="clouds"),
            MemoryItem(id="9", content="rivers"),
        ]
    )
    hits = await memory.items.search("cat", limit=3)
    assert [hit.item.id for hit in hits[1:]] == ["3", "4"] or [hit.item.id for hit in hits[:2]] == ["3", "4"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 for hit in hits)


async def test_an_expired_item_is_gone_everywhere(memory, clock):
    await memory.items.save(MemoryItem(id="a", content="short lived", expires_at=NOON + timedelta(hours=1)))
    assert await memory.items.get("a") is not None
    clock.forward(hours=1)
    assert await memory.items.get("a") is None
    assert await memory.items.list() == []
    assert await memory.items.search("lived") == []
    await memory.items.save(MemoryItem(id="b", content="x"))  # a write sweeps what has expired
    clock.forward(hours=-1)
    assert await memory.items.get("a") is None


async def test_recalls_are_counted_and_go_with_the_item(memory, clock):
    await memory.items.save(MemoryItem(id="a", content="x"))
    assert await memory.items.recall_stats("a") is None
    await memory.items.record_recall("a", 0.5)
    clock.forward(days=2)
    await memory.items.record_recall("a", 1)
    stats = await memory.items.recall_stats("a")
    assert (stats.recall_count, stats.total_score, stats.last_recall_at) == (2, 1.5, NOON + timedelta(days=2))
    await memory.items.delete("a")
    await memory.items.save(MemoryItem(id="a", content="another"))
    assert await memory.items.recall_stats("a") is None
    await memory.items.record_recall("nothing", 1.0)


async def test_users_do_not_see_each_other(db):
    await db.memory("alice").items.save(MemoryItem(id="a", content="alice's secret"))
    bob = db.memory("bob").items
    assert await bob.get("a") is None
    assert await bob.list() == []
    assert await bob.search("secret") == []
    assert await bob.delete("a") is False
    assert await bob.recall_stats("a") is None
    await bob.save(MemoryItem(id="a", content="bob's own"))
    assert (await db.memory("alice").items.get("a")).content == "alice's secret"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": ""}, "id: the id must not be empty"),
        ({"id": "a\0b"}, "NUL character at position 1"),
        ({"id": "x" * 10_000}, "10,000 characters; at most 1,000"),
        ({"content": "\ud83d"}, "lone surrogate at position 0"),
        ({"content": None}, "content"),
        ({"metadata": {"a": float("nan")}}, "metadata.a holds nan"),
        ({"metadata": {"a": [float("inf")]}}, "holds inf"),
        ({"metadata": {"a": 2**63}}, "does not fit in 64 bits"),
        ({"metadata": {1: "x"}}, "keys must be text"),
        ({"metadata": {"a": {1, 2}}}, "a set, which JSON has no form for"),
        ({"created_at": datetime(2026, 1, 1)}, "created_at"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_a_bad_field_is_named(fields, message):
    with pytest.raises(InvalidInput, match=message.replace(".", r"\.")):
        MemoryItem(**{"id": "a", "content": "x", **fields})


async def test_bad_arguments_are_named(memory):
    with pytest.raises(InvalidInput, match="limit"):
        await memory.items.search("x", limit=-1)
    with pytest.raises(InvalidInput, match="limit"):
        await memory.items.list(MemoryFilter(limit=True))
    with pytest.raises(InvalidInput, match="query must be text"):
        await memory.items.search(5)
    with pytest.raises(InvalidInput, match="id must be text"):
        await memory.items.get(None)
    with pytest.raises(InvalidInput, match="score"):
        await memory.items.record_recall("a", float("nan"))
    with pytest.raises(InvalidInput, match="items must be a list"):
        await memory.items.save_many("abc")
    with pytest.raises(ValueError, match="MemoryItem"):
        await memory.items.save("not an item")
