"""Earlier texts of a record that is replaced as a whole: who replaced it, when, with what (facts, memory blocks).

They are rows of `version`, written by a trigger, so that a shell's edit keeps what it replaces, too. The present text
is the record's own; its number is one above the last of them.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, and_, func, select

from memdb.errors import NotFound, SerializationError
from memdb.layers import reading
from memdb.layers.arguments import check_limit, check_whole
from memdb.layers.reading import here
from memdb.layers.record import UNREADABLE, Place, Record
from memdb.storage.clock import from_text
from memdb.storage.quarantine import Damage, OwnRow
from memdb.storage.schema import record
from memdb.storage.schema import version as version_table
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.check import check_text

P = ParamSpec("P")
R = TypeVar("R")


class Version(NamedTuple):
    """A text as it was, or is.

    Args:
        number: its place among the texts, from 1.
        content: the text.
        author: who wrote it; "" where that is not known.
        act: how: "write", "append", "replace", "undo" and the like; "" where that is not known.
        written_at: when it was written.
        replaced_at: when another took its place; None for the present one.
    """

    number: int
    content: str
    author: str
    act: str
    written_at: datetime
    replaced_at: datetime | None


def _texts() -> ColumnElement[bool]:
    """The earlier texts of one record."""
    return and_(
        version_table.c.user_id == param("user_id"),
        version_table.c.layer == param("layer"),
        version_table.c.session_id == param("session_id"),
        version_table.c.key == param("key"),
    )


_LAST = select(func.max(version_table.c.number)).where(_texts()).scalar_subquery()
_PRESENT_NUMBER = Statement(select(func.coalesce(_LAST, 0) + 1).where(here(), record.c.key == param("key")))
_COLUMNS = ("number", "written_at", "replaced_at", "metadata", "content")
_READ = select(*(version_table.c[name] for name in _COLUMNS))
_NEWEST = Statement(
    _READ.where(_texts(), param("before") > version_table.c.number)
    .order_by(version_table.c.number.desc())
    .limit(param("limit"))
)
_ONE = Statement(_READ.where(_texts(), version_table.c.number == param("number")))
_ROW = OwnRow(version_table, ("user_id", "layer", "session_id", "key", "number"), key="key")
_BEYOND = 2**63 - 1


def present_number(tx: Transaction, place: Place, key: str) -> int:
    """Return the number of a record's present text; 0 when there is no such record."""
    return int(tx.value(_PRESENT_NUMBER, **place.values(key=key)) or 0)


def present_version(tx: Transaction, place: Place, key: str) -> Version | None:
    """Return a record's present text; None when there is none, or it cannot be read and is set aside."""
    found = reading.get(tx, place, key, partial(_of_record, 0))
    return None if found is None else found._replace(number=present_number(tx, place, key))


def versions(tx: Transaction, place: Place, key: str, limit: int, before: int | None = None) -> list[Version]:
    """Return a record's texts, the newest first; the present one is the first of them.

    Args:
        limit: how many at most, 0 to 10,000.
        before: only those with a lower number, to page back.

    Raises:
        InvalidInput: an argument is not what it must be.
    """
    most = check_limit(limit)
    upto = _BEYOND if before is None else check_whole(before, "before")
    present = present_version(tx, place, key)
    found = [] if present is None or present.number >= upto else [present]
    rows = tx.all(_NEWEST, **place.values(key=key, before=upto, limit=most - len(found) if most else 0))
    found += [made for row in rows if (made := _shaped(tx, place, key, row)) is not None]
    return found[:most]


def read_version(tx: Transaction, place: Place, key: str, number: int, subject: str | None = None) -> Version:
    """Return one of a record's texts, the present one or an earlier one.

    Args:
        number: which, from 1.
        subject: what an error says that has no such version, with its verb, such as "the facts have"; by default the
            record, by its key.

    Raises:
        NotFound: there is none of this number.
        InvalidInput: the number is no whole number.
    """
    wanted = check_whole(number, "number")
    present = present_version(tx, place, key)
    if present is not None and present.number == wanted:
        return present
    row = tx.one(_ONE, **place.values(key=key, number=wanted))
    made = None if row is None else _shaped(tx, place, key, row)
    if made is None:
        last = "there is none" if present is None else f"the present one is number {present.number}"
        raise NotFound(
            f"{subject or f'{key!r} has'} no version {wanted}: {last}; see versions() for those that are kept"
        )
    return made


def _of_record(number: int, found: Record) -> Version:
    author, act = _said(found.json("metadata"))
    return Version(number, found.content, author, act, found.updated, None)


def _said(metadata: Any) -> tuple[str, str]:
    """Return author and act as a text's metadata name them; a shell may have left other things there."""
    named = metadata if isinstance(metadata, dict) else {}
    author, act = named.get("author"), named.get("act")
    return author if isinstance(author, str) else "", act if isinstance(act, str) else ""


def _shaped(tx: Transaction, place: Place, key: str, row: Row) -> Version | None:
    """Return a row as a version; None where it cannot be read, and it goes to the quarantine."""
    try:
        return _made(tx, row)
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}"
    identity = place.values(key=key, number=row[0])
    name = f"version {row[0]} of {place.layer} {key!r} of user {place.user_id!r} session {place.session_id!r}"
    tx.damaged[name] = Damage(reason, partial(_still_damaged, **identity), partial(_ROW.move, **identity))
    return None


def _made(tx: Transaction, row: Row) -> Version:
    number, *texts = row
    if not isinstance(number, int):
        raise SerializationError("the column number holds no number")
    for name, value in zip(_COLUMNS[1:], texts, strict=True):
        if not isinstance(value, str):
            raise SerializationError(f"the column {name} holds {type(value).__name__} instead of text")
        if tx.lenient:
            check_text(value, f"the column {name}")
    written_at, replaced_at, metadata, content = texts
    author, act = _said(json.loads(metadata))
    return Version(number, content, author, act, from_text(written_at), from_text(replaced_at))


def _still_damaged(tx: Transaction, **identity: Any) -> bool:
    """Return whether a row still cannot be read: somebody may have mended it since."""
    row = tx.one(_ONE, **identity)
    try:
        return row is not None and _made(tx, row) is None
    except UNREADABLE:
        return True
