"""Database: one open file, and everything that concerns it as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from memdb.errors import InvalidInput
from memdb.layers.layer import Live
from memdb.memory import Memory
from memdb.scope import DEFAULT_SESSION, DEFAULT_USER, Scope
from memdb.storage import inspect, sessions, upkeep
from memdb.storage.clock import Clock, utc_now
from memdb.storage.connection import SYNCHRONOUS
from memdb.storage.engine import Engine
from memdb.storage.inspect import CheckReport
from memdb.storage.opening import BUSY_TIMEOUT_S, Options
from memdb.storage.sessions import SessionInfo
from memdb.storage.source import database_path
from memdb.storage.upkeep import Stats
from memdb.text.check import check_callable, check_flag, check_id
from memdb.text.shown import shown

if TYPE_CHECKING:
    from memdb.protocols import Embedder
    from memdb.retrieval.meaning.service import EmbeddingService

R = TypeVar("R")

MAX_READERS = 64


def open(
    path: str | os.PathLike[str],
    *,
    durability: str = "full",
    read_only: bool = False,
    create: bool = True,
    migrate: bool = True,
    readers: int = 4,
    busy_timeout: float = BUSY_TIMEOUT_S,
    embedder: Embedder | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Database:
    """Return a database to be opened with `async with` (or `await`).

    Args:
        path: the file, or ":memory:" for one that lives as long as the handle. A missing file is made.
        durability: "full": what a returned write stored survives a power cut. "normal": it survives a crash of the
            program; a power cut may take the last writes, never the file.
        read_only: open for looking only; nothing is made, migrated or locked.
        create: whether a missing file is made.
        migrate: whether a file of an older memdb is migrated.
        readers: how many reads run at once, 1 to 64.
        busy_timeout: how long to wait for another process, in seconds.
        embedder: turns texts into vectors, so that `memory.hybrid` also finds by meaning (memdb.protocols.Embedder).
        clock: returns the present time with its zone; for tests.

    Raises:
        InvalidInput: an option or the path is not what it must be. What concerns the file itself is raised on opening.
    """
    if not isinstance(durability, str) or durability not in SYNCHRONOUS:
        raise InvalidInput(f"durability must be 'full' or 'normal', not {shown(durability)}")
    if isinstance(readers, bool) or not isinstance(readers, int) or not 1 <= readers <= MAX_READERS:
        raise InvalidInput(f"readers must be a whole number from 1 to {MAX_READERS}, not {shown(readers)}")
    if not isinstance(busy_timeout, int | float) or not 0 <= busy_timeout <= 3600:
        raise InvalidInput(f"busy_timeout must be 0 to 3600 seconds, not {shown(busy_timeout)}")
    for name, flag in (("read_only", read_only), ("create", create), ("migrate", migrate)):
        check_flag(flag, name)
    if not callable(clock):
        raise InvalidInput(f"clock must be a function that returns an aware datetime, not {shown(clock)}")
    if isinstance(path, str) and path == ":memory:" and read_only:
        raise InvalidInput("':memory:' is empty and only its own handle can fill it; open it without read_only")
    if embedder is not None:
        from memdb.retrieval.meaning.embedders import check_embedder

        check_embedder(embedder)
    options = Options(durability, read_only, create, migrate, readers, float(busy_timeout))
    return Database(path, options, Clock(clock), embedder)


class Database:
    """One memdb file. Made by memdb.open(); it belongs to one event loop of one process."""

    def __init__(
        self, path: str | os.PathLike[str], options: Options, clock: Clock, embedder: Embedder | None = None
    ) -> None:
        self._path = path
        self._options = options
        self._clock = clock
        self._embedder = embedder
        self._engine: Engine | None = None
        self._embeddings: EmbeddingService | None = None

    async def __aenter__(self) -> Self:
        if self._engine is not None:
            raise InvalidInput("this database was opened already; call memdb.open() for another handle")
        engine = Engine(database_path(self._path), self._options, self._clock)
        await engine.open()
        self._engine = engine
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def close(self) -> None:
        """Finish what is under way and close. Calling it again does nothing."""
        if self._embeddings is not None:
            await self._embeddings.stop()
        if self._engine is not None:
            await self._engine.close()

    @property
    def engine(self) -> Engine:
        """The open engine.

        Raises:
            InvalidInput: the database was never opened.
        """
        if self._engine is None:
            raise InvalidInput("the database is not open yet: use `async with memdb.open(path) as db:`")
        return self._engine

    @property
    def path(self) -> str:
        """The file's absolute path, or ":memory:"."""
        return str(database_path(self._path) or ":memory:")

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that was given to memdb.open()."""
        return self._embedder

    @property
    def embeddings(self) -> EmbeddingService:
        """What embeds the records: its progress, and start() for a program that wants it to go on by itself."""
        return self._embedding_service()

    def _embedding_service(self) -> EmbeddingService:
        if self._embeddings is None:
            from memdb.retrieval.meaning.service import EmbeddingService

            self._embeddings = EmbeddingService(self)
        return self._embeddings

    def memory(self, user_id: str = DEFAULT_USER, session_id: str = DEFAULT_SESSION) -> Memory[Live]:
        """Return the memory of one user and session, every layer of it. No I/O.

        Raises:
            InvalidInput: an id is empty, too long, or no valid text.
        """
        return Memory(Scope(user_id, session_id), self.engine, self._embedding_service)

    async def write(self, unit: Callable[..., R], *args: Any) -> R:
        """Run `unit(tx, *args)` as one atomic act and return its value once it is on disk.

        Args:
            unit: a plain function; tx.execute(statement, params) returns rows. It awaits nothing and may be run more
                than once.
        """
        return await self.engine.write(check_callable(unit), *args)

    async def read(self, unit: Callable[..., R], *args: Any) -> R:
        """Run `unit(tx, *args)` in one snapshot, on a connection that cannot write, and return its value."""
        return await self.engine.read(check_callable(unit), *args)

    async def check(self, repair: bool = False) -> CheckReport:
        """Check the file, its rows and its index; the work grows with the file.

        Args:
            repair: mend what can be mended without losing anything: the index, tags, counters, triggers and views.

        Returns:
            A report: ok, and a sentence for each problem.
        """
        check_flag(repair, "repair")
        if self._options.read_only:
            return await self.engine.aside(partial(inspect.check, repair=False, writable=False))
        return await self.engine.maintain(partial(inspect.check, repair=repair, writable=True))

    async def backup(self, target: str | os.PathLike[str]) -> None:
        """Write a copy of the file while others go on writing. The copy is whole or not there.

        Args:
            target: the copy's path; an older copy there is replaced.

        Raises:
            InvalidInput: the target is the database itself, a folder, or ":memory:".
            AlreadyExists: another kind of file is there, or a copy that is open.
        """
        engine = self.engine
        await engine.aside(lambda connection: upkeep.copy_to(connection, engine.path, target))

    async def stats(self) -> Stats:
        """Return counts and bytes by layer and user. The cost does not grow with the file."""
        return await self.engine.read(upkeep.stats)

    async def sessions(self, user_id: str = DEFAULT_USER) -> list[SessionInfo]:
        """Return a user's sessions, the most recently used first, ties by id."""
        return await self.engine.read(sessions.list_sessions, check_id(user_id, "user_id"))

    async def delete_session(self, session_id: str, user_id: str = DEFAULT_USER) -> dict[str, int]:
        """Delete what a session holds in every layer that lives by session, and what is known of it.

        Its text is gone for readers; `forget` is what also overwrites freed pages.

        Returns:
            How many records went, by layer; empty when there was nothing.
        """
        return await self.engine.write(
            sessions.delete_session, check_id(user_id, "user_id"), check_id(session_id, "session_id")
        )

    async def forget(self, user_id: str) -> dict[str, int]:
        """Delete every row of a user in every layer, index, statistic and the quarantine.

        Freed pages are overwritten, the index is rewritten and the log emptied, so that the text is not left in the
        file, but for what SQLite may have moved into a page's unused space, until a VACUUM. Backups and files on other
        machines are not reached.

        Returns:
            How many records went, by layer; empty when there was nothing.

        Raises:
            Busy: the records are gone, but a reader still holds the log and with it their text; call again later.
        """
        counts = await self.engine.write(upkeep.forget, check_id(user_id, "user_id"))
        # Also when there was nothing: what was deleted before is in the index's old segments and in the log.
        await self.engine.maintain(upkeep.overwrite_forgotten)
        return counts
