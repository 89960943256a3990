"""What a session's blocks are, and how they give way: BlockConfig and MemoryConfig of the Asterix document."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, StrictBool
from sqlalchemy import select

from memdb.errors import InvalidInput, SerializationError
from memdb.layers.arguments import check_range
from memdb.layers.models import Content, Model, Share, Title, whole_number
from memdb.layers.unreadable import readable
from memdb.scope import Scope
from memdb.storage.quarantine import OwnRow
from memdb.storage.schema import memory_config
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction
from memdb.text.check import check_choice, check_text
from memdb.text.json_text import to_json
from memdb.text.shown import shown

MAX_TOKENS = 1_000_000  # of a block, and of all blocks of a session: they stand in every prompt
MAX_PRIORITY = 1_000_000
MAX_RETRIEVED = 1_000

EvictionStrategy = Literal["summarize_and_archive", "archive_only", "discard", "truncate"]

_HERE = (memory_config.c.user_id == param("user_id"), memory_config.c.session_id == param("session_id"))
_GET = Statement(select(memory_config.c.config).where(*_HERE))
_VALUES = insert(memory_config).values(
    {name: param(name) for name in ("user_id", "session_id", "updated_at", "config")}
)
_PUT = Statement(
    _VALUES.on_conflict_do_update(
        index_elements=["user_id", "session_id"],
        set_={name: _VALUES.excluded[name] for name in ("updated_at", "config")},
    )
)
_ROW = OwnRow(memory_config, ("user_id", "session_id"))


def _strategy(value: object) -> object:
    return check_choice(value, "it", get_args(EvictionStrategy))


def _total(value: object) -> object:
    return None if value is None else check_range(value, "it", 1, MAX_TOKENS)


def _share(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"it must be a number from 0 to 1 or None, not {shown(value)}")
    return float(value)


class BlockConfig(Model):
    """What a memory block is (Asterix document, "Configuring Memory Blocks").

    Args:
        size: how many tokens (cl100k_base) it may hold, 1 to 1,000,000.
        priority: 0 to 1,000,000; blocks of a lower one give way first where all blocks together are too large.
        description: what it is for, shown to the agent; at most 10,000 characters.
        initial_value: what it holds when it is made.
    """

    size: Annotated[int, whole_number("it", 1, MAX_TOKENS)]
    priority: Annotated[int, whole_number("it", 0, MAX_PRIORITY)] = 1
    description: Title = ""
    initial_value: Content = ""


class MemoryConfig(Model):
    """How a session's memory keeps within its bounds (Asterix document, "Eviction Strategies").

    Args:
        eviction_strategy: what becomes of a block that a write makes larger than its size; memdb.layers.blocks.eviction
            tells what each strategy does.
        summary_token_limit: how many tokens a model's summary of a block may have, 1 to 100,000.
        context_window_threshold: from which share of the model's window on MemoryConsolidator.extract_context does
            something, 0 to 1; below it the call changes nothing.
        extraction_enabled: whether that call does anything: a model takes facts of the older messages, they go into the
            archive, and the history goes on behind those messages. Nothing of it happens by itself. Call it where
            single facts are to be found again by a search; where the course of things is to be told in the history
            and the long-term text that stands in every prompt, call maybe_consolidate_by_tokens, which does not ask
            this config. One of the two is enough for a session.
        retrieval_k: how many passages a search of the archive returns, 1 to 1,000.
        score_threshold: the least score of these, 0 to 1; None for what fits the way they are scored.
        total_size: how many tokens all blocks of the session may hold together, 1 to 1,000,000; None for no bound.
    """

    eviction_strategy: Annotated[EvictionStrategy, BeforeValidator(_strategy)] = "summarize_and_archive"
    summary_token_limit: Annotated[int, whole_number("it", 1, 100_000)] = 220
    context_window_threshold: Share = 0.85
    extraction_enabled: StrictBool = True
    retrieval_k: Annotated[int, whole_number("it", 1, MAX_RETRIEVED)] = 5
    score_threshold: Annotated[float | None, BeforeValidator(_share)] = None
    total_size: Annotated[int | None, BeforeValidator(_total)] = None

    def bound(self, size: int) -> int:
        """Return how many tokens a block of a size may hold: never more than all blocks together."""
        return size if self.total_size is None else min(size, self.total_size)


def read_config(tx: Transaction, scope: Scope) -> MemoryConfig:
    """Return a session's configuration; the defaults when it has none, or it cannot be read and is set aside."""
    whose = _whose(scope)
    name = f"the configuration of the blocks of user {scope.user_id!r} session {scope.session_id!r}"
    read = partial(_read, whose=whose)
    return readable(tx, name, lambda: read(tx), read, partial(_ROW.move, **whose)) or MemoryConfig()


def write_config(tx: Transaction, scope: Scope, config: MemoryConfig) -> None:
    """Store a session's configuration. One that cannot be read goes to the quarantine before it is written over."""
    read_config(tx, scope)
    tx.run(_PUT, **_whose(scope), updated_at=tx.now, config=to_json(config.model_dump()))


def _read(tx: Transaction, whose: dict[str, str]) -> MemoryConfig | None:
    stored: Any = tx.value(_GET, **whose)
    if stored is None:
        return None
    if not isinstance(stored, str):
        raise SerializationError(f"the column config holds {type(stored).__name__} instead of text")
    given = json.loads(check_text(stored, "the column config") if tx.lenient else stored)
    if not isinstance(given, dict):
        raise SerializationError("the configuration is no JSON object")
    return MemoryConfig.model_validate(given)


def _whose(scope: Scope) -> dict[str, Any]:
    return {"user_id": scope.user_id, "session_id": scope.session_id}
