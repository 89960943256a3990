"""Blocks against a model: whatever is written, they keep their sizes, and nothing but `discard` loses a character."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import InvalidInput, NotFound
from memdb.layers.blocks.config import BlockConfig, MemoryConfig
from memdb.layers.blocks.cutting import beginning, count, ending
from memdb.layers.blocks.eviction import STRATEGIES, Archived, Overflow, evicted, summarised
from memdb.layers.blocks.rendering import fenced
from memdb.testing import ScriptedModel
from tests.strategies import CHARS, SAME_EVERY_TIME, texts

NAMES = st.sampled_from(["task", "notes", "名", "a b"])
SESSIONS = st.sampled_from(["s", "t"])
SIZES = st.sampled_from([1, 2, 3, 8, 20, 60])
LONG = st.lists(texts | st.text(CHARS, max_size=200), min_size=1, max_size=6).map("\n".join) | st.sampled_from(
    [
        "x" * 3_000,
        "猫" * 900,
        " " * 5_000,
        "\n" * 400,
        "👩‍👩‍👧" * 200,
        "the cat " * 300,
        "x\n" * 500,
        "a" * 127 + "\r\n",
    ]
)
WRITTEN = texts | LONG


def ink(*parts: str) -> str:
    """Return texts as one, without white space: what an eviction must not lose."""
    return "".join("".join(parts).split())


# -- pure functions ---------------------------------------------------------------------------------------------------


@settings(SAME_EVERY_TIME, max_examples=300)
@given(WRITTEN, st.integers(0, 40) | st.integers(0, 600))
def test_a_cut_is_a_part_that_fits(text: str, size: int) -> None:
    first, last = beginning(text, size), ending(text, size)
    assert text.startswith(first)
    assert text.endswith(last)
    for kept in (first, last):
        assert count(kept) <= size
        if count(text) <= size:
            assert kept == text


@pytest.mark.parametrize(
    "text", ["word " * 4_000, "line of words\n" * 1_500, "猫が好き。" * 2_000, "def f(x):\n    return x\n" * 900]
)
@pytest.mark.parametrize("size", [10, 100, 1_000])
def test_a_cut_uses_most_of_its_room(text: str, size: int) -> None:
    for kept in (beginning(text, size), ending(text, size)):
        assert 0.5 * size <= count(kept) <= size


@settings(SAME_EVERY_TIME, max_examples=300)
@given(st.sampled_from(sorted(STRATEGIES)), WRITTEN, WRITTEN, st.integers(0, 60), st.none() | WRITTEN)
def test_evictions_fit_and_lose_nothing(strategy: Any, old: str, new: str, size: int, summary: str | None) -> None:
    overflow, told = Overflow(old, new), STRATEGIES[strategy].archived
    left = evicted(strategy, overflow, size)
    assert count(left.content) <= size
    kept = left.content.removesuffix(new).removesuffix("\n") if left.content.endswith(new) else ""
    if told is Archived.NOTHING:
        assert left.archived == []
    elif new and count(new) > size:
        assert left.archived == [text for text in (old, new) if text.strip()]
        assert new.startswith(left.content)
    elif told is Archived.WHOLE:
        assert left.archived == ([old] if old.strip() else [])
    elif old not in (left.content, kept):
        assert ink(*left.archived, left.content) == ink(old, new)
    with_summary = summarised(overflow, summary, size)
    assert count(with_summary.content) <= size
    for text in (old, new):
        assert ink(text) in ink(with_summary.content) or text in with_summary.archived


@pytest.mark.parametrize(("old", "new"), [("1" * 2_626, "_" * 3_931), ("👩‍" * 2_177, "_" * 2_947)])
def test_a_whole_that_has_more_tokens_than_its_parts_fits(old: str, new: str) -> None:
    parts = count(old) + 1 + count(new)
    assert count(f"{old}\n{new}") > parts
    assert count(evicted("truncate", Overflow(f"much\n{old}", new), parts).content) <= parts
    assert count(summarised(Overflow("much", new), old, parts).content) <= parts


@settings(SAME_EVERY_TIME, max_examples=200)
@given(st.text(st.sampled_from("`~\n a"), max_size=40) | texts)
def test_a_fence_ends_where_its_text_does(text: str) -> None:
    fence, *lines = fenced(text).split("\n")
    assert fence == lines[-1] == "`" * len(fence)
    assert len(fence) >= 3
    assert "\n".join(lines[:-1]) == text.removesuffix("\n")
    assert fence not in text


# -- the layer --------------------------------------------------------------------------------------------------------


class Blocks(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.db = self.wait(memdb.open(":memory:").__aenter__())
        self.configs: dict[str, dict[str, BlockConfig]] = {"s": {}, "t": {}}
        self.settings = {"s": MemoryConfig(), "t": MemoryConfig()}
        # (session, name) -> its texts, oldest first, and which of them an undo has brought back.
        self.texts: dict[tuple[str, str], tuple[list[str], int | None]] = {}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def blocks(self, session: str) -> Any:
        return self.db.memory("alice", session).blocks

    def content(self, session: str, name: str) -> str:
        return self.texts[session, name][0][-1]

    def note(self, session: str, *, written: str | None = None, restored: int | None = None) -> None:
        """Take what a session's blocks now hold into the model; all but the one written may only have been cut."""
        for name, now in self.wait(self.blocks(session).get_memory()).items():
            told, pointer = self.texts.setdefault((session, name), ([], None))
            changed = not told or told[-1] != now
            if name == written and restored is not None:
                pointer = restored
            elif changed:
                pointer = None
            if changed:
                assert name == written or not told or told[-1].endswith(now) or self.settings[session].total_size
                told.append(now)
            self.texts[session, name] = (told, pointer)

    def archived(self, ids: list[str]) -> list[str]:
        sql = "SELECT content FROM v_archive WHERE user_id = 'alice' AND id = ?"
        return [self.wait(self.db.read(lambda tx, id=id: tx.execute(sql, (id,))))[0][0] for id in ids]

    def check(self, session: str, name: str, change: Any, old: str, new: str) -> None:
        """Check an edit that makes `old` and, on a line of its own, `new` of a block."""
        whole = Overflow(old, new).whole
        config = self.settings[session]
        size = config.bound(self.configs[session][name].size)
        before, self_now = self.content(session, name), self.wait(self.blocks(session).get_memory(name))[name]
        assert change.tokens_before == count(before)
        assert change.tokens_after == count(self_now) <= size
        assert change.evicted == (self_now != whole)
        if count(whole) <= size:
            assert self_now == whole
        elif config.eviction_strategy != "discard":
            kept = self.archived(change.archived)
            for text in (old, new):
                assert ink(text) in ink(self_now) or ink(text) in ink(*kept, self_now) or text in kept

    @rule(session=SESSIONS, name=NAMES, size=SIZES, priority=st.integers(0, 2), initial=st.just("") | texts)
    def configure(self, session: str, name: str, size: int, priority: int, initial: str) -> None:
        config = BlockConfig(size=size, priority=priority, description=f"of {size}", initial_value=initial)
        self.wait(self.blocks(session).configure({name: config}))
        self.configs[session][name] = config
        self.note(session, written=name)

    @rule(
        session=SESSIONS, strategy=st.sampled_from(sorted(STRATEGIES)), total=st.sampled_from([None, None, 1, 12, 50])
    )
    def choose(self, session: str, strategy: Any, total: int | None) -> None:
        self.settings[session] = MemoryConfig(eviction_strategy=strategy, total_size=total)
        self.wait(self.blocks(session).configure({}, self.settings[session]))
        self.note(session)

    @rule(session=SESSIONS, name=NAMES)
    def remove(self, session: str, name: str) -> None:
        assert self.wait(self.blocks(session).remove_block(name)) == (name in self.configs[session])
        self.configs[session].pop(name, None)
        self.texts.pop((session, name), None)

    @rule(session=SESSIONS, name=NAMES, text=WRITTEN, act=st.sampled_from(["update", "append"]), asks=st.booleans())
    def write(self, session: str, name: str, text: str, act: str, asks: bool) -> None:
        blocks = self.blocks(session).with_llm(ScriptedModel(["What was."])) if asks else self.blocks(session)
        call = blocks.update_memory(name, text) if act == "update" else blocks.append_to_memory(name, text)
        if name not in self.configs[session]:
            with pytest.raises(NotFound):
                self.wait(call)
            return
        change = self.wait(call)
        old = self.content(session, name) if act == "append" else ""
        self.check(session, name, change, old, text)
        self.note(session, written=name)

    @rule(session=SESSIONS, name=NAMES, data=st.data(), new=texts)
    def replace(self, session: str, name: str, data: Any, new: str) -> None:
        if name not in self.configs[session] or not self.content(session, name):
            return
        content = self.content(session, name)
        start = data.draw(st.integers(0, len(content) - 1))
        old = content[start : start + data.draw(st.integers(1, 8))]
        change = self.wait(self.blocks(session).replace(name, old, new))
        assert change.replaced == content.count(old)
        self.check(session, name, change, content.replace(old, new), "")
        self.note(session, written=name)

    @rule(session=SESSIONS, name=NAMES)
    def undo(self, session: str, name: str) -> None:
        if name not in self.configs[session]:
            return
        told, restored = self.texts[session, name]
        target = (restored or len(told)) - 1
        if target < 1:
            with pytest.raises(InvalidInput, match="nothing to undo"):
                self.wait(self.blocks(session).undo(name))
            return
        change = self.wait(self.blocks(session).undo(name))
        self.check(session, name, change, told[target - 1], "")
        self.note(session, written=name, restored=target)

    @invariant()
    def everything_is_as_it_should_be(self) -> None:
        for session, configs in self.configs.items():
            blocks = self.blocks(session)
            info, held = self.wait(blocks.get_block_info()), self.wait(blocks.get_memory())
            assert self.wait(blocks.block_configs()) == configs
            assert set(held) == set(info) == set(configs)
            for name, one in info.items():
                assert one.tokens == count(held[name]) <= configs[name].size
                edits = self.wait(blocks.edits(name, 1_000))
                assert [edit.content for edit in edits] == self.texts[session, name][0][::-1]
                assert one.version == len(edits)
            total = self.settings[session].total_size
            assert total is None or sum(one.tokens for one in info.values()) <= total
        assert self.wait(self.db.check()).problems == []

    def teardown(self) -> None:
        self.wait(self.db.close())
        self.loop.close()


Blocks.TestCase.settings = settings(
    SAME_EVERY_TIME, max_examples=25, stateful_step_count=30, report_multiple_bugs=False
)
TestBlocks = Blocks.TestCase
