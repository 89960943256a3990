"""What OpenAIChat, OpenAIEmbedder and AnthropicChat have in common: failures, retries, keys, loops."""

from __future__ import annotations

import asyncio
import gc
import json
import traceback

import pytest

import memdb
from memdb.errors import InvalidInput, MissingExtra, ModelError
from memdb.llm import client as client_module
from memdb.llm.anthropic import AnthropicChat
from memdb.llm.openai import OpenAIChat, OpenAIEmbedder
from memdb.protocols import ChatModel, Embedder
from tests.llm.server import CLOSE, HANG, TRICKLE, Answer, Server

KEY = "sk-verysecretkey-1234567890"
ASK = [{"role": "user", "content": "hi"}]
NOW = {"retry-after-ms": "1"}  # how the official clients are told to wait no longer than that
FAILED = Answer({"error": {"message": "overloaded"}}, 500, NOW)
LIMITED = Answer({"error": {"message": "slow down"}}, 429, {"retry-after": "0.01"})
HTML = Answer(b"<html><body>Welcome</body></html>", headers={"content-type": "text/html"})


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
                 "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


async def ask_openai(url, **settings):
    async with OpenAIChat("gpt-x", f"{url}/v1", **settings) as model:
        return (await model.chat(ASK)).content


async def ask_anthropic(url, **settings):
    async with AnthropicChat("claude-x", url, **settings) as model:
        return (await model.chat(ASK)).content


async def embed(url, **settings):
    async with OpenAIEmbedder("embed-x", 3, f"{url}/v1", **settings) as model:
        return "hello" if await model.embed(["hello"]) == [[5.0, 0.5, 0.5]] else None


@pytest.fixture(params=[ask_openai, ask_anthropic, embed], ids=["openai", "anthropic", "embedder"])
def ask(request):
    return request.param


def test_they_are_what_the_protocols_ask_for():
    assert isinstance(OpenAIChat("m", "http://x/v1"), ChatModel)
    assert isinstance(AnthropicChat("m", "http://x"), ChatModel)
    embedder = OpenAIEmbedder("m", 3, "http://x/v1")
    assert isinstance(embedder, Embedder)
    assert (embedder.model, embedder.dimensions) == ("m", 3)


# -- what is repeated -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [[FAILED, FAILED], [LIMITED, FAILED], [Answer({}, 503, NOW)], [Answer(b"", 408, NOW)], [Answer({}, 529, NOW)],
     [CLOSE], [Answer({"long": "x" * 2_000}, lost=1_000)]],
    ids=["500 twice", "429 and 500", "503", "408", "529", "closed", "closed in the middle"],
)  # fmt: skip
async def test_what_may_pass_is_repeated(ask, script):
    async with Server(script) as server:
        assert await ask(server.url) == "hello"
        assert len(server.requests) == len(script) + 1
        assert server.requests[0].body == server.requests[-1].body


@pytest.mark.parametrize(
    ("script", "attempts", "said"),
    [
        (
            [FAILED] * 3,
            3,
            r"the server answered with status 500, in 3 attempts \(overloaded\); look at the server's log",
        ),
        ([LIMITED] * 3, 3, r"status 429, in 3 attempts \(slow down\); wait, or let retries be more"),
        ([Answer({"error": {"message": "no m"}}, 404)], 1, r"status 404 \(no m\); check the model's name and the path"),
        ([Answer({"detail": ["bad"]}, 422)], 1, r'status 422 \(\["bad"\]\); change what the server names'),
        ([Answer({"error": "too long"}, 400)], 1, r"status 400 \(too long\)"),
        ([Answer(b"", 403)], 1, r"status 403 \(it says no more\); check api_key"),
        ([Answer(b"<p>gone</p>" * 900, 410)], 1, r"status 410 \(<p>gone</p>"),
    ],
    ids=range(7),
)
async def test_what_does_not_pass_is_said(ask, script, attempts, said):
    async with Server(script) as server:
        with pytest.raises(ModelError, match=rf"^asked \S+ at http://127.0.0.1:{server.port}\S*: .*{said}") as raised:
            await ask(server.url)
        assert len(server.requests) == attempts
    assert len(str(raised.value)) < 600
    assert raised.value.is_recoverable()


