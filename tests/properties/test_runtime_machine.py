"""States, working summaries, checkpoints and tool results against plain dictionaries and lists."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import MissingFile
from memdb.layers.runtime.checkpoints import STATUSES, AgentCheckpoint
from tests.strategies import SAME_EVERY_TIME

WHO = st.sampled_from([("alice", "s"), ("alice", "t"), ("bob", "s")])
IDS = st.sampled_from(["a", "b", "A"])
KEYS = st.sampled_from(["current_task", "x", "", "\0"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=3)
ANY_TEXT = st.text(st.characters(), max_size=40) | st.sampled_from(["", "\ud800", "a\0b\r\n", "部\n" * 30_000])
STATUS = st.sampled_from([*STATUSES, None])


@dataclass
class Mind:
    """What one scope holds, as the model sees it."""

    state: dict[str, Any] | None = None
    working: str = ""
    revision: int = 0
    saves: list[tuple[str, int, str | None, dict[str, Any]]] = field(default_factory=list)  # oldest first
    results: dict[str, tuple[dict[str, Any], datetime | None]] = field(default_factory=dict)  # in the order of storing

    def standing(self) -> list[tuple[str, int, str | None, dict[str, Any]]]:
        last = {save[0]: save for save in self.saves}
        return [save for save in reversed(self.saves) if last[save[0]] is save]


def told(found: list[AgentCheckpoint]) -> list[tuple[str, int | None, str | None, dict[str, Any]]]:
    return [(one.id, one.seq, one.status, one.payload) for one in found]


class Minds(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        self.model: dict[tuple[str, str], Mind] = {
            who: Mind() for who in (("alice", "s"), ("alice", "t"), ("bob", "s"))
        }

    def wait(self, call: Any) -> Any:
        self.now += timedelta(seconds=1)
        return self.loop.run_until_complete(call)

    def manager(self, who: tuple[str, str]) -> Any:
        return self.db.memory(*who).manager

    @rule(who=WHO, patch=st.dictionaries(KEYS, JSON, max_size=3))
    def patch(self, who: tuple[str, str], patch: dict[str, Any]) -> None:
        mind = self.model[who]
        mind.state = {**(mind.state or {}), **patch}
        assert self.wait(self.manager(who).update_state(patch)) == mind.state

    @rule(who=WHO, patches=st.lists(st.dictionaries(KEYS, JSON, max_size=2), min_size=2, max_size=5))
    def patch_side_by_side(self, who: tuple[str, str], patches: list[dict[str, Any]]) -> None:
        async def all_at_once() -> None:
            await asyncio.gather(*(self.manager(who).update_state(patch) for patch in patches))

        for patch in patches:
            self.model[who].state = {**(self.model[who].state or {}), **patch}
        self.wait(all_at_once())

    @rule(who=WHO, keys=st.lists(KEYS, max_size=3))
    def remove_keys(self, who: tuple[str, str], keys: list[str]) -> None:
        mind = self.model[who]
        left = {key: value for key, value in (mind.state or {}).items() if key not in keys}
        assert self.wait(self.manager(who).remove_state_keys(keys)) == left
        mind.state = None if mind.state is None else left

    @rule(who=WHO)
    def clear(self, who: tuple[str, str]) -> None:
        mind = self.model[who]
        assert self.wait(self.manager(who).clear_state()) == (mind.state is not None)
        assert self.wait(self.manager(who).clear_working_memory()) == bool(mind.working)
        mind.revision += bool(mind.working)
        mind.state, mind.working = None, ""

    @rule(who=WHO, content=st.sampled_from(["", "a", "部署\r\n"]), known=st.none() | st.integers(0, 3))
    def write(self, who: tuple[str, str], content: str, known: int | None) -> None:
        mind = self.model[who]
        right = known is None or known == mind.revision
        assert self.wait(self.manager(who).update_working_memory(content, if_revision=known)) == right
        if right:
            mind.working, mind.revision = content, mind.revision + 1

    @rule(who=WHO, behind=st.integers(0, 1), task=st.none() | st.sampled_from(["t", "u"]))
    def summarise(self, who: tuple[str, str], behind: int, task: str | None) -> None:
        mind = self.model[who]
        call = self.manager(who).store_summary("summary", if_revision=mind.revision - behind, current_task=task)
        assert self.wait(call) == (not behind)
        if not behind:
            mind.working, mind.revision = "summary", mind.revision + 1
            if task is not None:
                mind.state = {**(mind.state or {}), "current_task": task}

    @rule(who=WHO, id=IDS, status=STATUS, payload=OBJECTS)
    def save(self, who: tuple[str, str], id: str, status: Any, payload: dict[str, Any]) -> None:
        mind = self.model[who]
        seq = 1 + max([save[1] for save in mind.saves if save[0] == id], default=0)
        if status is None:
            assert self.wait(self.manager(who).save_plan(id, payload)) == seq
        else:
            checkpoint = AgentCheckpoint(id=id, status=status, payload=payload)
            assert self.wait(self.manager(who).save_checkpoint(checkpoint)) == seq
        mind.saves.append((id, seq, status, payload))

    @rule(who=WHO, keep=st.integers(1, 3))
    def prune(self, who: tuple[str, str], keep: int) -> None:
        mind, kept = self.model[who], []
        for at, save in enumerate(mind.saves):
            if sum(later[0] == save[0] for later in mind.saves[at:]) <= keep:
                kept.append(save)
        assert self.wait(self.manager(who).prune_checkpoints(keep)) == len(mind.saves) - len(kept)
        mind.saves = kept

    @rule(who=WHO, id=IDS)
    def delete(self, who: tuple[str, str], id: str) -> None:
        mind = self.model[who]
        gone = [save for save in mind.saves if save[0] == id]
        assert self.wait(self.manager(who).delete_checkpoint(id)) == len(gone)
        mind.saves = [save for save in mind.saves if save[0] != id]
        assert self.wait(self.manager(who).delete_tool_result(id)) == (id in self.alive(mind))
        mind.results.pop(id, None)

    @rule(who=WHO, id=IDS, head=OBJECTS, content=ANY_TEXT | JSON, lives=st.none() | st.integers(5, 60))
    def store(self, who: tuple[str, str], id: str, head: dict[str, Any], content: Any, lives: int | None) -> None:
        payload = {**head, "content": content}
        expires = None if lives is None else self.now + timedelta(seconds=lives)
        self.model[who].results.pop(id, None)
        self.model[who].results[id] = (payload, expires)
        self.wait(self.manager(who).save_tool_result(id, payload, expires_at=expires))

    def alive(self, mind: Mind) -> dict[str, dict[str, Any]]:
        kept = {id: payload for id, (payload, until) in mind.results.items() if until is None or until > self.now}
        mind.results = {id: mind.results[id] for id in kept}
        return kept

    @rule(who=WHO, status=STATUS, limit=st.integers(0, 3))
    def ask(self, who: tuple[str, str], status: Any, limit: int) -> None:
        mind = self.model[who]
        standing = [save for save in mind.standing() if status in (None, save[2])]
        manager = self.manager(who)
        assert told(self.wait(manager.checkpoints(limit, status=status))) == standing[:limit]
        latest = self.wait(manager.latest_checkpoint(status))
        assert told([latest] if latest else []) == standing[:1]

    @rule(who=WHO, id=IDS, start=st.integers(0, 100_000), size=st.integers(1, 40_000))
    def read_a_part(self, who: tuple[str, str], id: str, start: int, size: int) -> None:
        found = self.wait_for_result(who, id)
        content = None if found is None else found.get("content")
        if isinstance(content, str):
            whole = content.encode("utf-8", "surrogatepass")
            part = self.wait(self.manager(who).read_tool_result(id, start=start, size=size))
            assert part.text.encode("utf-8", "surrogatepass") == whole[part.start : part.end]
            assert part.start <= start or part.start == len(whole)
            assert part.end == len(whole) or part.text

    def wait_for_result(self, who: tuple[str, str], id: str) -> dict[str, Any] | None:
        self.now += timedelta(seconds=1)
        self.alive(self.model[who])
        self.now -= timedelta(seconds=1)
        if id in self.model[who].results:
            found: dict[str, Any] = self.wait(self.manager(who).load_tool_result(id))
            return found
        with pytest.raises(MissingFile):
            self.wait(self.manager(who).load_tool_result(id))
        return None

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        for who, mind in self.model.items():
            manager = self.manager(who)
            assert self.wait(manager.get_state()) == (mind.state or {})
            assert (self.wait(manager.state_envelope()) is None) == (mind.state is None)
            assert self.wait(manager.working_memory())[:2] == (mind.working, mind.revision)
            for id in ("a", "b", "A"):
                history = [save for save in reversed(mind.saves) if save[0] == id]
                assert told(self.wait(manager.checkpoint_history(id))) == history
                loaded = self.wait_for_result(who, id)
                assert loaded == (mind.results[id][0] if id in mind.results else None)
            listed = self.wait(manager.tool_results())
            assert [info.id for info in listed] == [*reversed(self.alive(mind))]

    @invariant()
    def no_payload_is_left_over(self) -> None:
        counts = self.wait(
            self.db.read(
                lambda tx: tx.execute(
                    "SELECT (SELECT count(*) FROM blob), (SELECT count(*) FROM (SELECT blob_id FROM checkpoint"
                    " UNION SELECT blob_id FROM tool_result)), (SELECT count(DISTINCT blob_id) FROM blob_chunk)"
                )
            )
        )
        assert len(set(counts[0])) == 1

    @invariant()
    def the_file_is_whole(self) -> None:
        assert self.wait(self.db.check()).problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Minds.TestCase.settings = settings(SAME_EVERY_TIME, max_examples=20, stateful_step_count=25, report_multiple_bugs=False)
TestMinds = Minds.TestCase
