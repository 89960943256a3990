"""What a session leaves behind when it is closed goes into history and facts, whatever the model does (LightGrep)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memdb.errors import StorageError
from memdb.layers.message import Message
from memdb.llm.consolidation.boundary import group_boundary, turn_boundary
from memdb.llm.consolidation.chunk import ChunkWriter, Fate, Outcome
from memdb.llm.consolidation.wording import AnyMessage

ATTEMPTS = 3  # to consolidate a chunk, before it is stored as it is
MAX_LOST = 10  # times in a row that others are quicker


@dataclass(frozen=True, slots=True)
class Closing:
    """Archives messages in chunks that a model can be shown.

    Args:
        writer: consolidates a chunk.
        size: what a message costs.
        budget: how much a model takes; 0 for any.
    """

    writer: ChunkWriter
    size: Callable[[AnyMessage], int]
    budget: int

    async def archive(self, messages: Sequence[AnyMessage]) -> None:
        """Archive messages; no cursor is moved."""
        for part in await asyncio.to_thread(self._split, messages):
            await self._settle(part, None)

    async def archive_session(self) -> None:
        """Archive what is not consolidated of the session; the cursor passes it.

        Raises:
            StorageError: others were quicker, time and again.
        """
        lost = 0
        while lost < MAX_LOST:
            left, passed = await self.writer.memory.conversation.unconsolidated()
            if not left:
                return
            chunk = left[: await asyncio.to_thread(self._first_part, left)]
            lost = 0 if (await self._settle(chunk, passed)).done else lost + 1
        raise StorageError("the session was not archived: others consolidate it at the same time; call again")

    async def _settle(self, messages: Sequence[AnyMessage], passed: int | None) -> Outcome:
        """Consolidate a chunk, as it is if the model will not; it is not done only where others were quicker."""
        outcome = Outcome(Fate.FAILED)
        for _ in range(ATTEMPTS):
            outcome = await self.writer.consolidate(messages, passed)
            if outcome.done or outcome.fate is Fate.LOST:
                return outcome
        return await self.writer.archive_raw(messages, passed, outcome.reason or "")

    def _first_part(self, messages: Sequence[Message]) -> int:
        """Return how many messages make a chunk that a model can be shown."""
        sizes = [self.size(message) for message in messages]
        most = max(1, self.budget // 2)
        if not self.budget or sum(sizes) <= most:
            return len(messages)
        found = turn_boundary(messages, sizes, most) or group_boundary(messages, sizes, most)
        return len(messages) if found is None else found.first_kept

    def _split(self, messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
        parts: list[list[AnyMessage]] = [[]]
        used = 0
        for message in messages:
            size = self.size(message)
            if parts[-1] and self.budget and used + size > self.budget // 2:
                parts.append([])
                used = 0
            parts[-1].append(message)
            used += size
        return [part for part in parts if part]
