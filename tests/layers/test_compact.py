"""Where compact cuts: as far as it may, never between a call and its results, however many these are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdb import Database
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME


def turns(count: int) -> list[dict[str, object]]:
    return [{"role": "user", "content": str(n)} for n in range(count)]


def calling(count: int, *, claude: bool = False) -> list[dict[str, object]]:
    """A call of many tools, and their results."""
    ids = [f"c{n}" for n in range(count)]
    if claude:
        asked = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]
        said = [{"type": "tool_result", "tool_use_id": id, "content": "r"} for id in ids]
        return [{"role": "assistant", "content": asked}, *({"role": "user", "content": [part]} for part in said)]
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": id, "function": {"name": "f"}} for id in ids]}
    return [call, *({"role": "tool", "tool_call_id": id, "content": "r"} for id in ids)]


@pytest.mark.parametrize("claude", [False, True])
@pytest.mark.parametrize("keep", [0, 1, 2, 6, 39, 40, 41, 43])
async def test_a_call_of_forty_tools_stays_with_its_results(memory, claude, keep):
    talk = memory.conversation
    await talk.add_messages([*turns(3), *calling(40, claude=claude)])
    assert await talk.compact(keep) == (44 if keep == 0 else 3 if keep <= 41 else 1)
    assert len(await talk.get_history()) == 44 - await talk.last_consolidated()


groups_of = st.lists(st.tuples(st.integers(0, 45), st.booleans()), min_size=1, max_size=6)


@settings(SAME_EVERY_TIME, max_examples=60)
@given(groups_of, st.integers(0, 12))
def test_it_cuts_where_the_whole_session_would_be_cut(groups: list[tuple[int, bool]], keep: int) -> None:
    async def example(db: Database) -> None:
        talk = db.memory("alice").conversation
        parts = [calling(count, claude=claude) if count else turns(1) for count, claude in groups]
        ends = [sum(map(len, parts[: at + 1])) for at in range(len(parts))]
        await talk.add_messages([message for part in parts for message in part])
        assert await talk.compact(keep) == max((end for end in ends if ends[-1] - end >= keep), default=0)
        assert await talk.compact(keep) == await talk.last_consolidated()

    run(example)
