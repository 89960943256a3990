"""The archive against a dictionary: any history of calls gives what the dictionary gives."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb.layers.archive import Passage
from memdb.layers.passage import beginning, passage_id
from tests.strategies import SAME_EVERY_TIME

USERS = st.sampled_from(["alice", "bob"])
WORDS = st.sampled_from(["red", "green", "blue", "赤い"])
CONTENTS = st.builds(lambda word, more: f"{word}{more}", WORDS, st.sampled_from(["", " leaf", " leaf" * 30]))
GIVEN = st.fixed_dictionaries(
    {"content": CONTENTS},
    optional={
        "summary": st.sampled_from(["", "short"]),
        "importance": st.sampled_from([-1, 0.25, 0.5, 0.75, 9]),
        "tags": st.lists(st.sampled_from(["x", "Y", "z w"]), max_size=2),
        "source": st.sampled_from(["agent", "tool"]),
    },
)


class Archive(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        # user -> id -> the passage and its recalls, in the order of insertion.
        self.model: dict[str, dict[str, tuple[Passage, list[float]]]] = {"alice": {}, "bob": {}}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def archive(self, user: str) -> Any:
        return self.db.memory(user, "s").archive

    def remember(self, user: str, given: dict[str, Any], session: str | None) -> str:
        new = Passage(**given, session_id=session)
        id = passage_id(new.content)
        old, recalls = self.model[user].get(id, (None, []))
        if old is None:
            shown = new.summary or beginning(new.content)
            self.model[user][id] = (new.model_copy(update={"id": id, "created_at": self.now, "summary": shown}), [])
            return id
        joined = {"importance": max(old.importance, new.importance), "tags": list(dict.fromkeys(old.tags + new.tags))}
        if old.summary == beginning(old.content) and new.summary:
            joined["summary"] = new.summary
        self.model[user][id] = (old.model_copy(update=joined), recalls)
        return id

    @rule()
    def time_goes_by(self) -> None:
        self.now += timedelta(seconds=1)

    @rule(user=USERS, given=GIVEN)
    def insert(self, user: str, given: dict[str, Any]) -> None:
        assert self.wait(self.archive(user).insert(**given)) == self.remember(user, given, "s")

    @rule(user=USERS, many=st.lists(GIVEN, max_size=5))
    def insert_many(self, user: str, many: list[dict[str, Any]]) -> None:
        made = self.wait(self.archive(user).insert_many(many))
        assert made == [self.remember(user, given, None) for given in many]

    @rule(user=USERS, content=CONTENTS)
    def delete(self, user: str, content: str) -> None:
        id = passage_id(content)
        assert self.wait(self.archive(user).delete(id)) == (self.model[user].pop(id, None) is not None)

    @rule(user=USERS, content=CONTENTS, score=st.sampled_from([0.25, 1.0]))
    def record_recall(self, user: str, content: str, score: float) -> None:
        self.wait(self.archive(user).record_recall(passage_id(content), score))
        if passage_id(content) in self.model[user]:
            self.model[user][passage_id(content)][1].append(score)

    @rule(user=USERS)
    def forget(self, user: str) -> None:
        self.wait(self.db.forget(user))
        self.model[user] = {}

    @rule(user=USERS, content=CONTENTS)
    def get(self, user: str, content: str) -> None:
        id = passage_id(content)
        passage, recalls = self.model[user].get(id, (None, []))
        assert self.wait(self.archive(user).get(id)) == passage
        stats = self.wait(self.archive(user).recall_stats(id))
        assert (stats and (stats.recall_count, stats.total_score)) == (
            (len(recalls), sum(recalls)) if recalls else None
        )

    @rule(
        user=USERS,
        limit=st.integers(0, 5),
        tag=st.sampled_from([None, "x", "Z  w"]),
        source=st.sampled_from([None, "tool"]),
        behind=st.none() | st.integers(0, 5),
    )
    def list(self, user: str, limit: int, tag: str | None, source: str | None, behind: int | None) -> None:
        mine = enumerate(one for one, _ in self.model[user].values())
        newest = [one for _, one in sorted(mine, key=lambda entry: (entry[1].created_at, entry[0]), reverse=True)]
        before = None
        if behind is not None and behind < len(newest):
            before = newest[behind].id
            newest = newest[behind + 1 :]
        wanted = [
            one for one in newest
            if (tag is None or "-".join(tag.lower().split()) in one.tags) and source in (None, one.source)
        ]  # fmt: skip
        found = self.wait(self.archive(user).list(limit, tag=tag, source=source, before=before))
        assert found == wanted[:limit]

    @rule(user=USERS, word=WORDS, tags=st.sampled_from([None, ["x"], ["x", "y"]]))
    def search(self, user: str, word: str, tags: Any) -> None:
        hits = self.wait(self.archive(user).search(word, k=100, threshold=0, tags=tags))
        mine = [one for one, _ in self.model[user].values() if one.content.startswith(word)]
        assert {hit.passage.id for hit in hits} == {one.id for one in mine if {*(tags or ())} <= {*one.tags}}
        assert all(hit.passage == self.model[user][hit.passage.id][0] for hit in hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(0 < hit.score <= 1 for hit in hits)

    @invariant()
    def everything_is_counted(self) -> None:
        report = self.wait(self.db.check())
        assert report.problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Archive.TestCase.settings = settings(
    SAME_EVERY_TIME, max_examples=25, stateful_step_count=30, report_multiple_bugs=False
)
TestArchive = Archive.TestCase
