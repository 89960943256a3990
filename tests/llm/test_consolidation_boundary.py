"""Where a conversation is cut: the observed cases of the LightGrep document, and turns that fill the window alone."""

from __future__ import annotations

import pytest

from memdb import InvalidInput, Message
from memdb.llm.consolidation.boundary import group_boundary, keeping_boundary, turn_boundary
from tests.llm.consolidating import consolidator, tool_call, tool_chain

ROLES = {"u": "user", "a": "assistant"}


def talk(letters: str) -> list[Message]:
    """Return messages: u a user's, a an assistant's, c a call, t its result, T that of Anthropic."""
    made = []
    for letter in letters:
        if letter == "c":
            made.append(Message(**tool_call("x")))
        elif letter == "t":
            made.append(Message(role="tool", tool_call_id="x", content="r"))
        elif letter == "T":
            made.append(Message(role="user", content=[{"type": "tool_result", "tool_use_id": "x", "content": "r"}]))
        else:
            made.append(Message(role=ROLES[letter], content="said"))
    return made


@pytest.mark.parametrize(
    ("letters", "remove", "expected"),
    [
        ("uauau", 15, (2, 20)),
        ("uauau", 1, (2, 20)),
        ("uauau", 1000, (4, 40)),
        ("uaaaa", 1, None),
        ("auau", 5, (1, 10)),
        ("uauau", 0, None),
        ("uauau", -5, None),
        ("", 5, None),
        ("u", 5, None),
        ("uctctctct", 1000, None),
        ("uctau", 1, (4, 40)),
        ("ucTau", 1, (4, 40)),  # what an API wants in a user's name is no turn
    ],
)
def test_the_boundary_is_a_users_turn(memory, letters, remove, expected):
    messages = talk(letters)
    assert turn_boundary(messages, [10] * len(messages), remove) == expected
    found = consolidator(memory)[0].pick_consolidation_boundary(messages, 1)
    assert (found and found[0]) == (turn_boundary(messages, [10] * len(messages), 1) or (None,))[0]


@pytest.mark.parametrize(
    ("letters", "remove", "expected"),
    [
        ("uctctct", 25, (3, 30)),
        ("uctctct", 45, (5, 50)),
        ("uctctct", 1000, (5, 50)),  # the last group stays
        ("ucttctt", 1, (4, 40)),
        ("ucTcT", 1, (3, 30)),
        ("uct", 1, None),  # nothing right after a user's message
        ("uaaaa", 25, (3, 30)),
        ("u", 1, None),
        ("", 1, None),
        ("tttct", 5, (1, 10)),
    ],
)
def test_a_long_turn_is_cut_after_whole_groups(letters, remove, expected):
    messages = talk(letters)
    assert group_boundary(messages, [10] * len(messages), remove) == expected


@pytest.mark.parametrize(
    ("letters", "keep", "expected"),
    [
        ("uauaua", 2, 4),
        ("uauaua", 3, 2),
        ("uauaua", 6, 0),
        ("uauaua", 0, 6),
        ("uctctct", 2, 5),
        ("uctctct", 3, 3),
        ("uctctct", 7, 0),
        ("uctcttt", 2, 3),
        ("uaucttta", 3, 2),
        ("uaaauaaa", 2, 4),  # a user's turn, so that what stays can be sent whole
        ("", 2, 0),
    ],
)
def test_the_newest_stay_and_no_call_is_parted(letters, keep, expected):
    assert keeping_boundary(talk(letters), keep) == expected


def test_plain_dicts_are_taken_and_others_refused(memory):
    keeper, _ = consolidator(memory)
    dicts = [{"role": "user", "content": "word " * 20}, *tool_chain(1), {"role": "user", "content": "b"}]
    index, tokens = keeper.pick_consolidation_boundary(dicts, 5)
    assert (index, tokens > 70) == (3, True)
    with pytest.raises(InvalidInput, match="a message must be a mapping"):
        keeper.pick_consolidation_boundary(["text"], 5)
