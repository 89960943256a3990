"""Episodes, patterns and skills against dictionaries: any history of calls gives what the dictionaries give."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb.layers.experience.aging import age
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from tests.strategies import SAME_EVERY_TIME

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
USERS = st.sampled_from(["alice", "bob"])
IDS = st.sampled_from(["a", "b", "ep-2026-01-01-0123abcd", "é"])
WORDS = st.sampled_from(["red", "green", "blue", "赤い"])
LAYERS = st.sampled_from(["episode", "pattern", "skill"])
WORTH = {"importance": st.sampled_from([0.0, 0.25, 0.5, 1.0]), "access_count": st.integers(0, 3)}
EPISODES = st.fixed_dictionaries(
    {"id": IDS, "goal": WORDS, "days": st.integers(-3, 3), "task_id": st.just("t"), "agent": st.just("x")},
    optional=WORTH,
)
PATTERNS = st.fixed_dictionaries(
    {"id": IDS, "pattern": WORDS, "category": st.sampled_from(["c", "anti-pattern"])},
    optional=WORTH
    | {
        "confidence": st.sampled_from([0.25, 0.5, 0.9]),
        "usage_count": st.integers(0, 2),
        "source_episodes": st.lists(IDS, max_size=2),
    },
)
SKILLS = st.fixed_dictionaries(
    {"id": IDS, "name": WORDS, "description": WORDS},
    optional=WORTH | {"extra": st.fixed_dictionaries({"source_episodes": st.lists(IDS, max_size=2)})},
)
MADE = {"episode": EPISODES, "pattern": PATTERNS, "skill": SKILLS}
KINDS: dict[str, Any] = {"episode": EpisodeTrace, "pattern": SemanticPattern, "skill": ProceduralSkill}
TITLES = {"episode": "goal", "pattern": "pattern", "skill": "name"}


class Known:
    """What the model knows of one: the value, and since when it has not aged."""

    def __init__(self, value: Any, number: int, stored: datetime) -> None:
        self.value, self.number, self.since = value, number, stored


class Experience(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = START
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        self.model: dict[tuple[str, str], dict[str, Known]] = {}
        self.aged: dict[tuple[str, str], datetime] = {}
        self.number = 0
        for user in ("alice", "bob"):
            self.model |= {(user, layer): {} for layer in KINDS}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def store(self, user: str, layer: str) -> Any:
        kind: Any = {"episode": EpisodicMemory, "pattern": SemanticMemory, "skill": ProceduralMemory}[layer]
        return kind(self.db.memory(user).scope, self.db.engine)

    def given(self, layer: str, fields: dict[str, Any]) -> Any:
        fields = dict(fields)
        if layer == "episode":
            fields["timestamp"] = START + timedelta(days=fields.pop("days"))
        return KINDS[layer](**fields)

    def remember(self, user: str, layer: str, value: Any) -> None:
        mine = self.model[user, layer]
        old = mine.get(value.id)
        if old is None:
            self.number += 1
            mine[value.id] = Known(value.model_copy(), self.number, self.now)
            return
        kept: dict[str, Any] = {"access_count": max(value.access_count, old.value.access_count)}
        kept["last_accessed"] = old.value.last_accessed
        if "importance" not in value.model_fields_set:
            kept["importance"] = old.value.importance
        if layer == "pattern":
            kept["usage_count"] = max(value.usage_count, old.value.usage_count)
            kept["last_used"] = old.value.last_used
        old.value, old.since = value.model_copy(update=kept), self.now

    @rule(days=st.sampled_from([0, 1, 1, 5, 40]))
    def time_goes_by(self, days: int) -> None:
        self.now += timedelta(days=days, minutes=1)

    @rule(user=USERS, layer=LAYERS, data=st.data(), many=st.booleans())
    def store_some(self, user: str, layer: str, data: Any, many: bool) -> None:
        values = [self.given(layer, one) for one in data.draw(st.lists(MADE[layer], min_size=1, max_size=4))]
        store = self.store(user, layer)
        if many:
            unique = list({one.id: one for one in values}.values())
            assert self.wait(store.store_many(unique)) == [one.id for one in unique]
            values = unique
        else:
            assert [self.wait(store.store(one)) for one in values] == [one.id for one in values]
        for one in values:
            self.remember(user, layer, one)

    @rule(user=USERS, layer=LAYERS, id=IDS)
    def delete(self, user: str, layer: str, id: str) -> None:
        assert self.wait(self.store(user, layer).delete(id)) == (self.model[user, layer].pop(id, None) is not None)

    @rule(user=USERS, layer=LAYERS, id=IDS)
    def recall(self, user: str, layer: str, id: str) -> None:
        store = self.store(user, layer)
        self.wait(store.record_recall(id, 0.5))
        stats = self.wait(store.recall_stats(id))
        known = self.model[user, layer].get(id)
        if known is None:
            assert stats is None
            return
        if (user, layer) in self.aged:
            self.decay(known, self.aged[user, layer])
        value = known.value
        known.value = value.model_copy(
            update={
                "importance": value.importance + 0.1 * (1 - value.importance),
                "access_count": value.access_count + 1,
                "last_accessed": self.now,
            }
        )
        known.since = self.now
        assert (stats.recall_count, stats.last_recall_at) == (value.access_count + 1, self.now)

    def decay(self, known: Known, aged: datetime | None) -> None:
        value = known.value
        last = value.last_accessed or (value.timestamp if isinstance(value, EpisodeTrace) else known.since)
        begins = max(last, known.since, aged or known.since)
        days = max(0.0, (self.now - begins).total_seconds() / 86_400)
        left = max(value.importance * 0.5 ** (days / 30), min(value.importance, 0.01))
        known.value = value.model_copy(update={"importance": left})

    @rule(user=USERS)
    def age(self, user: str) -> None:
        changed = self.wait(self.db.write(lambda tx: age(tx, user)))
        expected = 0
        for layer in KINDS:
            aged = self.aged.get((user, layer))
            if aged is not None and aged.date() == self.now.date():
                continue
            for known in self.model[user, layer].values():
                before = known.value.importance
                self.decay(known, aged)
                expected += known.value.importance < before
            self.aged[user, layer] = self.now
        assert changed == expected

    @rule(user=USERS, id=IDS)
    def use(self, user: str, id: str) -> None:
        known = self.model[user, "pattern"].get(id)
        assert self.wait(self.store(user, "pattern").increment_usage(id)) == (known is not None)
        if known is not None:
            used = {"usage_count": known.value.usage_count + 1, "last_used": self.now}
            known.value = known.value.model_copy(update=used)

    @rule(user=USERS, days=st.sampled_from([0, 1, 10]), at_once=st.integers(1, 3))
    def clean_up(self, user: str, days: int, at_once: int) -> None:
        kept: set[str] = set()
        for known in self.model[user, "pattern"].values():
            kept |= {*known.value.source_episodes}
        for known in self.model[user, "skill"].values():
            kept |= {*known.value.extra.get("source_episodes", [])}
        until = self.now - timedelta(days=days)
        mine = self.model[user, "episode"]
        old = [id for id, known in mine.items() if known.value.timestamp < until and id not in kept]
        assert self.wait(self.store(user, "episode").cleanup_old(days, at_once=at_once)) == len(old)
        for id in old:
            del mine[id]

    @rule(user=USERS)
    def forget(self, user: str) -> None:
        self.wait(self.db.forget(user))
        for layer in KINDS:
            self.model[user, layer] = {}
            self.aged.pop((user, layer), None)

    def same(self, found: Any, known: Known) -> None:
        assert found.importance == pytest.approx(known.value.importance, rel=1e-6)
        level = {"importance": 0.5}
        assert found.model_copy(update=level) == known.value.model_copy(update=level)

    @rule(user=USERS, layer=LAYERS, id=IDS)
    def get(self, user: str, layer: str, id: str) -> None:
        found, known = self.wait(self.store(user, layer).get(id)), self.model[user, layer].get(id)
        assert (found is None) == (known is None)
        if known is not None:
            self.same(found, known)

    @rule(user=USERS, limit=st.integers(0, 4), since=st.integers(-3, 3), until=st.integers(-3, 3))
    def by_time(self, user: str, limit: int, since: int, until: int) -> None:
        store = self.store(user, "episode")
        mine = sorted(self.model[user, "episode"].values(), key=lambda known: (known.value.timestamp, known.number))
        newest = [known.value.id for known in reversed(mine)]
        assert [one.id for one in self.wait(store.get_recent(limit))] == newest[:limit]
        assert [one.id for one in self.wait(store.timeline())] == newest
        begin, end = (START + timedelta(days=days) for days in (since, until))
        within = [known.value.id for known in mine if begin <= known.value.timestamp <= end]
        assert [one.id for one in self.wait(store.get_by_date_range(begin, end))] == within

    @rule(
        user=USERS,
        category=st.sampled_from([None, "c"]),
        least=st.sampled_from([0, 0.5]),
        anti=st.sampled_from([True, False, None]),
    )
    def find(self, user: str, category: str | None, least: float, anti: bool | None) -> None:
        mine = sorted(self.model[user, "pattern"].values(), key=lambda known: known.number)
        assert [one.id for one in self.wait(self.store(user, "skill").list_all())] == [
            known.value.id for known in sorted(self.model[user, "skill"].values(), key=lambda known: known.number)
        ]
        found = self.wait(self.store(user, "pattern").find(None, least, anti=None))
        assert [one.id for one in found] == [known.value.id for known in mine if known.value.confidence >= least]
        chosen = self.wait(self.store(user, "pattern").find(category, least, anti=anti))
        anti_ids = {one.id for one in self.wait(self.store(user, "pattern").anti_patterns())}
        assert {known.value.id for known in mine if known.value.is_anti_pattern} <= anti_ids
        wanted = [one for one in found if category in (None, one.category) and anti in (None, one.id in anti_ids)]
        assert chosen == wanted

    @rule(user=USERS, layer=LAYERS, word=WORDS)
    def search(self, user: str, layer: str, word: str) -> None:
        hits = self.wait(self.store(user, layer).search(word, 100))
        mine = self.model[user, layer]
        wanted = {
            id for id, known in mine.items()
            if word in (getattr(known.value, TITLES[layer]), getattr(known.value, "description", ""))
        }  # fmt: skip
        assert {getattr(hit, layer).id for hit in hits} == wanted
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    @invariant()
    def everything_is_counted(self) -> None:
        report = self.wait(self.db.check())
        assert report.problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Experience.TestCase.settings = settings(
    SAME_EVERY_TIME, max_examples=25, stateful_step_count=30, report_multiple_bugs=False
)
TestExperience = Experience.TestCase
