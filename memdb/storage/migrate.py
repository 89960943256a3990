"""Bringing a file to the schema of this code. Alembic is called only when a file is not at the head.

A fresh file gets the present schema at once and is stamped as if it had been migrated: no Alembic at the first start
(0.4 s of imports), and a test holds the two roads against each other.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memdb.errors import Busy, StorageError
from memdb.storage.begin import begin_immediate
from memdb.storage.connection import connect, translate, translated
from memdb.storage.schema import REVISION, SCHEMA_VERSION, SETTINGS, objects
from memdb.storage.source import APPLICATION_ID, file_uri, identify

if TYPE_CHECKING:
    from memdb.storage.clock import Clock

log = logging.getLogger("memdb")


def prepare(path: Path, clock: Clock, *, timeout: float, migrate: bool) -> None:
    """Make a file what this code needs: fresh files are given the schema, older ones are migrated.

    The caller holds the file's lock.

    Args:
        path: the file.
        clock: names the backup of a file that is migrated.
        timeout: how long to wait for another process, in seconds.
        migrate: whether an older file may be migrated.

    Raises:
        NotAMemdbFile, SchemaTooNew: see memdb.storage.source.identify; the file was not changed.
        StorageError: the file is older and `migrate` is False, or a step failed; the file is as it was.
    """
    state = identify(path, SCHEMA_VERSION, timeout=timeout)
    if state.version == SCHEMA_VERSION:
        return
    if state.version and not migrate:
        raise StorageError(
            f"{path} has schema {state.version}, this memdb needs {SCHEMA_VERSION}: open it with migrate=True, or run"
            f" `memdb migrate {path}`"
        )
    with translated():
        connection = connect(file_uri(path, "rwc"), (), timeout=timeout)
        try:
            if state.version == 0:
                # Of 4,096 bytes a page holds three documents of 1 kB, and a fifth of it stays empty.
                connection.execute("PRAGMA page_size = 8192")
                set_wal(connection, path)
                create_schema(connection, timeout=timeout)
            else:
                _upgrade(connection, path, clock, state.version, has_data=state.has_data)
        finally:
            connection.close()


def set_wal(connection: sqlite3.Connection, path: Path) -> None:
    """Let readers and the writer work side by side; where the filesystem cannot, say so and go on without."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        log.warning("%s: its filesystem cannot hold a WAL; using a rollback journal, readers wait for writers", path)


def create_schema(connection: sqlite3.Connection, *, timeout: float = 0.0) -> None:
    """Give an empty database the present schema, in one transaction. Does nothing where that was done already."""
    begin_immediate(connection, timeout)
    try:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            for item in objects():
                connection.execute(item.text)
            for statement in SETTINGS:
                connection.execute(statement)
            connection.execute(
                "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
                " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
            )
            connection.execute("INSERT INTO alembic_version VALUES (?)", (REVISION,))
            _stamp(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the package when installed, at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_migrations"
    folder = installed if installed.is_dir() else package.parent / "migrations"
    if not (folder / "env.py").is_file():
        raise StorageError(f"this memdb is incomplete: its migrations are not in {folder}; install it again")
    return folder


def upgrade(connection: sqlite3.Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` in one transaction, with foreign keys off and checked before COMMIT.

    Args:
        connection: not inside a transaction. Its foreign_keys must be OFF: a rebuilt table would lose its children.
    """
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import StaticPool

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", lambda bind: bind.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.connect() as bind, bind.begin():
        config.attributes["connection"] = bind
        command.upgrade(config, revision)
        if broken := connection.execute("PRAGMA foreign_key_check").fetchall():
            raise StorageError(f"the migration left {len(broken)} rows without their parent; the file is as it was")
        _stamp(connection)


def _stamp(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    connection.execute(f"PRAGMA user_version = {int(revision[:4])}")


def _upgrade(connection: sqlite3.Connection, path: Path, clock: Clock, version: int, *, has_data: bool) -> None:
    copy = Path(f"{path}.schema-{version}-{clock.text().replace(':', '')}.bak")
    try:
        if has_data:
            connection.execute("VACUUM INTO ?", (str(copy),))
        upgrade(connection)
    except BaseException as error:
        with suppress(OSError):
            copy.unlink()
        if isinstance(error, Exception) and not isinstance(error, StorageError):
            failure = translate(getattr(error, "orig", error))  # SQLAlchemy wraps the driver's in many lines
            kind = Busy if isinstance(failure, Busy) else StorageError
            raise kind(
                f"{path} could not be migrated from schema {version} to {SCHEMA_VERSION} and is as it was: {failure}"
            ) from error
        raise
    if has_data:
        log.warning(
            "%s was migrated from schema %d to %d; %s is the backup, which also keeps what is forgotten from now on:"
            " delete it when you no longer need it",
            path, version, SCHEMA_VERSION, copy,
        )  # fmt: skip
