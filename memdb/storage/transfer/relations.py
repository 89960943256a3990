"""The relations of an export: read with the keys of their ends, found by them again, stored a page at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memdb.errors import InvalidInput, SerializationError
from memdb.storage.schema import relation
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.fields import say
from memdb.storage.transfer.form import RELATION, check_relation
from memdb.storage.transfer.rows import Row, Whose, of_user, raw_row

_IDS = "SELECT id FROM relation WHERE {whose} ORDER BY +id"


def _end(name: str, key: str, user: str) -> str:
    return f"""LEFT JOIN record AS {name}
       ON (+{name}.user_id, +{name}.layer, +{name}.session_id) = ({user}, 'entity', '') AND {name}.id = {key}"""


_ROWS = f"""
SELECT relation.id, relation.source_id, relation.target_id,
       source.key, target.key, {", ".join(f"relation.{field.name}" for field in RELATION[2:])}
  FROM json_each(?) AS chosen CROSS JOIN relation ON relation.id = chosen.value
       {_end("source", "relation.source_id", "relation.user_id")}
       {_end("target", "relation.target_id", "relation.user_id")}
"""


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation as it is stored.

    Args:
        id: its number.
        ends: the numbers of its source and its target.
        columns: those of RELATION; None for the key of an end that is no entity of the user.
    """

    id: int
    ends: tuple[Any, Any]
    columns: Row


def relation_ids(connection: sqlite3.Connection, whose: Whose) -> sqlite3.Cursor:
    """Return the numbers of a user's relations, in the order in which they were stored."""
    return of_user(connection, _IDS, Whose(whose.user_id))


def stored_relations(connection: sqlite3.Connection, ids: Iterable[int]) -> Iterator[StoredRelation]:
    """Yield relations in the order of the ids."""
    for row in connection.execute(_ROWS, (json.dumps(list(ids)),)):
        yield StoredRelation(row[0], (row[1], row[2]), row[3:])


def said_relation(found: StoredRelation, unreadable: set[int]) -> dict[str, Any]:
    """Return a relation as a line's fields.

    Args:
        unreadable: the numbers of records that count as not there.

    Raises:
        SerializationError: it joins no two entities that can be read, or a column holds what it should not.
    """
    for side, key, number in zip(("source", "target"), found.columns, found.ends, strict=False):
        if key is None or number in unreadable:
            raise SerializationError(f"its {side} is no entity that can be read")
    line = {"kind": "relation", **say(RELATION, found.columns)}
    try:
        check_relation(*found.columns[:2])
    except InvalidInput as error:
        raise SerializationError(str(error)) from error
    return line


def raw_relation(connection: sqlite3.Connection, found: StoredRelation) -> str:
    """Return every column of a relation as JSON, with its bytes in hexadecimal."""
    return json.dumps(raw_row(connection, relation, "id", found.id))


# -- storing ----------------------------------------------------------------------------------------------------------


def _given(name: str, at: int) -> str:
    return f"""LEFT JOIN record AS {name} ON ({name}.user_id, {name}.layer, {name}.session_id, {name}.key)
       = (:user_id, 'entity', '', json_extract(given.value, '$[{at}]'))"""


_MEET = f"""
SELECT source.id, target.id, relation.id, {", ".join(f"relation.{field.name}" for field in RELATION[3:])}
  FROM json_each(:given) AS given
       {_given("source", 0)}
       {_given("target", 1)}
       LEFT JOIN relation ON (relation.user_id, relation.source_id, relation.target_id, relation.relation_type)
       = (:user_id, source.id, target.id, json_extract(given.value, '$[2]'))
"""  # in the order given
_WRITTEN = ("user_id", "source_id", "target_id", *(field.name for field in RELATION[2:]))
_PUT = f"INSERT INTO relation ({', '.join(_WRITTEN)}) VALUES "
_PUT_ROW = f"({', '.join('?' * len(_WRITTEN))})"
_PUT_OVER = f""" ON CONFLICT (user_id, source_id, target_id, relation_type) DO UPDATE
  SET {", ".join(f"{field.name} = excluded.{field.name}" for field in RELATION[3:])}"""


class Relations:
    """The relations of a user, inside a write transaction.

    Args:
        connection: reads text leniently.
        user_id: whose relations.
    """

    def __init__(self, connection: sqlite3.Connection, user_id: str) -> None:
        self._connection = connection
        self._user_id = user_id

    def meet(self, entries: list[Entry]) -> list[Row]:
        """Return for each the numbers of its source, its target and itself, each None where it is not there, and what
        is there beside its identity."""
        given = json.dumps([entry.identity for entry in entries], ensure_ascii=False)
        return self._connection.execute(_MEET, {"given": given, "user_id": self._user_id}).fetchall()

    def put(self, entries: list[tuple[Entry, Row]]) -> None:
        """Store relations, each with what `meet` said of it; one that is there is replaced.

        Raises:
            InvalidInput: an entity that it joins is not there.
        """
        values: list[Any] = []
        for entry, (source, target, *_) in entries:
            for side, number, key in (("source", source, entry.columns[0]), ("target", target, entry.columns[1])):
                if number is None:
                    raise InvalidInput(f"the {side} of the relation, the entity {key[:40]!r}, is not there")
            values += (self._user_id, source, target, *entry.columns[2:])
        if values:
            self._connection.execute(f"{_PUT}{', '.join([_PUT_ROW] * len(entries))}{_PUT_OVER}", values)
