"""L3, what tools returned: kept whole, read in parts (local-ai document, "L3 tool result externalization")."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from memdb.errors import MissingFile
from memdb.layers import records
from memdb.layers.arguments import check_limit, check_range
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.record import Place
from memdb.layers.runtime import stored_results
from memdb.layers.runtime.envelope import check_file_id, envelope
from memdb.layers.runtime.externalizing import (
    INLINE_LIMIT_BYTES,
    Output,
    ToolResultReference,
    externalizes,
)
from memdb.layers.runtime.result_pages import (
    MAX_LINE_NUMBER,
    MAX_SLICE_BYTES,
    ToolResultLines,
    ToolResultSlice,
    joined,
    line_count,
    read_bytes,
    read_lines,
)
from memdb.layers.runtime.result_search import ToolResultMatch, search
from memdb.layers.runtime.stored_results import LAYER, MAX_RESULT_BYTES, SUMMARY_CHARS, Stored, payload_of
from memdb.layers.unreadable import finds
from memdb.storage import blobs
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag
from memdb.text.finder import NOTHING, check_pattern, finder

__all__ = ["MAX_RESULT_BYTES", "ToolResultInfo", "ToolResultLayer"]


class ToolResultInfo(NamedTuple):
    """What is known of a stored tool result without reading it.

    Args:
        id: its id.
        tool: the tool's name; "" when the payload has none.
        summary: its beginning.
        size: how many bytes its text has in UTF-8: the payload's content, or without one the payload as JSON.
        lines: how many lines that text has.
        created_at: when the tool returned it, in UTC.
        expires_at: from when on it is gone; None for never.
    """

    id: str
    tool: str
    summary: str
    size: int
    lines: int
    created_at: datetime
    expires_at: datetime | None


class ToolResultLayer(Layer[Mode]):
    """The tool results of one session."""

    @property
    def _results(self) -> Place:
        return Place.of(LAYER, self.scope, by_session=True)

    @writes
    def save_tool_result(
        self, tx: Transaction, id: str, payload: dict[str, Any], *, expires_at: datetime | None = None
    ) -> None:
        """Store a tool result, or replace the one with the same id.

        Args:
            id: 1 to 200 characters of A-Z, a-z, 0-9, _ and -.
            payload: a dict of JSON values, kept exactly; by custom id, tool, created_at (ISO 8601 with its zone) and
                content. A text as content may have 256 MB in UTF-8 and hold anything; the rest 16 MB as JSON.
            expires_at: from when on it is gone, with a time zone; None for never.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        stored_results.put(tx, self._results, id, payload, expires_at=expires_at)

    @finds
    def load_tool_result(self, tx: Transaction, id: str) -> dict[str, Any]:
        """Return a tool result's payload, equal to what was given.

        Raises:
            MissingFile: there is none, or it has expired; it is a FileNotFoundError, as the document says.
            InvalidInput: the id could not be one.
        """
        place = self._results
        return stored_results.read(tx, place, id, lambda at, stored: payload_of(at, place, stored))

    @reads
    def tool_result_envelope(self, tx: Transaction, id: str) -> dict[str, Any] | None:
        """Return a tool result as the document lays out its file, or None when there is none or it has expired.

        Returns:
            {"format_version": 1, "id": ..., "saved_at": seconds since 1970, "payload": {...}}.
        """
        place = self._results
        with suppress(MissingFile):
            return stored_results.read(
                tx, place, id, lambda at, stored: envelope(id, stored.record.updated_at, payload_of(at, place, stored))
            )
        return None

    @writes
    def delete_tool_result(self, tx: Transaction, id: str) -> bool:
        """Delete a tool result. Returns whether it was there."""
        return records.remove(tx, self._results, check_file_id(id))

    @reads
    def tool_results(self, tx: Transaction, limit: int = 100) -> list[ToolResultInfo]:
        """Return what is known of the tool results, newest first, ties in the reverse order of storing.

        Args:
            limit: how many at most, 0 to 10,000.
        """
        return [*stored_results.listed(tx, self._results, check_limit(limit), self._info)]

    def _info(self, tx: Transaction, stored: Stored) -> ToolResultInfo:
        found = stored.record
        lines = line_count(tx, self.scope.user_id, stored.blob)
        return ToolResultInfo(
            found.key, found.title, found.summary, stored.blob.size, lines, found.created, found.expires
        )

    @externalizes
    def externalize(
        self,
        tx: Transaction,
        tool: str,
        text: str,
        *,
        succeeded: bool = True,
        inline_limit: int = INLINE_LIMIT_BYTES,
        summary_max_chars: int = SUMMARY_CHARS,
        ttl: float | None = None,
    ) -> str | ToolResultReference:
        """Store what a tool returned when it is large, and return what a model is given in its place.

        A text stays as it is when it has at most `inline_limit` bytes, when the tool failed (errors always stay), and
        when the tool is load_tool_result, whose answer would be externalised for ever. What was stored is logged as
        TOOL_RESULT_STORED with tool, result_id and size. When it cannot be stored (a full disk, a busy file, more than
        256 MB), the log says so and the text is returned.

        Inside a unit such an error is raised, and nothing is logged: only the unit's end tells whether it is stored.

        Args:
            tool: the tool's name, at most 1,000 characters.
            text: what it returned; any text.
            succeeded: whether it did what it was asked.
            inline_limit: the most UTF-8 bytes that stay inline.
            summary_max_chars: how many characters of it the reference shows, 0 to 10,000.
            ttl: for how many seconds it is kept; None for ever.

        Returns:
            The text itself, or a ToolResultReference; its to_json() is what a model is given.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        given = Output(tool, text, succeeded, inline_limit, summary_max_chars, ttl).check()
        return text if given.stays else given.store(tx, self._results)

    @finds
    def read_tool_result(self, tx: Transaction, id: str, *, start: int = 0, size: int = 4_096) -> ToolResultSlice:
        """Return a stretch of a tool result's text, without reading the rest.

        The text is the payload's content or, where that is no text, the payload as JSON.

        Args:
            start: from the character that holds this byte, counted from 0.
            size: at most so many bytes, 1 to 1,048,576; a character is never cut, and one comes at least.

        Returns:
            The stretch; `end` is where the next one starts, `more` whether there is one.

        Raises:
            MissingFile: there is no such tool result, or it has expired.
            InvalidInput: an argument is not what it must be.
        """
        begin = check_range(start, "start", 0, MAX_RESULT_BYTES)
        most, user_id = check_range(size, "size", 1, MAX_SLICE_BYTES), self.scope.user_id
        return stored_results.read(
            tx, self._results, id, lambda at, stored: read_bytes(at, user_id, stored.blob, begin, most)
        )

    @finds
    def read_tool_result_lines(
        self, tx: Transaction, id: str, *, first: int = 1, count: int = 100, max_bytes: int = 65_536
    ) -> ToolResultLines:
        """Return lines of a tool result's text, without reading the rest.

        Args:
            first: the number of the first, from 1. Lines end with a line feed.
            count: how many at most, 1 to 10,000.
            max_bytes: at most so many bytes of them, 4 to 1,048,576; of a line that is longer than that its beginning
                comes, and read_tool_result reads on from `end`.

        Raises:
            MissingFile: there is no such tool result, or it has expired.
            InvalidInput: an argument is not what it must be.
        """
        number = check_range(first, "first", 1, MAX_LINE_NUMBER)
        lines, most = check_range(count, "count", 1, 10_000), check_range(max_bytes, "max_bytes", 4, MAX_SLICE_BYTES)
        user_id = self.scope.user_id
        return stored_results.read(
            tx, self._results, id, lambda at, stored: read_lines(at, user_id, stored.blob, number, lines, most)
        )

    @finds
    def search_tool_result(
        self,
        tx: Transaction,
        id: str,
        query: str,
        *,
        regex: bool = False,
        limit: int = 20,
        ignore_case: bool = False,
    ) -> list[ToolResultMatch]:
        """Return the lines of a tool result's text that hold a text or match a pattern, from the first on.

        Args:
            query: what to look for within a line, 1 to 1,000 characters.
            regex: whether it is a regular expression, in the syntax of the package `regex`; ^ and $ are the ends of a
                line. In a line of more than 65,536 characters a match is sure to be found when it depends on no more
                than 4,096 characters before and after its beginning.
            limit: how many lines at most, 0 to 10,000.
            ignore_case: whether upper and lower case are the same.

        Raises:
            MissingFile: there is no such tool result, or it has expired.
            InvalidInput: an argument is not what it must be, or the pattern is none.
            RetrievalError: the search took longer than 10 seconds.
        """
        any_case = check_flag(ignore_case, "ignore_case")
        wanted = finder(check_pattern(query), is_pattern=check_flag(regex, "regex"), ignore_case=any_case)
        most, user_id = check_limit(limit), self.scope.user_id
        return stored_results.read(
            tx,
            self._results,
            id,
            lambda at, stored: search(joined(stored.blob, blobs.chunks(at, user_id, stored.blob.id)), wanted, most),
            lambda at, stored: search(joined(stored.blob, blobs.chunks(at, user_id, stored.blob.id)), NOTHING, 1),
        )
