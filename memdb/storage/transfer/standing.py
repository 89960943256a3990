"""The rows of an export that are no records: states, working summaries, checkpoints, earlier texts, what is set."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from memdb.errors import InvalidInput, SerializationError
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.fields import say
from memdb.storage.transfer.form import STANDING, STANDING_FIELDS, check_standing
from memdb.storage.transfer.putting import put_fields, without
from memdb.storage.transfer.rows import Row, Whose, check_payload, of_user, raw_columns

# What tells the rows of a table apart, from its first fields on; what is compared only where an import replaces.
IDENTITY = {
    "state": 1,
    "working_memory": 1,
    "checkpoint": 3,
    "version": 4,
    "memory_config": 1,
    "consolidation": 1,
    "aging": 2,
}
_USAGE = ("updated_at", "saved_at", "revision", "replaced_at")
_ORDER = {"checkpoint": "number", "version": "layer, session_id, key, number"}

_OF_VERSION = "(user_id, layer, session_id, key) = (:user_id, :layer, :session_id, :key)"
_HELD = f"SELECT id FROM record WHERE {_OF_VERSION}"
_LAST = f"SELECT max(number) FROM version WHERE {_OF_VERSION}"
_NUMBERS = f"SELECT number FROM version WHERE {_OF_VERSION} ORDER BY number"
_NUMBER_ANEW = f"UPDATE version SET number = :anew WHERE {_OF_VERSION} AND number = :number"
_MOVE_ON = f"UPDATE version SET number = number + :by WHERE {_OF_VERSION} AND number >= :number"

# Of an earlier text also the number of the record that it was the text of; 0 for what needs none.
_HOLDER = {
    "version": """(SELECT id FROM record WHERE (user_id, layer, session_id, key)
                   = (version.user_id, version.layer, version.session_id, version.key))"""
}
_SELECT = {
    name: f"SELECT {', '.join(field.read_of(name) for field in fields)}, {_HOLDER.get(name, '0')} FROM {name}"
    for name, fields in STANDING_FIELDS.items()
}
_ROWS = {
    name: f"{select} WHERE {{whose}} ORDER BY {_ORDER.get(name, 'session_id')}" for name, select in _SELECT.items()
}
_FIND = {
    name: f"{_SELECT[name]} WHERE user_id = ? "
    + " ".join(f"AND {field.name} = ?" for field in STANDING_FIELDS[name][:count])
    for name, count in IDENTITY.items()
}
_PUT = {
    name: put_fields(name, ("user_id",), fields, ("user_id", *(field.name for field in fields[: IDENTITY[name]])))
    for name, fields in STANDING_FIELDS.items()
}
_PLACES = {
    name: tuple(at for at, field in enumerate(fields) if field.name in _USAGE)
    for name, fields in STANDING_FIELDS.items()
}


class StandingRow(NamedTuple):
    """A row as it is stored.

    Args:
        name: the table's.
        columns: those of STANDING_FIELDS.
        holder: the number of the record that it belongs to; 0 for a row that stands by itself, None for one whose
            record is not there.
    """

    name: str
    columns: Row
    holder: int | None


def stored_rows(connection: sqlite3.Connection, whose: Whose) -> Iterator[StandingRow]:
    """Yield the rows of each table in the order in which they were stored."""
    for name in STANDING:
        for row in of_user(connection, _ROWS[name], whose):
            yield StandingRow(name, row[:-1], row[-1])


def said_row(row: StandingRow, payloads: Container[str], unreadable: Container[int]) -> dict[str, Any]:
    """Return a row as a line's fields.

    Args:
        unreadable: the numbers of records that count as not there.

    Raises:
        SerializationError: a column holds what it should not, or its record or payload is not there.
    """
    line = {"kind": row.name, **say(STANDING_FIELDS[row.name], row.columns)}
    if row.holder is None or row.holder in unreadable:
        raise SerializationError("the record that it belongs to is not there or cannot be read")
    try:
        check_standing(row.name, row.columns)
    except ValueError as error:
        raise SerializationError(str(error)) from error
    check_payload(line, payloads)
    return line


def raw_row(row: StandingRow) -> str:
    """Return a row's columns as JSON, with their bytes in hexadecimal."""
    return raw_columns(STANDING_FIELDS[row.name], row.columns)