async def test_a_server_that_hangs_is_left(ask):
    async with Server([HANG, HANG]) as server:
        with pytest.raises(ModelError, match=r"no whole answer within 0.3 s, in 2 attempts; let timeout be longer"):
            await ask(server.url, timeout=0.3, retries=1)
        assert len(server.requests) in (1, 2)  # a machine under load may not have come to send the first


async def test_a_server_that_never_ends_is_left(ask):
    async with Server([TRICKLE]) as server:
        with pytest.raises(ModelError, match=r"no whole answer within 0.2 s; let timeout"):
            await ask(server.url, timeout=0.2, retries=0)


async def test_a_server_that_is_not_there_is_named(ask):
    async with Server() as server:
        url = server.url
    with pytest.raises(
        ModelError, match=rf"at {url}\S*: the connection failed \(.+\); see whether the server is running"
    ):
        await ask(url, retries=0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HTML, "the answer is no JSON: it begins '<html><body>Welcome"),
        (Answer(b'{"choices": [{"mess'), 'the answer is no JSON: it begins \'{"choices"'),
        (Answer(b""), "the answer is no JSON: it begins ''"),
        (Answer(b"\xff\xfe\x00"), "the answer is no JSON"),
        (Answer(b"[" * 100_000), "the answer is no JSON"),
        (Answer([1]), "the answer is a JSON list, not an object"),
        (Answer("text"), "the answer is a JSON str"),
        (Answer({"error": {"message": "no credit", "code": 402}}), r"the answer is an error \(no credit\)"),
        (Answer({}), "the answer has no"),
        (Answer({"choices": None, "content": None, "data": None}), "the answer has no"),
        (Answer({"choices": 5, "content": 5, "data": 5}), "the answer has no"),
        (Answer({"choices": [], "content": [None], "data": []}), "the answer has "),
        (Answer({"choices": [None], "content": "text", "data": [None]}), "the answer has no"),
        (Answer(b"\x1f\x8bbroken", headers={"content-encoding": "gzip"}), "the connection failed"),
    ],
    ids=range(14),
)
async def test_a_malformed_answer_is_an_error(ask, answer, said):
    async with Server([answer]) as server:
        with pytest.raises(ModelError, match=said):
            await ask(server.url, retries=0)


async def test_a_cancelled_caller_hangs_up_and_others_go_on(ask):
    async with Server([HANG]) as server:
        waiting = asyncio.create_task(ask(server.url))
        await server.asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await ask(server.url) == "hello"


async def test_calls_side_by_side_share_the_client():
    async with Server() as server, OpenAIChat("m", f"{server.url}/v1") as model:
        replies = await asyncio.gather(*(model.chat(ASK) for _ in range(20)))
        assert [reply.content for reply in replies] == ["hello"] * 20
        assert len(model._clients) == 1
        await model.chat(ASK)
        assert server.connections <= 20


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 200, 500])
async def test_no_key_is_ever_shown(ask, status):
    async with Server([Answer({"error": {"message": f"wrong key {KEY} of Bearer {KEY}"}}, status)]) as server:
        with pytest.raises(ModelError) as raised:
            await ask(server.url, api_key=KEY, retries=0)
        assert KEY in json.dumps(server.requests[0].headers)
    shown = "".join(traceback.format_exception(raised.value))
    assert KEY not in shown
    assert "wrong key *** of Bearer ***" in shown


async def test_no_password_of_an_address_is_ever_shown(ask):
    async with Server([Answer({"error": f"user:{KEY} is wrong"}, 401)]) as server:
        with pytest.raises(ModelError, match=rf"at {server.url}\S*: .*\(user:\*\*\* is wrong\)") as raised:
            await ask(server.url.replace("http://", f"http://user:{KEY}@"))
    assert KEY not in "".join(traceback.format_exception(raised.value))


async def test_a_key_is_not_in_the_repr():
    for model in (OpenAIChat("m", api_key=KEY), AnthropicChat("m", api_key=KEY), OpenAIEmbedder("m", 3, api_key=KEY)):
        assert KEY not in repr(model)


