"""Large tool results kept out of a model's context (local-ai document, "L3 tool result externalization")."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, ParamSpec, TypeVar
from uuid import uuid4

from memdb.errors import InvalidInput, StorageError
from memdb.layers.arguments import check_range
from memdb.layers.layer import writes
from memdb.layers.record import Place
from memdb.layers.runtime import stored_results
from memdb.layers.runtime.stored_results import MAX_RESULT_BYTES, SUMMARY_CHARS
from memdb.storage.clock import from_text
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_ID_CHARS, check_flag, check_text
from memdb.text.json_text import to_exact_json
from memdb.text.shown import shown

INLINE_LIMIT_BYTES = 6_144
MAX_SUMMARY_CHARS = 10_000
MAX_TTL_SECONDS = 100 * 366 * 86_400
LOADER = "load_tool_result"  # its own answer is what was externalised: it would be so again for ever

log = logging.getLogger("memdb")
P = ParamSpec("P")
R = TypeVar("R")


class ToolResultReference(NamedTuple):
    """What a model is given in place of a large tool result.

    Args:
        result_id: what load_tool_result and the other methods take.
        summary: its beginning, with "…" when there is more.
        size: how many bytes the whole has in UTF-8.
    """

    result_id: str
    summary: str
    size: int

    def to_json(self) -> str:
        """Return the JSON object that the document shows: result_id, summary, size."""
        return to_exact_json(self._asdict())


class Output(NamedTuple):
    """What a tool returned, and how it is to be kept; see ToolResultLayer.externalize."""

    tool: str
    text: str
    succeeded: bool = True
    inline_limit: int = INLINE_LIMIT_BYTES
    summary_max_chars: int = SUMMARY_CHARS
    ttl: float | None = None

    def check(self) -> Output:
        """Return itself, its arguments checked.

        Raises:
            InvalidInput: one is not what it must be.
        """
        check_text(self.tool, "tool", max_chars=MAX_ID_CHARS)
        if not isinstance(self.text, str):
            raise InvalidInput(f"text must be text, not {type(self.text).__name__}; render it, for example as JSON")
        check_flag(self.succeeded, "succeeded")
        check_range(self.inline_limit, "inline_limit", 0, MAX_RESULT_BYTES)
        check_range(self.summary_max_chars, "summary_max_chars", 0, MAX_SUMMARY_CHARS)
        ttl = self.ttl
        if ttl is not None and (
            isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= MAX_TTL_SECONDS
        ):
            raise InvalidInput(
                f"ttl must be a number of seconds above 0, at most {MAX_TTL_SECONDS:,}, not {shown(ttl)}"
            )
        return self

    @property
    def size(self) -> int:
        """How many bytes the text has in UTF-8."""
        return len(self.text) if self.text.isascii() else len(self.text.encode("utf-8", "surrogatepass"))

    @property
    def stays(self) -> bool:
        """Whether a model is given the text itself."""
        return not self.succeeded or self.tool == LOADER or self.size <= self.inline_limit

    def store(self, tx: Transaction, place: Place) -> ToolResultReference:
        """Store the text under a new id and return what stands for it."""
        cut = len(self.text) > self.summary_max_chars
        summary = self.text[: self.summary_max_chars] + ("…" if cut else "")
        reference = ToolResultReference(uuid4().hex, summary, self.size)
        now = from_text(tx.now)
        payload = {
            "id": reference.result_id,
            "tool": self.tool,
            "created_at": now.isoformat(),
            "content": self.text,
        }
        expires_at = None if self.ttl is None else now + timedelta(seconds=self.ttl)
        stored_results.put(tx, place, reference.result_id, payload, summary=summary, expires_at=expires_at)
        return reference


async def _store_or_keep(
    engine: Engine, act: Callable[..., Any], tool: str, text: str, **options: Any
) -> str | ToolResultReference:
    """Externalise a text; where it cannot be stored, log that and return it: a tool's work must not be lost for it."""
    given = Output(tool, text, **options).check()
    if given.stays:
        return text
    try:
        if given.size > MAX_RESULT_BYTES:
            raise StorageError(f"it has {given.size:,} bytes, and at most {MAX_RESULT_BYTES:,} are kept")
        reference: ToolResultReference = await engine.write(act, tool, text, **options)
    except StorageError as error:
        log.warning("the result of the tool %r could not be stored and stays inline: %s", tool, error)
        return text
    fields = {"tool": tool, "result_id": reference.result_id, "size": reference.size}
    log.info("TOOL_RESULT_STORED %s", " ".join(f"{name}={value}" for name, value in fields.items()), extra=fields)
    return reference


class externalizes(writes[P, R]):
    """Marks the method that writes or, where it must not or cannot, returns what it was given."""

    _verb = _store_or_keep  # type: ignore[assignment]  # any verb will do
