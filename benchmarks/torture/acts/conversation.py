"""Acts on conversations: "a" keeps a sliding window, "b" has calls of tools and a cursor."""

from __future__ import annotations

from typing import Any

from benchmarks.torture.acts.act import Act, Chance, need
from benchmarks.torture.model import WINDOW, State
from memdb import ConversationMemoryConfig

SLIDING = ConversationMemoryConfig(max_items=WINDOW)


def _message(chance: Chance) -> dict[str, Any]:
    return {"role": chance.random.choice(["user", "assistant", "system"]), "content": chance.text()}


def _messages(chance: Chance) -> list[Any]:
    session = chance.session()
    if session == "b" and chance.random.random() < 0.5:
        return [session, _call(chance)]
    return [session, chance.some(lambda: _message(chance))]


def _call(chance: Chance) -> list[dict[str, Any]]:
    """A question, a call, its result and the answer: a group that no cut may part."""
    id = f"c{chance.number}"
    call = {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "content": chance.text()},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": chance.text(), "tool_call_id": id},
        {"role": "assistant", "content": chance.text()},
    ]


def _append(state: State, session: str, given: list[dict[str, Any]]) -> int:
    messages = state["sessions"][session]["messages"]
    for one in given:
        position = messages[-1][0] + 1 if messages else 1
        calls, answers = one.get("tool_calls"), one.get("tool_call_id")
        messages.append([position, one["role"], one["content"], calls, answers])
    if session == "a":
        del messages[: max(0, len(messages) - WINDOW)]
    return int(messages[-1][0])


def _add(state: State, args: list[Any]) -> int:
    return _append(state, args[0], [args[1]])


def _add_many(state: State, args: list[Any]) -> int:
    _append(state, *args)
    return len(args[1])


def _clear(state: State, session: str) -> int:
    talk = state["sessions"][session]
    count = len(talk["messages"])
    talk["messages"], talk["passed"] = [], 0
    return count


def _spoil(state: State, args: list[Any]) -> None:
    need(False, "InvalidInput")


def _spoilt(at: Any, args: list[Any]) -> Any:
    return at(args[0]).conversation.add_messages([*args[1], {"role": "", "content": "x"}])


def _where_to(chance: Chance) -> list[int]:
    talk = chance.state["sessions"]["b"]
    last = talk["messages"][-1][0] if talk["messages"] else 0
    return [chance.random.randint(talk["passed"] + 1, max(last, talk["passed"]) + 1), talk["passed"]]


def _consolidate(state: State, args: list[int]) -> bool:
    talk = state["sessions"]["b"]
    last = talk["messages"][-1][0] if talk["messages"] else 0
    if args[0] > last or args[1] != talk["passed"]:
        return False
    talk["passed"] = args[0]
    return True


def _full(chance: Chance) -> str:
    """The session to clear: the one that no window keeps short, once it is long."""
    if chance.only is not None:
        return chance.only
    return "b" if len(chance.state["sessions"]["b"]["messages"]) > 40 else "a"


ACTS = [
    Act(
        "conversation.add", 6, lambda chance: [chance.session(), _message(chance)], _add,
        lambda at, args: at(args[0]).conversation.add_message(args[1]),
    ),
    Act(
        "conversation.add_many", 4, _messages, _add_many,
        lambda at, args: at(args[0]).conversation.add_messages(args[1]),
    ),
    Act("conversation.spoilt", 1, _messages, _spoil, _spoilt),
    Act(
        "conversation.consolidate", 2, _where_to, _consolidate,
        lambda at, args: at("b").conversation.consolidate_to(args[0], if_passed=args[1]),
    ),
    Act("conversation.clear", 1, _full, _clear, lambda at, session: at(session).conversation.clear()),
]  # fmt: skip
