"""Windows against plain lists: whatever is added, consolidated and configured, what stays is what the lists say."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb.layers.history import legal
from memdb.layers.window import CompactConfig, ConversationMemoryConfig
from tests.strategies import SAME_EVERY_TIME

SESSIONS = st.sampled_from(["s", "t"])


def call(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "function": {"name": "f"}} for id in ids]}


def claude_call(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]}


def result(id: str) -> dict[str, Any]:
    return {"role": "tool", "content": "okapi " * 30, "tool_call_id": id}


def claude_result(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "r" * 150} for id in ids]}


PLAIN = st.sampled_from(
    [
        {"role": "user", "content": "okapi"},
        {"role": "user", "content": [{"type": "text", "text": '"tool_result"'}]},
        {"role": "assistant", "content": "zebra"},
        {"role": "system", "content": "be kind"},
    ]
)
TOOLS = st.sampled_from(
    [*(make(*"12"[:n]) for make in (call, claude_call, claude_result) for n in (1, 2)), result("1")]
)
GIVEN = PLAIN | TOOLS
GROUPS = st.sampled_from(
    [[call(*"123"[:n]), *map(result, "123"[:n])] for n in (1, 2, 3)]
    + [[claude_call(*"12"[:n]), claude_result(*"12"[:n])] for n in (1, 2)]
    + [[claude_call("1", "2", "3"), claude_result("1"), claude_result("2"), claude_result("3")], [call("1")]]
)
LIMITS = st.none() | st.integers(1, 7)
CONFIGS = st.none() | st.builds(
    lambda turns, items: ConversationMemoryConfig(
        strategy="full" if turns is items is None else "sliding_window",
        max_turns=turns,
        max_items=items,
        compact=CompactConfig(context_window=60, reserved_tokens=10, keep_recent=2),
    ),
    st.none() | st.integers(1, 4),
    LIMITS,
)


def is_answer(message: dict[str, Any]) -> bool:
    content = message["content"]
    return message["role"] == "tool" or (isinstance(content, list) and content[0]["type"] == "tool_result")


def asks(message: dict[str, Any]) -> bool:
    content = message["content"]
    return "tool_calls" in message or (isinstance(content, list) and content[0]["type"] == "tool_use")


def starts(messages: list[dict[str, Any]]) -> list[int]:
    """Return where groups begin: everywhere but at the results of a call."""
    found, inside = [], False
    for at, message in enumerate(messages):
        inside = (inside and is_answer(message)) or asks(message)
        if asks(message) or not (inside and is_answer(message)):
            found.append(at)
    return found


@dataclass
class Talk:
    """A session as the model sees it: every message ever added, by position."""

    log: list[dict[str, Any]] = field(default_factory=list)
    gone: int = 0  # so many of them, the oldest, are deleted
    cursor: int = 0  # a position
    config: ConversationMemoryConfig | None = None

    def held(self) -> list[dict[str, Any]]:
        return self.log[self.gone :]

    def rest(self) -> list[dict[str, Any]]:
        return self.log[max(self.gone, self.cursor) :]

    def add(self, messages: list[dict[str, Any]]) -> None:
        self.log += messages
        config = self.config
        if config is None or config.strategy == "full" or not messages:
            return
        wanted = self.gone
        if config.max_items is not None:
            wanted = max(wanted, len(self.log) - config.max_items)
        if config.max_turns is not None and any(_begins(message) for message in messages):
            turns = [at for at, message in enumerate(self.log) if at >= self.gone and _begins(message)]
            if len(turns) > config.max_turns:
                wanted = max(wanted, turns[-config.max_turns])
        cuts = starts(self.log)
        if self.cursor:
            wanted = min(wanted, max(self.cursor, self.gone))
            cuts = [cut for cut in cuts if cut <= self.cursor]
        reached = [cut for cut in cuts if cut >= wanted]
        self.gone = max(self.gone, min(reached) if reached else max(cuts, default=0))

    def compact(self, keep: int) -> None:
        rest = self.rest()
        cuts = [cut for cut in (*starts(rest), len(rest)) if 0 < cut <= len(rest) - keep]
        if cuts:
            self.cursor = max(self.gone, self.cursor) + max(cuts)


def _begins(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and not is_answer(message)


def plain(messages: list[Any]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


class Windows(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        self.talks = {name: self.db.memory("alice", name).conversation for name in ("s", "t")}
        self.model = {name: Talk() for name in self.talks}
        self.seen: dict[str, tuple[int, int]] = dict.fromkeys(self.talks, (0, 0))

    def wait(self, call: Any) -> Any:
        self.now += timedelta(seconds=1)
        return self.loop.run_until_complete(call)

    @rule(session=SESSIONS, config=CONFIGS)
    def configure(self, session: str, config: ConversationMemoryConfig | None) -> None:
        self.model[session].config = config
        assert self.talks[session].configure(config or ConversationMemoryConfig()) is self.talks[session]

    @rule(session=SESSIONS, message=GIVEN)
    def add(self, session: str, message: dict[str, Any]) -> None:
        self.model[session].add([message])
        assert self.wait(self.talks[session].add_message(message)) == len(self.model[session].log)
        self.limits_hold(session, [message])

    def limits_hold(self, session: str, added: list[dict[str, Any]]) -> None:
        """Limits hold unless the oldest group must stay: it is the newest, or not consolidated to its end."""
        model = self.model[session]
        if model.config is None or model.config.strategy == "full":
            return
        held = self.wait(self.talks[session].messages())
        first_end = [*starts(model.log), len(model.log)]
        end = min(at for at in first_end if at > model.gone)
        if end == len(model.log) or (model.cursor and end > model.cursor):
            return
        assert model.config.max_items is None or len(held) <= model.config.max_items
        turns = sum(_begins(message) for message in plain(held))
        if any(map(_begins, added)):
            assert model.config.max_turns is None or turns <= model.config.max_turns

    @rule(session=SESSIONS, group=GROUPS)
    def add_a_group(self, session: str, group: list[dict[str, Any]]) -> None:
        for message in group:
            self.add(session, message)

    @rule(session=SESSIONS, many=st.lists(st.lists(GIVEN, max_size=3) | GROUPS, max_size=5))
    def add_many(self, session: str, many: list[list[dict[str, Any]]]) -> None:
        messages = [message for group in many for message in group]
        self.model[session].add(messages)
        assert self.wait(self.talks[session].add_messages(messages)) == len(messages)
        if messages:
            self.limits_hold(session, messages)

    @rule(many=st.lists(st.tuples(SESSIONS, GIVEN), min_size=2, max_size=9))
    def add_side_by_side(self, many: list[tuple[str, dict[str, Any]]]) -> None:
        async def all_at_once() -> list[int]:
            return await asyncio.gather(*(self.talks[session].add_message(given) for session, given in many))

        positions = []
        for session, given in many:
            self.model[session].add([given])
            positions.append(len(self.model[session].log))
        assert self.wait(all_at_once()) == positions

    @rule(session=SESSIONS, config=CONFIGS, many=st.lists(GIVEN, min_size=1, max_size=4), fails=st.booleans())
    def add_in_a_unit(
        self, session: str, config: ConversationMemoryConfig | None, many: list[dict[str, Any]], fails: bool
    ) -> None:
        def unit(inside: Any) -> None:
            talk = inside.conversation
            if config is not None:
                talk.configure(config)
            for message in many:
                talk.add_message(message)
            if fails:
                raise RuntimeError

        if not fails:
            outside, self.model[session].config = self.model[session].config, config
            for message in many:
                self.model[session].add([message])
            self.model[session].config = outside
        try:
            self.wait(self.db.memory("alice", session).atomic(unit))
        except RuntimeError:
            assert fails

    @rule(session=SESSIONS, keep=st.integers(0, 5))
    def compact(self, session: str, keep: int) -> None:
        model = self.model[session]
        model.compact(keep)
        assert self.wait(self.talks[session].compact(keep)) == max(0, model.cursor - model.gone)

    @rule(session=SESSIONS)
    def clear(self, session: str) -> None:
        model = self.model[session]
        assert self.wait(self.talks[session].clear()) == len(model.held())
        self.model[session] = Talk(config=model.config)
        self.seen[session] = (0, 0)

    @invariant()
    def what_stays_is_what_the_model_says(self) -> None:
        for name, model in self.model.items():
            found = self.wait(self.talks[name].messages())
            assert plain(found) == model.held()
            assert [message.position for message in found] == list(range(model.gone + 1, len(model.log) + 1))
            assert self.wait(self.talks[name].last_consolidated()) == max(0, model.cursor - model.gone)

    @invariant()
    def no_group_is_parted(self) -> None:
        for model in self.model.values():
            assert model.gone == len(model.log) == 0 or model.gone in starts(model.log)

    @invariant()
    def nothing_goes_that_is_not_consolidated(self) -> None:
        for name, model in self.model.items():
            gone, cursor = self.seen[name]
            assert model.gone in (gone, *range(cursor + 1)) or not cursor
            self.seen[name] = (model.gone, model.cursor)

    @invariant()
    def the_history_is_legal(self) -> None:
        for name, model in self.model.items():
            history = self.wait(self.talks[name].get_history())
            assert legal(history) == history
            expected = legal([memdb.Message(**message) for message in model.rest()])
            assert [message.role for message in history] == [message.role for message in expected]
            if model.config is None:
                assert plain(history) == plain(expected)

    @invariant()
    def the_file_is_whole(self) -> None:
        assert self.wait(self.db.check()).problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Windows.TestCase.settings = settings(
    SAME_EVERY_TIME, max_examples=40, stateful_step_count=30, report_multiple_bugs=False
)
TestWindows = Windows.TestCase
