"""init, backup, migrate: the file as a whole."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, opened, require, run
from memdb.errors import InvalidInput


def init(file: File) -> None:
    """Make a memdb file.

    A file that is one already is left as it is.

    Example: memdb init agent.db
    """
    from memdb.storage.schema import SCHEMA_VERSION
    from memdb.storage.source import database_path, identify

    path = database_path(file)
    if path is None:
        raise InvalidInput("':memory:' lives and ends with its program; name a file")
    version = identify(path, SCHEMA_VERSION, timeout=1.0).version
    if version:
        older = "" if version == SCHEMA_VERSION else f"; `memdb migrate {file}` brings it to {SCHEMA_VERSION}"
        output.say(f"{file} is a memdb file already (schema {version}); nothing was changed{older}.")
        return
    run(_make(file))
    name = shlex.quote(file)
    output.say(
        f"Made {file}, a memdb file (schema {SCHEMA_VERSION}).",
        "Next:",
        f"  memdb ingest {name} notes/         fill it: Markdown, text or JSONL",
        f'  memdb search {name} "a question"   ask it',
        f'  sqlite3 {name} ".tables"           or read it with the plain shell',
    )


async def _make(file: str) -> None:
    import memdb

    async with memdb.open(file):
        pass


def backup(
    file: File,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The copy's path.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write a copy of the file while others go on writing.

    The copy is whole or not there. An older copy at TARGET is replaced, any other file is refused.

    Example: memdb backup agent.db backups/monday.db
    """
    with output.working(f"Copying {file}"):
        run(_backup(file, target))
    copied = os.path.getsize(target)
    if as_json:
        output.emit({"file": file, "target": target, "bytes": copied})
    else:
        output.say(f"Copied {file} to {target} ({output.size(copied)}).")


async def _backup(file: str, target: str) -> None:
    async with opened(file) as db:
        await db.backup(target)


def migrate(file: File, as_json: AsJson = False) -> None:
    """Bring a file of an older memdb to the schema of this one.

    All of it happens or nothing. A backup is made beside the file first, and named on stderr.

    Example: memdb migrate agent.db
    """
    from memdb.storage.schema import SCHEMA_VERSION
    from memdb.storage.source import database_path, identify

    require(file)
    version = identify(database_path(file), SCHEMA_VERSION, timeout=10.0).version
    if not version:
        raise InvalidInput(f"{file} is an empty database; make it a memdb file with `memdb init {file}`")
    if version != SCHEMA_VERSION:
        with output.working(f"Migrating {file}"):
            run(_migrate(file))
    if as_json:
        output.emit({"file": file, "from": version, "to": SCHEMA_VERSION})
    elif version == SCHEMA_VERSION:
        output.say(f"{file} has schema {version}, the newest that this memdb knows; there is nothing to do.")
    else:
        output.say(f"Migrated {file} from schema {version} to {SCHEMA_VERSION}.")


async def _migrate(file: str) -> None:
    async with opened(file, read_only=False):
        pass
