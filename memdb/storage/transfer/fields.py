"""A column of a row as a field of a line, and back."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import sys
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CheckConstraint, Column, Float, Integer, Table, Text

from memdb.errors import InvalidInput, SerializationError
from memdb.storage.clock import from_text
from memdb.text.check import check_text, is_valid
from memdb.text.json_text import to_exact_json
from memdb.text.shown import shown

MAX_DEPTH = 100  # of JSON that is embedded as a value: a line with deeper nesting may be beyond a reader
REQUIRED = object()

_INT64 = 2**63
_INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Field:
    """A column as a field of a line.

    Args:
        name: the column's, and the field's.
        kind: "text", "time", "json", "integer" or "real".
        default: what stands for it where a line leaves it out.
        payload: whether the column is the number of a payload, of which the field says the hash.
        allows: whether the table's own rule allows a value; None where it has none.
    """

    name: str
    kind: str
    default: Any
    payload: bool = False
    allows: Callable[[Any], bool] | None = None

    @property
    def column(self) -> str:
        """The column's name."""
        return "blob_id" if self.payload else self.name

    def read_of(self, table: str) -> str:
        """Return SQL for the field's value in a row of a table."""
        if self.payload:
            return f"(SELECT hash FROM blob WHERE (blob.id, blob.user_id) = ({table}.blob_id, {table}.user_id))"
        return f"{table}.{self.name}"

    @property
    def optional(self) -> bool:
        """Whether the column may be NULL."""
        return self.default is None

    def said(self, value: Any) -> tuple[str, Any]:
        """Return the name and value of the field for a column that is not NULL.

        Raises:
            SerializationError: the column holds what it should not, or what JSON cannot say.
        """
        if self.kind == "json":
            return self._said_json(value)
        if not (self.kind == "text" and isinstance(value, str) and is_valid(value)):
            try:
                self._check(value)
            except (InvalidInput, SerializationError) as error:
                raise SerializationError(f"the column {error}") from error
        if self.allows is not None and not self.allows(value):
            raise SerializationError(f"the column {self.name} holds {shown(value)}, which its table does not allow")
        if self.kind == "real" and math.isinf(value):
            return self.name, "Infinity" if value > 0 else "-Infinity"
        return self.name, value

    def _said_json(self, text: Any) -> tuple[str, Any]:
        if text == "{}" or text == "[]":
            return self.name, {} if text == "{}" else []
        if not isinstance(text, str) or not is_valid(text):
            raise SerializationError(f"the column {self.name} holds no text")
        try:
            value = json.loads(text)
            exact = to_exact_json(value) == text and _is_shallow(value, text)
        except (ValueError, RecursionError):
            exact = False
        if exact:
            return self.name, value
        if not _is_json(text):
            raise SerializationError(f"the column {self.name} holds broken JSON")
        return f"{self.name}_text", text

    def understood(self, fields: dict[str, Any]) -> Any:
        """Take the field out of a line's and return what the column is to hold.

        Raises:
            InvalidInput: it is missing, or not what it must be.
        """
        as_text = f"{self.name}_text"
        if self.name in fields:
            value = fields.pop(self.name)
            if self.kind == "json":  # where null is a value: NULL is left out
                return self._as_column(value)
            if self.kind == "text" and isinstance(value, str) and is_valid(value):
                return value
            value = _INFINITE.get(value, value) if self.kind == "real" and isinstance(value, str) else value
        elif self.kind == "json" and as_text in fields:
            text = check_text(fields.pop(as_text), as_text, max_chars=sys.maxsize)
            if not _is_json(text):
                raise InvalidInput(f"the field {as_text} holds no JSON")
            return text
        else:
            value = self.default
        if value is REQUIRED:
            raise InvalidInput(f"the field {self.name} is missing")
        if value is not None or not self.optional:
            try:
                self._check(value)
            except SerializationError as error:
                raise InvalidInput(f"the field {self.name}: {error}") from error
        return float(value) if self.kind == "real" and value is not None else value

    def _as_column(self, value: Any) -> str:
        try:
            return to_exact_json(value)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"the field {self.name} holds what JSON cannot say ({error})") from error

    def _check(self, value: Any) -> None:
        if self.kind == "integer":
            if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
                raise InvalidInput(f"{self.name} must be a whole number of 64 bits, not {shown(value)}")
        elif self.kind == "real":
            number = isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)
            if isinstance(value, bool) or not number or value != value:
                raise InvalidInput(f"{self.name} must be a number, not {shown(value)}")
        else:
            check_text(value, self.name, max_chars=sys.maxsize)
            if self.kind == "time":
                from_text(value)


def as_line(fields: Mapping[str, Any]) -> bytes:
    """Return a line of the file."""
    return f"{to_exact_json(fields)}\n".encode()


def _is_json(text: str) -> bool:
    """Return what SQLite says, whose rule a column obeys."""
    with closing(sqlite3.connect(":memory:")) as connection:
        return bool(connection.execute("SELECT json_valid(?)", (text,)).fetchone()[0])


def _is_shallow(value: Any, text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return True
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        level, depth = [node for nodes in inner for node in nodes], depth + 1
    return not level


def fields_of(table: Table, *without: str) -> tuple[Field, ...]:
    """Return the fields of a table, in the order of its columns."""
    checks = [str(rule.sqltext) for rule in table.constraints if isinstance(rule, CheckConstraint)]
    return tuple(_field(column, checks) for column in table.c if column.name not in without)


def _field(column: Column[Any], checks: Iterable[str]) -> Field:
    if column.name == "blob_id":
        return Field("payload", "text", REQUIRED, payload=True)
    if any(f"json_valid({column.name})" in check for check in checks):
        kind = "json"
    elif column.name.endswith("_at"):
        kind = "time"
    else:
        kind = {Text: "text", Integer: "integer", Float: "real"}[type(column.type)]
    default: Any = None if column.nullable else REQUIRED
    if column.server_default is not None:
        text = str(column.server_default.arg).strip("'")  # type: ignore[attr-defined]
        default = {"integer": int, "real": float}.get(kind, str)(text)
    rules = (allowed for check in checks if (allowed := _allowed(column.name, check)) is not None)
    return Field(column.name, kind, default, allows=next(rules, None))


def _allowed(column: str, check: str) -> Callable[[Any], bool] | None:
    """Return a table's rule as a function, if it is one of a column's own values: a list, a range, a least value.

    SQLite obeys it at each write, but for a shell that has set ignore_check_constraints.
    """
    found = re.fullmatch(rf"{column} (IN|BETWEEN|>=|>) (.+)", check)
    if found is None:
        return None
    how, (least, *most) = found[1], [literal_eval(value) for value in found[2].split(" AND ")]
    return {
        "IN": lambda value: value in least,
        "BETWEEN": lambda value: least <= value <= most[0],
        ">=": lambda value: value >= least,
        ">": lambda value: value > least,
    }[how]


def say(fields: Sequence[Field], values: Sequence[Any]) -> dict[str, Any]:
    """Return a row's columns as a line's fields.

    Raises:
        SerializationError: a column holds what it should not.
    """
    said: dict[str, Any] = {}
    for field, value in zip(fields, values, strict=True):
        if value is not None:
            name, said_value = field.said(value)
            said[name] = said_value
        elif not field.optional:
            raise SerializationError(f"the column {field.name} is empty")
    return said


def understand(fields: Sequence[Field], line: dict[str, Any]) -> tuple[Any, ...]:
    """Take a row's columns out of a line's fields; return their values in order.

    Raises:
        InvalidInput: a field is missing, or not what it must be.
    """
    return tuple(field.understood(line) for field in fields)
