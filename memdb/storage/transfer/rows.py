"""The rows of a user as they are stored: records with what belongs to them, sessions, the quarantine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table

from memdb.errors import SerializationError
from memdb.storage.schema import recall, record
from memdb.storage.transfer.fields import Field, say
from memdb.storage.transfer.form import (
    LAYERS,
    OWN,
    OWN_FIELDS,
    QUARANTINE,
    RECALL,
    RECORD,
    SESSION,
    check_identity,
    check_words,
)
from memdb.text.check import check_id

PAGE = 500  # records that are asked for at once

Row = tuple[Any, ...]
References = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose rows.

    Args:
        user_id: of this user.
        session_id: only what belongs to this session; None for all that the user has.
        and_user: with a session, also what belongs to no session: the two are the state of one scope.
    """

    user_id: str
    session_id: str | None = None
    and_user: bool = False

    @property
    def sessionless(self) -> bool:
        """Whether what belongs to no session is among them."""
        return self.session_id is None or self.and_user

    @property
    def condition(self) -> str:
        """SQL, with the parameters user_id and session_id."""
        if self.session_id is None:
            return "user_id = :user_id"
        if self.and_user:
            return "user_id = :user_id AND session_id IN ('', :session_id)"
        return "user_id = :user_id AND session_id = :session_id"


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as it is stored.

    Args:
        id: its number.
        columns: those of RECORD, in their order.
        references: layer and key of what it points at.
        recall: the columns of RECALL; None when there is no row.
        own: for each table of a layer that has a row of the record, its columns.
    """

    id: int
    columns: Row
    references: References
    recall: Row | None
    own: dict[str, Row]


_WORDS = tuple(at for at, field in enumerate(RECORD) if field.name in ("tags", "keywords"))


def _names(fields: Sequence[Field], table: str) -> str:
    return ", ".join(field.read_of(table) for field in fields)


_BESIDE: tuple[tuple[str, tuple[Field, ...]], ...] = (("recall", RECALL), *OWN_FIELDS.items())
_ROWS = f"""
SELECT record.id, {_names(RECORD, "record")},
       {", ".join(f"{name}.record_id, {_names(fields, name)}" for name, fields in _BESIDE)}
  FROM json_each(?) AS chosen CROSS JOIN record ON record.id = chosen.value
       {" ".join(f"LEFT JOIN {name} ON {name}.record_id = record.id" for name, _ in _BESIDE)}
"""  # in the order of the ids; nothing is sorted, so no more than a row is held
_CHUNKS = """
SELECT hex(data) FROM blob_chunk WHERE blob_id = (SELECT blob_id FROM tool_result WHERE record_id = ?) ORDER BY start
"""
_REFERENCES = """
SELECT source_id, target_layer, target_key FROM record_reference
 WHERE source_id IN (SELECT value FROM json_each(?)) AND +user_id = ? ORDER BY source_id, position
"""


def stored(connection: sqlite3.Connection, user_id: str, ids: Iterable[int]) -> Iterator[Stored]:
    """Yield records of a user in the order of the ids, one at a time in memory.

    Args:
        connection: reads text leniently: bytes that are no UTF-8 come as surrogates.
    """
    chosen = json.dumps(list(ids))
    references: dict[int, References] = {}
    for source_id, layer, key in connection.execute(_REFERENCES, (chosen, user_id)):
        references.setdefault(source_id, []).append((layer, key))
    for row in connection.execute(_ROWS, (chosen,)):
        at = 1 + len(RECORD)
        beside: dict[str, Row] = {}
        for name, fields in _BESIDE:
            if row[at] is not None:
                beside[name] = row[at + 1 : at + 1 + len(fields)]
            at += 1 + len(fields)
        recalled = beside.pop("recall", None)
        yield Stored(row[0], row[1 : 1 + len(RECORD)], references.get(row[0], []), recalled, beside)


def said_record(found: Stored, payloads: Container[str]) -> dict[str, Any]:
    """Return a record as a line's fields.

    Args:
        payloads: the hashes of the payloads that there are.

    Raises:
        SerializationError: a column of it, or of what belongs to it, holds what it should not.
    """
    line = {"kind": "record", **say(RECORD, found.columns)}
    layer = line["layer"]
    try:
        check_identity(layer, line["session_id"], line["key"])
        for words in _WORDS:
            check_words(found.columns[words], RECORD[words].name)
        for target in found.references:
            check_identity(target[0], "", target[1])
    except ValueError as error:
        raise SerializationError(str(error)) from error
    _check_own(layer, found.own)
    if found.references:
        line["references"] = [{"layer": target, "key": key} for target, key in found.references]
    if found.recall is not None:
        line["recall"] = say(RECALL, found.recall)
    for name, columns in found.own.items():
        line[name] = say(OWN_FIELDS[name], columns)
        check_payload(line[name], payloads)
    return line


def check_payload(fields: Mapping[str, Any], payloads: Container[str]) -> None:
    """Refuse what refers to a payload that is not there.

    Raises:
        SerializationError: it does.
    """
    if "payload" in fields and fields["payload"] not in payloads:
        raise SerializationError("its payload is not as it was stored")


def _check_own(layer: str, there: dict[str, Row]) -> None:
    """Refuse a record that no layer of this memdb would make: the reader of its line would refuse it, too."""
    if layer not in LAYERS:
        raise SerializationError(f"its layer is {layer[:40]!r}, which this memdb does not know")
    names = {own.table.name for own in LAYERS[layer]}
    if missing := [own.table.name for own in LAYERS[layer] if own.always and own.table.name not in there]:
        raise SerializationError(f"the record has no row in `{missing[0]}`")
    if others := there.keys() - names:
        raise SerializationError(f"the record has a row in `{min(others)}`, which is of another layer")


# -- sessions and the quarantine --------------------------------------------------------------------------------------

_SESSIONS = f"""
SELECT {_names(SESSION, "session")},
       CASE WHEN consolidated_id THEN coalesce(
         (SELECT key FROM record
           WHERE id = consolidated_id AND id NOT IN (SELECT value FROM json_each(:unreadable))
             AND (user_id, layer, session_id) = (session.user_id, 'message', session.session_id)),
         (SELECT key FROM record
           WHERE id <= consolidated_id AND id NOT IN (SELECT value FROM json_each(:unreadable))
             AND (user_id, layer, session_id) = (session.user_id, 'message', session.session_id)
           ORDER BY key DESC LIMIT 1)) END
  FROM session WHERE {{whose}} ORDER BY session_id
