"""The rows of an export that are no records: states, working summaries, checkpoints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterator
from typing import Any

from memdb.errors import SerializationError
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.fields import say
from memdb.storage.transfer.form import STANDING, STANDING_FIELDS, check_standing
from memdb.storage.transfer.putting import put_fields, without
from memdb.storage.transfer.rows import Row, check_payload, of_user, raw_columns

# What tells the rows of a table apart, from its first fields on; what is compared only where an import replaces.
IDENTITY = {"state": 1, "working_memory": 1, "checkpoint": 3}
_USAGE = ("updated_at", "saved_at", "revision")


def _order(name: str) -> str:
    return "number" if "number" in STANDING[name].c else "session_id"


_SELECT = {
    name: f"SELECT {', '.join(field.read_of(name) for field in fields)} FROM {name}"
    for name, fields in STANDING_FIELDS.items()
}
_ROWS = {name: f"{select} WHERE {{whose}} ORDER BY {_order(name)}" for name, select in _SELECT.items()}
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


def stored_rows(connection: sqlite3.Connection, user_id: str, session_id: str | None) -> Iterator[tuple[str, Row]]:
    """Yield the table's name and the columns of each row of a user, in the order in which they were stored."""
    for name, query in _ROWS.items():
        for columns in of_user(connection, query, user_id, session_id):
            yield name, columns


def said_row(name: str, columns: Row, payloads: Container[str]) -> dict[str, Any]:
    """Return a row as a line's fields.

    Raises:
        SerializationError: a column holds what it should not.
    """
    line = {"kind": name, **say(STANDING_FIELDS[name], columns)}
    try:
        check_standing(name, columns)
    except ValueError as error:
        raise SerializationError(str(error)) from error
    check_payload(line, payloads)
    return line


def raw_row(name: str, columns: Row) -> str:
    """Return a row's columns as JSON, with their bytes in hexadecimal."""
    return raw_columns(STANDING_FIELDS[name], columns)


def identity(name: str, columns: Row) -> tuple[str, str, str]:
    """Return layer, session and key of a row, as the quarantine names it."""
    return name, columns[0], columns[1] if IDENTITY[name] > 1 else ""


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

    def meet(self, entry: Entry) -> bool | None:
        """Return whether the row that is there says the same; None when there is none."""
        name, count = entry.kind, IDENTITY[entry.kind]
        found = self._connection.execute(_FIND[name], (self._user_id, *entry.columns[:count])).fetchone()
        if found is None:
            return None
        places = () if self._exact else _PLACES[name]
        return bool(without(found, places) == without(entry.columns, places))

    def put(self, entry: Entry) -> None:
        """Store a row; one of the same identity is replaced."""
        self._connection.execute(_PUT[entry.kind], (self._user_id, *entry.columns))


def named(entry: Entry) -> str:
    """Return what a row is called in a message."""
    return f"{entry.kind} {json.dumps(entry.columns[: IDENTITY[entry.kind]], ensure_ascii=False)}"
