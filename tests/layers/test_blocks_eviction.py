"""Blocks that grow too large: what stays, what goes, and what of it the archive has."""

from __future__ import annotations

import pytest

import memdb
from memdb import InvalidInput, Memory
from memdb.layers.blocks.config import BlockConfig, MemoryConfig
from memdb.layers.layer import Inside, Live
from memdb.testing import FrozenClock
from memdb.text.tokens import TokenCounter

tokens = TokenCounter().count
LINES = [f"The step number {n} is done." for n in range(6)]
A_LINE = tokens(LINES[0] + "\n")
OLD, NEW = "\n".join(LINES[:4]), LINES[4]
STRATEGIES = ["summarize_and_archive", "archive_only", "discard", "truncate"]


async def archived(memory: Memory[Live]) -> list[tuple[str, str, str, str]]:
    """Return content, source, block and session of every passage, the oldest first."""
    whose = memory.scope.user_id
    sql = "SELECT content, source, source_id, source_session_id FROM v_archive WHERE user_id = ? ORDER BY record_id"
    return await memory._home.read(lambda tx: tx.execute(sql, (whose,)))  # type: ignore[union-attr, return-value]


async def contents(memory: Memory[Live]) -> list[str]:
    return [passage[0] for passage in await archived(memory)]


async def full(memory: Memory[Live], strategy: str, **config: object) -> None:
    """Make a block `log` that holds OLD and has no room for a fifth line."""
    await memory.blocks.configure(
        {"log": {"size": tokens(OLD) + 2}}, MemoryConfig(eviction_strategy=strategy, **config)
    )
    await memory.blocks.update_memory("log", OLD)
    assert await archived(memory) == []


@pytest.mark.parametrize(
    ("strategy", "stays", "goes"),
    [
        ("summarize_and_archive", "\n".join(LINES[2:5]), [OLD]),  # without a model: half the block stays
        ("archive_only", NEW, [OLD]),
        ("discard", "\n".join(LINES[1:5]), []),
        ("truncate", "\n".join(LINES[1:5]), [LINES[0]]),
    ],
)
async def test_what_was_there_before_gives_way(
    memory: Memory[Live], strategy: str, stays: str, goes: list[str]
) -> None:
    await full(memory, strategy)
    changed = await memory.blocks.append_to_memory("log", NEW)
    assert await memory.blocks.get_memory("log") == {"log": stays}
    assert await archived(memory) == [(text, "block", "log", "default") for text in goes]
    assert changed.evicted
    assert (changed.tokens_before, changed.tokens_after) == (tokens(OLD), tokens(stays))
    assert len(changed.archived) == len(goes)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_block_that_is_just_full_stays(memory: Memory[Live], strategy: str) -> None:
    whole = f"{OLD}\n{NEW}"
    await memory.blocks.configure({"log": {"size": tokens(whole)}}, {"eviction_strategy": strategy})
    await memory.blocks.update_memory("log", OLD)
    changed = await memory.blocks.append_to_memory("log", NEW)
    assert not changed.evicted
    assert changed.tokens_after == tokens(whole)
    assert await memory.blocks.get_memory("log") == {"log": whole}
    assert await archived(memory) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("act", ["append", "update"])
async def test_of_a_new_text_that_is_too_large_by_itself_the_beginning_stays(
    memory: Memory[Live], strategy: str, act: str
) -> None:
    await full(memory, strategy)
    huge = "\n".join(f"New line {n} of many." for n in range(100))
    blocks = memory.blocks
    changed = await (blocks.append_to_memory if act == "append" else blocks.update_memory)("log", huge)
    kept = (await blocks.get_memory("log"))["log"]
    assert huge.startswith(f"{kept}\n")
    assert tokens(OLD) + 2 - 8 <= changed.tokens_after <= tokens(OLD) + 2
    expected = [] if strategy == "discard" else [OLD, huge] if act == "append" else [huge]
    assert await contents(memory) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_replacement_that_grows_too_large_gives_way_at_its_beginning(
    memory: Memory[Live], strategy: str
) -> None:
    await full(memory, strategy)
    changed = await memory.blocks.replace("log", "The step", "The very important step")
    whole = OLD.replace("The step", "The very important step")
    kept = (await memory.blocks.get_memory("log"))["log"]
    assert kept
    assert whole.endswith(f"\n{kept}")
    cut = whole[: -len(kept) - 1]
    expected = {"discard": [], "truncate": [cut]}.get(strategy, [whole])
    assert await contents(memory) == expected
    assert (changed.replaced, changed.evicted) == (4, True)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_size_that_shrinks_below_the_content_evicts(memory: Memory[Live], strategy: str) -> None:
    await full(memory, strategy)
    await memory.blocks.configure({"log": BlockConfig(size=2 * A_LINE)})
    assert await memory.blocks.get_memory("log") == {"log": "\n".join(LINES[2:4])}
    cut = "\n".join(LINES[:2])
    assert await contents(memory) == {"discard": [], "truncate": [cut]}.get(strategy, [OLD])
    edit, before = await memory.blocks.edits("log", 2)
    assert (edit.act, before.content) == ("evict", OLD)


async def test_an_initial_value_that_does_not_fit_is_cut_and_archived(memory: Memory[Live]) -> None:
    await memory.blocks.configure({"log": {"size": A_LINE, "initial_value": OLD}})
    assert await memory.blocks.get_memory() == {"log": LINES[0]}
    assert await contents(memory) == [OLD]


async def test_blank_text_is_not_archived(memory: Memory[Live]) -> None:
    await memory.blocks.configure({"log": {"size": 3}}, {"eviction_strategy": "archive_only"})
    await memory.blocks.update_memory("log", " \n \n ")
    await memory.blocks.append_to_memory("log", "one two three")
    assert await memory.blocks.get_memory("log") == {"log": "one two three"}
    assert await archived(memory) == []


