"""One entry of the history: what happened, in the user's words or a model's, under a number that never changes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memdb.errors import InvalidInput, SerializationError
from memdb.layers.message import is_key, key_of
from memdb.layers.reading import Columns
from memdb.layers.record import Place, Record, row
from memdb.storage.clock import from_text, to_text
from memdb.storage.schema import history as history_table
from memdb.text.chat import day
from memdb.text.check import check_choice, check_text

LAYER = "history"
ENTRY = Columns(history_table)
ORIGINS = ("written", "consolidated", "raw", "file")

_STAMP = re.compile(r"\[(\d{4})-(\d\d)-(\d\d)[ T]")  # LightGrep document: an entry begins with [YYYY-MM-DD HH:MM]


class HistoryEntry(NamedTuple):
    """One entry of a user's history (LightGrep document, HISTORY.md).

    Args:
        number: its place in the history, from 1.
        content: what happened; by custom it begins with [YYYY-MM-DD HH:MM].
        created_at: when it was appended, unless the one who did gave another time.
        origin: "written" (by hand or by the agent), "consolidated" (a model's account of messages), "raw" (messages
            that no model could tell of, as they were), "file" (found in a HISTORY.md).
        session_id: whose messages it tells of; None where it tells of none.
        first_position: of these messages, by its position.
        last_position: of these messages, by its position.
    """

    number: int
    content: str
    created_at: datetime
    origin: str = "written"
    session_id: str | None = None
    first_position: int | None = None
    last_position: int | None = None


class ScoredEntry(NamedTuple):
    """An entry that a search found.

    Args:
        entry: the entry.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
    """

    entry: HistoryEntry
    score: float


class Told(NamedTuple):
    """Which messages an entry tells of; see HistoryEntry.

    Args:
        chunk: what tells these messages, and the entry's part of them, from all others.
    """

    session_id: str | None = None
    first_position: int | None = None
    last_position: int | None = None
    chunk: str | None = None


def check_entry(entry: object, name: str = "the entry") -> str:
    """Return the text of an entry as it is kept: without white space at its end.

    Raises:
        InvalidInput: it is no valid text, too large, or blank.
    """
    text = check_text(entry, name).rstrip()
    if not text:
        raise InvalidInput(f"{name} is blank; write what happened")
    return text


def check_origin(origin: object) -> str:
    """Return `origin` if it is one of ORIGINS.

    Raises:
        InvalidInput: it is not.
    """
    return check_choice(origin, "origin", ORIGINS)


def entry_row(
    place: Place,
    number: int,
    now: str,
    content: str,
    *,
    origin: str = "written",
    created_at: datetime | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Return an entry's columns of `record` and of `history`.

    Args:
        content: a checked text.

    Raises:
        InvalidInput: created_at is no time with a zone.
    """
    told = told or Told()
    moment = from_text(now if created_at is None else to_text(created_at))
    return row(
        place,
        key_of(number),
        now,
        content=content,
        keywords=[_day_told(content, moment)],  # people ask for what happened "in May"
        keywords_by_rule=False,
        created_at=moment,
    ) | {
        "origin": origin,
        "source_session_id": told.session_id,
        "first_position": told.first_position,
        "last_position": told.last_position,
        "chunk": told.chunk,
    }


def _day_told(content: str, otherwise: datetime) -> str:
    """Return the day that an entry's stamp names; that of another time where it has none."""
    stamp = _STAMP.match(content)
    if stamp is None:
        return day(otherwise)
    try:
        return day(datetime(int(stamp[1]), int(stamp[2]), int(stamp[3]), tzinfo=UTC))
    except ValueError:  # the 30th of February
        return day(otherwise)


def entry_of(
    found: Record,
    origin: str | None,
    session_id: str | None,
    first_position: int | None,
    last_position: int | None,
    chunk: str | None,
) -> HistoryEntry:
    """Return an entry of what was read: the shape of a row of the columns ENTRY."""
    if not is_key(found.key):
        raise SerializationError("the record's key is no number of an entry")
    positions = [value if isinstance(value, int) else None for value in (first_position, last_position)]
    return HistoryEntry(int(found.key), found.content, found.created, origin or "written", session_id, *positions)
