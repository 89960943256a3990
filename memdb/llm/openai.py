"""Chat models and embedders behind the OpenAI API, whoever speaks it: OpenAI, llama.cpp, vLLM, Ollama, LM Studio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_range
from memdb.llm.client import RETRIES, TIMEOUT_S, Malformed, ModelClient
from memdb.llm.sendable import sendable, sendable_dicts, sendable_messages, valid_text
from memdb.text.chat import searchable
from memdb.text.check import check_flag
from memdb.text.reply import ChatReply
from memdb.text.tokens import Sendable

BATCH_SIZE = 64
MAX_DIMENSIONS = 65_536


class OpenAIClient(ModelClient):
    """The official client of the OpenAI API."""

    _package = "openai"
    _class = "AsyncOpenAI"
    _key_name = "OPENAI_API_KEY"


class OpenAIChat(OpenAIClient):
    """A chat model behind the OpenAI API (memdb.protocols.ChatModel), with the extra `openai`.

    >>> async with memdb.OpenAIChat("qwen3", "http://localhost:8080/v1") as model:
    ...     reply = await model.chat([{"role": "user", "content": "Hello"}])

    Args:
        model: the model's name, as the server knows it.
        base_url: where the API is, with its /v1; None for OpenAI's own, or what OPENAI_BASE_URL says.
        api_key: None for OPENAI_API_KEY in the environment; where a base_url is given, for none.
        timeout: how long one attempt may wait for the server, above 0 and at most 86,400 seconds.
        retries: how many attempts may follow the first, 0 to 100; see memdb.llm.client.
        options: more fields of each request, such as {"temperature": 0}.

    Raises:
        InvalidInput: an argument is not what it must be.
        MissingExtra: the package openai is not installed.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, base_url, api_key, timeout, retries)
        (self._options,) = sendable_dicts([{} if options is None else options], "options")

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any] | Sendable],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> ChatReply:
        """Return the model's answer; see memdb.protocols.ChatModel.

        An answer that was cut short is returned with its finish_reason "length". `tool_choice` is sent only with tools.

        Raises:
            InvalidInput: a message or a tool is no mapping, or holds what JSON cannot.
            ModelError: the server could not be asked, refused, or its answer is of no use. It never holds a key.
        """
        fields: dict[str, Any] = {}
        if tools:
            fields["tools"] = sendable_dicts(tools, "a tool")
            if tool_choice is not None:
                fields["tool_choice"] = sendable(tool_choice, "tool_choice")
        if max_tokens is not None:
            check_range(max_tokens, "max_tokens", 1, 10_000_000)
        sent = sendable_messages(messages)

        async def request(client: Any) -> Any:
            # OpenAI's own newer models refuse the older name; the servers of others often know only that.
            own = urlsplit(str(client.base_url)).hostname == "api.openai.com"
            limit = {"max_completion_tokens" if own else "max_tokens": max_tokens} if max_tokens else {}
            return await client.chat.completions.with_raw_response.create(
                model=self.model, messages=sent, extra_body={**limit, **fields, **self._options}
            )

        return await self._post(request, _reply_in)


class OpenAIEmbedder(OpenAIClient):
    """An embedder behind the OpenAI API (memdb.protocols.Embedder), with the extra `openai`.

    Args:
        model: the model's name, as the server knows it.
        dimensions: how many numbers its vectors have, 1 to MAX_DIMENSIONS.
        base_url, api_key, timeout, retries: see OpenAIChat.
        batch_size: how many texts go into one request, 1 to 2,048.
        shorten: ask for vectors of `dimensions` numbers, where the model has more (text-embedding-3 and others that
            can be shortened; most servers refuse that).

    Raises:
        InvalidInput: an argument is not what it must be.
        MissingExtra: the package openai is not installed.
    """

    def __init__(
        self,
        model: str,
        dimensions: int,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        batch_size: int = BATCH_SIZE,
        shorten: bool = False,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        super().__init__(model, base_url, api_key, timeout, retries)
        self.dimensions = check_range(dimensions, "dimensions", 1, MAX_DIMENSIONS)
        self._batch_size = check_range(batch_size, "batch_size", 1, 2_048)
        self._fields = {"dimensions": dimensions} if check_flag(shorten, "shorten") else {}

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text, in their order, one request after the other for each `batch_size` texts.

        A blank text is sent as a full stop: most servers refuse an empty one.

        Raises:
            InvalidInput: texts is no list of texts.
            ModelError: the server could not be asked, refused, or sent other vectors than it should: never zeros.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InvalidInput(f"texts must be a list of texts, not {type(texts).__name__}")
        sent = list(texts)
        for text in sent:
            if not isinstance(text, str):
                raise InvalidInput(f"texts must be a list of texts, not of {type(text).__name__}")
        vectors: list[list[float]] = []
        for at in range(0, len(sent), self._batch_size):
            vectors += await self._embed(
                [valid_text(text) if text.strip() else "." for text in sent[at : at + self._batch_size]]
            )
        return vectors

    async def _embed(self, batch: list[str]) -> list[list[float]]:
        async def request(client: Any) -> Any:
            return await client.embeddings.with_raw_response.create(
                model=self.model, input=batch, encoding_format="float", **self._fields
            )

        return await self._post(request, lambda answer: _vectors_in(answer, len(batch), self.dimensions))


def _reply_in(answer: dict[str, Any]) -> ChatReply:
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Malformed("has no choice with a message")
    content, calls, reason = message.get("content"), message.get("tool_calls") or [], choice.get("finish_reason")
    if isinstance(content, list):  # parts, as some servers send them
        content = searchable(content)
    if content is not None and not isinstance(content, str):
        raise Malformed(f"has content of type {type(content).__name__}")
    if not isinstance(calls, list):
        raise Malformed(f"has tool_calls of type {type(calls).__name__}")
    named = [_call_in(call, f"call_{answer.get('id') or ''}_{n}") for n, call in enumerate(calls, 1)]
    return ChatReply(content, named, reason if isinstance(reason, str) else None)


def _call_in(call: Any, id: str) -> dict[str, Any]:
    """Return a tool call in the OpenAI shape; some servers leave out the id, or the type."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Malformed("has a tool call that names no function")
    return {**call, "id": call.get("id") or id, "type": call.get("type") or "function"}


def _vectors_in(answer: dict[str, Any], count: int, dimensions: int) -> list[list[float]]:
    rows = answer.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Malformed("has no list of vectors")
    if len(rows) != count:
        raise Malformed(f"has {len(rows)} vectors for {count} texts")
    places = [n if row.get("index") is None else row["index"] for n, row in enumerate(rows)]
    if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
        raise Malformed("does not say which vector belongs to which text")
    vectors = [_vector_in(row.get("embedding"), dimensions) for row in rows]
    return [vectors[n] for n in sorted(range(count), key=places.__getitem__)]


def _vector_in(given: Any, dimensions: int) -> list[float]:
    if not isinstance(given, list):
        raise Malformed(f"has a vector of type {type(given).__name__}")
    if len(given) != dimensions:
        raise Malformed(f"has a vector of {len(given)} numbers where {dimensions} are expected: correct dimensions")
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in given):
        raise Malformed("has a vector that holds something else than numbers")
    try:
        vector = [float(number) for number in given]
    except OverflowError:
        vector = [math.inf]
    if not all(map(math.isfinite, vector)) or not any(vector):
        raise Malformed("has a vector that is not finite, or of zeros alone")
    return vector
