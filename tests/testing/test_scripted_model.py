"""ScriptedModel answers in order, notes what it was asked, and fails the test that calls it inside a unit."""

from __future__ import annotations

import asyncio

import pytest

from memdb.errors import InvalidInput, ModelError
from memdb.protocols import ChatModel
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply

ASK = [{"role": "user", "content": "hello"}]


async def test_it_answers_in_order_and_says_what_it_was_asked():
    reply = ChatReply(None, [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}], "tool_calls")
    model = ScriptedModel(["first", reply, ModelError("down"), "last"])
    asked = [{"role": "user", "content": ["parts"]}]
    tool = {"type": "function", "function": {"name": "f"}}
    assert isinstance(model, ChatModel)
    assert await model.chat(ASK) == ChatReply("first", [], "stop")
    assert await model.chat(asked, tools=[tool], tool_choice={"type": "function"}, max_tokens=7) is reply
    asked[0]["content"].append("changed later")
    with pytest.raises(ModelError, match="down"):
        await model.chat([])
    assert model.left == 1
    assert [call.messages for call in model.calls] == [ASK, [{"role": "user", "content": ["parts"]}], []]
    assert (model.calls[1].tools, model.calls[1].tool_choice) == ([tool], {"type": "function"})
    assert (model.calls[0].max_tokens, model.calls[1].max_tokens) == (None, 7)
    assert (model.calls[0].text, model.calls[1].text) == ("hello", "")


async def test_a_call_without_a_reply_left_fails_the_test():
    model = ScriptedModel(["only"])
    await model.chat(ASK)
    with pytest.raises(AssertionError, match=r"once more after its 1 replies; asked last: .*'hello'"):
        await model.chat(ASK)
    assert len(model.calls) == 1


async def test_calls_side_by_side_are_answered_in_the_order_they_are_awaited():
    model = ScriptedModel([str(n) for n in range(10)])
    replies = await asyncio.gather(*(model.chat([{"role": "user", "content": str(n)}]) for n in range(10)))
    assert [reply.content for reply in replies] == [call.text for call in model.calls] == [str(n) for n in range(10)]


async def test_others_go_on_while_it_answers():
    model, seen = ScriptedModel(["a"]), []
    other = asyncio.create_task(model.chat(ASK))
    asyncio.get_running_loop().call_soon(lambda: seen.append(other.done()))
    await other
    assert seen == [False]


@pytest.mark.parametrize(
    "ask", [lambda model, made: model.chat(ASK), lambda model, made: asyncio.run(model.chat(ASK)),
            lambda model, made: asyncio.run(made), lambda model, made: made.send(None)],
    ids=["dropped", "run", "made before and run", "made before and driven"],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["atomic", "write", "read"])
async def test_a_call_inside_a_unit_fails_the_test(db, memory, verb, ask):
    model = ScriptedModel(["no"])
    made = model.chat(ASK)
    run = memory.atomic if verb == "atomic" else getattr(db, verb)
    with pytest.raises(AssertionError, match="a model was called inside a unit"):
        await run(lambda inside: ask(model, made))
    assert (model.calls, model.left) == ([], 1)
    made.close()


async def test_a_call_beside_a_unit_is_none_inside_it(db, memory):
    model = ScriptedModel([str(n) for n in range(50)])
    units = [db.write(lambda tx: None) for _ in range(50)]
    await asyncio.gather(*units, *(model.chat(ASK) for _ in range(50)))
    assert model.left == 0


def test_it_needs_an_event_loop():
    with pytest.raises(AssertionError, match="must be awaited on an event loop"):
        ScriptedModel(["a"]).chat(ASK).send(None)


@pytest.mark.parametrize(("replies", "wrong"), [("text", "str"), ([1], "int"), ([ValueError], "type"), (None, "None")])
def test_replies_are_checked(replies, wrong):
    with pytest.raises(InvalidInput, match=rf"must be .*not {wrong}"):
        ScriptedModel(replies)
