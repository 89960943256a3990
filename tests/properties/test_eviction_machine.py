"""Stores that evict against a dictionary: whatever is saved and recalled, what stays is what the documents say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import Capacity, EvictionConfig, Hybrid, MemoryItem, RecallBased, RecallBasedConfig, RecallStats, Ttl
from tests.strategies import SAME_EVERY_TIME

IDS = st.sampled_from([f"i{n}" for n in range(12)])
WEIGHTS = st.sampled_from(
    [
        {},
        {"recall_weight": 0.2, "recency_weight": 0.2},
        {"recall_weight": 0, "score_weight": 1, "recency_weight": 0},
        {"recall_weight": 0, "score_weight": 0, "recency_weight": 1},
        {"recall_weight": 1, "score_weight": 0, "recency_weight": 0},
    ]
)
SIZES = st.integers(1, 6)
TTLS = st.sampled_from([3, 10, 86_400])
POLICIES = st.one_of(
    st.builds(Ttl, ttl_secs=TTLS),
    st.builds(Capacity, max_items=SIZES),
    st.builds(lambda size, weights: RecallBased(max_items=size, **weights), SIZES, WEIGHTS),
    st.builds(Hybrid, ttl_secs=st.none() | TTLS, max_items=st.none() | SIZES),
    st.builds(
        lambda ttl, size, weights: Hybrid(ttl_secs=ttl, max_items=size, recall=RecallBasedConfig(**weights)),
        st.none() | TTLS,
        SIZES,
        WEIGHTS,
    ),
)


class Kept:
    """An item of the model."""

    def __init__(self, number: int, created: datetime) -> None:
        self.number = number
        self.created = created
        self.recalls: list[tuple[float, datetime]] = []

    def value(self, now: datetime, weights: RecallBasedConfig) -> float:
        last = self.recalls[-1][1] if self.recalls else self.created
        total = sum(score for score, _ in self.recalls)
        return round(RecallStats(len(self.recalls), total, last).value(now, weights), 9)


class Stores(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        self.items = self.db.memory("alice").items
        self.model: dict[str, Kept] = {}
        self.numbers = 0
        self.writes = 0

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    # -- the model -----------------------------------------------------------------------------------------------------

    def remember(self, id: str, created: datetime | None = None) -> None:
        if id not in self.model:
            self.numbers += 1
            self.model[id] = Kept(self.numbers, created or self.now)

    def evict(self, config: EvictionConfig, written: int) -> None:
        if config.check_interval > 1:
            self.writes += written
            if self.writes < config.check_interval:
                return
            self.writes = 0
        policy = config.policy
        if isinstance(policy, Ttl | Hybrid) and policy.ttl_secs is not None:
            cutoff = self.now - timedelta(seconds=policy.ttl_secs)
            self.model = {id: kept for id, kept in self.model.items() if kept.created > cutoff}
        if isinstance(policy, Capacity) or (isinstance(policy, Hybrid) and policy.recall is None):
            self.keep(policy.max_items, lambda kept: (kept.created, kept.number))
        elif isinstance(policy, RecallBased | Hybrid):
            weights = policy if isinstance(policy, RecallBased) else policy.recall
            self.keep(policy.max_items, lambda kept: (kept.value(self.now, weights), kept.created, kept.number))

    def keep(self, most: int | None, order: Any) -> None:
        if most is not None and len(self.model) > most:
            best = sorted(self.model, key=lambda id: order(self.model[id]))[-most:]
            self.model = {id: kept for id, kept in self.model.items() if id in best}

    # -- what happens --------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0, 1, 5, 86_400, 10 * 86_400]))
    def time_goes_by(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(id=IDS, days=st.sampled_from([None, None, 0, 2, 30]))
    def save(self, id: str, days: int | None) -> None:
        created = None if days is None else self.now - timedelta(days=days)
        self.wait(self.items.save(MemoryItem(id=id, content="x", created_at=created)))
        self.remember(id, created)

    @rule(
        ids=st.lists(IDS, min_size=1, max_size=5, unique=True),
        policy=POLICIES,
        interval=st.sampled_from([1, 1, 3]),
        how=st.sampled_from(["one", "bulk", "beside"]),
    )
    def save_evicting(self, ids: list[str], policy: Any, interval: int, how: str) -> None:
        config = EvictionConfig(policy=policy, check_interval=interval)
        store = self.items.with_eviction(config)
        items = [MemoryItem(id=id, content="y") for id in ids]
        if how == "one":
            for item in items:
                self.wait(store.save(item))
                self.remember(item.id)
                self.evict(config, 1)
            return
        self.wait(store.save_many(items) if how == "bulk" else self.beside(store, items))
        for id in ids:
            self.remember(id)
        self.evict(config, len(ids))

    async def beside(self, store: Any, items: list[MemoryItem]) -> None:
        await asyncio.gather(*(store.save(item) for item in items))

    @rule(id=IDS, score=st.sampled_from([0.0, 0.25, 1.0]))
    def recall(self, id: str, score: float) -> None:
        self.wait(self.items.record_recall(id, score))
        if id in self.model:
            self.model[id].recalls.append((score, self.now))

    @rule(id=IDS)
    def delete(self, id: str) -> None:
        assert self.wait(self.items.delete(id)) == (id in self.model)
        self.model.pop(id, None)

    @invariant()
    def what_stays_is_what_the_model_keeps(self) -> None:
        found = {item.id for item in self.wait(self.items.list())}
        assert found == set(self.model)

    def teardown(self) -> None:
        report = self.wait(self.db.check())
        self.wait(self.db.close())
        self.loop.close()
        assert report.problems == []


Stores.TestCase.settings = settings(
    SAME_EVERY_TIME, max_examples=60, stateful_step_count=30, report_multiple_bugs=False
)
TestStores = Stores.TestCase
