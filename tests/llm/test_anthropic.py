"""AnthropicChat: the OpenAI shape goes out as the Anthropic API wants it, and answers come back in it."""

from __future__ import annotations

import pytest

from memdb.errors import InvalidInput, ModelError
from memdb.llm.anthropic import AnthropicChat
from memdb.llm.anthropic_shape import anthropic_messages
from memdb.text.reply import ChatReply
from tests.llm.server import Answer, Server, anthropic_reply

ASK = [{"role": "user", "content": "hi"}]
FUNCTION = {"name": "f", "description": "does f", "parameters": {"type": "object", "properties": {"a": {}}}}


def text(said):
    return {"type": "text", "text": said}


async def answered(answer, **call):
    async with Server([Answer(answer)]) as server, AnthropicChat("m", server.url, retries=0) as model:
        return await model.chat(ASK, **call)


def call(arguments, id="c1"):
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def turns(*messages):
    return anthropic_messages(messages)[1]


async def test_what_is_sent():
    tools = [{"type": "function", "function": FUNCTION}, {"type": "function", "function": {"name": "g"}},
             {"type": "web_search_20250305", "name": "web_search"}]  # fmt: skip
    async with Server() as server, AnthropicChat("m", server.url, options={"temperature": 0}) as model:
        assert await model.chat([{"role": "system", "content": "Be brief."}, *ASK]) == ChatReply("hello", [], "stop")
        await model.chat(ASK, tools=tools, tool_choice="required", max_tokens=9)
        await model.chat(ASK, tool_choice="auto")
        assert await model.count_tokens(ASK, tools=tools[:1]) == 7
        bodies = [request.body for request in server.requests]
        assert [request.path for request in server.requests] == ["/v1/messages"] * 3 + ["/v1/messages/count_tokens"]
    said = {"model": "m", "messages": [{"role": "user", "content": [text("hi")]}]}
    sent = {"name": "f", "description": "does f", "input_schema": FUNCTION["parameters"]}
    assert bodies[0] == {**said, "max_tokens": 4096, "system": "Be brief.", "temperature": 0}
    assert bodies[1] == {
        **said, "max_tokens": 9, "temperature": 0, "tool_choice": {"type": "any"},
        "tools": [sent, {"name": "g", "input_schema": {"type": "object", "properties": {}}}, tools[2]],
    }  # fmt: skip
    assert bodies[2] == {**said, "max_tokens": 4096, "temperature": 0}
    assert bodies[3] == {**said, "tools": [sent]}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", {"type": "auto"}), ("none", {"type": "none"}), ("required", {"type": "any"}),
     ({"type": "function", "function": {"name": "f"}}, {"type": "tool", "name": "f"})],
)  # fmt: skip
async def test_tool_choices(choice, sent):
    async with Server() as server, AnthropicChat("m", server.url) as model:
        await model.chat(ASK, tools=[{"function": FUNCTION}], tool_choice=choice)
        assert server.requests[0].body["tool_choice"] == sent


