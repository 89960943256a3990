"""A record in the hands of a layer: where it lies, its columns to write, and what was read of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from memdb.errors import MemdbError, SerializationError
from memdb.scope import Scope
from memdb.storage.clock import from_text, to_text
from memdb.storage.segments import segments
from memdb.storage.transaction import Row
from memdb.storage.within import Within
from memdb.text.check import check_text
from memdb.text.json_text import to_json

T = TypeVar("T")

# What a row that cannot be read makes a layer raise (RecursionError: JSON nested by hand).
UNREADABLE = (ValueError, TypeError, RecursionError, MemdbError)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a layer's records lie: the layer's name and the scope, as every statement carries them.

    Args:
        layer: the layer's name in the file.
        user_id: the user.
        session_id: the session; '' for a layer that lives by user.
    """

    layer: str
    user_id: str
    session_id: str = ""

    @classmethod
    def of(cls, layer: str, scope: Scope, *, by_session: bool = False) -> Place:
        """Return the place of a layer in a scope."""
        return cls(layer, scope.user_id, scope.session_id if by_session else "")

    def values(self, **more: Any) -> dict[str, Any]:
        """Return the parameters that name this place, and `more`."""
        return {"layer": self.layer, "user_id": self.user_id, "session_id": self.session_id, **more}

    def within(self, *, category: str | None = None) -> Within:
        """Return what a search of this place sees."""
        return Within(self.user_id, self.layer, self.session_id or None, category)


def row(
    place: Place,
    key: str,
    now: str,
    *,
    title: str = "",
    summary: str = "",
    content: str = "",
    tags: Iterable[str] = (),
    keywords: Iterable[str] = (),
    keywords_by_rule: bool | None = None,
    metadata: Any = None,
    category: str | None = None,
    created_at: datetime | None = None,
    expires_at: datetime | None = None,
) -> dict[str, Any]:
    """Return a record's columns, with the texts that the index is given in place of those it could not cut."""
    tags, keywords = list(tags), list(keywords)
    return place.values(
        key=key,
        category=category,
        created_at=now if created_at is None else to_text(created_at),
        updated_at=now,
        expires_at=None if expires_at is None else to_text(expires_at),
        tags=to_json(tags) if tags else "[]",
        keywords=to_json(keywords) if keywords else "[]",
        metadata=to_json(metadata),
        title=title,
        summary=summary,
        content=content,
        **segments(title, tags, summary, keywords, content, by_rule=keywords_by_rule),
    )


class Record(NamedTuple):
    """A record as it is read: the columns that layers make their models of."""

    id: int
    layer: str
    key: str
    category: str | None
    created_at: str
    updated_at: str
    expires_at: str | None
    tags: str
    keywords: str
    metadata: str
    title: str
    summary: str
    content: str

    def json(self, name: str) -> Any:
        """Return what the JSON column `name` holds."""
        text = getattr(self, name)
        if text == "[]" or text == "{}":  # most tags and metadata are
            return [] if text == "[]" else {}
        return json.loads(text)

    def words(self, name: str) -> list[str]:
        """Return the list of texts in the JSON column `name` (tags, keywords)."""
        value = self.json(name)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise SerializationError(f"the column {name} holds no list of texts")
        return value

    @property
    def created(self) -> datetime:
        """When it was first stored."""
        return from_text(self.created_at)

    @property
    def updated(self) -> datetime:
        """When it was last stored."""
        return from_text(self.updated_at)

    @property
    def expires(self) -> datetime | None:
        """When it ceases to be, if ever."""
        return None if self.expires_at is None else from_text(self.expires_at)


_SIZE = len(Record._fields)


def made(found: Row, shape: Callable[..., T], own: tuple[str, ...] = (), *, lenient: bool) -> T:
    """Return a row as `shape` makes it.

    Args:
        found: the columns of Record, then those of the layer's own table.
        own: the names of the latter.
        lenient: whether text that is no UTF-8 came with surrogates instead of failing the statement.

    Raises:
        Any of UNREADABLE: the row cannot be read.
    """
    if lenient or bytes in map(type, found):
        _check_columns(found, own, lenient=lenient)
    return shape(Record._make(found[:_SIZE]), *found[_SIZE:])


def _check_columns(found: Row, own: tuple[str, ...], *, lenient: bool) -> None:
    for name, value in zip((*Record._fields, *own), found, strict=True):
        if isinstance(value, bytes):
            raise SerializationError(f"the column {name} holds bytes instead of text")
        if lenient and isinstance(value, str):
            check_text(value, f"the column {name}")
