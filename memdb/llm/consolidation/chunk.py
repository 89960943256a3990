"""One chunk of messages into history and facts: the consolidate of the LightGrep document's MemoryStore.

Three steps: what the facts are is read, the model is asked with no transaction open, and history, facts and cursor are
written in one unit, by compare-and-set. Who was slower than another process writes nothing; where only the facts have
changed, the model is asked again with what they are now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from memdb.errors import InvalidInput, ModelError
from memdb.layers.arguments import check_bulk
from memdb.layers.conversation import ConversationMemory
from memdb.layers.facts.store import FactStore
from memdb.layers.layer import Live
from memdb.layers.message import Message
from memdb.llm.consolidation.asking import ask_to_save
from memdb.llm.consolidation.parts import SessionMemory
from memdb.llm.consolidation.prompts import consolidating
from memdb.llm.consolidation.wording import AnyMessage, chunk_of, lines_of, raw_entries
from memdb.llm.transcript import cut_middle, fitting
from memdb.protocols import ChatModel, check_model
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.packing import Count
from memdb.text.tokens import TokenCounter

AUTHOR = "consolidation"
MAX_FAILURES = 3
MAX_TRIES = 3  # when others write the facts meanwhile
FRAME_TOKENS = 500  # the instructions, the tool, and the tags around what is shown
LEAST_SHOWN = 2_000  # tokens of a chunk, however long the facts are
LONGEST_LINE, SHORTEST_LINE = 8_000, 250  # characters of a message where they do not all fit into a prompt
log = logging.getLogger("memdb")

R = TypeVar("R")


class Fate(Enum):
    """What became of a chunk."""

    STORED = "stored"
    RAW = "raw"
    FAILED = "failed"  # the model's fault: it is counted
    LOST = "lost"  # another process consolidated these messages, or they are gone
    CHANGED = "changed"  # others wrote the facts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a chunk, and why where it was not stored."""

    fate: Fate
    reason: str | None = None

    @property
    def done(self) -> bool:
        """Whether the messages are consolidated."""
        return self.fate in (Fate.STORED, Fate.RAW)


LOST = Outcome(Fate.LOST, "others consolidated these messages meanwhile, or deleted them")
_CHANGED = Outcome(Fate.CHANGED, f"others wrote the facts {MAX_TRIES} times meanwhile")


