"""Consolidation when the prompt grows too large: the MemoryConsolidator of the LightGrep document.

>>> keeper = memdb.MemoryConsolidator(memory, llm, context_window_tokens=65_536)
>>> await keeper.maybe_consolidate_by_tokens()   # before and after each turn

Stored messages never change: what moves is the session's cursor, so that the history begins later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_range, check_whole
from memdb.layers.history import is_users
from memdb.layers.message import Message
from memdb.llm.consolidation.boundary import Boundary, group_boundary, turn_boundary
from memdb.llm.consolidation.chunk import MAX_FAILURES, ChunkWriter, Fate, check_messages
from memdb.llm.consolidation.closing import Closing
from memdb.llm.consolidation.estimate import BuildMessages, Estimator, Tools
from memdb.llm.consolidation.extraction import KEEP_LAST, Extraction
from memdb.llm.consolidation.parts import Consolidated, Extracted, WholeMemory, session_lock
from memdb.llm.consolidation.wording import AnyMessage
from memdb.protocols import ChatModel, CountsMessages, check_model
from memdb.text.shown import shown

CONTEXT_WINDOW = 65_536
MOST_RESERVED = 5_120  # of the window, for the answer
TARGET_RATIO = 0.5
ROUNDS = 5
MAX_WINDOW = 100_000_000
log = logging.getLogger("memdb")


class MemoryConsolidator:
    """Puts the oldest messages of a session into history and facts when the next prompt would be too large.

    At an estimate of budget = context_window_tokens - reserve_tokens or more, chunks of whole turns are consolidated
    until the estimate is at most target_ratio * budget, in at most `rounds` rounds; each is one unit with its entry of
    the history, the new facts and the cursor. A turn that fills the window by itself is cut after a call with all its
    results; what is left of it is consolidated once the next turn has begun, since no history shows it then. When the
    model fails nothing is written, and it is tried again at the next call; at the third failure in a row of a session,
    counted in the file, its messages go into the history as they are. Each success is logged as MEMORY_CONSOLIDATED. A
    session is consolidated by one caller at a time.

    Args:
        memory: the memory of a user and session.
        llm: the chat model. Where it has `estimate_prompt_tokens` or `count_tokens` it is asked what a prompt costs.
        context_window_tokens: how much the agent's model takes; 0 for no consolidation.
        reserve_tokens: how much of it is kept for the answer; by default a quarter of it, at most 5,120.
        build_messages: a function, perhaps async, that makes the real prompt of the history's messages (a list of
            dicts), so that all that is sent is counted. Without it the history counts, and the facts.
        tools: the tools that are sent, or a function, perhaps async, that returns them.
        counter: counts tokens; by default TokenCounter().
        target_ratio: of the budget, 0 to 1.
        rounds: of one call, 1 to 100.
        max_failures: 1 to 1,000; see above.
        max_answer_tokens: of one answer of the model; by default what its client or server allows.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(
        self,
        memory: WholeMemory,
        llm: ChatModel,
        context_window_tokens: int = CONTEXT_WINDOW,
        reserve_tokens: int | None = None,
        build_messages: BuildMessages | None = None,
        tools: Tools | None = None,
        *,
        counter: CountsMessages | None = None,
        target_ratio: float = TARGET_RATIO,
        rounds: int = ROUNDS,
        max_failures: int = MAX_FAILURES,
        max_answer_tokens: int | None = None,
    ) -> None:
        for part in ("scope", "conversation", "facts", "atomic"):
            if not hasattr(memory, part):
                raise InvalidInput(f"memory must be a memdb.Memory, not {type(memory).__name__}")
        check_model(llm)
        self._window = window = check_range(context_window_tokens, "context_window_tokens", 0, MAX_WINDOW)
        reserve = min(MOST_RESERVED, window // 4) if reserve_tokens is None else reserve_tokens
        self._budget = window - check_range(reserve, "reserve_tokens", 0, max(0, window - 1))
        self._target = int(self._budget * _ratio(target_ratio, "target_ratio"))
        self._rounds = check_range(rounds, "rounds", 1, 100)
        if max_answer_tokens is not None:
            check_range(max_answer_tokens, "max_answer_tokens", 1, 10_000_000)
        self._memory, self._llm = memory, llm
        self._estimator = Estimator(llm, counter, build_messages, tools)
        self._writer = ChunkWriter(
            memory,
            llm,
            self._estimator.count,
            self._budget or None,
            max_answer_tokens,
            check_range(max_failures, "max_failures", 1, 1_000),
        )

    # -- under pressure ------------------------------------------------------------------------------------------------

    async def maybe_consolidate_by_tokens(self) -> Consolidated:
        """Consolidate what is too much, if the next prompt is too large (LightGrep document, "Consolidation loop").

        Returns:
            What came of it; true when messages were consolidated. A model that fails raises nothing.

        Raises:
            InvalidInput: build_messages or tools did not return what they must.
            StorageError: and its kin, when the file could not be read or written.
        """
        if not self._window:
            return Consolidated(reason="the context window is 0, which switches consolidation off")
        async with session_lock(self._memory):
            done = await self._shrink()
        if done:
            fields = {
                name: getattr(done, name) for name in ("rounds", "messages", "raw", "tokens_before", "tokens_after")
            }
            said = " ".join(f"{name}={value}" for name, value in fields.items())
            whose = {"user_id": self._memory.scope.user_id, "session_id": self._memory.scope.session_id}
            log.info("MEMORY_CONSOLIDATED %s of %s", said, self._memory.scope, extra=fields | whose)
        return done

    async def _shrink(self) -> Consolidated:
        messages, passed = await self._memory.conversation.unconsolidated()
        if not messages:
            return Consolidated(reason="there are no messages to consolidate")
        estimate = before = await self._estimate(messages)
        reason: str | None = f"{self._rounds} rounds were not enough"
        hidden = _hidden(messages) if passed else 0
        if estimate < self._budget and not hidden:
            return Consolidated(0, 0, before, estimate, 0, _enough_room(estimate, self._budget))
        rounds, moved, raw, failed = 0, 0, 0, False
        for _ in range(self._rounds):
            boundary = Boundary(hidden, 0) if hidden else await asyncio.to_thread(self._boundary, messages, estimate)
            hidden = 0
            if boundary is None:
                reason = "there is no place to cut: one turn makes up the history"
                break
            chunk = messages[: boundary.first_kept]
            outcome = await self._writer.consolidate(chunk, passed)
            if outcome.done:
                rounds, moved = rounds + 1, moved + len(chunk)
                raw += len(chunk) if outcome.fate is Fate.RAW else 0
                messages, passed = messages[boundary.first_kept :], chunk[-1].position or passed
            elif outcome.fate is Fate.LOST:
                messages, passed = await self._memory.conversation.unconsolidated()
            else:
                reason, failed = outcome.reason, outcome.fate is Fate.FAILED
                break
            estimate = await self._estimate(messages)
            if estimate <= self._target or not messages:
                reason = None
                break
        return Consolidated(rounds, moved, before, estimate, raw, reason, failed)

    def _boundary(self, messages: Sequence[Message], estimate: int) -> Boundary | None:
        """Return where to cut; no more goes at once than a model can be shown."""
        sizes = [self._estimator.size(message) for message in messages]
        wanted = max(1, min(estimate - self._target, self._budget * 3 // 4))
        found = turn_boundary(messages, sizes, wanted)
        if found is None and estimate > self._window:
            found = group_boundary(messages, sizes, wanted)
        return found

    def pick_consolidation_boundary(
        self, messages: Iterable[AnyMessage], tokens_to_remove: int
    ) -> tuple[int, int] | None:
        """Return where messages would be cut: before the first user's turn that enough stands before, else the last.

        Args:
            messages: those after the cursor, oldest first.
            tokens_to_remove: how many tokens are enough.

        Returns:
            The index of the first message that stays, and the tokens of those before it; None when there is no user's
            message but the first, or nothing is to be removed.

        Raises:
            InvalidInput: messages is no list of messages.
        """
        listed = [
            message if isinstance(message, Message) else Message.model_validate(message)
            for message in check_messages(messages)
        ]
        sizes = [self._estimator.size(message) for message in listed]
        found = turn_boundary(listed, sizes, check_whole(tokens_to_remove, "tokens_to_remove"))
        return None if found is None else (found.first_kept, found.tokens)

    async def estimate_tokens(self) -> int:
        """Return what the next prompt costs: the history after the cursor with all that is sent besides."""
        messages, _ = await self._memory.conversation.unconsolidated()
        return await self._estimate(messages)

    async def _estimate(self, messages: Sequence[Message]) -> int:
        facts = await self._memory.facts.get_memory_context()
        history = await asyncio.to_thread(self._memory.conversation.history_of, messages)
        return await self._estimator.prompt(history, facts)

    # -- on request ----------------------------------------------------------------------------------------------------

    async def consolidate_messages(self, messages: Iterable[AnyMessage]) -> bool:
        """Put messages into history and facts; no cursor is moved (LightGrep document).

        Returns:
            Whether they are there now; False when the model failed, for the first or second time in a row.

        Raises:
            InvalidInput: messages is no list of messages.
        """
        listed = check_messages(messages)
        async with session_lock(self._memory):
            return (await self._writer.consolidate(listed, None)).done

    async def archive_messages(self, messages: Iterable[AnyMessage] | None = None) -> bool:
        """Put what a session leaves behind into history and facts, as when it is closed (LightGrep document).

        The model has three attempts for each chunk; then the messages go into the history as they are.

        Args:
            messages: those to archive, where the session itself was cleared already; None for all that is not
                consolidated yet, which the cursor passes then.

        Returns:
            True: they are there, whatever the model did.

        Raises:
            InvalidInput: messages is no list of messages.
            StorageError: and its kin, when the file could not be read or written.
        """
        given = None if messages is None else check_messages(messages)
        async with session_lock(self._memory):
            closing = Closing(self._writer, self._estimator.size, self._budget)
            await (closing.archive_session() if given is None else closing.archive(given))
        return True

    # -- Asterix -------------------------------------------------------------------------------------------------------

    async def extract_context(self, *, threshold: float | None = None, keep_last: int = KEEP_LAST) -> Extracted:
        """Archive what is worth knowing of older messages when the window is nearly full (Asterix document).

        The model is shown the older messages, each cut to 300 characters, and the memory blocks, each cut to 400, and
        answers with facts. These go into the archive, and in the same unit the cursor passes the messages they are of.
        When no fact is to be had of its answer, the messages go into the history as they are. When the model itself
        fails nothing moves. A call is never parted from its results.

        Args:
            threshold: the share of the context window at which something is done, 0 to 1; by default what the blocks'
                MemoryConfig says (0.85).
            keep_last: how many messages stay at least, 0 to 10,000.

        Returns:
            What came of it; true when the history became shorter.

        Raises:
            InvalidInput: an argument is not what it must be.
            StorageError: and its kin, when the file could not be read or written.
        """
        keep = check_range(keep_last, "keep_last", 0, 10_000)
        share = None if threshold is None else _ratio(threshold, "threshold")
        if not self._window:
            return Extracted(reason="the context window is 0, which switches consolidation off")
        async with session_lock(self._memory):
            messages, passed = await self._memory.conversation.unconsolidated()
            config = await self._memory.blocks.config()
            if not config.extraction_enabled:
                return Extracted(reason="extraction_enabled is off in the blocks' MemoryConfig")
            least = int(self._window * (config.context_window_threshold if share is None else share))
            if (estimate := await self._estimate(messages)) < least:
                return Extracted(
                    reason=f"the prompt has {estimate:,} tokens, and nothing is to be done below {least:,}"
                )
            return await Extraction(self._memory, self._llm, self._writer).run(messages, passed, keep)


def _hidden(messages: Sequence[Message]) -> int:
    """Return how many messages are the rest of a turn that was cut by force: no history shows what follows the cursor
    before the next message of a user.
    """
    return next((at for at, message in enumerate(messages) if is_users(message)), 0)


def _ratio(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, not {shown(value)}")
    return float(value)


def _enough_room(estimate: int, least: int) -> str:
    return f"the prompt has {estimate:,} tokens, and nothing is to be done below {least:,}"
