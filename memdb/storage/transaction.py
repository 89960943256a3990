"""What a unit is given: one transaction, and the few ways to run a statement in it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy.sql.base import Executable

from memdb.errors import InvalidInput
from memdb.storage.connection import Connection
from memdb.storage.statement import Statement

if TYPE_CHECKING:
    from memdb.storage.clock import Clock

Row = tuple[Any, ...]
Params = Mapping[str, Any] | Sequence[Any]

MAX_KEPT = 50_000
_CONTROL = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|ATTACH|DETACH|VACUUM)\b", re.I | re.S
)


class Transaction:
    """One transaction on one connection, valid while its unit runs.

    Args:
        connection: the driver's connection, inside a transaction.
        clock: the handle's clock.
        writing: whether this transaction may write.
        snapshot: a number that is equal for two transactions of this connection when no other connection changed the
            file in between; None when nothing may be kept across transactions.
    """

    def __init__(
        self, connection: sqlite3.Connection, clock: Clock, *, writing: bool, snapshot: int | None = None
    ) -> None:
        self._run = connection.execute
        self._connection = connection
        self.writing = writing
        self._snapshot = snapshot
        self._clock = clock
        self.damaged: dict[int, str] = {}  # record id -> what is wrong: these rows go to the quarantine
        self.lenient = False  # text that is no UTF-8 comes with surrogates instead of failing the statement

    @cached_property
    def now(self) -> str:
        """The time of this unit in the stored text form, the same for all it writes."""
        return self._clock.text()

    def kept(self, name: str) -> dict[str, Any]:
        """Return the dictionary `name` that lives until the file is written to; a new one where that is unsure.

        It may hold MAX_KEPT entries and is emptied beyond.
        """
        connection = self._connection
        if self._snapshot is None or not isinstance(connection, Connection):
            return {}
        if connection.kept_for != self._snapshot:
            connection.kept_for, connection.kept = self._snapshot, {}
        kept = connection.kept.setdefault(name, {})
        if len(kept) > MAX_KEPT:
            kept.clear()
        return kept

    def execute(self, statement: str | Executable | Statement, params: Params = ()) -> list[Row]:
        """Run a statement of your own and return all its rows.

        Args:
            statement: SQL text with :name or ? parameters, a SQLAlchemy Core expression, or a Statement.
            params: the values, by name or in order.

        Raises:
            InvalidInput: the statement would begin or end a transaction; a unit is one already.
        """
        if isinstance(statement, Statement):
            return self.all(statement, **dict(params))
        if isinstance(statement, Executable):
            return self.all(Statement(statement), **dict(params))
        if control := _CONTROL.match(statement):
            raise InvalidInput(f"a unit is one transaction already; leave out {control.group(1).upper()}")
        return self._run(statement, params).fetchall()

    def all(self, statement: Statement, **params: Any) -> list[Row]:
        """Run a statement of the library and return all its rows."""
        return self._run(statement.sql, statement.bind(params)).fetchall()

    def one(self, statement: Statement, **params: Any) -> Row | None:
        """Run a statement and return its first row, or None."""
        row: Row | None = self._run(statement.sql, statement.bind(params)).fetchone()
        return row

    def value(self, statement: Statement, **params: Any) -> Any:
        """Run a statement and return the first column of its first row, or None."""
        row = self._run(statement.sql, statement.bind(params)).fetchone()
        return None if row is None else row[0]

    def run(self, statement: Statement, **params: Any) -> int:
        """Run a statement that writes and return how many rows it wrote."""
        return self._run(statement.sql, statement.bind(params)).rowcount

    def put(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Run a statement that writes with its parameters as one mapping and return how many rows it wrote."""
        return self._run(statement.sql, statement.bind(values)).rowcount
