"""OpenAIChat and OpenAIEmbedder: what they send, and what they make of answers."""

from __future__ import annotations

import pytest

from memdb.errors import InvalidInput, ModelError
from memdb.llm.openai import OpenAIChat, OpenAIEmbedder
from memdb.text.reply import ChatReply
from tests.llm.server import Answer, Server, openai_reply

ASK = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


async def answered(answer):
    async with Server([Answer(answer)]) as server, OpenAIChat("m", f"{server.url}/v1", retries=0) as model:
        return await model.chat(ASK)


async def embedded(answer, texts=("a", "b")):
    async with Server([Answer(answer)]) as server, OpenAIEmbedder("m", 2, f"{server.url}/v1", retries=0) as model:
        return await model.embed(list(texts))


async def test_what_is_sent():
    choice = {"type": "function", "function": {"name": "f"}}
    async with (
        Server() as server,
        OpenAIChat("m", f"{server.url}/v1/", options={"temperature": 0, "top_k": 5}) as model,
    ):
        await model.chat(ASK)
        await model.chat([*ASK, {"role": "x", "own": (1,)}], tools=[TOOL], tool_choice=choice, max_tokens=9)
        await model.chat(ASK, tool_choice="auto", tools=[])
        bodies = [request.body for request in server.requests]
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    plain = {"model": "m", "messages": ASK, "temperature": 0, "top_k": 5}
    assert bodies[0] == bodies[2] == plain
    assert bodies[1] == {
        **plain, "messages": [*ASK, {"role": "x", "own": [1]}], "tools": [TOOL], "tool_choice": choice, "max_tokens": 9
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "reason", "reply"),
    [
        ({"content": "hello"}, "stop", ChatReply("hello", [], "stop")),
        ({"content": "cut"}, "length", ChatReply("cut", [], "length")),
        ({"content": ""}, None, ChatReply("", [], None)),
        ({"content": None, "tool_calls": None}, "content_filter", ChatReply(None, [], "content_filter")),
        ({}, 5, ChatReply(None, [], None)),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            "stop",
            ChatReply("a\nb", [], "stop"),
        ),
    ],
    ids=range(6),
)
async def test_what_comes_back(message, reason, reply):
    assert await answered(openai_reply(message, reason)) == reply
    assert reply.truncated is (reason == "length")


@pytest.mark.parametrize("arguments", ['{"a": 1}', "{broken", {"a": 1}, [{"a": 1}], None, ""])
async def test_arguments_of_calls_stay_as_they_were_sent(arguments):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    reply = await answered(openai_reply({"content": None, "tool_calls": [call]}, "tool_calls"))
    assert reply == ChatReply(None, [call], "tool_calls")


async def test_a_call_without_an_id_is_given_one():
    calls = [{"function": {"name": "f"}}, {"id": None, "function": {"name": "g"}, "index": 1}]
    reply = await answered(openai_reply({"tool_calls": calls}))
    assert [(call["id"], call["type"]) for call in reply.tool_calls] == [
        ("call_x1_1", "function"), ("call_x1_2", "function")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"choices": [{"message": "text"}]}, "has no choice with a message"),
        ({"choices": {"0": {}}}, "has no choice with a message"),
        (openai_reply({"content": 5}), "has content of type int"),
        (openai_reply({"content": {"text": "x"}}), "has content of type dict"),
        (openai_reply({"tool_calls": "f()"}), "has tool_calls of type str"),
        (openai_reply({"tool_calls": [{"id": "c"}]}), "has a tool call that names no function"),
        (openai_reply({"tool_calls": [None]}), "has a tool call that names no function"),
        (openai_reply({"tool_calls": [{"function": {"name": 5}}]}), "has a tool call that names no function"),
    ],
    ids=range(8),
)
async def test_other_shapes_are_errors(answer, said):
    with pytest.raises(ModelError, match=f"the answer {said}; ask again"):
        await answered(answer)


# -- embeddings -------------------------------------------------------------------------------------------------------


