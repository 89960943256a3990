"""The part of a MemoryStore's suite that is about eviction: skipped where the store has no `with_eviction`.

A case uses nothing but the store that `with_eviction` returns, so that it may be a copy or a constructor. Where the
policy asks for the present time, the case takes it from the store: what is saved without created_at is created now.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from memdb.layers.items import MemoryItem
from memdb.layers.policies import Capacity, EvictionConfig, EvictionPolicy, Hybrid, NoEviction, RecallBased, Ttl
from memdb.layers.recall import RecallBasedConfig
from memdb.protocols import MemoryStore
from memdb.testing.clock import NOON
from memdb.testing.expect import ability, expect, expect_time
from memdb.testing.suite import Case, cases


async def no_eviction_keeps_everything(store: MemoryStore) -> None:
    """Agcore, section 4.2: EvictionPolicy::None."""
    kept = _evicting(store, NoEviction())
    await _save(kept, {str(n): NOON - timedelta(days=n) for n in range(50)})
    expect(len(await kept.list()), 50, "the number of items after 50 saves with NoEviction")


async def ttl_evicts_what_is_older(store: MemoryStore) -> None:
    """Agcore, section 4.2: Ttl, checked when something is saved."""
    kept = _evicting(store, Ttl(ttl_secs=3600))
    now = await _now(kept)
    await _save(kept, {"old": now - timedelta(hours=2), "young": now - timedelta(minutes=30), "last": now})
    expect(await _ids(kept), ["young", "now", "last"], "the ids that Ttl(3600) leaves of 2 hours, 30 and 0 minutes")


async def capacity_evicts_the_oldest(store: MemoryStore) -> None:
    """Agcore, section 4.2 and decisions, "capacity eviction": the oldest by created_at, not those saved first."""
    kept = _evicting(store, Capacity(max_items=3))
    await _save(kept, {id: NOON + timedelta(hours=hours) for id, hours in (("c", 3), ("a", 1), ("b", 2))})
    expect(await _ids(kept), ["a", "b", "c"], "the ids in a store of three after three saves")
    await _save(kept, {"e": NOON + timedelta(hours=5)})
    expect(await _ids(kept), ["b", "c", "e"], "the ids that Capacity(3) leaves of four, of which 'a' is the oldest")
    await _save(kept, {"d": NOON + timedelta(hours=4)})
    expect(await _ids(kept), ["c", "d", "e"], "the ids that Capacity(3) leaves of four, of which 'b' is the oldest")


async def capacity_evicts_ties_in_the_order_of_saving(store: MemoryStore) -> None:
    """Decisions, "capacity eviction": by (created_at, rowid)."""
    kept = _evicting(store, Capacity(max_items=2))
    await _save(kept, dict.fromkeys(("z", "a", "m"), NOON))
    expect(await _ids(kept), ["a", "m"], "the ids that Capacity(2) leaves of 'z', 'a', 'm', all of one time")


async def saving_again_is_no_new_item(store: MemoryStore) -> None:
    """Agcore, section 4.2: Capacity bounds how many items there are."""
    kept = _evicting(store, Capacity(max_items=2))
    await _save(kept, {"a": NOON, "b": NOON + timedelta(hours=1)})
    await _save(kept, {"b": NOON, "a": NOON})
    expect(await _ids(kept), ["a", "b"], "the ids in a store of two after both were saved again")


async def recall_based_evicts_the_lowest_value(store: MemoryStore) -> None:
    """Agcore, sections 4.3 and 6: what is recalled often and with high scores stays."""
    kept = _evicting(store, RecallBased(max_items=3))
    await _save(kept, dict.fromkeys(("best", "never", "good"), NOON - timedelta(days=365)))
    await _recall(kept, "best", 0.9, 0.9, 0.9)
    await _recall(kept, "good", 0.5)
    await _now(kept)
    came = sorted(await _ids(kept))
    expect(
        came, ["best", "good", "now"], "the ids that RecallBased(3) leaves of four, of which 'never' was not recalled"
    )


async def recall_based_weighs_how_often(store: MemoryStore) -> None:
    """Agcore, section 4.3: recall_weight * ln(1 + recall_count)."""
    policy = RecallBased(max_items=1, recall_weight=1.0, score_weight=0.0, recency_weight=0.0)
    await _of_two_recalled(store, policy, stays="often")


async def recall_based_weighs_how_well(store: MemoryStore) -> None:
    """Agcore, section 4.3: score_weight * the mean, not the sum, of the scores."""
    policy = RecallBased(max_items=1, recall_weight=0.0, score_weight=1.0, recency_weight=0.0)
    await _of_two_recalled(store, policy, stays="well")


async def recall_based_counts_from_creation_what_was_never_recalled(store: MemoryStore) -> None:
    """Decisions, "recall eviction": recency of what was never recalled is that of its created_at."""
    policy = RecallBased(max_items=2, recall_weight=0.0, score_weight=0.0, recency_weight=1.0)
    kept = _evicting(store, policy, check_interval=4)
    now = await _now(kept)
    await _save(kept, {"week": now - timedelta(days=7), "year": now - timedelta(days=365)})
    await _recall(kept, "year", 0.1)
    await _save(kept, {"day": now - timedelta(days=1)})
    done = "the two ids that recency alone leaves of ages of a year (recalled just now), a week, a day and no time"
    expect(await _ids(kept), ["year", "now"], done)


async def hybrid_evicts_by_age_and_then_by_number(store: MemoryStore) -> None:
    """Agcore, section 4.3: "Hybrid: first TTL, then Capacity"."""
    kept = _evicting(store, Hybrid(ttl_secs=3600, max_items=2), check_interval=4)
    now = await _now(kept)
    ages = {"old": now - timedelta(hours=2), "a": now - timedelta(minutes=3), "b": now - timedelta(minutes=2)}
    await _save(kept, ages)
    expect(await _ids(kept), ["b", "now"], "the ids that Hybrid(3600 seconds, 2 items) leaves")


async def hybrid_evicts_by_age_alone(store: MemoryStore) -> None:
    """Agcore, section 4.2: max_items of Hybrid is optional."""
    kept = _evicting(store, Hybrid(ttl_secs=3600))
    now = await _now(kept)
    young = {str(n): now - timedelta(minutes=n) for n in range(1, 20)}
    await _save(kept, {"old": now - timedelta(hours=2)} | young)
    expect(sorted(await _ids(kept)), sorted([*young, "now"]), "the ids that Hybrid(ttl_secs=3600) leaves")


async def hybrid_evicts_by_value(store: MemoryStore) -> None:
    """Agcore, section 4.3: "Hybrid: first TTL, then RecallBased"; the old go however often they were recalled."""
    kept = _evicting(store, Hybrid(ttl_secs=3600, max_items=2, recall=RecallBasedConfig()), check_interval=5)
    now = await _now(kept)
    ages = {"old": now - timedelta(hours=2), "good": now - timedelta(minutes=9), "never": now - timedelta(minutes=8)}
    await _save(kept, ages)
    await _recall(kept, "old", 1.0, 1.0, 1.0)
    await _recall(kept, "good", 0.5)
    await _recall(kept, "now", 0.9)
    await _save(kept, {"last": now - timedelta(minutes=1)})
    expect(await _ids(kept), ["good", "now"], "the ids that Hybrid(3600 seconds, 2 items by value) leaves")


async def eviction_is_checked_every_so_many_writes(store: MemoryStore) -> None:
    """Agcore, section 4.2 and decisions, "check_interval": after every N writes."""
    kept = _evicting(store, Capacity(max_items=1), check_interval=3)
    for hours, expected in enumerate((["0"], ["0", "1"], ["2"], ["2", "3"], ["2", "3", "4"], ["5"])):
        await _save(kept, {str(hours): NOON + timedelta(hours=hours)})
        done = f"list() after {hours + 1} writes with Capacity(max_items=1), check_interval=3"
        expect(await _ids(kept), expected, done)


async def recall_statistics_go_with_what_is_evicted(store: MemoryStore) -> None:
    """Agcore, section 4.3: "recall_stats are cleaned in step"; skipped where there is no recall_stats, too."""
    kept = _evicting(store, Capacity(max_items=1))
    recall_stats = ability(kept, "recall_stats")
    await _save(kept, {"a": NOON})
    await _recall(kept, "a", 0.9)
    await _save(kept, {"b": NOON + timedelta(hours=1)})
    await _save(kept, {"a": NOON + timedelta(hours=2)})
    expect(await recall_stats("a"), None, "recall_stats() of what was recalled, evicted and saved anew")


def _evicting(store: MemoryStore, policy: EvictionPolicy, check_interval: int = 1) -> Any:
    return ability(store, "with_eviction")(EvictionConfig(policy=policy, check_interval=check_interval))


async def _of_two_recalled(store: MemoryStore, policy: RecallBased, stays: str) -> None:
    """Recall "often" thrice with low scores and "well" once with a high one; the third write is the first check."""
    kept = _evicting(store, policy, check_interval=3)
    await _save(kept, {"often": NOON, "well": NOON})
    await _recall(kept, "often", 0.4, 0.4, 0.4)
    await _recall(kept, "well", 0.9)
    await _save(kept, {"often": NOON})
    expect(await _ids(kept), [stays], f"the id that {policy!r} leaves of one recalled often and one recalled well")


async def _now(store: MemoryStore) -> datetime:
    """Save an item "now" and return when that was by the store's own clock."""
    await store.save(MemoryItem(id="now", content="x"))
    item = await store.get("now")
    return expect_time(item and item.created_at, "created_at of what was just saved")


async def _save(store: MemoryStore, created: dict[str, datetime]) -> None:
    for id, created_at in created.items():
        await store.save(MemoryItem(id=id, content="x", created_at=created_at))


async def _recall(store: MemoryStore, id: str, *scores: float) -> None:
    for score in scores:
        await store.record_recall(id, score)


async def _ids(store: MemoryStore) -> list[str]:
    return [item.id for item in await store.list()]


EVICTION: tuple[Case[MemoryStore], ...] = cases(__name__)
