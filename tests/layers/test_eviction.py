"""Eviction: the five policies of the agcore document, as a user of a store sees them (its sections 4 and 6)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import memdb
from memdb import (
    Capacity,
    EvictionConfig,
    Hybrid,
    InvalidInput,
    MemoryItem,
    NoEviction,
    RecallBased,
    RecallBasedConfig,
    RecallStats,
    Ttl,
)
from memdb.layers import eviction
from memdb.storage.transaction import Transaction


async def fill(store, ids, clock=None):
    for id in ids:
        await store.save(MemoryItem(id=str(id), content=f"word {id}"))
        if clock is not None:
            clock.forward(seconds=1)


async def left(memory):
    return [item.id for item in await memory.items.list()]


def evicting(memory, policy, check_interval=1):
    return memory.items.with_eviction(EvictionConfig(policy=policy, check_interval=check_interval))


# -- acceptance: "EvictionConfig supports None, Ttl, Capacity, RecallBased and Hybrid" ---


async def test_no_eviction_is_the_default_and_keeps_all(memory):
    assert EvictionConfig() == EvictionConfig(policy=NoEviction()) == EvictionConfig(policy=None)
    await fill(evicting(memory, NoEviction()), range(50))
    await fill(memory.items, range(50, 60))
    assert len(await left(memory)) == 60


async def test_ttl_evicts_what_is_older_when_something_is_saved(memory, clock):
    store = evicting(memory, Ttl(ttl_secs=60))
    await fill(store, "ab")
    clock.forward(seconds=60)
    assert await left(memory) == ["a", "b"]  # nothing is written, nothing is checked
    await fill(store, "c")
    assert await left(memory) == ["c"]  # exactly 60 seconds old is too old: what stays is younger


async def test_ttl_counts_from_created_at_even_when_an_item_is_saved_again(memory, clock):
    store = evicting(memory, Ttl(ttl_secs=60))
    await fill(store, "a")
    clock.forward(seconds=59)
    await fill(store, "a")
    clock.forward(seconds=2)
    await fill(store, "b")
    assert await left(memory) == ["b"]


async def test_ttl_beyond_the_calendar_evicts_nothing(memory):
    await fill(evicting(memory, Ttl(ttl_secs=100 * 366 * 86_400)), "abc")
    assert await left(memory) == ["a", "b", "c"]


async def test_capacity_evicts_the_oldest(memory, clock):
    store = evicting(memory, Capacity(max_items=3))
    await fill(store, "abcdef", clock)
    assert await left(memory) == ["d", "e", "f"]


async def test_capacity_breaks_ties_by_the_order_of_first_saving(memory):
    await fill(evicting(memory, Capacity(max_items=3)), "dcabfe")  # the clock stands still
    assert await left(memory) == ["b", "f", "e"]


async def test_saving_again_evicts_nothing(memory, clock):
    store = evicting(memory, Capacity(max_items=2))
    await fill(store, "ab", clock)
    await fill(store, "aabb", clock)
    assert await left(memory) == ["a", "b"]


async def test_an_item_that_comes_with_an_older_date_than_all_others_goes_at_once(memory, clock):
    store = evicting(memory, Capacity(max_items=2))
    await fill(store, "ab", clock)
    await store.save(MemoryItem(id="old", content="x", created_at=clock.now - timedelta(days=9)))
    assert await left(memory) == ["a", "b"]


# -- acceptance: "RecallBased computes the value by the formula and evicts the lowest" ---


async def test_recall_based_evicts_the_lowest_value(memory, clock):
    await fill(memory.items, "abcd", clock)
    await memory.items.record_recall("a", 0.1)
    await memory.items.record_recall("b", 0.9)
    store = evicting(memory, RecallBased(max_items=3))
    await fill(store, "e")
    assert await left(memory) == ["a", "b", "e"]  # c and d never were recalled, and are older than e
    await memory.items.record_recall("e", 0.5)
    await fill(store, "f")
    assert await left(memory) == ["a", "b", "e"]  # whatever was recalled is worth more than what never was


async def test_recall_based_sees_recalls_that_are_not_yet_written(memory, clock):
    await fill(memory.items, "ab", clock)
    await memory.items.record_recall("a", 0.5)
    await fill(evicting(memory, RecallBased(max_items=2)), "c")
    assert await left(memory) == ["a", "c"]


async def test_other_weights_decide_by_value_too(memory, clock):
    await fill(memory.items, "abc")
    await memory.items.record_recall("a", 0.9)
    clock.forward(days=30)
    # Recency alone: b and c were never recalled and count from their creation, a from a later recall.
    await memory.items.record_recall("b", 0.1)
    store = evicting(memory, RecallBased(max_items=2, recall_weight=0, score_weight=0, recency_weight=1))
    await fill(store, "d")
    assert await left(memory) == ["b", "d"]
    scores = evicting(memory, RecallBased(max_items=1, recall_weight=0, score_weight=1, recency_weight=0))
    await fill(scores, "e")
    assert await left(memory) == ["b"]


async def test_the_value_in_sql_is_the_formula_in_python(memory, clock):
    scores = {"a": [0.9, 0.3], "b": [0.2], "c": [1.0] * 7, "d": [0.0]}
    await fill(memory.items, [*scores, "never"])
    for id, given in scores.items():
        for score in given:
            clock.forward(hours=7.3)
            await memory.items.record_recall(id, score)
    stats = {id: await memory.items.recall_stats(id) for id in scores}
    clock.forward(days=3, seconds=1.5)
    for config in (RecallBasedConfig(), RecallBasedConfig(recall_weight=2, score_weight=0.1, recency_weight=7)):
        weights = {name: getattr(config, name) for name in eviction.WEIGHTS}
        found = await memory_values(memory, weights)
        for id, stat in stats.items():
            assert found[id] == pytest.approx(stat.value(clock.now, config), abs=1e-6)
        created = (await memory.items.get("never")).created_at
        never = RecallStats(0, 0.0, created).value(clock.now, config)
        assert found["never"] == pytest.approx(never, abs=1e-6)


async def memory_values(memory, weights):
    from sqlalchemy import select

    from memdb.layers.recall import value
    from memdb.storage.schema import recall, record
    from memdb.storage.statement import Statement

    values = Statement(select(record.c.key, value()).outerjoin(recall, recall.c.record_id == record.c.id))

    def unit(tx: Transaction):
        return dict(tx.all(values, now=tx.now, **weights))

    return await memory._home.read(unit)


def test_the_value_by_hand():
    from datetime import UTC, datetime

    now = datetime(2026, 1, 11, tzinfo=UTC)
    stats = RecallStats(recall_count=3, total_score=1.5, last_recall_at=now - timedelta(days=9))
    assert stats.value(now) == pytest.approx(0.3 * 1.3862943611 + 0.5 * 0.5 + 0.2 * 0.1)
    assert RecallStats(0, 0.0, now).value(now) == pytest.approx(0.2)
    assert stats.value(now - timedelta(days=99)) == pytest.approx(0.3 * 1.3862943611 + 0.25 + 0.2)  # a clock put back


# -- acceptance: "save() performs Ttl, Capacity and recall-based eviction"; Hybrid, check_interval ---


async def test_hybrid_is_ttl_then_capacity(memory, clock):
    store = evicting(memory, Hybrid(ttl_secs=10, max_items=2))
    await fill(store, "ab")
    clock.forward(seconds=11)
    await fill(store, "c", clock)
    assert await left(memory) == ["c"]
    await fill(store, "def", clock)
    assert await left(memory) == ["e", "f"]


async def test_hybrid_is_ttl_then_recall(memory, clock):
    await fill(memory.items, "abc", clock)
    await memory.items.record_recall("a", 0.5)
    store = evicting(memory, Hybrid(ttl_secs=3600, max_items=2, recall=RecallBasedConfig()))
    await fill(store, "d")
    assert await left(memory) == ["a", "d"]
    assert Hybrid(recall=RecallBased(max_items=2)).most == 2
    await fill(evicting(memory, Hybrid(recall=RecallBased(max_items=1))), "e")
    assert await left(memory) == ["a"]
    clock.forward(hours=2)
    await fill(store, "f")
    assert await left(memory) == ["f"]


async def test_a_hybrid_of_nothing_evicts_nothing(memory):
    await fill(evicting(memory, Hybrid()), range(5))
    assert len(await left(memory)) == 5


async def test_the_check_is_made_every_so_many_writes(memory):
    store = evicting(memory, Capacity(max_items=2), check_interval=3)
    seen = []
    for n in range(7):
        await fill(store, [n])
        seen.append(len(await left(memory)))
    assert seen == [1, 2, 2, 3, 4, 2, 3]
    again = evicting(memory, Capacity(max_items=2), check_interval=3)  # the count is in the file, not in the object
    await fill(again, "xy")
    assert len(await left(memory)) == 2


async def test_a_bulk_save_counts_its_items(memory):
    store = evicting(memory, Capacity(max_items=3), check_interval=10)
    await store.save_many([MemoryItem(id=f"{n:02}", content="x") for n in range(9)])
    assert len(await left(memory)) == 9
    await store.save_many([MemoryItem(id=f"b{n}", content="x") for n in range(5)])
    assert await left(memory) == ["b2", "b3", "b4"]


async def test_callers_side_by_side_stay_within_bounds(memory):
    small, large = evicting(memory, Capacity(max_items=5)), memory.items
    await asyncio.gather(*(fill(small, [f"s{n}"]) for n in range(40)), *(fill(large, [f"l{n}"]) for n in range(40)))
    await fill(small, ["last"])
    assert len(await left(memory)) == 5


async def test_in_a_unit_it_is_the_same(memory, clock):
    def unit(m):
        store = m.items.with_eviction(EvictionConfig(policy=RecallBased(max_items=2)))
        for id in "abc":
            store.save(MemoryItem(id=id, content="x"))
        store.record_recall("b", 0.5)
        store.save(MemoryItem(id="d", content="x"))
        store.save(MemoryItem(id="e", content="x"))
        return [item.id for item in store.list()]

    assert await memory.atomic(unit) == ["b", "e"]


async def test_an_eviction_that_is_rolled_back_threw_nothing_away(memory):
    def unit(m):
        m.items.with_eviction(EvictionConfig(policy=Capacity(max_items=1))).save(MemoryItem(id="z", content="x"))
        raise RuntimeError("no")

    await fill(memory.items, "abc")
    with pytest.raises(RuntimeError):
        await memory.atomic(unit)
    assert await left(memory) == ["a", "b", "c"]


async def test_what_belongs_to_the_evicted_goes_with_it(db, memory):
    store = evicting(memory, Capacity(max_items=1))
    await fill(store, ["a"])
    await memory.items.record_recall("a", 1.0)
    await fill(store, ["b"])
    assert await memory.items.search("word a") != []
    assert [hit.item.id for hit in await memory.items.search("word")] == ["b"]
    assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM recall")) == [(0,)]
    assert (await db.check()).ok


async def test_other_users_and_layers_are_not_touched(db, memory):
    bob = db.memory("bob")
    await fill(bob.items, range(5))
    await memory.pages.add_page(memdb.KnowledgePage(id="p", title="page"))
    await fill(evicting(memory, Capacity(max_items=1)), range(5))
    assert len(await left(bob)) == 5
    assert await memory.pages.get_page("p") is not None


# -- the recalled are passed over once ---


async def test_an_older_item_that_comes_later_is_found_by_recall_eviction(memory, clock):
    store = evicting(memory, RecallBased(max_items=3))
    await fill(memory.items, "abc", clock)
    for id in "abc":
        await memory.items.record_recall(id, 0.5)
    await fill(store, "d")  # passes over a, b, c
    assert await left(memory) == ["a", "b", "c"]
    await memory.items.save(MemoryItem(id="early", content="x", created_at=clock.now - timedelta(days=1)))
    await fill(evicting(memory, RecallBased(max_items=4)), "f")
    assert await left(memory) == ["a", "b", "c", "f"]


async def test_when_all_were_recalled_the_lowest_of_them_goes(memory, clock):
    await fill(memory.items, "abcd", clock)
    for id, score in zip("abcd", (0.9, 0.2, 0.5, 0.7), strict=True):
        await memory.items.record_recall(id, score)
    await fill(evicting(memory, RecallBased(max_items=2)), "e")
    assert await left(memory) == ["a", "d"]


@pytest.mark.parametrize("name", ["_LOWEST", "_OLDEST", "_DELETE_OLD", "_ANY_OLD", "_SAME_TIME", "_LATER", "_LAST"])
async def test_victims_are_found_by_index(db, name):
    values = dict.fromkeys(("user_id", "layer", "session_id", "cutoff", "passed_at", "surplus", "passed_id", "now"), 1)
    statement = getattr(eviction, name)
    values |= dict.fromkeys(eviction.WEIGHTS, 1)
    plan = await db.read(lambda tx: tx.rows(f"EXPLAIN QUERY PLAN {statement.sql}", statement.bind(values)))
    text = "\n".join(row[3] for row in plan)
    assert "SCAN" not in text
    assert "record_by_time" in text or name == "_LOWEST"
    assert ("TEMP B-TREE" in text) == (name == "_LOWEST")


def test_every_policy_has_its_rule_in_words():
    assert set(eviction.RULES) == {Ttl, Capacity, RecallBased}
    assert all(rule.removes and rule.order and rule.index for rule in eviction.RULES.values())


# -- bad input ---


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Capacity(max_items=0), "max_items must be a whole number from 1"),
        (lambda: Capacity(max_items=-1), "max_items"),
        (lambda: Capacity(max_items=True), "max_items"),
        (lambda: Capacity(max_items=2.5), "max_items"),
        (lambda: Capacity(max_items="many"), "max_items"),
        (lambda: Ttl(ttl_secs=0), "ttl_secs"),
        (lambda: Ttl(ttl_secs=10**12), "ttl_secs"),
        (lambda: RecallBased(max_items=1, recall_weight=-0.1), "a weight must be a number from 0"),
        (lambda: RecallBased(max_items=1, score_weight=float("nan")), "a weight"),
        (lambda: RecallBased(max_items=1, recency_weight="1"), "a weight"),
        (lambda: RecallBased(), "max_items"),
        (lambda: Hybrid(recall=RecallBasedConfig()), "give max_items"),
        (lambda: EvictionConfig(check_interval=0), "check_interval"),
        (lambda: EvictionConfig(policy="all"), "policy must be a NoEviction, Ttl"),
        (lambda: EvictionConfig(policy={"max_items": 3}), "policy must be"),
        (lambda: Hybrid(max_items=5, recall=RecallBased(max_items=2)), "give it once"),
        (lambda: Capacity(max_item=3), "Capacity has no field max_item; its fields are max_items"),
        (lambda: Capacity(3), "by name: max_items"),
        (lambda: EvictionConfig(interval=3), "interval"),
    ],
)
def test_bad_configurations_are_named(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


async def test_with_eviction_takes_a_configuration_or_a_policy_alone(memory):
    await fill(memory.items.with_eviction(Capacity(max_items=1)), "abc")
    assert await left(memory) == ["c"]
    for wrong in (None, 3, "ttl", {"policy": "ttl"}):
        with pytest.raises(InvalidInput):
            memory.items.with_eviction(wrong)


# -- pages and entities: nothing is evicted unless asked for ---


async def test_pages_are_evicted_when_configured(db, memory, clock):
    config = EvictionConfig(policy=RecallBased(max_items=2))
    for id in "abc":
        await memory.pages.add_page(memdb.KnowledgePage(id=id, title=f"page {id}", references=["a"]))
        clock.forward(seconds=1)
    assert len(await memory.pages.get_index()) == 3
    await memory.pages.record_recall("a", 0.5)
    store = memory.pages.with_eviction(config)
    await store.add_pages([memdb.KnowledgePage(id=id, title=f"page {id}") for id in "de"])
    assert [entry.id for entry in await memory.pages.get_index()] == ["a", "e"]
    await store.update_page(memdb.KnowledgePage(id="a", title="page a", references=["e"]))
    assert await memory.pages.referenced_by("e") == ["a"]
    assert (await memory.pages.recall_stats("a")).recall_count == 1
    assert (await db.check()).ok


async def test_a_page_that_does_not_stay_leaves_no_references(db, memory, clock):
    store = memory.pages.with_eviction(EvictionConfig(policy=Ttl(ttl_secs=10)))
    old = clock.now - timedelta(seconds=60)
    await store.add_page(memdb.KnowledgePage(id="late", title="x", references=["y"], created_at=old))
    assert await memory.pages.get_page("late") is None
    assert await memory.pages.referenced_by("y") == []


async def test_entities_are_evicted_with_their_relations_when_configured(db, memory, clock):
    graph = memory.graph
    for id in "abc":
        await graph.add_entity(memdb.GraphEntity(id=id, name=f"thing {id}"))
        clock.forward(seconds=1)
    for source, target in ("ab", "bc", "ca"):
        await graph.add_relation(memdb.GraphRelation(source_id=source, target_id=target, relation_type="r"))
    await graph.with_eviction(EvictionConfig(policy=Capacity(max_items=2))).add_entity(
        memdb.GraphEntity(id="d", name="thing d")
    )
    assert [found.entity.id for found in await graph.get_related("c", depth=3)] == []
    assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM relation")) == [(0,)]


async def test_a_check_finds_what_a_shell_has_done_to_the_walk(db, memory, clock):
    store = evicting(memory, RecallBased(max_items=3))
    await fill(memory.items, "abc", clock)
    for id in "ab":
        await memory.items.record_recall(id, 0.5)
    await fill(store, "d", clock)  # passes over a and b, takes c
    await db.write(lambda tx: tx.execute("DELETE FROM recall"))
    report = await db.check()
    assert report.problems == ["1 stores that evict pass over records that never were recalled"]
    assert (await db.check(repair=True)).ok
    await fill(store, "e")
    assert await left(memory) == ["b", "d", "e"]


async def test_infinite_scores_count_nothing_where_scores_do_not(memory):
    await fill(memory.items, "abc")
    for _ in range(3):
        await memory.items.record_recall("a", 1.7e308)
    await fill(evicting(memory, RecallBased(max_items=2, score_weight=0)), "d")
    assert await left(memory) == ["a", "d"]