async def test_a_key_of_the_environment_is_not_told_to_another_server(ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    async with Server() as server:
        await ask(server.url)
        assert KEY not in json.dumps(server.requests[0].headers)


async def test_a_key_of_the_environment_is_used_with_the_server_of_the_environment(monkeypatch):
    async with Server() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with OpenAIChat("m") as model, AnthropicChat("m") as other:
            await model.chat(ASK)
            await other.chat(ASK)
        assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/messages"]
        assert all(KEY in json.dumps(request.headers) for request in server.requests)


@pytest.mark.parametrize(("kind", "name"), [(OpenAIChat, "OPENAI_API_KEY"), (AnthropicChat, "ANTHROPIC_API_KEY")])
async def test_without_any_key_nothing_is_asked(kind, name, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidInput, match=f"cannot be used like this: give api_key, set {name}"):
        await kind("m", retries=0).chat(ASK)


# -- loops ------------------------------------------------------------------------------------------------------------


def test_one_object_serves_several_loops_one_after_the_other():
    model, embedder = OpenAIChat("m", "http://x/v1"), OpenAIEmbedder("m", 3, "http://x/v1")

    async def session(close):
        async with Server() as server:
            model._base_url = embedder._base_url = f"{server.url}/v1"
            assert (await model.chat(ASK)).content == "hello"
            assert await embedder.embed(["a"]) == [[1.0, 0.5, 0.5]]
            if close:
                await model.close()
                await embedder.close()
                await model.close()
                assert (await model.chat(ASK)).content == "hello"
                await model.close()

    for _ in range(3):
        asyncio.run(session(close=True))
    gc.collect()
    assert len(model._clients) == 0


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": ""}, "model must not be empty"),
        ({"model": None}, "model must be text"),
        ({"base_url": "localhost:8080"}, "base_url must begin with http://"),
        ({"base_url": "http://"}, "base_url must begin with http:// or https:// and name a host"),
        ({"base_url": "http://[::1"}, "base_url must begin with http://"),
        ({"base_url": "http://x:port"}, "base_url must begin with http://"),
        ({"base_url": 5}, "base_url must be text"),
        ({"api_key": "a\nb"}, "api_key must be printable ASCII text"),
        ({"api_key": 5}, "api_key must be printable ASCII text"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"timeout": None}, "timeout must be above 0"),
        ({"timeout": float("nan")}, "timeout must be above 0"),
        ({"retries": -1}, "retries must be a whole number from 0"),
        ({"retries": 1.5}, "retries must be a whole number"),
    ],
)
@pytest.mark.parametrize("kind", [OpenAIChat, AnthropicChat, OpenAIEmbedder])
def test_settings_are_checked(kind, change, said):
    settings = {"model": "m", **({"dimensions": 3} if kind is OpenAIEmbedder else {}), **change}
    with pytest.raises(InvalidInput, match=said) as raised:
        kind(**settings)
    assert "a\nb" not in str(raised.value)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "messages is empty"),
        ("hi", "messages must be a list of messages, not str"),
        ({"role": "user"}, "messages must be a list of messages"),
        ([5], "a message must be a mapping, not int"),
        ([{"role": "user", "content": object}], "a message holds .* which JSON cannot carry"),
        ([{"role": "user", "content": float("inf")}], "a message holds inf"),
        ([{"role": "user", "content": {1, 2}}], "a message holds"),
    ],
)
@pytest.mark.parametrize("kind", [OpenAIChat, AnthropicChat])
async def test_messages_are_checked(kind, messages, said):
    with pytest.raises(InvalidInput, match=said):
        await kind("m", "http://x/v1").chat(messages)


async def test_messages_nested_too_deeply_are_refused():
    content: list = []
    for _ in range(100_000):
        content = [content]
    with pytest.raises(InvalidInput, match="nested too deeply"):
        await OpenAIChat("m", "http://x/v1").chat([{"role": "user", "content": content}])


@pytest.mark.parametrize("kind", [OpenAIChat, AnthropicChat])
async def test_memdbs_own_messages_and_any_text_are_sent(kind):
    async with Server() as server, kind("m", server.url) as model:
        await model.chat([memdb.Message(role="user", content="lone \ud83d and \x00 and 猫🙂")])
        content = server.requests[0].body["messages"][0]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        assert text == "lone ? and \x00 and 猫🙂"


@pytest.mark.parametrize(("kind", "extra"), [(OpenAIChat, "openai"), (AnthropicChat, "anthropic")])
def test_a_missing_package_names_its_extra(kind, extra, monkeypatch):
    monkeypatch.setattr(client_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=rf"{extra} is not installed: pip install 'memdb\[{extra}\]'"):
        kind("m")
