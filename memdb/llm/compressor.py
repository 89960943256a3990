"""Keeps the working memory (L1) short with the help of a model (local-ai document, "L1 working memory compression")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memdb.asking import ask
from memdb.errors import InvalidInput, ModelError
from memdb.layers.arguments import check_bulk, check_range
from memdb.layers.layer import Live
from memdb.layers.runtime.manager import MemoryManager
from memdb.llm.summary_prompts import merging, shrinking
from memdb.llm.transcript import cut_middle, fitting, transcript_pieces
from memdb.protocols import ChatModel, CountsTokens, check_model, check_part
from memdb.text.check import is_valid
from memdb.text.section_headings import GOAL, SECTIONS
from memdb.text.sections import Sections, goal_of, join_entries, parse_sections, render_sections, trim_sections
from memdb.text.tokens import Sendable, TokenCounter

TARGET_TOKENS = 768
PROMPT_TOKENS = 6_000
TOOL_RESULT_CHARS = 1_000
MAX_TRIES = 3
MAX_SUMMARY_CHARS = 200_000
FRAME_TOKENS = 500  # the instructions and the tags around what is shown
log = logging.getLogger("memdb")


class WorkingMemoryStore(Protocol):
    """The part of a MemoryManager that is used here."""

    async def working_memory_revision(self) -> int:
        """Return a number that every write of the working memory changes; 0 when there is none."""
        ...

    async def get_working_memory(self) -> str:
        """Return the working memory, "" when there is none."""
        ...

    async def store_summary(self, content: str, *, if_revision: int, current_task: str | None) -> bool:
        """Store the working memory and L0's current_task in one unit; False, and nothing, at another revision."""
        ...


class HasManager(Protocol):
    """What a compressor needs of a memdb.Memory."""

    @property
    def manager(self) -> MemoryManager[Live]:
        """Its state, working memory, checkpoints and tool results."""
        ...


@dataclass(frozen=True, slots=True)
class Compression:
    """What came of a compression.

    Args:
        mode: "full" (compress) or "incremental" (update_summary).
        tokens_before: of what was summarised: the messages, as the model was shown them, and the working memory that
            they were merged with.
        tokens_after: of the new working memory; where nothing was written, of the present one.
        written: whether the working memory was replaced.
        reason: why it was not; None when it was.
    """

    mode: str
    tokens_before: int
    tokens_after: int
    written: bool
    reason: str | None = None


