"""What consolidation costs in finding: the same conversations, every message of them consolidated.

A model that follows a rule puts chunks of each session into the history: an entry is the first words of each turn, the
facts are the newest entries. No message is deleted, so the search of the conversation shall find what it found before,
although entries of the history stand beside the messages in the index. Searched together, an entry takes a place of its
own; what it counts for is told both ways: for one right message that it tells of, and for nothing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import memdb
from benchmarks.datasets import Dataset
from benchmarks.settings import Settings
from memdb import ChatReply, Database, MemoryConsolidator
from memdb.layers.conversation import LAYER as MESSAGES
from memdb.layers.facts.entry import LAYER as HISTORY
from memdb.retrieval.find import Hit, find
from memdb.scope import Scope

WINDOW = 800  # tokens: most sessions are consolidated in several chunks
WORDS = 12  # of each turn in an entry
FACTS = 5  # entries that the facts hold
_LINE = re.compile(r"^\[(.*?)\] [A-Z]+: (.*)$", re.M)

Search = Callable[[str, str, int], Awaitable[list[str]]]
Ids = Mapping[tuple[str, str, str], str]


class RulingModel:
    """A chat model that remembers by a rule: the first words of each turn."""

    def __init__(self) -> None:
        self._facts: list[str] = []

    async def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> ChatReply:
        """Return a call of save_memory for the conversation in the last message."""
        lines = _LINE.findall(messages[-1]["content"])
        date = lines[0][0].replace("T", " ") if lines else ""
        entry = f"[{date}] " + " ".join(" ".join(text.split()[:WORDS]) + "." for _, text in lines)
        self._facts = [*self._facts, f"- {entry}"][-FACTS:]
        arguments = {"history_entry": entry, "memory_update": "\n".join(self._facts)}
        return ChatReply(tool_calls=[{"id": "c", "function": {"name": "save_memory", "arguments": arguments}}])


@asynccontextmanager
async def consolidated(
    dataset: Dataset, settings: Settings, fill: Callable[[Database, Dataset], Awaitable[Ids]]
) -> AsyncIterator[dict[str, Search]]:
    """Give the searches of the set's conversations, all of whose messages are consolidated."""
    async with memdb.open(settings.folder / f"{dataset.name}-consolidated.db", durability="normal") as db:
        ids = await fill(db, dataset)
        sessions = sorted({(user, session) for user, session, _ in ids})
        for user, session in sessions:
            keeper = MemoryConsolidator(db.memory(user, session), RulingModel(), WINDOW)
            await keeper.maybe_consolidate_by_tokens()
            await keeper.archive_messages()
        told = await db.read(_told, ids)

        async def messages(user: str, query: str, limit: int) -> list[str]:
            found = await db.memory(user).conversation.search(query, limit, all_sessions=True)
            return [(hit.message.model_extra or {})["id"] for hit in found]

        async def hits(user: str, query: str, limit: int) -> list[Hit]:
            # Facts stand in the prompt anyway, so they take no place.
            found: list[Hit] = await db.read(find, Scope(user), query, 2 * limit)
            return [hit for hit in found if hit.layer in (MESSAGES, HISTORY)][:limit]

        right = {(query.user, query.text): query.grades for query in dataset.queries}

        async def both(user: str, query: str, limit: int) -> list[str]:
            found: list[str] = []
            for hit in await hits(user, query, limit):
                own = told[user, hit.id] if hit.layer == HISTORY else [ids[user, hit.session_id or "", hit.id]]
                found.append(next((id for id in own if id in right[user, query] and id not in found), ""))
            return found

        async def strict(user: str, query: str, limit: int) -> list[str]:
            return [
                "" if hit.layer == HISTORY else ids[user, hit.session_id or "", hit.id]
                for hit in await hits(user, query, limit)
            ]

        yield {
            "memdb, consolidated: conversation": messages,
            "the same and history, an entry counts for a right message": both,
            "the same and history, an entry counts for nothing": strict,
        }


def _told(tx: Any, ids: Ids) -> dict[tuple[str, str], list[str]]:
    """Return the messages that each entry tells of, by its user and number."""
    rows = tx.execute("SELECT user_id, number, source_session_id, first_position, last_position FROM v_history")
    return {
        (user, str(number)): [ids[user, session, str(position)] for position in range(first, last + 1)]
        for user, number, session, first, last in rows
        if first is not None
    }
