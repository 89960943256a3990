"""A server on this machine that answers as the OpenAI and the Anthropic API do, or fails as a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

HANG = "hang"  # read the request, say nothing
CLOSE = "close"  # hang up without an answer
TRICKLE = "trickle"  # send a byte now and then, for ever


@dataclass
class Answer:
    """What is answered to one request.

    Args:
        body: sent as JSON, or as it is where it is bytes.
        status: of the answer.
        headers: more headers.
        lost: how many bytes at the end of the body are announced and never sent.
    """

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lost: int = 0


@dataclass
class Request:
    """What was asked."""

    path: str
    headers: dict[str, str]
    body: Any


class Server:
    """Answers one request after the other from a script, then as the API would: `async with Server([...]) as server`.

    Attributes:
        requests: what it was asked, oldest first.
        connections: how many were opened.
        asked: set once there was a request.
    """

    def __init__(self, script: Iterable[Answer | str] = ()) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where the server is, without a path."""
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client hung up, or the test is over
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(head[0].split()[1], headers, json.loads(body) if body else None)
        self.requests.append(request)
        self.asked.set()
        answer = self.script.pop(0) if self.script else Answer(usual(request))
        if answer == CLOSE:
            return False
        if answer == HANG:
            await asyncio.sleep(3600)
        if answer == TRICKLE:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        assert isinstance(answer, Answer)
        sent = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        fields = {"content-type": "application/json", **answer.headers, "content-length": str(len(sent))}
        lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + sent[: len(sent) - answer.lost])
        await writer.drain()
        return not answer.lost


def usual(request: Request) -> dict[str, Any]:
    """Return what the API would answer to a request; embeddings say which text they belong to by their first number."""
    if request.path.endswith("/chat/completions"):
        return openai_reply({"role": "assistant", "content": "hello"})
    if request.path.endswith("/embeddings"):
        dimensions = request.body.get("dimensions", 3)
        rows = [
            {"index": n, "embedding": [float(len(text))] + [0.5] * (dimensions - 1)}
            for n, text in enumerate(request.body["input"])
        ]
        return {"object": "list", "data": rows}
    if request.path.endswith("/count_tokens"):
        return {"input_tokens": 7}
    return anthropic_reply([{"type": "text", "text": "hello"}])


def openai_reply(message: Any, finish_reason: Any = "stop") -> dict[str, Any]:
    """Return a completion with one choice."""
    return {"id": "x1", "object": "chat.completion", "choices": [{"message": message, "finish_reason": finish_reason}]}


def anthropic_reply(content: Any, stop_reason: Any = "end_turn") -> dict[str, Any]:
    """Return a message of the Anthropic API."""
    return {"id": "m1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason}
