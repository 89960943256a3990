"""The history of what happened: appended to, searched, never changed (LightGrep document, HISTORY.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Literal

from memdb.errors import InvalidInput
from memdb.layers import reading, recall
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_query, check_range
from memdb.layers.facts import entries
from memdb.layers.facts.entry import (
    ENTRY,
    LAYER,
    HistoryEntry,
    ScoredEntry,
    Told,
    check_entry,
    check_origin,
    entry_of,
    entry_row,
)
from memdb.layers.layer import Layer, Mode, reads, reads_counts, writes
from memdb.layers.message import MAX_POSITION, key_at
from memdb.layers.recall import RecallStats
from memdb.layers.record import Place
from memdb.scope import Scope
from memdb.storage import fulltext
from memdb.storage.transaction import Transaction
from memdb.text.check import check_choice, check_flag
from memdb.text.finder import Finder, check_pattern, finder
from memdb.text.query import parse

MAX_CHUNK_CHARS = 200


def place_of(scope: Scope) -> Place:
    """Return where a user's history lies."""
    return Place.of(LAYER, scope)


class HistoryLayer(Layer[Mode]):
    """The entries of one user, in the order of their appending. None is ever changed or taken away."""

    @property
    def _entries(self) -> Place:
        return place_of(self.scope)

    @writes
    def append_history(
        self, tx: Transaction, entry: str, *, origin: str = "written", created_at: datetime | None = None
    ) -> int:
        """Append an entry (LightGrep document).

        Args:
            entry: what happened, at most 16 MB; by custom it begins with [YYYY-MM-DD HH:MM]. White space at its end is
                left out, line breaks inside stay.
            origin: "written", "consolidated", "raw" or "file"; see HistoryEntry.
            created_at: when it happened, with a time zone; by default now.

        Returns:
            Its number: 1 for the first.

        Raises:
            InvalidInput: the entry is blank, or an argument is not what it must be.
        """
        number = entries.next_number(tx, self._entries)
        text, source = check_entry(entry), check_origin(origin)
        entries.append(tx, [entry_row(self._entries, number, tx.now, text, origin=source, created_at=created_at)])
        return number

    @append_history.together
    @staticmethod
    def _append_together(tx: Transaction, calls: Sequence[tuple[HistoryLayer[Any], str]]) -> list[int]:
        ends: dict[Place, int] = {}
        rows, numbers = [], []
        for layer, entry in calls:
            place = layer._entries
            number = ends[place] + 1 if place in ends else entries.next_number(tx, place)
            rows.append(entry_row(place, number, tx.now, check_entry(entry)))
            numbers.append(number)
            ends[place] = number
        entries.append(tx, rows)
        return numbers

    @writes
    def append_entries(self, tx: Transaction, texts: Sequence[str], *, origin: str = "written") -> list[int]:
        """Append many entries, all or none.

        Args:
            texts: at most 100,000, in their order.
            origin: see HistoryEntry.

        Returns:
            Their numbers.

        Raises:
            InvalidInput: one of them is blank or no valid text, or there are too many; nothing was stored.
        """
        source, first = check_origin(origin), entries.next_number(tx, self._entries)
        checked = [check_entry(text, f"entry {at}") for at, text in enumerate(check_bulk(texts, "texts"), 1)]
        numbers = range(first, first + len(checked))
        rows = [
            entry_row(self._entries, number, tx.now, text, origin=source)
            for number, text in zip(numbers, checked, strict=True)
        ]
        entries.append(tx, rows)
        return [*numbers]

    @writes
    def append_chunk(
        self,
        tx: Transaction,
        texts: Sequence[str],
        *,
        origin: Literal["consolidated", "raw"],
        chunk: str,
        session_id: str,
        first_position: int,
        last_position: int,
    ) -> int:
        """Append the entry, or the entries, that tell of one chunk of a session's messages. They are stored once.

        Args:
            texts: one entry or several, in their order.
            origin: "consolidated" or "raw"; see HistoryEntry.
            chunk: what tells these messages from all others, such as a hash of them: 1 to 200 characters.
            session_id: the session of the messages.
            first_position: the position of the first of them.
            last_position: the position of the last of them.

        Returns:
            How many were stored; 0 when something was stored for this chunk before.

        Raises:
            InvalidInput: an entry is blank, or an argument is not what it must be; nothing was stored.
        """
        given = [check_entry(text, f"entry {at}") for at, text in enumerate(check_bulk(texts, "texts"), 1)]
        if not given:
            raise InvalidInput("there is no entry; give at least one that tells of the chunk")
        first = check_range(first_position, "first_position", 1, MAX_POSITION)
        last = check_range(last_position, "last_position", first, MAX_POSITION)
        session, name, source = check_key(session_id, "session_id"), check_chunk(chunk), check_origin(origin)
        parts = [name] if len(given) == 1 else [f"{name}:{part}" for part in range(1, len(given) + 1)]
        if entries.any_of_chunks(tx, self.scope.user_id, json.dumps([name, f"{name}:1", *parts])):
            return 0
        number = entries.next_number(tx, self._entries)
        rows = [
            entry_row(self._entries, number + at, tx.now, text, origin=source, told=Told(session, first, last, part))
            for at, (text, part) in enumerate(zip(given, parts, strict=True))
        ]
        entries.append(tx, rows)
        return len(rows)

    @reads
    def history(self, tx: Transaction, limit: int | None = None, *, before: int | None = None) -> list[HistoryEntry]:
        """Return the entries, oldest first.

        Args:
            limit: only so many, the newest; None for all.
            before: only those before this number; with `limit`, to page backwards.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        most = None if limit is None else check_limit(limit)
        upto = entries.BEYOND if before is None else key_at(before, "before")
        return entries.newest(tx, self._entries, most, upto)

    @reads
    def search_history(
        self, tx: Transaction, query: str, limit: int = 10, *, order: Literal["time", "score"] = "time"
    ) -> list[ScoredEntry]:
        """Return the entries that answer a query best. The day of an entry counts as text: "in May 2023".

        Args:
            query: any text in any language; words in double quotes are a phrase.
            limit: how many at most, 0 to 10,000: the best.
            order: "time" for the order in which they were appended, oldest first; "score" for the best first.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        check_choice(order, "order", ("time", "score"))
        scores = dict(fulltext.search(tx, parse(check_query(query)), self._entries.within(), check_limit(limit)))
        found = [ScoredEntry(*hit) for hit in reading.ranked(tx, self.scope.user_id, scores, entry_of, ENTRY)]
        return found if order == "score" else sorted(found, key=lambda hit: hit.entry.number)

    @reads
    def grep_history(
        self, tx: Transaction, pattern: str, limit: int = 100, *, literal: bool = False, ignore_case: bool = False
    ) -> list[HistoryEntry]:
        """Return the entries of which a line matches a pattern, in the order in which they were appended.

        Args:
            pattern: a regular expression in the syntax of the package `regex`, 1 to 1,000 characters; ^ and $ are the
                ends of a line.
            limit: how many at most, 0 to 10,000: the newest.
            literal: find the pattern as a text.
            ignore_case: whether upper and lower case are the same.

        Raises:
            InvalidInput: an argument is not what it must be, or the pattern is none.
            RetrievalError: the search took longer than 10 seconds.
        """
        any_case = check_flag(ignore_case, "ignore_case")
        wanted = finder(check_pattern(pattern), is_pattern=not check_flag(literal, "literal"), ignore_case=any_case)
        matching = entries.backwards(tx, self._entries, partial(_holds, wanted))
        return [*islice(matching, check_limit(limit))][::-1]

    @reads
    def record_recall(self, tx: Transaction, number: int, score: float) -> None:
        """Count that an entry was recalled, with the score it had (agcore document, section 4.3).

        Counted in memory and written with the next write, after a second at the latest; `recall_stats` sees it at once.
        Nothing happens when there is no entry of this number.

        Raises:
            InvalidInput: the number is no whole number, or the score no finite number of at least 0.
            StorageError: the handle is open for reading only.
        """
        recall.record_recall(tx, self._entries, key_at(number, "number"), score)

    @reads_counts
    def recall_stats(self, tx: Transaction, number: int) -> RecallStats | None:
        """Return how often an entry was recalled, or None when it never was or is not there."""
        return recall.recall_stats(tx, self._entries, key_at(number, "number"))


def check_chunk(chunk: object) -> str:
    """Return `chunk` if it can name a chunk of messages.

    Raises:
        InvalidInput: it is empty, longer than MAX_CHUNK_CHARS, or no valid text.
    """
    name = check_key(chunk, "chunk")
    if len(name) > MAX_CHUNK_CHARS:
        raise InvalidInput(f"chunk has {len(name):,} characters; give a hash, of at most {MAX_CHUNK_CHARS}")
    return name


def _holds(wanted: Finder, text: str) -> bool:
    """Return whether a line of a text matches."""
    if wanted.absent(text):
        return False
    if not wanted.by_line:
        return True
    return any(wanted.find(line.removesuffix("\r"), 0) is not None for line in text.split("\n"))
