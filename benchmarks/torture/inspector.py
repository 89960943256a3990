"""Processes beside the workers: copies of the file held against the journals, and what other programs do to a file."""

from __future__ import annotations

import asyncio
import io
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import memdb
from benchmarks.torture import journal, observe
from benchmarks.torture.faults import Fault, unlike
from memdb.storage.transfer import export_user, import_user

BUSY_TIMEOUT = 60.0


class Inspector:
    """One look at the file.

    Args:
        folder: of the whole run.
        users: all scopes.
        seed: of its luck.
        number: of this look.
    """

    def __init__(self, folder: str, users: list[str], seed: int, number: int) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "agent.db"
        self.users = users
        self.random = random.Random(seed)
        self.copy = self.folder / "backups" / f"{number}.db"

    async def backup(self) -> None:
        """A backup made while others write holds all that was acknowledged before it began, and whole units only."""
        self.copy.parent.mkdir(exist_ok=True)
        await self._leftovers()
        begin = self._marks(self.users)
        async with self._opened() as db:
            await db.backup(self.copy)
        end = self._marks(self.users)
        async with memdb.open(self.copy, create=False) as db:
            if problems := (await db.check()).problems:
                raise Fault(f"the backup {self.copy} is not sound", problems=problems)
            for user in self.users:
                await self._compare(db, user, begin[user], end[user], f"the backup {self.copy.name} of {user}")
        self._remove(self.copy)

    async def export(self) -> None:
        """An export of a user holds all that was acknowledged before it began, and gives it back elsewhere."""
        user = self.random.choice(self.users)
        begin = self._marks([user])[user]
        out = io.BytesIO()
        async with self._opened() as db:
            try:
                await export_user(db.engine, user, out)
            except memdb.NotFound:
                return
        end = self._marks([user])[user]
        async with memdb.open(":memory:") as db:
            await import_user(db.engine, io.BytesIO(out.getvalue()))
            await self._compare(db, user, begin, end, f"the export of {user}")

    async def check(self) -> None:
        """check() is clean while others write."""
        async with self._opened() as db:
            if problems := (await db.check()).problems:
                raise Fault("check() found problems while others write", problems=problems)

    async def reopen(self) -> None:
        """The file is opened and closed, read-only or not."""
        for _ in range(self.random.randint(1, 5)):
            how: dict[str, Any] = {"read_only": True} if self.random.random() < 0.5 else {}
            async with memdb.open(self.path, busy_timeout=BUSY_TIMEOUT, **how) as db:
                await db.stats()

    async def shell(self) -> None:
        """What other programs do to a SQLite file, without a thought for memdb."""
        statement = self.random.choice(SHELL)
        with closing(sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None)) as shell:
            rows = shell.execute(statement).fetchall()
            if "integrity_check" in statement and rows != [("ok",)]:
                raise Fault(f"{statement} found {rows[:5]}")

    async def hold(self) -> None:
        """A program that reads for a long time keeps the log from being begun anew, and sees one moment alone."""
        with closing(sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None)) as shell:
            shell.execute("BEGIN")
            before = shell.execute(SUM).fetchall()
            await asyncio.sleep(self.random.random() * 2)
            if (after := shell.execute(SUM).fetchall()) != before:
                raise Fault(f"a reader saw {before} first and {after} later in one transaction")

    async def _leftovers(self) -> None:
        """A backup whose process was killed is whole or not there."""
        for path in self.copy.parent.iterdir():
            if path.suffix == ".db":
                async with memdb.open(path, create=False) as db:
                    if problems := (await db.check()).problems:
                        raise Fault(f"the backup {path}, whose process was killed, is not sound", problems=problems)
                self._remove(path)
            elif path.suffix == ".unfinished":
                path.unlink()

    async def _compare(self, db: memdb.Database, user: str, begin: journal.Mark, end: journal.Mark, what: str) -> None:
        found = await observe.observe(db, user)
        folder, expected = self.folder / "journals" / user, []
        for state in journal.outcomes_between(folder, begin, end):
            if (one := observe.shown(state)) == found:
                return
            expected.append(one)
        raise unlike(what, expected, found, begin=begin, end=end, journal=str(folder))

    def _marks(self, users: list[str]) -> dict[str, journal.Mark]:
        return {user: journal.mark(self.folder / "journals" / user) for user in users}

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[memdb.Database]:
        async with memdb.open(self.path, busy_timeout=BUSY_TIMEOUT) as db:
            yield db

    def _remove(self, path: Path) -> None:
        for end in ("", "-wal", "-shm", "-lock"):
            Path(f"{path}{end}").unlink(missing_ok=True)


SUM = "SELECT count(*), sum(id), sum(length(content)) FROM record"
SHELL = (
    "PRAGMA wal_checkpoint(PASSIVE)",
    "PRAGMA wal_checkpoint(FULL)",
    "PRAGMA wal_checkpoint(RESTART)",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "VACUUM",
    "ANALYZE",
    "PRAGMA optimize",
    "PRAGMA integrity_check",
    "INSERT INTO record_search (record_search) VALUES ('optimize')",
    "INSERT INTO record_search (record_search, rank) VALUES ('merge', 100)",
)
LOOKS: dict[str, tuple[int, Callable[[Inspector], Awaitable[None]]]] = {
    "backup": (5, Inspector.backup),
    "export": (4, Inspector.export),
    "check": (2, Inspector.check),
    "reopen": (3, Inspector.reopen),
    "shell": (6, Inspector.shell),
    "hold": (2, Inspector.hold),
}


def inspect(order: dict[str, Any]) -> None:
    """Look at the file in one way."""
    how = LOOKS[order.pop("how")][1]
    asyncio.run(how(Inspector(**order)))  # type: ignore[arg-type]
