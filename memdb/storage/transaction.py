"""What a unit is given: one transaction, and the few ways to run a statement in it."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from sqlalchemy.sql.base import Executable

from memdb.errors import Closed, InvalidInput, StorageError
from memdb.storage.connection import Connection, lenient_text
from memdb.storage.statement import InsertRows, Statement

if TYPE_CHECKING:
    from memdb.storage.clock import Clock
    from memdb.storage.quarantine import Damage
    from memdb.storage.recalls import Recalled

Row = tuple[Any, ...]
Params = Mapping[str, Any] | Sequence[Any]

MAX_KEPT = 50_000
# How many of SQLite's instructions pass between two looks at the clock: some 10 ms. Each look takes Python's lock, for
# which a thread that computes lets others wait 5 ms.
DEADLINE_STEPS = 200_000
_CONTROL = re.compile(  # possessive: a pattern that backtracks over comments would take for ever
    r"(?>[\s;\ufeff]++|--[^\n]*+\n|/\*(?>[^*]|\*(?!/))*+\*/)*+"
    r"(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|ATTACH|DETACH|VACUUM|PRAGMA\s+query_only)\b",
    re.I | re.S,
)
_LAZY = (CoroutineType, GeneratorType, AsyncGeneratorType)


_thread = threading.local()


def inside_unit() -> bool:
    """Whether this thread runs a unit."""
    return getattr(_thread, "units", 0) > 0


def run_unit(unit: Callable[..., Any], tx: Transaction, *args: Any) -> Any:
    """Run `unit(tx, *args)` and return its value; the transaction is of no use afterwards.

    Raises:
        InvalidInput: the unit is a coroutine or a generator, which would run outside its transaction.
    """
    _thread.units = getattr(_thread, "units", 0) + 1
    try:
        value = unit(tx, *args)
        if isinstance(value, _LAZY):
            if not isinstance(value, AsyncGeneratorType):
                value.close()
            raise InvalidInput(
                "a unit must be a plain function: it runs inside a transaction, so it cannot await or yield"
            )
        return value
    finally:
        _thread.units -= 1
        tx.end()


@contextmanager
def lenient(connection: sqlite3.Connection, tx: Transaction) -> Iterator[None]:
    """Let a transaction read text that is no UTF-8, as surrogates, so that a layer can tell which row it is."""
    connection.text_factory = lenient_text
    tx.lenient = True
    try:
        yield
    finally:
        connection.text_factory = str


class Transaction:
    """One transaction on one connection, valid while its unit runs.

    Args:
        connection: the driver's connection, inside a transaction.
        clock: the handle's clock.
        writing: whether this transaction may write.
        keeps: whether things may be kept on the connection until the file is written to; not on one that writes itself.
        counts: whether recalls are counted; not on a handle that only reads.
        single: whether there is no transaction, because one statement is all that is run.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        *,
        writing: bool,
        keeps: bool = False,
        counts: bool = True,
        single: bool = False,
    ) -> None:
        self._connection: sqlite3.Connection | None = connection
        self.writing = writing
        self._keeps = keeps
        self._single = single
        self._clock = clock
        self.counts = counts
        self.damaged: dict[Hashable, Damage] = {}  # by record id or name: these rows go to the quarantine
        self.recalled: list[Recalled] = []  # counted when this read is over
        self.lenient = False  # text that is no UTF-8 comes with surrogates instead of failing the statement

    @cached_property
    def now(self) -> str:
        """The time of this unit in the stored text form, the same for all it writes."""
        return self._clock.text()

    @contextmanager
    def dated(self, at: str) -> Iterator[None]:
        """Let what is written in the block bear this time, unless it lies ahead: an import keeps times."""
        present = self.now
        self.now = min(at, present)
        try:
            yield
        finally:
            self.now = present

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Undo what the block wrote when it raises; what the unit wrote before it stays."""
        self.rows("SAVEPOINT block")
        try:
            yield
        except BaseException:
            if self._connection is not None and self._connection.in_transaction:
                self.rows("ROLLBACK TO block")
                self.rows("RELEASE block")
            raise
        self.rows("RELEASE block")

    def end(self) -> None:
        """Take the connection away: what keeps this object beyond its unit must not reach a stranger's transaction."""
        self._connection = None

    def _run(self, sql: str, params: Params) -> sqlite3.Cursor:
        connection = self._connection
        if connection is None:
            raise Closed("this transaction is over: use it only inside the unit it was given to")
        if self._single:
            self._single = False  # a second statement would see another state of the file: it is refused below
        elif not connection.in_transaction:
            # INSERT OR ROLLBACK, a full disk: alone, a statement would commit by itself.
            raise StorageError("the unit's transaction was rolled back while it ran; nothing of it is stored")
        try:
            return connection.execute(sql, params)
        except OverflowError as error:
            raise InvalidInput(f"an integer does not fit in 64 bits ({error})") from error
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"a text holds a lone surrogate at position {error.start}; it is not valid text"
            ) from error

    @property
    def keeper(self) -> Connection | None:
        """The connection, for what is kept beyond this transaction; None where nothing may be kept."""
        connection = self._connection
        return connection if self._keeps and not self.writing and isinstance(connection, Connection) else None

    def kept(self, name: str) -> dict[str, Any]:
        """Return the dictionary `name` that lives until the file is written to; a new one where that is unsure.

        It may hold MAX_KEPT entries and is emptied beyond.
        """
        connection = self._connection
        if not self._keeps or not isinstance(connection, Connection):
            return {}
        # Equal for two transactions of a connection when no other has written to the file in between.
        version = self.rows("PRAGMA data_version")[0][0]
        if connection.kept_for != version:
            connection.kept_for, connection.kept = version, {}
        kept = connection.kept.setdefault(name, {})
        if len(kept) > MAX_KEPT:
            kept.clear()
        return kept

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Interrupt what the block reads once `seconds` are over. The transaction goes on; deadlines do not nest.

        Statements that write do not belong into the block: one that is interrupted undoes the whole transaction.

        Raises:
            TimeoutError: a statement of the block was interrupted for this.
        """
        connection = self._connection
        if connection is None:
            raise Closed("this transaction is over: use it only inside the unit it was given to")
        end = time.monotonic() + seconds
        over = False

        def look() -> bool:
            nonlocal over
            over = time.monotonic() >= end
            return over

        connection.set_progress_handler(look, DEADLINE_STEPS)
        try:
            yield
        except sqlite3.OperationalError as error:
            if over and getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
                raise TimeoutError(f"a statement took longer than {seconds:g} seconds") from error
            raise
        finally:
            connection.set_progress_handler(None, 0)

    def execute(self, statement: str | Executable | Statement, params: Params = ()) -> list[Row]:
        """Run a statement of your own and return all its rows.

        Args:
            statement: SQL text with :name or ? parameters, a SQLAlchemy Core expression, or a Statement.
            params: the values, by name or in order.

        Raises:
            InvalidInput: the statement would begin or end a transaction; a unit is one already.
        """
        if isinstance(statement, Executable):
            statement = Statement(statement)
        sql = statement.sql if isinstance(statement, Statement) else statement
        if control := _CONTROL.match(sql):
            raise InvalidInput(f"a unit is one transaction already; leave out {control.group(1).upper()}")
        if isinstance(statement, Statement):
            params = statement.bind(dict(params))
        try:
            return self._run(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR":  # of your statement, not of the file
                raise InvalidInput(f"SQLite refused the statement: {error}") from error
            raise

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Run SQL text of the library and return all its rows."""
        return self._run(sql, params).fetchall()

    def all(self, statement: Statement, **params: Any) -> list[Row]:
        """Run a statement of the library and return all its rows."""
        return self._run(statement.sql, statement.bind(params)).fetchall()

    def one(self, statement: Statement, **params: Any) -> Row | None:
        """Run a statement and return its first row, or None."""
        row: Row | None = self._run(statement.sql, statement.bind(params)).fetchone()
        return row

    def first(self, statement: Statement, values: Mapping[str, Any]) -> Row | None:
        """Run a statement with its parameters as one mapping and return its first row, or None."""
        row: Row | None = self._run(statement.sql, statement.bind(values)).fetchone()
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

    def insert(self, statement: InsertRows, row: Mapping[str, Any]) -> int:
        """Run an INSERT for one row and return how many it wrote."""
        return self._run(*statement.one(row)).rowcount

    def insert_new(self, statement: InsertRows, row: Mapping[str, Any]) -> int:
        """Run an INSERT for one row that nothing stands in the way of and return the row's number."""
        cursor = self._run(*statement.one(row))
        assert cursor.rowcount == 1
        return int(cursor.lastrowid or 0)

    def insert_many(self, statement: InsertRows, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run an INSERT for many rows, in their order."""
        if len(rows) == 1:
            self._run(*statement.one(rows[0]))
            return
        for sql, values in statement.many(rows):
            self._run(sql, values)
