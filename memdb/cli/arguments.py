"""What the commands share: their arguments, and opening the file they name."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memdb.cli.output import shortened
from memdb.errors import InvalidInput, MissingFile, NotFound
from memdb.text.check import check_id

if TYPE_CHECKING:
    from memdb.database import Database

T = TypeVar("T")

MOST_NAMED = 10  # users that a sentence names
MOST_COMPARED = 10_000  # users among which one that was mistyped is looked for: 30 ms

File = Annotated[str, typer.Argument(metavar="FILE", help="The memdb file.", show_default=False)]
User = Annotated[
    str | None,
    typer.Option("--user", metavar="USER", help="Whose memory; may be left out when the file holds one user."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    import asyncio

    return asyncio.run(work)


@asynccontextmanager
async def opened(file: str, *, read_only: bool = True, migrate: bool = True) -> AsyncIterator[Database]:
    """Open a file that is there: to look into it or, without `read_only`, to work on it.

    Raises:
        InvalidInput, MissingFile: there is no such file, or nothing in it.
    """
    require(file)
    import memdb

    async with memdb.open(file, read_only=read_only, create=False, migrate=migrate) as db:
        yield db


def require(file: str) -> None:
    """Refuse a path where no memdb file can be, in a sentence that says what to do.

    Raises:
        InvalidInput, MissingFile: see above.
    """
    if file == ":memory:":
        raise InvalidInput("':memory:' lives and ends with its program; name a file")
    if not os.path.exists(file):
        raise MissingFile(f"there is no file {file}; make one with `memdb init {file}`, or check the path")
    if os.path.isfile(file) and os.path.getsize(file) == 0:
        raise InvalidInput(f"{file} is an empty file; make it a memdb file with `memdb init {file}`")


def check_target(file: str) -> None:
    """Refuse a path where nothing can be stored, before anything is read; a missing file is made later.

    Raises:
        InvalidInput, NotAMemdbFile, StorageError: see above.
    """
    from memdb.storage.schema import SCHEMA_VERSION
    from memdb.storage.source import check_access, database_path, identify

    path = database_path(file)
    if path is None:
        raise InvalidInput("':memory:' lives and ends with its program; name a file")
    check_access(path, read_only=False, create=True)
    identify(path, SCHEMA_VERSION, timeout=10.0)


async def owner_of(db: Database, file: str, user: str | None) -> str | None:
    """Return whose memory a command looks at; None when the file holds none.

    Args:
        file: the file, for the message.
        user: what --user says.

    Raises:
        NotFound: it names nobody whose memory the file holds.
        InvalidInput: it was left out, and the file holds several users.
    """
    users = (await db.stats()).users
    if user is None:
        return only_user(file, users)
    if users and check_id(user, "--user") not in users:
        raise NotFound(f"{file} holds nothing of user {shortened(user, 40)}; {_near(user, users)}")
    return user


def only_user(file: str, users: Sequence[str]) -> str | None:
    """Return the user that a file holds, where --user was left out; None when it holds none.

    Args:
        file: the file, for the message.
        users: whose memory it holds, sorted.

    Raises:
        InvalidInput: it holds several.
    """
    if len(users) < 2:
        return users[0] if users else None
    raise InvalidInput(f"{file} holds {len(users):,} users, say whose memory with --user: {_named(users)}")


def _near(user: str, users: Sequence[str]) -> str:
    """Return which users are meant perhaps, or who is there."""
    from difflib import get_close_matches

    by_lower = {name.casefold(): name for name in users[:MOST_COMPARED]}
    near = [by_lower[name] for name in get_close_matches(user.casefold(), by_lower)]
    return f"did you mean {_named(near)}?" if near else f"it holds {_named(users)}"


def _named(users: Sequence[str]) -> str:
    named = ", ".join(shortened(name, 40) for name in users[:MOST_NAMED])
    return named + (f" and {len(users) - MOST_NAMED:,} more" if len(users) > MOST_NAMED else "")