class WorkingMemoryCompressor:
    """Summarises what happened into the working memory: five sections, at most `target_tokens` long.

    They are Current Goal, Completed, Important Discoveries, Open Issues and Decisions, each under a first-rank heading.

    A summary over the target is given back to the model once, and then trimmed by rule (memdb.text.sections), so that
    the Current Goal stays to the last. Where there is a Current Goal, L0's `current_task` becomes it in the same
    transaction. The model is asked with no transaction open; when another process has written meanwhile, the messages
    are merged with what it wrote instead of replacing it. Whatever goes wrong with the model, the working memory stays
    as it was, nothing is raised, and the log says so. Every write is logged as WORKING_MEMORY_COMPRESSED.

    Args:
        memory: the memory of a user and session, or its MemoryManager.
        llm: the chat model.
        counter: counts tokens; by default TokenCounter().
        target_tokens: the longest working memory, 64 to 100,000 tokens.
        max_prompt_tokens: the longest prompt; by default 6,000, or four times the target where that is more. Longer
            transcripts are merged piece by piece, oldest first.
        max_answer_tokens: of one answer; by default three times the target and at least 2,048, which leaves a model
            room to think.
        tool_result_chars: how many characters of what a tool returned are shown to the model.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(
        self,
        memory: HasManager | WorkingMemoryStore,
        llm: ChatModel,
        counter: CountsTokens | None = None,
        target_tokens: int = TARGET_TOKENS,
        *,
        max_prompt_tokens: int | None = None,
        max_answer_tokens: int | None = None,
        tool_result_chars: int = TOOL_RESULT_CHARS,
    ) -> None:
        counter = TokenCounter() if counter is None else counter
        store: Any = getattr(memory, "manager", memory)
        check_part(store, "memory", "store_summary")
        check_model(llm)
        check_part(counter, "counter", "count(text)")
        self._store: WorkingMemoryStore = store
        self._llm = llm
        self._count = counter.count
        self._target = check_range(target_tokens, "target_tokens", 64, 100_000)
        longest = max(PROMPT_TOKENS, 4 * self._target) if max_prompt_tokens is None else max_prompt_tokens
        check_range(longest, "max_prompt_tokens", 2 * self._target + FRAME_TOKENS + 100, 10_000_000)
        self._shown = (longest - FRAME_TOKENS) // 2  # of the summary, and as much of the transcript
        if max_answer_tokens is not None:
            check_range(max_answer_tokens, "max_answer_tokens", self._target, 1_000_000)
        self._answer_tokens = max_answer_tokens or max(2_048, 3 * self._target)
        self._tool_result_chars = check_range(tool_result_chars, "tool_result_chars", 0, 1_000_000)

    async def compress(self, messages: Iterable[Mapping[str, Any] | Sendable]) -> Compression:
        """Rebuild the working memory from a whole transcript; what it held before is replaced.

        Where another process has written it while the model was asked, the transcript is merged with that.

        Args:
            messages: dicts in the OpenAI shape, or each a memdb.Message; oldest first.

        Returns:
            What came of it. With no messages nothing is written.

        Raises:
            InvalidInput: messages is not a list of messages.
            StorageError: and its kin, when the file could not be read or written.
        """
        return await self._run("full", messages)

    async def update_summary(self, new_messages: Iterable[Mapping[str, Any] | Sendable]) -> Compression:
        """Merge what happened since into the present working memory; see compress."""
        return await self._run("incremental", new_messages)

    async def _run(self, mode: str, messages: Iterable[Mapping[str, Any] | Sendable]) -> Compression:
        listed = check_bulk(messages, "messages")
        # Counting thousands of messages takes seconds, and the first count of a process reads a table.
        pieces, shown = await asyncio.to_thread(self._pieces, listed)
        merge, before, reason = mode == "incremental", shown, f"others wrote it {MAX_TRIES} times meanwhile"
        if not pieces:
            present = await self._store.get_working_memory()
            return Compression(mode, 0, self._count(present), False, "there was nothing to summarise")
        for _ in range(MAX_TRIES):
            # First the revision: what is written between the two reads is seen by the comparison.
            revision = await self._store.working_memory_revision()
            present = await self._store.get_working_memory()
            before = shown + (await asyncio.to_thread(self._count, present) if merge else 0)
            try:
                text = await self._summarise(present if merge else "", pieces)
            except ModelError as refused:
                reason = str(refused)
                break
            goal = goal_of(parse_sections(text))
            try:
                written = await self._store.store_summary(text, if_revision=revision, current_task=goal or None)
            except InvalidInput as error:  # a state that has no room for the task
                reason = str(error)
                break
            if written:
                return self._written(Compression(mode, before, self._count(text), True))
            merge = True
        else:
            present = await self._store.get_working_memory()
        log.warning("the working memory was left as it was: %s", reason)
        return Compression(mode, before, await asyncio.to_thread(self._count, present), False, reason)

    def _pieces(self, messages: list[Mapping[str, Any] | Sendable]) -> tuple[list[str], int]:
        pieces = transcript_pieces(messages, self._count, tokens=self._shown, tool_result_chars=self._tool_result_chars)
        return pieces, sum(map(self._count, pieces))

    def _written(self, done: Compression) -> Compression:
        fields = {"mode": done.mode, "tokens_before": done.tokens_before, "tokens_after": done.tokens_after}
        said = " ".join(f"{name}={value}" for name, value in fields.items())
        log.info("WORKING_MEMORY_COMPRESSED %s", said, extra=fields)
        return done

    async def _summarise(self, present: str, pieces: list[str]) -> str:
        summary = cut_middle(present, MAX_SUMMARY_CHARS)  # a text of any length may have been stored by hand
        known = parse_sections(summary)
        for piece in pieces:
            prompt = merging(self._bounded(summary), piece, self._target)
            known = _completed(await self._ask(prompt), known)
            summary = render_sections(known)
        size = self._count(summary)
        if size <= self._target:
            return summary
        trimmed = trim_sections(await self._shrunk(known, summary, size), self._target, self._count)
        if not any(parse_sections(trimmed).values()):
            raise ModelError(f"the model's summary has no goal, and no entry that fits into {self._target} tokens")
        return trimmed

    async def _shrunk(self, known: Sections, summary: str, size: int) -> Sections:
        """Return what the model makes of a summary that is too long; the same where that is no shorter."""
        try:
            shorter = _completed(await self._ask(shrinking(self._bounded(summary), size, self._target)), known)
        except ModelError as refused:
            log.info("the working memory is trimmed by rule alone: %s", refused)
            return known
        if not shorter[GOAL]:
            shorter[GOAL] = known[GOAL]
        return shorter if self._count(render_sections(shorter)) < size else known

    def _bounded(self, summary: str) -> str:
        """Return a summary that fits into a prompt."""
        if self._count(summary) <= self._shown:
            return summary
        sections = parse_sections(summary)
        if sections:
            return trim_sections(sections, self._shown, self._count)
        return fitting(summary, self._shown, self._count)

    async def _ask(self, prompt: list[dict[str, Any]]) -> tuple[Sections, bool]:
        """Return the sections that the model answers with, and whether the answer was cut short.

        Raises:
            ModelError: the model failed, or its answer says nothing.
        """
        reply = await ask(self._llm, prompt, max_tokens=self._answer_tokens)
        answer = reply.content if isinstance(reply.content, str) else ""
        if not is_valid(answer):
            answer = answer.replace("\x00", "").encode("utf-8", "replace").decode()
        sections = parse_sections(answer[:MAX_SUMMARY_CHARS])
        if not any(sections.values()):
            cut = "; it was cut short by the limit of tokens" if reply.truncated else ""
            raise ModelError(f"the model's answer says nothing in any of the five sections{cut}")
        return sections, reply.truncated


def _completed(answer: tuple[Sections, bool], known: Sections) -> Sections:
    """Return the sections of an answer; what it does not have a heading for stays as it was known.

    Of an answer that was cut short the last section is what both say, and a cut goal is none.
    """
    sections, cut_short = answer
    last = list(sections)[-1]
    whole: Sections = {}
    for name in SECTIONS:
        if name not in sections:
            whole[name] = list(known.get(name, ()))
        elif cut_short and name == last and known.get(name):
            whole[name] = known[name] if name == GOAL else join_entries(known[name], sections[name])
        else:
            whole[name] = sections[name]
    return whole
