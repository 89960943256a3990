"""The aiosqlite worker connections and their PRAGMAs, each with its reason, and the driver's errors by code."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import aiosqlite
from aiosqlite.core import _STOP_RUNNING_SENTINEL

from memdb.errors import Busy, Corrupt, InvalidInput, MemdbError, NotAMemdbFile, SerializationError, StorageError

if TYPE_CHECKING:
    from memdb.storage.postings.kept import KeptPostings

T = TypeVar("T")

STATEMENT_CACHE = 512  # prepared statements a connection keeps

# Set on every connection. Each row: the PRAGMA, its value, why.
COMMON_PRAGMAS = (
    ("foreign_keys", "ON", "per connection and off by default; children are still cleaned by triggers for the shell"),
    ("recursive_triggers", "ON", "else REPLACE skips the delete triggers and the index drifts"),
    ("temp_store", "MEMORY", "sorts are small; a full temp folder must not fail a read"),
    ("mmap_size", "0", "mapped I/O turns a truncated file into SIGBUS"),
    ("cell_size_check", "ON", "finds a damaged page before its content is used"),
)
WRITER_PRAGMAS = (
    ("cache_size", "-16384", "16 MB: the upper levels of the b-trees and the index's hot segments"),
    ("journal_size_limit", "67108864", "64 MB: a WAL grown by a long reader shrinks again"),
    ("secure_delete", "ON", "forget() promises that freed content is overwritten"),
)
READER_PRAGMAS = (
    ("cache_size", "-4096", "4 MB a reader, up to four: 8 find nothing sooner and take 17 MB more (a file of 1.2 GB)"),
    ("query_only", "ON", "a read unit that writes is a mistake, and is told so"),
)
SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}  # per connection, not stored; builds differ in their default


class WorkerConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs whole functions on its thread: one hop for a unit, not one a statement."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        # A daemon: a forgotten close must not hang the interpreter at exit.
        self._thread = Thread(target=_work, args=(self._tx,), daemon=True, name="memdb")

    @classmethod
    async def start(cls, connector: Callable[[], sqlite3.Connection]) -> Self:
        """Start the thread and connect on it. A cancelled caller leaves neither behind."""
        worker = cls(connector)
        worker._thread.start()
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        worker._tx.put_nowait((opened, worker._open))
        try:
            await opened
        except BaseException:
            worker.stop()  # queued behind the opening: it closes what that brings
            raise
        return worker

    def _open(self) -> None:
        self._connection = self._connector()

    def post(self, function: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Queue `function(connection)` for the thread and return the future of its result."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue(future, function)
        return future

    def post_and_tell(
        self, function: Callable[[sqlite3.Connection], object], land: Callable[[BaseException | None], None]
    ) -> None:
        """Queue `function(connection)`; then `land` is called on the event loop, with what it raised or None."""
        self._queue(Landing(asyncio.get_running_loop(), land), function)

    def _queue(self, told: asyncio.Future[T] | Landing, function: Callable[[sqlite3.Connection], object]) -> None:
        if not self._running or self._connection is None:
            raise ValueError("connection closed")
        self._tx.put_nowait((told, partial(function, self._connection)))  # type: ignore[arg-type]

    def cancel_statement(self) -> None:
        """Interrupt what the thread is running."""
        if self._connection is not None:
            with suppress(sqlite3.ProgrammingError):  # its thread has just closed it
                self._connection.interrupt()

    def __del__(self) -> None:
        if self._connection is not None:  # a handle dropped unclosed: end the thread, say nothing, lose nothing
            self.stop()


class Landing(NamedTuple):
    """Takes a future's place where nobody awaits it: a plain call on its loop, a turn of the loop earlier.

    Args:
        loop: the loop that is told.
        land: is given what the function raised, or None.
    """

    loop: asyncio.AbstractEventLoop
    land: Callable[[BaseException | None], None]


class Connection(sqlite3.Connection):
    """The driver's connection, with room for what it keeps in memory of its file.

    Args:
        kept_for: the state of the file that `kept` holds for.
        kept: what holds as long as the file is not written to.
        has_searched: whether it was searched on.
        postings: see memdb.storage.postings.
    """

    kept_for: int | None = None
    kept: dict[str, dict[str, Any]] = {}
    has_searched = False
    postings: KeptPostings | None = None

    def close(self) -> None:
        """Close it and keep nothing: the driver's own cycles of references let it live on for a while."""
        self.kept, self.postings = {}, None
        super().close()


def _work(queue: SimpleQueue[tuple[asyncio.Future[Any] | Landing | None, Callable[[], Any]]]) -> None:
    """Run what is queued until told to stop, as aiosqlite's own thread does, but outlive a caller's event loop.

    A cancelled open or a loop closed early leaves futures that nobody can settle; aiosqlite's thread dies of them with
    a traceback.
    """
    while True:
        future, function = queue.get()
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:
            error = raised
        if future is not None:
            try:
                if isinstance(future, Landing):
                    future.loop.call_soon_threadsafe(future.land, error)
                else:
                    future.get_loop().call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:
                pass  # its loop is closed
        if result is _STOP_RUNNING_SENTINEL:
            return
        del future, function, result, error  # an idle thread keeps nothing alive


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(translate(error))


