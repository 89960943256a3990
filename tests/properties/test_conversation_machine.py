"""Conversations against plain lists: any history of calls gives what the lists give."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb.layers.history import legal
from tests.strategies import SAME_EVERY_TIME

USERS = st.sampled_from(["alice", "bob"])
SESSIONS = st.sampled_from(["a:b", "a_b", "A:b"])
WORDS = ["okapi", "zebra", "赤い", "x"]
LIMITS = st.none() | st.integers(0, 6)


def call(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "function": {"name": "f"}} for id in ids]}


def result(id: str) -> dict[str, Any]:
    return {"role": "tool", "content": "r", "tool_call_id": id}


GIVEN = st.sampled_from(
    [
        *({"role": "user", "content": word} for word in WORDS),
        {"role": "assistant", "content": ["zebra", 1]},
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "dated", "timestamp": "2020-02-02T02:02:02Z"},
        *(call("1"), call("1", "2"), result("1"), result("2")),
    ]
)


@dataclass
class Talk:
    """A session as the model sees it."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    cursor: int = 0
    known: bool = False  # more than its messages say

    def rest(self) -> list[dict[str, Any]]:
        return self.messages[self.cursor :]

    def compact(self, keep: int) -> None:
        """Move the cursor as far as at least `keep` messages stay and no call is parted from its results."""
        rest = self.rest()
        cuts = [at for at in range(1, len(rest) - keep + 1) if not _parts_a_call(rest, at)]
        if cuts:
            self.cursor, self.known = self.cursor + max(cuts), True


def _parts_a_call(messages: list[dict[str, Any]], at: int) -> bool:
    """Whether the messages from `at` begin with results of a call that stands before it."""
    if at == len(messages) or messages[at]["role"] != "tool":
        return False
    before = at - 1
    while before >= 0 and messages[before]["role"] == "tool":
        before -= 1
    return before >= 0 and "tool_calls" in messages[before]


def plain(messages: list[Any]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


def sent(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in message.items() if name != "timestamp"} for message in messages]


