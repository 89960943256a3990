"""What finds a text or a regular expression within lines, and gives up in time."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Protocol

from memdb.errors import InvalidInput, RetrievalError

if TYPE_CHECKING:
    import regex

MAX_PATTERN_CHARS = 1_000
SEARCH_SECONDS = 10.0
PATIENCE_SECONDS = 0.02  # for which a pattern may keep other threads from running

# What can make a pattern miss, in a text of many lines, a match that it finds in one of them alone: groups that look
# around or never give back, the ends of the text, possessive repetition.
_NEEDS_ITS_LINE = re.compile(r"\(\?(?!:)|\(\*|\\[ABGKRXZz]|[+*?}]\+")


class Finder(Protocol):
    """Finds the first place in a text.

    Args:
        by_line: whether `find` must be given a line alone, since what stands around it would matter.
    """

    by_line: bool

    def find(self, text: str, begin: int) -> int | None:
        """Return where the first match at or after `begin` begins, or None."""
        ...

    def absent(self, text: str) -> bool:
        """Return whether no line of a text can hold a match; False where that is not certain."""
        ...


class _Text:
    by_line = False

    def __init__(self, query: str) -> None:
        self._query = query

    def find(self, text: str, begin: int) -> int | None:
        found = text.find(self._query, begin)
        return None if found < 0 else found

    def absent(self, text: str) -> bool:
        return self._query not in text


class _Nothing:
    by_line = False

    def find(self, text: str, begin: int) -> int | None:
        return None

    def absent(self, text: str) -> bool:
        return True


NOTHING: Finder = _Nothing()  # looks through a text and finds nothing in it


class _Pattern:
    def __init__(self, pattern: regex.Pattern[str], *, by_line: bool) -> None:
        self.by_line = by_line
        self._pattern = pattern
        self._tells_absence = not by_line or not _NEEDS_ITS_LINE.search(pattern.pattern)
        self._deadline = time.monotonic() + SEARCH_SECONDS

    def find(self, text: str, begin: int) -> int | None:
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            try:
                found = self._pattern.search(text, begin, timeout=min(left, PATIENCE_SECONDS))
            except TimeoutError:  # again, and let the other threads run: too dear to be the rule
                found = self._pattern.search(text, begin, timeout=left, concurrent=True)
        except TimeoutError:
            raise RetrievalError(
                f"the search for {self._pattern.pattern[:60]!r} took longer than {SEARCH_SECONDS:g} seconds; "
                "make it simpler"
            ) from None
        return None if found is None else int(found.start())

    def absent(self, text: str) -> bool:
        if self.by_line:  # a line is looked through without the carriage return at its end
            text = text.replace("\r\n", "\n").removesuffix("\r")
        return self._tells_absence and self.find(text, 0) is None


def check_pattern(query: object) -> str:
    """Return what is looked for if it can be found within a line.

    Raises:
        InvalidInput: it is empty, too long, no text, or holds a line feed.
    """
    if not isinstance(query, str):
        raise InvalidInput(f"query must be text, not {type(query).__name__}")
    if not query or len(query) > MAX_PATTERN_CHARS:
        raise InvalidInput(f"query has {len(query):,} characters; give 1 to {MAX_PATTERN_CHARS:,} to look for")
    if "\n" in query:
        raise InvalidInput("query holds a line feed, and what is found lies within one line: look for a part of it")
    return query


def finder(query: str, *, is_pattern: bool, ignore_case: bool) -> Finder:
    """Return what finds a text, or a pattern, for SEARCH_SECONDS from now on.

    Args:
        query: see check_pattern.
        is_pattern: whether it is a regular expression, in the syntax of the package `regex`; ^ and $ are the ends of a
            line.
        ignore_case: whether upper and lower case are the same.

    Raises:
        InvalidInput: the pattern is none.
    """
    if not is_pattern and not ignore_case:
        return _Text(query)
    import regex

    flags = regex.VERSION0 | regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    try:
        pattern = regex.compile(query if is_pattern else regex.escape(query), flags)
    except (regex.error, RecursionError, OverflowError, ValueError, MemoryError) as error:
        raise InvalidInput(
            f"{query[:60]!r} is no regular expression: {error}; look for it as a literal text instead"
        ) from None
    return _Pattern(pattern, by_line=is_pattern)