def test_a_conversation_with_tools():
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call('{"a": 1}'), call({"b": 2}, "c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": None},
        {"role": "user", "content": [text("and"), "now", {"type": "input_text", "text": "this"}]},
        {"role": "developer", "content": [text("Be kind.")]},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": "", "tool_calls": None},
        {"role": "someone", "content": {"n": 1}},
    ]
    system, sent = anthropic_messages(messages)
    assert system == "Be brief.\n\nBe kind."
    assert sent == [
        {"role": "assistant", "content": [
            text("I look."),
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "f", "input": {"b": 2}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [text("one")]},
            {"type": "tool_result", "tool_use_id": "c2"},
            text("and"), text("now"), text("this"), text('{"n": 1}'),
        ]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [("", {}), (None, {}), ("{}", {}), ([{"a": 1}, {"b": 2}], {"a": 1}), ("[1]", {"arguments": [1]}),
     ("{broken", {"arguments": "{broken"}), ("[" * 50_000, {"arguments": "[" * 50_000}), ('"a"', {"arguments": "a"})],
    ids=range(8),
)  # fmt: skip
def test_arguments_of_any_kind_become_an_object(arguments, sent):
    (turn,) = turns({"role": "assistant", "tool_calls": [call(arguments)]})
    assert turn["content"] == [{"type": "tool_use", "id": "c1", "name": "f", "input": sent}]


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x/a.png"}},
         {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}}),
        ({"type": "image_url", "image_url": "data:image/png;base64,iVBO"},
         {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}),
        ({"type": "refusal", "refusal": "no"}, text("no")),
        ({"type": "document", "source": {}}, {"type": "document", "source": {}}),
    ],
    ids=range(4),
)  # fmt: skip
def test_parts(part, sent):
    assert turns({"role": "user", "content": [part]}) == [{"role": "user", "content": [sent]}]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "system", "content": "only"}, "nothing to answer"),
        ({"role": "user", "content": " "}, "nothing to answer"),
        ({"role": "user"}, "nothing to answer"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "a part of type 'input_audio'"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "must have a url"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "file:///etc/passwd"}]}, "must have a url"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png,abc"}]}, "in base64"),
        ({"role": "tool", "content": "x"}, "has no tool_call_id"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "an id and a function with a name"),
        ({"role": "assistant", "tool_calls": [5]}, "an id and a function with a name"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, "an id and a function with a name"),
    ],
    ids=range(11),
)
def test_what_cannot_be_sent_is_refused(message, said):
    with pytest.raises(InvalidInput, match=said):
        turns(message)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"tools": [{"type": "function"}]}, "a tool must have a function with a name"),
        ({"tools": [{"function": {"name": 5}}]}, "a tool must have a function with a name"),
        ({"tools": [{"function": FUNCTION}], "tool_choice": "any"}, "tool_choice must be 'auto'"),
        ({"tools": [{"function": FUNCTION}], "tool_choice": {"type": "function"}}, "tool_choice must be 'auto'"),
        ({"max_tokens": 0}, "max_tokens must be a whole number"),
    ],
    ids=range(5),
)
async def test_calls_are_checked(call, said):
    with pytest.raises(InvalidInput, match=said):
        await AnthropicChat("m", "http://x").chat(ASK, **call)


@pytest.mark.parametrize(
    ("content", "reason", "reply"),
    [
        ([text("a"), text("b")], "end_turn", ChatReply("ab", [], "stop")),
        ([text("cut")], "max_tokens", ChatReply("cut", [], "length")),
        ([text("cut")], "model_context_window_exceeded", ChatReply("cut", [], "length")),
        ([], "refusal", ChatReply(None, [], "content_filter")),
        ([{"type": "thinking", "thinking": "hm"}, text("a")], "stop_sequence", ChatReply("a", [], "stop")),
        ([text("a")], "pause_turn", ChatReply("a", [], "pause_turn")),
        ([text("a")], None, ChatReply("a", [], None)),
        ([{"type": "tool_use", "id": "t", "name": "f", "input": {"a": [1]}}], "tool_use",
         ChatReply(None, [call({"a": [1]}, "t")], "tool_calls")),
    ],
    ids=range(8),
)  # fmt: skip
async def test_what_comes_back(content, reason, reply):
    assert await answered(anthropic_reply(content, reason)) == reply


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text", "has no list of content blocks"),
        ([text(None)], "has a block of text without text"),
        ([{"type": "tool_use", "id": "t"}], "has a tool call without a name or an id"),
        ([{"type": "tool_use", "name": "f"}], "has a tool call without a name or an id"),
    ],
    ids=range(4),
)
async def test_other_shapes_are_errors(content, said):
    with pytest.raises(ModelError, match=f"the answer {said}"):
        await answered(anthropic_reply(content))


@pytest.mark.parametrize("count", [None, "7", -1, True, 1.5])
async def test_a_count_that_is_none_is_an_error(count):
    async with Server([Answer({"input_tokens": count})]) as server, AnthropicChat("m", server.url) as model:
        with pytest.raises(ModelError, match="has no count of tokens"):
            await model.count_tokens(ASK)


async def test_its_answers_can_be_sent_back():
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    async with Server([Answer(anthropic_reply([text("so"), use], "tool_use"))]) as server:
        async with AnthropicChat("m", server.url) as model:
            reply = await model.chat(ASK)
            said = {"role": "assistant", "content": reply.content, "tool_calls": reply.tool_calls}
            await model.chat([*ASK, said, {"role": "tool", "tool_call_id": "t", "content": "42"}])
        assert server.requests[1].body["messages"][1] == {"role": "assistant", "content": [text("so"), use]}
