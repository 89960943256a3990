"""Facts and history: the FactStore of the LightGrep document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from memdb.errors import InvalidInput
from memdb.layers import records
from memdb.layers.arguments import check_limit, check_whole
from memdb.layers.facts.entry import HistoryEntry, ScoredEntry
from memdb.layers.facts.history import HistoryLayer
from memdb.layers.layer import Live, Mode, reads, writes
from memdb.layers.record import Place, row
from memdb.layers.unreadable import finds
from memdb.layers.versions import Version, present_version, read_version, versions
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_id, check_text

__all__ = ["FactStore", "HistoryEntry", "LongTerm", "ScoredEntry", "Version", "context_text"]

LAYER = "fact"
KEY = "MEMORY"  # the text's record, called as the document's file is
HEADING = "## Long-term Memory\n"
MAX_AUTHOR_CHARS = 200


class LongTerm(NamedTuple):
    """The long-term text as it was at one moment.

    Args:
        content: the text, "" when there is none.
        version: its number, which every other text raises; 0 when none was ever written.
        author: who wrote it; "" where that is not known.
        updated_at: when it was written; None when none ever was.
    """

    content: str = ""
    version: int = 0
    author: str = ""
    updated_at: datetime | None = None


def place_of(scope: Scope) -> Place:
    """Return where a user's long-term text lies."""
    return Place.of(LAYER, scope)


def long_term(tx: Transaction, scope: Scope) -> LongTerm:
    """Return a user's long-term text; an empty one when there is none, or it cannot be read and is set aside."""
    present = present_version(tx, place_of(scope), KEY)
    if present is None:
        return LongTerm()
    return LongTerm(present.content, present.number, present.author, present.written_at)


def context_text(tx: Transaction, scope: Scope) -> str:
    """Return the long-term text as it stands in a prompt, under its heading; "" when it is empty."""
    text = long_term(tx, scope).content
    return f"{HEADING}{text}" if text else ""


class FactStore(HistoryLayer[Mode]):
    """The long-term text of one user, and the history of what happened (LightGrep document, MemoryStore).

    The text stands in every prompt and is replaced as a whole; every text that was replaced is kept as a version.
    """

    def __init__(
        self, scope: Scope, home: Engine | Transaction, *, consolidate: Callable[..., Awaitable[bool]] | None = None
    ) -> None:
        super().__init__(scope, home)
        self._consolidate = consolidate

    @reads
    def read_long_term(self, tx: Transaction) -> str:
        """Return the long-term text, Markdown by custom; "" when there is none."""
        return long_term(tx, self.scope).content

    @reads
    def long_term(self, tx: Transaction) -> LongTerm:
        """Return the long-term text with its version, author and time, as they were at one moment."""
        return long_term(tx, self.scope)

    @writes
    def write_long_term(
        self, tx: Transaction, content: str, *, author: str = "agent", if_version: int | None = None
    ) -> bool:
        """Replace the long-term text; the one before is kept as a version. The same text again is no new version.

        Args:
            content: the whole new text, at most 16 MB in UTF-8; blank, too, which empties it.
            author: who writes it, 1 to 200 characters; the version says so.
            if_version: write only when this is still the text's version (0: there is none yet), so that nobody's text
                is replaced unseen; None to write in any case.

        Returns:
            Whether it stands there now; False, and nothing is written, when the text is at another version than asked.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        text, whose = check_text(content, "the long-term text"), _check_author(author)
        wanted = None if if_version is None else check_whole(if_version, "if_version")
        present = long_term(tx, self.scope)
        if wanted is not None and wanted != present.version:
            return False
        if present.version == 0 or present.content != text:
            metadata = {"author": whose, "act": "write"}
            records.put(tx, row(place_of(self.scope), KEY, tx.now, content=text, metadata=metadata))
        return True

    @reads
    def versions(self, tx: Transaction, limit: int = 100, *, before: int | None = None) -> list[Version]:
        """Return the long-term texts, the newest first; the present one is the first of them.

        Args:
            limit: how many at most, 0 to 10,000.
            before: only those with a lower number, to page back.
        """
        return versions(tx, place_of(self.scope), KEY, check_limit(limit), before)

    @finds
    def read_version(self, tx: Transaction, number: int) -> Version:
        """Return one of the long-term texts, the present one or an earlier one.

        Raises:
            NotFound: there is none of this number.
        """
        return read_version(tx, place_of(self.scope), KEY, number, "the facts have")

    @reads
    def get_memory_context(self, tx: Transaction) -> str:
        """Return the long-term text as it stands in a prompt, under "## Long-term Memory"; "" when it is empty.

        A text of white space alone is not empty (LightGrep document).
        """
        return context_text(tx, self.scope)

    async def consolidate(
        self: FactStore[Live], messages: Iterable[Mapping[str, Any] | object], llm: Any, *, counter: Any = None
    ) -> bool:
        """Let a model tell in one entry what happened in messages, and renew the long-term text (LightGrep document).

        Args:
            messages: Message objects or dicts in the shape of a chat API; without any nothing is asked.
            llm: the model, a memdb.ChatModel.
            counter: counts tokens; by default a TokenCounter.

        Returns:
            True when the messages are in the history: told by the model or, after the third failure in a row, as they
            are. False when the model failed: nothing was written, and the call may be made again.

        Raises:
            InvalidInput: an argument is not what it must be, or the call is made inside a unit.
        """
        if self._consolidate is None or not isinstance(self._home, Engine):
            raise InvalidInput("consolidating asks a model, which a unit must not: call it outside of memory.atomic()")
        return await self._consolidate(self, messages, llm, counter=counter)


def _check_author(author: object) -> str:
    name = check_id(author, "author")
    if len(name) > MAX_AUTHOR_CHARS:
        raise InvalidInput(f"author has {len(name):,} characters; at most {MAX_AUTHOR_CHARS} are kept")
    return name
