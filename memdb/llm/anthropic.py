"""Chat models behind the Anthropic API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memdb.layers.arguments import check_range
from memdb.llm.anthropic_shape import anthropic_choice, anthropic_messages, anthropic_tools, reply_in
from memdb.llm.client import RETRIES, TIMEOUT_S, Malformed, ModelClient
from memdb.llm.sendable import sendable, sendable_dicts, sendable_messages
from memdb.text.reply import ChatReply
from memdb.text.tokens import Sendable

MAX_TOKENS = 4_096


class AnthropicChat(ModelClient):
    """A chat model behind the Anthropic API (memdb.protocols.ChatModel), with the extra `anthropic`.

    Messages and tools are given in the OpenAI shape, as everywhere in memdb, and answers come back in it.

    Args:
        model: the model's name.
        base_url: where the API is, without /v1; None for Anthropic's own, or what ANTHROPIC_BASE_URL says.
        api_key: None for ANTHROPIC_API_KEY in the environment; where a base_url is given, for none.
        max_tokens: of an answer, where a call does not say; the API demands a number.
        timeout: how long one attempt may wait for the server, above 0 and at most 86,400 seconds.
        retries: how many attempts may follow the first, 0 to 100; see memdb.llm.client.
        options: more fields of each request, such as {"temperature": 0}.

    Raises:
        InvalidInput: an argument is not what it must be.
        MissingExtra: the package anthropic is not installed.
    """

    _package = "anthropic"
    _class = "AsyncAnthropic"
    _key_name = "ANTHROPIC_API_KEY"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, base_url, api_key, timeout, retries)
        self._max_tokens = check_range(max_tokens, "max_tokens", 1, 10_000_000)
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
            InvalidInput: a message, part, tool or tool_choice cannot be sent to this API.
            ModelError: the server could not be asked, refused, or its answer is of no use. It never holds a key.
        """
        fields = self._asked(messages, tools)
        if tools and tool_choice is not None:
            fields["tool_choice"] = anthropic_choice(sendable(tool_choice, "tool_choice"))
        limit = self._max_tokens if max_tokens is None else check_range(max_tokens, "max_tokens", 1, 10_000_000)

        async def request(client: Any) -> Any:
            return await client.messages.with_raw_response.create(
                model=self.model, max_tokens=limit, timeout=self._timeout, extra_body=self._options, **fields
            )

        return await self._post(request, reply_in)

    async def count_tokens(
        self,
        messages: Sequence[Mapping[str, Any] | Sendable],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> int:
        """Return how many tokens the server says that messages and tools cost. Asks the server.

        Raises:
            InvalidInput: a message, part or tool cannot be sent to this API.
            ModelError: the server could not be asked, refused, or its answer is of no use.
        """
        fields = self._asked(messages, tools)

        async def request(client: Any) -> Any:
            return await client.messages.with_raw_response.count_tokens(model=self.model, **fields)

        return await self._post(request, _count_in)

    def _asked(
        self, messages: Sequence[Mapping[str, Any] | Sendable], tools: Sequence[Mapping[str, Any]] | None
    ) -> dict[str, Any]:
        system, turns = anthropic_messages(sendable_messages(messages))
        fields: dict[str, Any] = {"messages": turns}
        if system:
            fields["system"] = system
        if tools:
            fields["tools"] = anthropic_tools(sendable_dicts(tools, "a tool"))
        return fields


def _count_in(answer: dict[str, Any]) -> int:
    count = answer.get("input_tokens")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise Malformed("has no count of tokens")
    return count