class Conversations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        self.model: dict[tuple[str, str], Talk] = {}
        self.folder = tempfile.TemporaryDirectory(prefix="memdb-")

    def wait(self, call: Any) -> Any:
        self.now += timedelta(seconds=1)
        return self.loop.run_until_complete(call)

    def talk(self, user: str, session: str) -> Any:
        return self.db.memory(user, session).conversation

    def of(self, user: str, session: str) -> Talk:
        return self.model.setdefault((user, session), Talk())

    @rule(user=USERS, session=SESSIONS, message=GIVEN)
    def add(self, user: str, session: str, message: dict[str, Any]) -> None:
        held = self.of(user, session).messages
        held.append(message)
        assert self.wait(self.talk(user, session).add_message(message)) == len(held)

    @rule(user=USERS, session=SESSIONS, many=st.lists(GIVEN, max_size=8))
    def add_many(self, user: str, session: str, many: list[dict[str, Any]]) -> None:
        assert self.wait(self.talk(user, session).add_messages(many)) == len(many)
        self.of(user, session).messages.extend(many)

    @rule(user=USERS, many=st.lists(st.tuples(SESSIONS, GIVEN), min_size=2, max_size=8))
    def add_side_by_side(self, user: str, many: list[tuple[str, dict[str, Any]]]) -> None:
        async def all_at_once() -> list[int]:
            return await asyncio.gather(*(self.talk(user, session).add_message(given) for session, given in many))

        positions = []
        for session, given in many:
            self.of(user, session).messages.append(given)
            positions.append(len(self.of(user, session).messages))
        assert self.wait(all_at_once()) == positions

    @rule(user=USERS, session=SESSIONS, many=st.lists(GIVEN, max_size=3))
    def add_one_that_is_bad(self, user: str, session: str, many: list[dict[str, Any]]) -> None:
        try:
            self.wait(self.talk(user, session).add_messages([*many, {"role": "user"}]))
            raise AssertionError
        except memdb.InvalidInput:
            pass

    @rule(user=USERS, session=SESSIONS)
    def clear(self, user: str, session: str) -> None:
        assert self.wait(self.talk(user, session).clear()) == len(self.of(user, session).messages)
        self.model[user, session] = Talk(known=True)

    @rule(user=USERS, session=SESSIONS, keep=st.integers(0, 5))
    def compact(self, user: str, session: str, keep: int) -> None:
        self.of(user, session).compact(keep)
        assert self.wait(self.talk(user, session).compact(keep)) == self.of(user, session).cursor

    @rule(user=USERS, session=SESSIONS)
    def delete_session(self, user: str, session: str) -> None:
        count = len(self.of(user, session).messages)
        expected = {"message": count} if count else {}
        assert self.wait(self.db.delete_session(session, user)) == expected
        self.model.pop((user, session))

    @rule(user=USERS, session=SESSIONS, to_user=USERS, to_session=SESSIONS)
    def export_and_import(self, user: str, session: str, to_user: str, to_session: str) -> None:
        path, source, target = Path(self.folder.name) / "a", self.of(user, session), self.of(to_user, to_session)
        assert self.wait(self.talk(user, session).export_jsonl(path)) == len(source.messages)
        report = self.wait(self.talk(to_user, to_session).import_jsonl(path))
        assert (report.messages, report.skipped) == (len(source.messages), 0)
        if not target.messages:
            target.cursor = source.cursor
        target.messages = target.messages + source.messages
        target.known = True

    @rule(user=USERS, session=SESSIONS, limit=LIMITS, before=st.none() | st.integers(-1, 30))
    def messages(self, user: str, session: str, limit: int | None, before: int | None) -> None:
        held = self.of(user, session).messages
        held = held if before is None else held[: max(0, before - 1)]
        held = held if limit is None else held[len(held) - min(limit, len(held)) :]
        found = self.wait(self.talk(user, session).messages(limit, before=before))
        assert plain(found) == sent(held)

    @rule(user=USERS, session=SESSIONS, most=LIMITS)
    def get_history(self, user: str, session: str, most: int | None) -> None:
        rest = self.of(user, session).rest()
        rest = rest if most is None else rest[len(rest) - min(most, len(rest)) :]
        expected = legal([memdb.Message(**message) for message in rest])
        assert plain(self.wait(self.talk(user, session).get_history(most))) == plain(expected)

    @rule(user=USERS, session=SESSIONS, word=st.sampled_from(WORDS), all_sessions=st.booleans())
    def search(self, user: str, session: str, word: str, all_sessions: bool) -> None:
        mine = {
            (name, at)
            for (owner, name), talk in self.model.items()
            if owner == user and (all_sessions or name == session)
            for at, message in enumerate(talk.messages, 1)
            if word in (message["content"] or "")
        }
        hits = self.wait(self.talk(user, session).search(word, k=1000, all_sessions=all_sessions))
        assert {(hit.session_id, hit.message.position) for hit in hits if hit.own} == mine
        assert all(abs(hit.score - hit.own - sum(hit.lent.values())) < 1e-9 for hit in hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    @invariant()
    def everything_is_where_it_belongs(self) -> None:
        for (user, session), talk in self.model.items():
            found = self.wait(self.talk(user, session).messages())
            assert plain(found) == sent(talk.messages)
            assert [message.position for message in found] == list(range(1, len(found) + 1))
            assert self.wait(self.talk(user, session).last_consolidated()) == talk.cursor
        for user in ("alice", "bob"):
            held = {
                name: len(talk.messages)
                for (owner, name), talk in self.model.items()
                if owner == user and (talk.messages or talk.known)
            }
            assert {info.session_id: info.messages for info in self.wait(self.db.sessions(user))} == held
        assert self.wait(self.db.check()).problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()
        self.folder.cleanup()


Conversations.TestCase.settings = settings(
    SAME_EVERY_TIME, max_examples=25, stateful_step_count=30, report_multiple_bugs=False
)
TestConversations = Conversations.TestCase
