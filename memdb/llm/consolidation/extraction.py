"""What is worth knowing of older messages, as passages of the archive (Asterix document, "Context extraction").

The history is shortened by exactly what was archived: the facts and the cursor land in one unit.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memdb.asking import ask_whole
from memdb.errors import InvalidInput, ModelError
from memdb.layers.message import Message
from memdb.llm.consolidation.boundary import keeping_boundary
from memdb.llm.consolidation.chunk import LOST, ChunkWriter, are_waiting
from memdb.llm.consolidation.parts import Extracted, WholeMemory
from memdb.llm.consolidation.prompts import extracting
from memdb.llm.consolidation.wording import lines_of
from memdb.protocols import ChatModel
from memdb.text.check import check_text
from memdb.text.query import cleaned

KEEP_LAST = 10
MESSAGE_CHARS, BLOCK_CHARS = 300, 400
MAX_SHOWN = 1_000  # messages of one answer
MAX_FACTS = 200  # of one answer; what is beyond is not trimmed either, since the answer is refused
SOURCE = "conversation"
_FENCE = re.compile(r"```[\w-]*[^\S\n]*\n(.*)```", re.S)
log = logging.getLogger("memdb")


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of an answer.

    Args:
        content: the fact.
        kind: "fact", "preference", "decision", "event" or what else the model calls it; "" for nothing.
        importance: 0 to 1.
    """

    content: str
    kind: str = ""
    importance: float = 0.5


@dataclass(frozen=True, slots=True)
class Extraction:
    """Archives the facts of older messages.

    Args:
        memory: whose archive, blocks and cursor.
        llm: the chat model.
        writer: puts messages into the history as they are, where no fact is to be had.
    """

    memory: WholeMemory
    llm: ChatModel
    writer: ChunkWriter

    async def run(self, messages: Sequence[Message], passed: int, keep: int) -> Extracted:
        """Archive facts of messages but the last `keep`, and let the cursor pass those they are of.

        Args:
            messages: all that follow the cursor, oldest first.
            passed: where it stood when they were read.
        """
        older = list(messages[: keeping_boundary(messages, keep)])
        if len(older) > MAX_SHOWN:
            older = older[: keeping_boundary(older, len(older) - MAX_SHOWN)]
        if not older:
            return Extracted(reason=f"there is nothing to archive but the last {keep} messages")
        blocks = {name: _cut(text, BLOCK_CHARS) for name, text in (await self.memory.blocks.get_memory()).items()}
        shown = "\n".join(_cut(line, MESSAGE_CHARS) for line in lines_of(older))
        try:
            reply = await ask_whole(self.llm, extracting(blocks, shown), max_tokens=self.writer.max_answer_tokens)
        except ModelError as failed:
            log.warning("no context of %s was extracted: %s", self.memory.scope, failed)
            return Extracted(reason=str(failed))
        try:
            facts = read_facts(reply.content)
        except InvalidInput as error:
            outcome = await self.writer.archive_raw(older, passed, str(error))
            done = len(older) if outcome.done else 0
            return Extracted(done, [], done, outcome.reason)
        return await self._store(older, passed, facts)

    async def _store(self, older: Sequence[Message], passed: int, facts: Sequence[Fact]) -> Extracted:
        where = f"{older[0].position}-{older[-1].position}"

        def unit(m: Any) -> Extracted:
            talk = m.conversation
            if not (are_waiting(talk, older) and talk.consolidate_to(older[-1].position, if_passed=passed)):
                return Extracted(reason=LOST.reason)
            ids = [
                m.archive.insert(
                    fact.content,
                    importance=fact.importance,
                    tags=[fact.kind] if fact.kind else [],
                    source=SOURCE,
                    source_id=where,
                )
                for fact in facts
            ]
            return Extracted(len(older), ids)

        done: Extracted = await self.memory.atomic(unit)
        if done:
            counts = done.messages, len(done.passages)
            log.info("CONTEXT_EXTRACTED messages=%d facts=%d of %s", *counts, self.memory.scope)
        return done


def read_facts(answer: object) -> list[Fact]:
    """Return the facts of a model's answer: a JSON list of {content, type, importance}, perhaps in a code fence.

    Raises:
        InvalidInput: it is no such list, or holds no fact.
    """
    text = answer if isinstance(answer, str) else ""
    if fenced := _FENCE.fullmatch(text.strip()):
        text = fenced[1]
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("the model's answer is no JSON") from None
    if not isinstance(items, list):
        raise InvalidInput(f"the model's answer is no list, but {type(items).__name__}")
    if len(items) > MAX_FACTS:
        raise InvalidInput(f"the model's answer has {len(items):,} facts; at most {MAX_FACTS} are taken")
    facts = [fact for item in items if (fact := _fact(item)) is not None]
    if not facts:
        raise InvalidInput("the model found no fact in the messages")
    return facts


def _fact(item: object) -> Fact | None:
    """Return an item of an answer as a fact; None where it says nothing."""
    fields = item if isinstance(item, dict) else {"content": item}
    content, kind, importance = (fields.get(name) for name in ("content", "type", "importance"))
    try:
        text = check_text(cleaned(content), "the fact").strip() if isinstance(content, str) else ""
    except InvalidInput:  # too large
        return None
    if not text:
        return None
    return Fact(text, cleaned(kind).strip()[:100] if isinstance(kind, str) else "", _importance(importance))


def _importance(value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.5
    except (ValueError, OverflowError):
        return 0.5
    return min(1.0, max(0.0, number)) if number == number else 0.5


def _cut(text: str, chars: int) -> str:
    """Return the beginning of a text, with "..." where it was cut (Asterix)."""
    return text if len(text) <= chars else f"{text[: chars - 3]}..."
