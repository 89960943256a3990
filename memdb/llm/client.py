"""What the clients of models have in common: an official client for each event loop, and its errors in one sentence."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from memdb.errors import InvalidInput, MissingExtra, ModelError
from memdb.layers.arguments import check_range
from memdb.text.check import check_id, check_text
from memdb.text.shown import shown

TIMEOUT_S = 300.0  # a summary of 2,000 tokens takes a model on a plain processor four minutes
RETRIES = 2
LONGEST_WAIT_S = 120.0  # that a server may ask for between two attempts and is still waited for
MOST_BYTES = 256 * 1024 * 1024  # of an answer, unpacked: 2,048 vectors of 4,096 numbers take 180 MB
MAX_SAID_CHARS = 300  # of what a server says of an error

# What to do, by the status of an answer.
_ADVICE = {
    400: "change what the server names",
    401: "check api_key",
    403: "check api_key and what it may use",
    404: "check the model's name and the path of base_url",
    413: "send less",
    422: "change what the server names",
    429: "wait, or let retries be more",
}


T = TypeVar("T")


class Malformed(Exception):
    """An answer that is not what the API promises; the text goes on from "the answer"."""


class ModelClient:
    """A model behind the official client of its API. Not for use by itself: OpenAIChat, OpenAIEmbedder, AnthropicChat.

    The client is opened at the first call in an event loop, so an object serves several loops; close() closes the one
    of the loop it is called in. Failed attempts are repeated by the official client: connections that break, time-outs,
    and answers of status 408, 409, 429 and 5xx, after 0.5, 1, 2, 4 and then 8 seconds (less up to a quarter), or
    what the server asks for.

    Args:
        model: the model's name.
        base_url: where the API is; None for the official client's own.
        api_key: None for the one in the environment, or for none where a base_url is given.
        timeout: how long one attempt may wait for the server, in seconds.
        retries: how many attempts may follow the first.

    Raises:
        InvalidInput: an argument is not what it must be.
        MissingExtra: the official client is not installed.
    """

    _package: str
    _class: str
    _key_name: str

    def __init__(self, model: str, base_url: str | None, api_key: str | None, timeout: float, retries: int) -> None:
        if find_spec(self._package) is None:
            raise MissingExtra(f"{self._package} is not installed: pip install 'memdb[{self._package}]'")
        self.model = check_id(model, "model")
        if base_url is not None and not _is_address(check_text(base_url, "base_url")):
            raise InvalidInput("base_url must begin with http:// or https:// and name a host: correct it")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 86_400:
            raise InvalidInput(f"timeout must be above 0 and at most 86,400 seconds, not {shown(timeout)}")
        if not _can_be_sent(api_key):
            raise InvalidInput("api_key must be printable ASCII text without blanks around it")
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = float(timeout)
        self._retries = check_range(retries, "retries", 0, 100)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop. Calling it again does nothing; a later call opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _post(self, request: Callable[[Any], Awaitable[Any]], read: Callable[[dict[str, Any]], T]) -> T:
        """Send a request and return what is read of the answer.

        Args:
            request: given the official client, sends and returns what `with_raw_response` returns. The shape of an
                answer is checked here, not there: the official clients take any JSON for what they expect.
            read: given the answer's JSON, returns what the caller wants, or raises Malformed.

        Raises:
            ModelError: the server could not be asked, refused, or its answer is of no use.
        """
        client = await self._client()
        package = import_module(self._package)
        longest = (self._retries + 1) * self._timeout + self._retries * LONGEST_WAIT_S
        try:
            async with asyncio.timeout(longest):  # also where a server sends a byte now and then
                response = await request(client)
            return read(_object_in(response.http_response.content))
        except Malformed as error:
            what, advice = f"the answer {error}", "ask again, or check base_url and the model"
        except (package.APITimeoutError, TimeoutError):
            what = f"there was no whole answer within {self._timeout:g} s{self._repeated}"
            advice = "let timeout be longer, or see what the server does"
        except package.APIStatusError as error:
            what, advice = self._refusal(error.status_code, error.body or error.response.text)
        except package.APIConnectionError as error:
            reason = error.__cause__ or error
            what = f"the connection failed{self._repeated} ({type(reason).__name__}: {reason})"
            advice = "see whether the server is running, and check base_url"
        except Exception as error:
            if isinstance(error, TypeError) and not (self._api_key or self._base_url):
                raise self._keyless(error) from None
            what, advice = f"the request failed ({type(error).__name__}: {error})", "check base_url and options"
        # Not chained: what a server says of a wrong key may hold the key, and a traceback shows what is chained.
        raise ModelError(self._without_keys(client, f"{what}; {advice}")) from None

    async def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            package = await asyncio.to_thread(import_module, self._package)  # one to two seconds
            if loop not in self._clients:
                self._clients[loop] = self._opened(package)
        return self._clients[loop]

    def _opened(self, package: Any) -> Any:
        # The default transport of the official clients closes itself in whatever loop happens to run when it is
        # collected; one that is given does not.
        transport = package.DefaultAsyncHttpxClient(timeout=self._timeout, event_hooks={"response": [_received]})
        # A key in the environment is meant for the official server: another one is not told it.
        key = self._api_key or (None if self._base_url is None else "none")
        try:
            client = getattr(package, self._class)(
                api_key=key,
                base_url=self._base_url,
                timeout=self._timeout,
                max_retries=self._retries,
                http_client=transport,
            )
        except Exception as error:
            raise self._keyless(error) from None
        # One with a line's end, as a file of secrets gives it, would be shown by the error about a header it cannot be.
        if not _can_be_sent(client.api_key):
            raise InvalidInput(f"{self._key_name} must be printable ASCII text without blanks around it: correct it")
        return client

    def _keyless(self, error: Exception) -> InvalidInput:
        return InvalidInput(
            f"{self._package} cannot be used like this: give api_key, set {self._key_name}, or give the base_url of a "
            f"server that needs no key ({type(error).__name__}: {error})"
        )

    @property
    def _repeated(self) -> str:
        return f", in {self._retries + 1} attempts" if self._retries else ""

    def _refusal(self, status: int, body: object) -> tuple[str, str]:
        repeated = self._repeated if status in (408, 409, 429) or status >= 500 else ""
        advice = _ADVICE.get(status, "look at the server's log, or try again later")
        return f"the server answered with status {status}{repeated} ({_said(body)})", advice

    def _without_keys(self, client: Any, text: str) -> str:
        url = urlsplit(str(client.base_url))
        where = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}"
        for secret in (client.api_key, url.password):
            if secret and len(secret) > 4:
                text = text.replace(secret, "***")
        return f"asked {self.model} at {where}: {text}"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number
        return False


def _can_be_sent(api_key: object) -> bool:
    """Return whether a key can stand in a header; where there is none, none is sent."""
    if not isinstance(api_key, str):
        return api_key is None
    return api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key


async def _received(response: Any) -> None:
    """Read an answer as far as it may go, and have no attempt follow that the server wants much later.

    Raises:
        Malformed: it is larger than any answer; the official clients would take a gigabyte, or what unpacks to one.
    """
    if _wait_asked_for(response.headers) > LONGEST_WAIT_S:
        response.headers["x-should-retry"] = "false"
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise Malformed(f"has more than {MOST_BYTES:,} bytes")
    response._content = b"".join(parts)  # where the client itself keeps what it has read


def _wait_asked_for(headers: Any) -> float:
    """Return for how many seconds a server asks to be left alone; 0 where it does not."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
    try:
        return parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    except (KeyError, ValueError, OverflowError):
        return 0.0


def _object_in(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise Malformed(f"is no JSON: it begins {content[:60].decode(errors='replace')!r}") from None
    if not isinstance(found, dict):
        raise Malformed(f"is a JSON {type(found).__name__}, not an object")
    if found.get("error"):  # some servers say so with status 200
        raise Malformed(f"is an error ({_said(found)})")
    return found


def _said(body: object) -> str:
    """Return what a server says of an error: {"error": {"message": ...}}, {"error": ...}, or any text."""
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(name):
            body = body[name]
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return " ".join(text[: 4 * MAX_SAID_CHARS].split())[:MAX_SAID_CHARS] or "it says no more"
