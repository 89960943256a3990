"""How a write transaction is begun: patiently, and never on a file that a newer memdb has migrated."""

from __future__ import annotations

import random
import sqlite3
import time

from memdb.errors import Busy, SchemaTooNew
from memdb.storage.connection import translate
from memdb.storage.schema import SCHEMA_VERSION


def check_version(connection: sqlite3.Connection) -> None:
    """Refuse to write into a file that a newer memdb has migrated since it was opened.

    Raises:
        SchemaTooNew: its user_version is not the one that this code knows.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise SchemaTooNew(
            f"the file was migrated to schema {version} while this process, which knows {SCHEMA_VERSION}, had it open;"
            " nothing was written: restart it with the newer memdb"
        )


def begin_immediate(connection: sqlite3.Connection, timeout: float) -> None:
    """BEGIN IMMEDIATE, again with jitter until the timeout: some forms of busy (recovery, snapshot) answer at once.

    Args:
        timeout: seconds. SQLite's own busy timeout already waits for a lock held by another connection.

    Raises:
        Busy: the write lock was not to be had.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            failure = translate(error)
            if not isinstance(failure, Busy) or time.monotonic() >= deadline:
                raise failure from error
        time.sleep(random.uniform(0.001, 0.02))
