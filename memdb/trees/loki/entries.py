"""The entries of a list in a JSON file, one at a time: a damaged one costs neither the others nor much memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


def entries(text: str, *names: str) -> Iterator[Any]:
    """Yield the entries of the list that a JSON object holds under one of the names; of a list alone its own.

    Raises:
        ValueError: from some place on it is no JSON, or there is no such list; what stands before was yielded.
        RecursionError: an entry is nested deeper than can be read.
    """
    reader = _Reader(text)
    if reader.takes("["):
        yield from reader.items()
    else:
        yield from reader.members(names)
    if reader.next():
        raise ValueError(f"more follows its end at position {reader.at:,}")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def next(self) -> str:
        """Return the next character that is no blank; "" at the end."""
        blanks = _BLANKS.match(self._text, self.at)
        self.at = self.at if blanks is None else blanks.end()
        return self._text[self.at : self.at + 1]

    def takes(self, char: str) -> bool:
        """Pass over a character, if it is the next; return whether it is."""
        is_next = self.next() == char
        self.at += is_next
        return is_next

    def expect(self, char: str) -> None:
        """Pass over a character that must be the next."""
        if not self.takes(char):
            raise ValueError(f"{char!r} is missing at position {self.at:,}")

    def value(self) -> Any:
        """Return the next value and pass over it."""
        self.next()
        value, self.at = _DECODER.raw_decode(self._text, self.at)
        return value

    def items(self) -> Iterator[Any]:
        """Yield the values of a list whose [ was passed over."""
        if self.takes("]"):
            return
        while True:
            yield self.value()
            if not self.takes(","):
                break
        self.expect("]")

    def members(self, names: tuple[str, ...]) -> Iterator[Any]:
        """Yield the values of the list in an object that has one of the names."""
        self.expect("{")
        found = False
        while self.next() == '"':
            name = self.value()
            self.expect(":")
            if name in names and self.takes("["):
                found = True
                yield from self.items()
            else:
                self.value()
            if not self.takes(","):
                break
        self.expect("}")
        if not found:
            raise ValueError(f"it has no list {names[0]!r}")


# What anti-patterns.json says in its own form, beside that of a pattern: the fields that say it.
_OTHER_FORM = {"what_fails": "pattern", "why": "incorrect_approach", "prevention": "correct_approach"}
_MARK = "_memdb"  # names those that were written for other readers alone


def legible(form: dict[str, Any]) -> dict[str, Any]:
    """Return an anti-pattern's form with what readers of anti-patterns.json look for."""
    added = {key: form.get(field, "") for key, field in _OTHER_FORM.items() if key not in form}
    if not added and _MARK not in form:
        return form
    own = {"own": form[_MARK]} if _MARK in form else {}
    return {**form, **added, _MARK: {"added": list(added), **own}}


def without_added(entry: Any) -> Any:
    """Return an entry without what `legible` added."""
    mark = entry.get(_MARK) if isinstance(entry, dict) else None
    if not isinstance(mark, dict) or not isinstance(mark.get("added"), list):
        return entry
    gone = {_MARK, *(key for key in _OTHER_FORM if key in mark["added"])}
    kept = {key: value for key, value in entry.items() if key not in gone}
    return {**kept, _MARK: mark["own"]} if "own" in mark else kept