def identity(row: StandingRow) -> tuple[Any, Any, Any]:
    """Return layer, session and key of a row, as the quarantine names it."""
    count, columns = IDENTITY[row.name], row.columns
    return row.name, columns[0], "" if count == 1 else columns[2 if row.name == "version" else 1]


class Standing:
    """Rows of a user that are no records, inside a write transaction.

    Args:
        connection: reads text leniently.
        user_id: whose rows.
        exact: whether a row says the same only when its times are the same, too.
    """

    def __init__(self, connection: sqlite3.Connection, user_id: str, *, exact: bool) -> None:
        self._connection = connection
        self._user_id = user_id
        self._exact = exact
        self._moved: set[tuple[str, str, str]] = set()  # session, layer and key of records whose texts have moved on

    def meet(self, entry: Entry) -> bool | None:
        """Return whether the row that is there says the same; None when there is none."""
        found = self._there(entry)
        if found is not None and entry.kind == "aging":  # no conflict: the later time stays, or importance ages twice
            there, here = (columns[IDENTITY["aging"]] for columns in (found, entry.columns))
            return True if isinstance(there, str) and there >= here else None
        return None if found is None else self._same(found, entry, exact=self._exact)

    def put(self, entry: Entry) -> None:
        """Store a row; one of the same identity is replaced, but for an earlier text, which moves on.

        Raises:
            InvalidInput: the record that it belongs to is not there.
        """
        if entry.kind == "version":
            self._make_room(entry)
        self._connection.execute(_PUT[entry.kind], (self._user_id, *entry.columns))

    def _make_room(self, entry: Entry) -> None:
        """Let the texts of this file that bear the number of another one follow on the last: none of them is lost."""
        session_id, layer, key, number = entry.columns[: IDENTITY["version"]]
        place = self._place(session_id, layer, key)
        if self._connection.execute(_HELD, place).fetchone() is None:
            raise InvalidInput(f"the {layer} {key[:40]!r}, of which it is an earlier text, is not there")
        found = self._there(entry)
        if found is not None and not self._same(found, entry, exact=False):
            last = self._connection.execute(_LAST, place).fetchone()[0]
            self._connection.execute(_MOVE_ON, place | {"number": number, "by": last + 1 - number})
            self._moved.add((session_id, layer, key))

    def finish(self) -> None:
        """Close the gaps between the numbers of texts that have moved on: a block's undo steps from one to the next."""
        for moved in self._moved:
            place = self._place(*moved)
            numbers = [number for (number,) in self._connection.execute(_NUMBERS, place)]
            for anew, number in enumerate(numbers, numbers[0]):
                if anew != number:
                    self._connection.execute(_NUMBER_ANEW, place | {"number": number, "anew": anew})

    def _place(self, session_id: str, layer: str, key: str) -> dict[str, str]:
        return {"user_id": self._user_id, "layer": layer, "session_id": session_id, "key": key}

    def _there(self, entry: Entry) -> Row | None:
        count = IDENTITY[entry.kind]
        found = self._connection.execute(_FIND[entry.kind], (self._user_id, *entry.columns[:count])).fetchone()
        return None if found is None else found[:-1]

    @staticmethod
    def _same(found: Row, entry: Entry, *, exact: bool) -> bool:
        places = () if exact else _PLACES[entry.kind]
        return without(found, places) == without(entry.columns, places)


def named(entry: Entry) -> str:
    """Return what a row is called in a message."""
    return f"{entry.kind} {json.dumps(entry.columns[: IDENTITY[entry.kind]], ensure_ascii=False)}"