async def test_the_same_original_is_archived_once(memory: Memory[Live]) -> None:
    await full(memory, "archive_only")
    first = await memory.blocks.append_to_memory("log", NEW)
    await memory.blocks.undo("log")
    again = await memory.blocks.append_to_memory("log", LINES[5])
    assert first.archived == again.archived
    assert await contents(memory) == [OLD]


async def test_what_stays_of_an_archived_text_is_not_archived_again(memory: Memory[Live]) -> None:
    await full(memory, "summarize_and_archive")
    for line in LINES[4:] + LINES[:4]:
        await memory.blocks.append_to_memory("log", f"Again: {line}")
    lines = [line for text in await contents(memory) for line in text.split("\n")]
    assert len(lines) == len(set(lines))
    held = (await memory.blocks.get_memory("log"))["log"].split("\n")
    assert {*lines, *held} == {*LINES[:4], *(f"Again: {line}" for line in LINES)}


async def test_what_is_cut_is_archived_with_the_edit_or_not_at_all(memory: Memory[Live]) -> None:
    await full(memory, "archive_only")

    def fails(inside: Memory[Inside]) -> None:
        inside.blocks.append_to_memory("log", NEW)
        assert inside.blocks.get_memory("log") == {"log": NEW}
        raise KeyError("no")

    with pytest.raises(KeyError):
        await memory.atomic(fails)
    assert await memory.blocks.get_memory("log") == {"log": OLD}
    assert await archived(memory) == []


# -- all blocks together ----------------------------------------------------------------------------------------------


async def three(memory: Memory[Live], clock: FrozenClock, **config: object) -> None:
    """Fill three blocks with two lines each: `low` of priority 1, `later` and `first`, written in this order, of 2."""
    await memory.blocks.configure(
        {"first": {"size": 900, "priority": 2}, "later": {"size": 900, "priority": 2}, "low": {"size": 900}},
        MemoryConfig(eviction_strategy="truncate", **config),
    )
    for name in ("low", "later", "first"):
        clock.forward(seconds=1)
        await memory.blocks.update_memory(name, "\n".join(f"{name} line {n} is here." for n in (1, 2)))


async def held(memory: Memory[Live]) -> int:
    return sum(info.tokens for info in (await memory.blocks.get_block_info()).values())


async def test_blocks_of_the_lowest_priority_give_way_first(memory: Memory[Live], clock: FrozenClock) -> None:
    await three(memory, clock)
    sizes = {name: info.tokens for name, info in (await memory.blocks.get_block_info()).items()}
    await memory.blocks.configure({}, MemoryConfig(eviction_strategy="truncate", total_size=sum(sizes.values())))
    assert await archived(memory) == []
    changed = await memory.blocks.append_to_memory("first", "one")
    assert changed.gave_way == ["low"]
    assert not changed.evicted
    assert (await memory.blocks.get_memory())["low"] == "low line 2 is here."
    assert await archived(memory) == [("low line 1 is here.", "block", "low", "default")]
    # More than `low` holds: then the one that was not written for longest, never the one just written.
    text = " ".join(["one"] * (sizes["low"] + sizes["later"] - 1))
    changed = await memory.blocks.append_to_memory("first", text)
    assert changed.gave_way == ["low", "later"]
    memories = await memory.blocks.get_memory()
    assert (memories["low"], memories["first"].endswith(text)) == ("", True)
    assert await held(memory) <= sum(sizes.values())
    assert (await memory.blocks.edits("low", 1))[0].act == "evict"


async def test_a_block_is_never_larger_than_all_together_may_be(memory: Memory[Live], clock: FrozenClock) -> None:
    await three(memory, clock, total_size=30)
    changed = await memory.blocks.update_memory("low", "\n".join(LINES))
    assert changed.evicted
    assert changed.gave_way == ["later", "first"] or await held(memory) <= 30
    assert "\n".join(LINES).startswith((await memory.blocks.get_memory("low"))["low"])
    assert await held(memory) <= 30


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_new_total_is_kept_at_once(memory: Memory[Live], clock: FrozenClock, strategy: str) -> None:
    await three(memory, clock)
    before = await memory.blocks.get_memory()
    await memory.blocks.configure({}, MemoryConfig(eviction_strategy=strategy, total_size=9))
    assert 0 < await held(memory) <= 9
    after = await memory.blocks.get_memory()
    assert after["low"] == after["later"] == ""
    assert before["first"].endswith(after["first"])
    whole = [before["low"], before["later"], before["first"]]
    expected = {"discard": [], "truncate": [*whole[:2], before["first"].split("\n")[0]]}
    assert await contents(memory) == expected.get(strategy, whole)


async def test_sessions_do_not_give_way_for_each_other(memory: Memory[Live], db: memdb.Database) -> None:
    other = db.memory("alice", "another")
    for one in (memory, other):
        await one.blocks.configure({"log": {"size": 100}}, MemoryConfig(total_size=A_LINE))
        await one.blocks.update_memory("log", LINES[0])
    assert await other.blocks.get_memory() == await memory.blocks.get_memory() == {"log": LINES[0]}


async def test_a_replacement_that_would_explode_is_refused(memory: Memory[Live]) -> None:
    await memory.blocks.configure({"log": {"size": 50_000}})
    await memory.blocks.update_memory("log", "a " * 40_000)
    with pytest.raises(InvalidInput, match="replace less"):
        await memory.blocks.replace("log", "a", "b" * 10_000)
    assert (await memory.blocks.get_memory())["log"] == "a " * 40_000
