"""What of a conversation a model may be sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb import Message
from memdb.layers.history import groups, is_users, legal
from tests.strategies import SAME_EVERY_TIME


def user(text="u"):
    return Message(role="user", content=text)


def call(*ids):
    return Message(role="assistant", content=None, tool_calls=[{"id": id, "function": {"name": "f"}} for id in ids])


def result(id):
    return Message(role="tool", content="r", tool_call_id=id)


def said(text="a"):
    return Message(role="assistant", content=text)


def claude_call(*ids):
    return Message(role="assistant", content=[{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids])


def claude_result(*ids):
    return Message(role="user", content=[{"type": "tool_result", "tool_use_id": id, "content": "r"} for id in ids])


SYSTEM = Message(role="system", content="be kind")
U, A = user(), said()
C1, C12 = call("1"), call("1", "2")
R1, R2 = result("1"), result("2")
X12, Y1, Y2, Y12 = claude_call("1", "2"), claude_result("1"), claude_result("2"), claude_result("1", "2")
O2 = Message(role="assistant", content="", tool_calls=[{"function": {"name": "f"}}, {"function": {"name": "g"}}])
P = Message(role="tool", content="r", tool_name="f")


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ([], []),
        ([U, A, U], [U, A, U]),
        ([A, U, A], [U, A]),  # it begins with a user's message
        ([A, C1, R1], [A, C1, R1]),  # unless there is none
        ([SYSTEM, A, U], [SYSTEM, U]),
        ([U, C1, R1, A], [U, C1, R1, A]),
        ([U, R1, A], [U, A]),  # an orphan result goes
        ([U, A, R1], [U, A]),  # also the last, and alone
        ([U, C1], [U]),  # a call that waits goes
        ([U, C12, R1], [U]),
        ([U, C12, R2, R1, A], [U, C12, R2, R1, A]),
        ([U, C12, R1, A, R2], [U, A]),  # split: a model API refuses it
        ([U, C1, R1, R1, A], [U, C1, R1, A]),  # a second answer goes
        ([U, C1, R1, R2, A], [U, C1, R1, A]),
        ([U, C1, C1, R1], [U, C1, R1]),
        ([U, X12, Y12, A], [U, X12, Y12, A]),  # Anthropic's form
        ([U, X12, Y1, Y2, A], [U, X12, Y1, Y2, A]),
        ([Y12, A, U], [U]),  # results in a user's name are no beginning
        ([U, X12, Y1], [U]),
        ([U, X12, U], [U, U]),
        ([U, O2, P, P, A], [U, O2, P, P, A]),  # Ollama's calls have no ids: as many results as calls
        ([U, O2, P, A], [U, A]),
        ([U, O2, P, P, P, A], [U, O2, P, P, A]),
        ([U, P, A], [U, A]),
    ],
)
def test_a_history_is_legal(stored, sent):
    assert legal(stored) == sent


KINDS = st.sampled_from([SYSTEM, U, A, C1, C12, R1, R2, X12, Y1, Y12])


@SAME_EVERY_TIME
@given(st.lists(KINDS, max_size=14))
def test_any_history_is_legal_and_in_order(stored):
    sent = legal(stored)
    rest = iter(stored)
    assert all(any(kept is message for message in rest) for kept in sent)  # in order, unchanged
    assert [message for group in groups(stored) for message in group] == stored
    pending: set[str] = set()
    for message in sent:
        answers = {message.tool_call_id} if message.role == "tool" else set()
        calls = {made["id"] for made in message.tool_calls or ()}
        for part in message.content if isinstance(message.content, list) else ():
            (calls if part["type"] == "tool_use" else answers).add(part.get("id") or part["tool_use_id"])
        assert answers <= pending  # every result has its call
        assert answers or not pending  # nothing stands between a call and its results
        pending = (pending - answers) | calls
    assert not pending
    assert legal(sent) == sent
    if any(is_users(message) for message in sent):
        assert next(message for message in sent if message.role != "system").role == "user"
