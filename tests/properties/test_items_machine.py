"""Items against a dictionary: any history of calls gives what the dictionary gives."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import MemoryFilter, MemoryItem
from tests.strategies import SAME_EVERY_TIME

IDS = st.sampled_from(["a", "A", "ab", "a/b", "b", "é", "\U0010ffff", "\U0010ffffa"])
WORDS = st.sampled_from(["red", "green", "blue", "赤い", "x"])
LIVES = st.sampled_from([None, None, 1, 5])  # seconds
USERS = st.sampled_from(["alice", "bob"])


class Items(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        # (user, id) -> the item, when it was first saved, how often and how well it was recalled.
        self.model: dict[tuple[str, str], tuple[MemoryItem, list[float]]] = {}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def store(self, user: str) -> Any:
        return self.db.memory(user).items

    def item(self, id: str, word: str, life: int | None) -> MemoryItem:
        expires = None if life is None else self.now + timedelta(seconds=life)
        return MemoryItem(id=id, content=f"{word} {id}", metadata=[word], expires_at=expires)

    def remember(self, user: str, item: MemoryItem) -> None:
        old, recalls = self.alive().get((user, item.id), (None, []))
        created = old.created_at if old else self.now
        if old is None:
            self.model.pop((user, item.id), None)  # first saved anew: it comes last among its equals
        self.model[user, item.id] = (item.model_copy(update={"created_at": created}), recalls)

    def alive(self) -> dict[tuple[str, str], tuple[MemoryItem, list[float]]]:
        return {
            place: (item, recalls)
            for place, (item, recalls) in self.model.items()
            if item.expires_at is None or item.expires_at > self.now
        }

    @rule(seconds=st.sampled_from([0, 1, 3, 10]))
    def time_goes_by(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(user=USERS, id=IDS, word=WORDS, life=LIVES)
    def save(self, user: str, id: str, word: str, life: int | None) -> None:
        item = self.item(id, word, life)
        self.wait(self.store(user).save(item))
        self.remember(user, item)

    @rule(user=USERS, many=st.lists(st.tuples(IDS, WORDS, LIVES), max_size=6))
    def save_many(self, user: str, many: list[tuple[str, str, int | None]]) -> None:
        given = [self.item(*one) for one in many]
        assert self.wait(self.store(user).save_many(given)) == len(given)
        for item in given:
            self.remember(user, item)

    @rule(user=USERS, count=st.sampled_from([3, 70]))
    def save_what_expires_at_once(self, user: str, count: int) -> None:
        given = [self.item(f"short{n}", "brief", 1) for n in range(count)]
        self.wait(self.store(user).save_many(given))
        for item in given:
            self.remember(user, item)

    @rule(user=USERS, id=IDS)
    def delete(self, user: str, id: str) -> None:
        was_there = (user, id) in self.alive()
        assert self.wait(self.store(user).delete(id)) == was_there
        self.model.pop((user, id), None)

    @rule(user=USERS, id=IDS, score=st.sampled_from([0.0, 0.25, 1.0]))
    def recall(self, user: str, id: str, score: float) -> None:
        self.wait(self.store(user).record_recall(id, score))
        if (user, id) in self.alive():
            self.model[user, id][1].append(score)

    @rule(user=USERS)
    def forget(self, user: str) -> None:
        self.wait(self.db.forget(user))
        self.model = {place: kept for place, kept in self.model.items() if place[0] != user}

    @rule(user=USERS, id=IDS)
    def get(self, user: str, id: str) -> None:
        item, recalls = self.alive().get((user, id), (None, []))
        assert self.wait(self.store(user).get(id)) == item
        stats = self.wait(self.store(user).recall_stats(id))
        assert (stats and (stats.recall_count, stats.total_score)) == (
            (len(recalls), sum(recalls)) if recalls else None
        )

    @rule(
        user=USERS,
        prefix=st.sampled_from([None, "", "a", "a/", "short", "\U0010ffff"]),
        ago=st.none() | st.integers(0, 12),
        limit=st.none() | st.integers(0, 4),
    )
    def list(self, user: str, prefix: str | None, ago: int | None, limit: int | None) -> None:
        since = None if ago is None else self.now - timedelta(seconds=ago)
        mine = [item for (owner, _), (item, _) in self.alive().items() if owner == user]
        mine = [item for item in mine if item.id.startswith(prefix or "") and (not since or item.created_at >= since)]
        mine.sort(key=lambda item: item.created_at)
        found = self.wait(self.store(user).list(MemoryFilter(prefix=prefix, since=since, limit=limit)))
        assert found == mine[:limit]

    @rule(user=USERS, word=WORDS)
    def search(self, user: str, word: str) -> None:
        mine = {id for (owner, id), (item, _) in self.alive().items() if owner == user and item.metadata == [word]}
        found = {hit.item.id for hit in self.wait(self.store(user).search(f'"{word}"', limit=1000))}
        assert {id for id in found if self.alive()[user, id][0].content.split()[0] == word} == mine

    @invariant()
    def everything_is_counted(self) -> None:
        report = self.wait(self.db.check())
        assert report.problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Items.TestCase.settings = settings(SAME_EVERY_TIME, max_examples=25, stateful_step_count=30, report_multiple_bugs=False)
TestItems = Items.TestCase