"""  # a cursor at a message that is no longer there means the last one before it, as memdb.layers.cursor has it
_QUARANTINE = f"""
SELECT {_names(QUARANTINE, "quarantine")} FROM quarantine WHERE {{whose}} ORDER BY id
"""


def of_user(connection: sqlite3.Connection, query: str, whose: Whose, **more: Any) -> sqlite3.Cursor:
    """Run a query whose `{whose}` stands for the condition that a row is one of these."""
    values = {"user_id": whose.user_id, "session_id": whose.session_id, **more}
    return connection.execute(query.format(whose=whose.condition), values)


def sessions(
    connection: sqlite3.Connection, whose: Whose, *, unreadable: Iterable[int] = ()
) -> Iterator[tuple[Row, str | None]]:
    """Yield what is kept of sessions: the columns of SESSION, and the key of the last consolidated message.

    Args:
        unreadable: the numbers of records that count as not there.
    """
    without = json.dumps(list(unreadable))
    for row in of_user(connection, _SESSIONS, whose, unreadable=without):
        yield row[:-1], row[-1]


def said_session(columns: Row, consolidated: str | None) -> dict[str, Any]:
    """Return a session as a line's fields.

    Raises:
        SerializationError: a column holds what it should not.
    """
    line = {"kind": "session", **say(SESSION, columns)}
    try:
        check_id(line["session_id"], "session_id")
        if consolidated is not None:
            check_identity("message", "", consolidated)
            line["consolidated"] = {"layer": "message", "key": consolidated}
    except ValueError as error:
        raise SerializationError(str(error)) from error
    return line


def aside(connection: sqlite3.Connection, whose: Whose) -> Iterator[Row]:
    """Yield the columns QUARANTINE of what has been set aside, in the order in which it was."""
    yield from of_user(connection, _QUARANTINE, whose)


# -- what cannot be read ----------------------------------------------------------------------------------------------


def raw_record(connection: sqlite3.Connection, found: Stored) -> str:
    """Return every column of a record and of what belongs to it as JSON, with their bytes in hexadecimal."""
    raw: dict[str, Any] = raw_row(connection, record, "id", found.id)
    for table in (recall, *(own.table for own in OWN)):
        if columns := raw_row(connection, table, "record_id", found.id):
            raw[table.name] = columns
            if "blob_id" in columns:
                raw["payload"] = [text for (text,) in connection.execute(_CHUNKS, (found.id,))]
    if found.references:
        raw["references"] = [[_hex(layer), _hex(key)] for layer, key in found.references]
    return json.dumps(raw)


def raw_columns(fields: Sequence[Field], columns: Row) -> str:
    """Return a row's columns as JSON, with their bytes in hexadecimal."""
    return json.dumps({field.name: _hex(value) for field, value in zip(fields, columns, strict=True)})


def raw_row(connection: sqlite3.Connection, table: Table, key: str, record_id: int) -> dict[str, str]:
    """Return the columns of the row with a number, with their bytes in hexadecimal; {} where there is none."""
    names = [column.name for column in table.c if not column.name.endswith("_seg")]
    hexes = ", ".join(f"hex({name})" for name in names)
    found = connection.execute(f"SELECT {hexes} FROM {table.name} WHERE {key} = ?", (record_id,)).fetchone()
    return {} if found is None else dict(zip(names, found, strict=True))


def _hex(value: Any) -> str:
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return "" if value is None else raw.hex().upper()