def connect(uri: str, pragmas: tuple[tuple[str, str, str], ...], *, timeout: float) -> sqlite3.Connection:
    """Open a connection with the driver's own transactions off: we say BEGIN and COMMIT.

    With them on, a first SAVEPOINT escapes the outer ROLLBACK and DDL is not transactional.

    Args:
        uri: a SQLite file URI.
        pragmas: rows of (name, value, reason), set in order.
        timeout: SQLite's busy timeout in seconds.
    """
    connection = sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        timeout=timeout,
        check_same_thread=False,
        cached_statements=STATEMENT_CACHE,
        factory=Connection,
    )
    try:
        for name, value, _ in pragmas:
            connection.execute(f"PRAGMA {name} = {value}")
        _provide_logarithms(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _provide_logarithms(connection: sqlite3.Connection) -> None:
    """Give the connection ln() and exp(), which some builds of SQLite lack."""
    try:
        connection.execute("SELECT ln(1), exp(1)").close()
    except sqlite3.OperationalError:
        connection.create_function("ln", 1, _ln, deterministic=True)
        connection.create_function("exp", 1, _exp, deterministic=True)


def _ln(value: object) -> float | None:
    return math.log(value) if isinstance(value, int | float) and value > 0 else None


def _exp(value: object) -> float | None:
    try:
        return math.exp(value) if isinstance(value, int | float) else None
    except OverflowError:
        return math.inf


def lenient_text(raw: bytes) -> str:
    """Decode a column whose bytes are no UTF-8, keeping them as surrogates for the quarantine."""
    return raw.decode("utf-8", "surrogateescape")


def is_undecodable(error: BaseException | None) -> bool:
    """Return whether the driver failed because a column's bytes are no UTF-8: it has no SQLite code then."""
    return isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorname", None) is None


# SQLite's error name (its beginning) -> our error and what to do. The first match counts; never the message's text.
_BY_CODE: tuple[tuple[str, type[MemdbError], str], ...] = (
    ("SQLITE_BUSY", Busy, "another connection holds the file; try again"),
    ("SQLITE_LOCKED", Busy, "another connection holds the table; try again"),
    ("SQLITE_NOTADB", NotAMemdbFile, "the file is not a SQLite database"),
    ("SQLITE_CORRUPT_VTAB", Corrupt, "the full-text index is damaged: run check(repair=True)"),
    ("SQLITE_CORRUPT", Corrupt, "the file is damaged: restore a backup, or salvage it with sqlite3 .recover"),
    ("SQLITE_FULL", StorageError, "the disk is full; nothing of this call was stored: free some space"),
    ("SQLITE_READONLY", StorageError, "the file cannot be written here; nothing was stored"),
    ("SQLITE_CANTOPEN", StorageError, "the file cannot be opened: check the path and its permissions"),
    ("SQLITE_PERM", StorageError, "the operating system refused access to the file"),
    ("SQLITE_AUTH", StorageError, "the operation is not allowed here"),
    ("SQLITE_IOERR", StorageError, "the disk failed to read or write; nothing of this call was stored"),
    ("SQLITE_INTERRUPT", StorageError, "the statement was interrupted"),
    ("SQLITE_NOMEM", StorageError, "SQLite ran out of memory"),
    ("SQLITE_SCHEMA", StorageError, "the schema changed under the statement; try again"),
    ("SQLITE_PROTOCOL", Busy, "the file's locks could not be had; try again"),
    ("SQLITE_TOOBIG", InvalidInput, "a value is larger than SQLite keeps (1 GB)"),
    ("SQLITE_CONSTRAINT", InvalidInput, "the row breaks a rule of its table"),
    ("SQLITE_MISMATCH", InvalidInput, "a value has the wrong type for its column"),
    ("SQLITE_RANGE", InvalidInput, "a parameter is missing or one too many"),
    ("SQLITE_ERROR", Corrupt, "the tables or the index are not as memdb made them: run check(repair=True)"),
)


def translate(error: BaseException) -> BaseException:
    """Return the error that a caller is given for one raised on a worker's thread.

    An error of the driver becomes one of ours; what asyncio takes for its own signals is wrapped; all else stays as it
    is.
    """
    if isinstance(error, StopIteration | asyncio.CancelledError):
        ours: BaseException = RuntimeError(f"the unit raised {type(error).__name__}")
    elif isinstance(error, sqlite3.Error):
        ours = _of_driver(error)
    else:
        return error
    ours.__cause__ = error
    return ours


def _of_driver(error: sqlite3.Error) -> MemdbError:
    name = getattr(error, "sqlite_errorname", None)
    for code, kind, advice in _BY_CODE:
        if name is not None and name.startswith(code):
            return kind(f"{advice} (SQLite: {error})")
    if is_undecodable(error):
        return SerializationError(f"a stored value is not valid text ({error})")
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return InvalidInput(f"the statement and its parameters do not fit ({error})")
    return StorageError(f"SQLite failed: {error}")


@contextmanager
def translated() -> Iterator[None]:
    """Turn a driver's error raised in the block into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error) from error
