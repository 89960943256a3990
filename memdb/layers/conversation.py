"""Conversations: the ConversationMemory of the agcore document, with the cursor and JSONL of the LightGrep document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import delete

from memdb.errors import InvalidInput
from memdb.layers import cursor
from memdb.layers.arguments import check_bulk, check_limit
from memdb.layers.compaction import compacted, exact_counter
from memdb.layers.consolidated import ConsolidatedMessages
from memdb.layers.history import legal
from memdb.layers.layer import Live, Mode, reads, writes
from memdb.layers.message import Message, ScoredMessage, key_at, load_counter
from memdb.layers.neighbours import search_leaning
from memdb.layers.reading import here
from memdb.layers.recalled_messages import RecalledMessages
from memdb.layers.record import Place
from memdb.layers.stored_messages import append, newest
from memdb.layers.window import BEYOND, ConversationMemoryConfig
from memdb.storage.engine import Engine
from memdb.storage.schema import record
from memdb.storage.statement import Statement
from memdb.storage.transaction import Transaction
from memdb.storage.within import Within
from memdb.text.check import check_flag

if TYPE_CHECKING:
    import os

    from memdb.layers.jsonl import ImportReport

LAYER = "message"

_CLEAR = Statement(delete(record).where(here()))


class ConversationMemory(ConsolidatedMessages[Mode], RecalledMessages[Mode]):
    """The messages of one session, in the order of adding (agcore document, section 3.6). Stored ones never change."""

    _config: ConversationMemoryConfig | None = None

    def configure(self, config: ConversationMemoryConfig) -> Self:
        """Let this object keep a window of the session, or leave old tool results out of its history; return it.

        What is set is not stored and holds for this object and the units of its memory. An append deletes what
        stands before the window, in the same unit: max_items is looked at with every message, max_turns with every
        message of a user. An import deletes nothing; the next append does.

        Args:
            config: see ConversationMemoryConfig. ConversationMemoryConfig() is how an object begins.

        Raises:
            InvalidInput: it is not what it must be.
        """
        self._config = ConversationMemoryConfig.model_validate(config)
        return self

    @cached_property
    def _place(self) -> Place:
        return Place.of(LAYER, self.scope, by_session=True)

    @writes
    def add_message(self, tx: Transaction, message: Message | Mapping[str, Any]) -> int:
        """Append a message.

        Args:
            message: a Message, or a dict in the shape of a chat API: role, content, perhaps tool_calls, tool_call_id,
                name, timestamp and any other keys, which are kept.

        Returns:
            Its position in the session: 1 for the first.

        Raises:
            InvalidInput: the role or the content is missing, or a value is not what it must be.
        """
        return append(tx, [(self._place, message)], [self._config])[0]

    @add_message.together
    @staticmethod
    def _add_together(
        tx: Transaction, calls: Sequence[tuple[ConversationMemory[Any], Message | Mapping[str, Any]]]
    ) -> list[int]:
        return append(tx, [(talk._place, message) for talk, message in calls], [talk._config for talk, _ in calls])

    @writes
    def add_messages(self, tx: Transaction, messages: Iterable[Message | Mapping[str, Any]]) -> int:
        """Append many messages, all or none.

        Args:
            messages: at most 100,000, oldest first.

        Returns:
            How many were given.

        Raises:
            InvalidInput: one of them is not what it must be, or there are too many; nothing was stored.
        """
        given = check_bulk(messages, "messages")
        return len(append(tx, list(zip(repeat(self._place), given)), [self._config] * len(given)))

    @add_messages.together
    @staticmethod
    def _add_many_together(
        tx: Transaction, calls: Sequence[tuple[ConversationMemory[Any], Iterable[Message | Mapping[str, Any]]]]
    ) -> list[int]:
        lists = [(talk, check_bulk(messages, "messages")) for talk, messages in calls]
        given = [(talk, message) for talk, messages in lists for message in messages]
        append(tx, [(talk._place, message) for talk, message in given], [talk._config for talk, _ in given])
        return [len(messages) for _, messages in lists]

    add_message.needing(load_counter)
    add_messages.needing(load_counter)

    @reads
    def messages(self, tx: Transaction, limit: int | None = None, *, before: int | None = None) -> list[Message]:
        """Return the messages as they were stored, oldest first, consolidated ones too.

        Args:
            limit: only so many, the newest.
            before: only those before this position; with `limit`, to page backwards.
        """
        return self._newest(tx, None if limit is None else check_limit(limit), "", before)

    @reads
    def get_history(self, tx: Transaction, max_messages: int | None = None) -> list[Message]:
        """Return what a model is sent: the messages after the cursor, oldest first, legal for a model API.

        A tool call stays with its results or both are left out; a call that is not answered yet is left out; the
        history begins with a user's message if it holds one (LightGrep document; see memdb.layers.history.legal). Where
        `configure` says so, old tool results are left out of one that is too long; see memdb.layers.compaction.

        Args:
            max_messages: only so many of the newest, before what is not legal is left out; None for all.
        """
        most = None if max_messages is None else check_limit(max_messages, "max_messages")
        return self.history_of(self._newest(tx, most, cursor.consolidated_key(tx, self._place), None))

    def history_of(self, messages: Sequence[Message]) -> list[Message]:
        """Return what a model is sent of stored messages, as get_history does of those after the cursor; no I/O.

        Args:
            messages: consecutive ones, oldest first.
        """
        if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
            raise InvalidInput(f"messages must be a list of messages, not {type(messages).__name__}")
        for one in messages:
            if not isinstance(one, Message):
                raise InvalidInput(f"messages must hold stored messages, not {type(one).__name__}: see messages()")
        history = legal(messages)
        if self._config is None or self._config.compact is None:
            return history
        return compacted(history, self._config.compact, exact_counter())

    @reads
    def search(self, tx: Transaction, query: str, k: int = 3, *, all_sessions: bool = False) -> list[ScoredMessage]:
        """Return the messages that answer a query best.

        Turns are short and lean on each other, so a message's score is its own BM25 score and shares of its
        neighbours' in the session (see memdb.layers.neighbours). The day it was said counts as text: "in May 2023".

        Args:
            query: any text in any language; words in double quotes are a phrase.
            k: how many at most, 0 to 10,000.
            all_sessions: search every session of the user, not only this one.

        Returns:
            Best first, ties in the order of adding.
        """
        everywhere = check_flag(all_sessions, "all_sessions")
        within = Within(self.scope.user_id, LAYER, None if everywhere else self.scope.session_id)
        return search_leaning(tx, within, query, check_limit(k, "k"))

    @writes
    def clear(self, tx: Transaction) -> int:
        """Delete the session's messages and set its cursor to 0; the session stays. Returns how many there were."""
        count = tx.run(_CLEAR, **self._place.values())
        cursor.consolidate(tx, self._place, 0)
        return count

    async def export_jsonl(self: ConversationMemory[Live], path: str | os.PathLike[str]) -> int:
        """Write the session to a file of JSON lines, whole or not at all; see memdb.layers.jsonl for the form.

        A file that is there is replaced.

        Returns:
            How many messages were written.

        Raises:
            InvalidInput: the path is a folder, lies in none, or is the database's own.
            StorageError: the file cannot be written, or the session is cleared meanwhile; an older file is as it was.
        """
        from memdb.layers import jsonl

        return await jsonl.export_session(self._engine(), self._place, path)

    async def import_jsonl(self: ConversationMemory[Live], path: str | os.PathLike[str]) -> ImportReport:
        """Append the messages of a file of JSON lines; see memdb.layers.jsonl for the form.

        At most 10,000 lines are one transaction: of a longer file, what was stored before an error stays. A line that
        is damaged is skipped, counted and kept in the quarantine with its bytes.

        Raises:
            MissingFile: there is no such file.
            InvalidInput: it is a folder or another thing that is no file.
            StorageError: it cannot be read.
        """
        from memdb.layers import jsonl

        return await jsonl.import_session(self._engine(), self._place, path)

    def _engine(self) -> Engine:
        if not isinstance(self._home, Engine):
            raise InvalidInput("a unit reads and writes no files: call export_jsonl and import_jsonl outside of it")
        return self._home

    def _newest(self, tx: Transaction, limit: int | None, after: str, before: int | None) -> list[Message]:
        """Return the newest messages between two keys, oldest first."""
        end = BEYOND if before is None else key_at(before, "before")
        return newest(tx, self._place, after, end, -1 if limit is None else limit)