@dataclass(frozen=True, slots=True)
class ChunkWriter:
    """Consolidates chunks of messages into one memory.

    Args:
        memory: whose history and facts, and whose cursor and count of failures.
        llm: the chat model.
        count: counts the tokens of a text.
        prompt_tokens: the longest prompt; None for any. Where a chunk is longer its longest messages are shown cut.
        max_answer_tokens: of an answer; None for what the model's client or server allows.
        max_failures: at how many failures in a row the messages go into the history as they are.
    """

    memory: SessionMemory
    llm: ChatModel
    count: Count
    prompt_tokens: int | None = None
    max_answer_tokens: int | None = None
    max_failures: int = MAX_FAILURES

    async def consolidate(self, messages: Sequence[AnyMessage], passed: int | None) -> Outcome:
        """Ask the model what to remember of messages, and store it.

        Args:
            messages: oldest first.
            passed: where the cursor stood when they were read, all that follow it; None: no cursor is moved.
        """
        lines = lines_of(messages)
        if not lines:
            return await self._store(messages, passed, [], "consolidated") if messages else Outcome(Fate.STORED)
        for _ in range(MAX_TRIES):
            known = await self.memory.facts.long_term()
            shown = await asyncio.to_thread(self._fitted, lines, known.content)
            try:
                saved = await ask_to_save(self.llm, consolidating(known.content, shown), self.max_answer_tokens)
            except ModelError as failed:
                return await self._failed(messages, passed, str(failed))
            update = saved.memory_update
            facts = (update, known.version) if update.strip() and update != known.content else None
            outcome = await self._store(messages, passed, [saved.history_entry], "consolidated", facts)
            if outcome.fate is not Fate.CHANGED:
                return outcome
        return _CHANGED

    async def archive_raw(self, messages: Sequence[AnyMessage], passed: int | None, reason: str) -> Outcome:
        """Put messages into the history as they are; the facts stay as they are."""
        home = self.memory._home
        now = home.clock.text() if isinstance(home, Engine) else home.now
        entries = await asyncio.to_thread(raw_entries, messages, now)
        outcome = await self._store(messages, passed, entries, "raw")
        if outcome.fate is not Fate.STORED:
            return outcome
        log.warning("%d messages of %s went into the history as they are: %s", len(messages), self.memory.scope, reason)
        return Outcome(Fate.RAW, reason)

    async def _failed(self, messages: Sequence[AnyMessage], passed: int | None, reason: str) -> Outcome:
        count = await self.memory.conversation.record_failure(reason)
        if count >= self.max_failures:
            return await self.archive_raw(messages, passed, reason)
        log.warning(
            "messages of %s were not consolidated (%d of %d): %s", self.memory.scope, count, self.max_failures, reason
        )
        return Outcome(Fate.FAILED, reason)

    async def _store(
        self,
        messages: Sequence[AnyMessage],
        passed: int | None,
        entries: list[str],
        origin: str,
        facts: tuple[str, int] | None = None,
    ) -> Outcome:
        """Write history, facts, cursor and count of failures, all or nothing."""
        told = self._told(messages)

        def unit(m: Any) -> Outcome:
            if passed is not None and not are_waiting(m.conversation, messages):
                return LOST
            if facts is not None and m.facts.long_term().version != facts[1]:
                return _CHANGED
            if passed is not None and not m.conversation.consolidate_to(_end(messages), if_passed=passed):
                return LOST
            if told is None:
                for entry in entries:
                    m.facts.append_history(entry, origin=origin)
            elif entries:
                m.facts.append_chunk(entries, origin=origin, **told)
            if facts is not None:
                m.facts.write_long_term(facts[0], author=AUTHOR, if_version=facts[1])
            m.conversation.clear_failures()
            return Outcome(Fate.STORED)

        return await self.memory.atomic(unit)

    def _told(self, messages: Sequence[AnyMessage]) -> dict[str, Any] | None:
        """Return what an entry says of the messages it tells of; None where they are not all stored ones."""
        stored = [message for message in messages if isinstance(message, Message)]
        positions = [message.position for message in stored if message.position is not None]
        if not positions or len(positions) < len(messages):
            return None
        session_id = self.memory.scope.session_id
        ends = {"first_position": min(positions), "last_position": max(positions)}
        return {"session_id": session_id, "chunk": chunk_of(session_id, stored), **ends}

    def _fitted(self, lines: list[str], facts: str) -> str:
        """Return lines as a text that fits into a prompt beside the facts: the longest lines are cut first."""
        text = "\n".join(lines)
        if self.prompt_tokens is None:
            return text
        room = max(LEAST_SHOWN, self.prompt_tokens // 4, self.prompt_tokens - self.count(facts) - FRAME_TOKENS)
        chars = LONGEST_LINE
        while self.count(text) > room and chars >= SHORTEST_LINE:
            text = "\n".join(cut_middle(line, chars) for line in lines)
            chars //= 2
        return fitting(text, room, self.count)


def _end(messages: Sequence[AnyMessage]) -> int | None:
    last = messages[-1]
    return last.position if isinstance(last, Message) else None


def are_waiting(talk: Any, messages: Sequence[AnyMessage]) -> bool:
    """Whether messages still are those that follow the cursor, inside a unit: a session may have been cleared."""
    first, last = messages[0], messages[-1]
    if not isinstance(last, Message) or last.position is None:
        return False
    begins, ends = talk.unconsolidated(1).messages, talk.messages(1, before=last.position + 1)
    return (begins, ends) == ([first], [last])


def check_messages(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """Return messages as a list.

    Raises:
        InvalidInput: it is none, or one of them is neither a mapping nor a memdb.Message.
    """
    listed = check_bulk(messages, "messages")
    for message in listed:
        if not isinstance(message, Message | Mapping):
            raise InvalidInput(f"a message must be a mapping or a memdb.Message, not {type(message).__name__}")
    return listed


class _Layers:
    """The layers that a chunk is written to, of a scope."""

    def __init__(self, scope: Scope, home: Engine | Transaction) -> None:
        self.scope, self._home = scope, home
        self.facts: FactStore[Any] = FactStore(scope, home)
        self.conversation: ConversationMemory[Any] = ConversationMemory(scope, home)

    async def atomic(self, unit: Callable[[Any], R]) -> R:
        scope, home = self.scope, self._home
        assert isinstance(home, Engine)
        return await home.write(lambda tx: unit(_Layers(scope, tx)))


async def consolidate(
    facts: FactStore[Live], messages: Iterable[AnyMessage], llm: ChatModel, *, counter: TokenCounter | None = None
) -> bool:
    """Put messages into history and facts (LightGrep document, "MemoryStore.consolidate"); no cursor is moved.

    Messages of a conversation (Message objects with a position) are told of once, however often they are given.

    Args:
        facts: where to.
        messages: dicts in the shape of a chat API, or each a memdb.Message; oldest first.
        llm: the chat model.
        counter: counts tokens; by default TokenCounter().

    Returns:
        Whether they are there now. At the third failure in a row of the facts' session they are, as they were given.

    Raises:
        InvalidInput: messages is no list of messages, or llm no chat model.
    """
    check_model(llm)
    listed = check_messages(messages)
    writer = ChunkWriter(_Layers(facts.scope, facts._home), llm, (counter or TokenCounter()).count)
    return (await writer.consolidate(listed, None)).done