async def test_texts_are_embedded_in_batches_and_come_back_in_their_order():
    texts = ["x" * n for n in range(1, 8)]
    async with Server() as server, OpenAIEmbedder("m", 3, f"{server.url}/v1", batch_size=3) as model:
        assert [vector[0] for vector in await model.embed(texts)] == [1, 2, 3, 4, 5, 6, 7]
        assert [request.body["input"] for request in server.requests] == [texts[:3], texts[3:6], texts[6:]]
        assert server.requests[0].body == {"model": "m", "input": texts[:3], "encoding_format": "float"}
        assert await model.embed([]) == []
        assert len(server.requests) == 3


async def test_blank_and_broken_texts_have_vectors_too():
    async with Server() as server, OpenAIEmbedder("m", 4, f"{server.url}/v1", shorten=True) as model:
        assert len(await model.embed(["", " \n", "\ud83d!"])) == 3
        assert server.requests[0].body["input"] == [".", ".", "?!"]
        assert server.requests[0].body["dimensions"] == 4


async def test_vectors_are_put_in_order_by_their_index():
    rows = [{"index": 1, "embedding": [2, 0]}, {"index": 0, "embedding": [1, 0.5]}]
    assert await embedded({"data": rows}) == [[1.0, 0.5], [2.0, 0.0]]
    assert await embedded({"data": [{"embedding": [2, 1]}, {"embedding": [1, 1]}]}) == [[2.0, 1.0], [1.0, 1.0]]


RIGHT = {"index": 0, "embedding": [1, 0]}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([RIGHT], "has 1 vectors for 2 texts"),
        ([RIGHT] * 3, "has 3 vectors for 2 texts"),
        ([RIGHT, RIGHT], "does not say which vector belongs to which text"),
        ([RIGHT, {"index": "1", "embedding": [1, 0]}], "does not say which vector"),
        ([RIGHT, {"index": -1, "embedding": [1, 0]}], "does not say which vector"),
        ([RIGHT, {"index": True, "embedding": [1, 0]}], "does not say which vector"),
        ([RIGHT, {"index": 1, "embedding": [1]}], "has a vector of 1 numbers where 2 are expected: correct dimensions"),
        ([RIGHT, {"index": 1, "embedding": [1, 2, 3]}], "has a vector of 3 numbers where 2 are expected"),
        ([RIGHT, {"index": 1, "embedding": []}], "has a vector of 0 numbers"),
        ([RIGHT, {"index": 1, "embedding": "AAAAAA=="}], "has a vector of type str"),
        ([RIGHT, {"index": 1}], "has a vector of type NoneType"),
        ([RIGHT, {"index": 1, "embedding": [1, "2"]}], "something else than numbers"),
        ([RIGHT, {"index": 1, "embedding": [1, None]}], "something else than numbers"),
        ([RIGHT, {"index": 1, "embedding": [1, True]}], "something else than numbers"),
        ([RIGHT, {"index": 1, "embedding": [1, float("nan")]}], "not finite, or of zeros alone"),
        ([RIGHT, {"index": 1, "embedding": [1, float("inf")]}], "not finite, or of zeros alone"),
        ([RIGHT, {"index": 1, "embedding": [1, 10**400]}], "not finite, or of zeros alone"),
        ([RIGHT, {"index": 1, "embedding": [0, -0.0]}], "not finite, or of zeros alone"),
        ({"0": RIGHT}, "has no list of vectors"),
        ([RIGHT, None], "has no list of vectors"),
    ],
    ids=range(20),
)
async def test_vectors_that_are_none_are_errors(rows, said):
    with pytest.raises(ModelError, match=f"the answer .*{said}"):
        await embedded({"data": rows})


@pytest.mark.parametrize("texts", ["text", None, 5, [None], [b"x"], [["a"]]])
async def test_texts_are_checked(texts):
    with pytest.raises(InvalidInput, match="texts must be a list of texts"):
        await OpenAIEmbedder("m", 2, "http://x/v1").embed(texts)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dimensions": 0}, "dimensions must be a whole number from 1"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1"),
    ],
)
def test_settings_are_checked(change, said):
    with pytest.raises(InvalidInput, match=said):
        OpenAIEmbedder(**{"model": "m", "dimensions": 3, **change})


@pytest.mark.parametrize("call", [{"max_tokens": 0}, {"max_tokens": "9"}, {"tools": ["f"]}, {"tools": [{"f": {1}}]}])
async def test_calls_are_checked(call):
    with pytest.raises(InvalidInput):
        await OpenAIChat("m", "http://x/v1").chat(ASK, **call)
