"""Storing what an export holds: all of it in one transaction, or nothing.

One transaction, however large: half a memory is worse than none, and a memory that is half replaced cannot be told from
a whole one. SQLite writes what does not fit its cache to the log, so memory does not grow; other writers wait.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from typing import BinaryIO

from memdb.storage.begin import begin_immediate
from memdb.storage.connection import lenient_text
from memdb.storage.engine import Engine
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.merging import Imported, Merge
from memdb.storage.transfer.reading import ExportFile, Problem, examined
from memdb.storage.transfer.running import Course, Progress
from memdb.text.check import check_flag, check_id


async def import_user(
    engine: Engine,
    source: str | os.PathLike[str] | BinaryIO,
    *,
    user_id: str | None = None,
    replace: bool = False,
    skip_damaged: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Store what an export holds: examined() and store_export() in one."""
    with examined(source, skip_damaged=skip_damaged) as export:
        return await store_export(
            engine, export, user_id=user_id, replace=replace, skip_damaged=skip_damaged, progress=progress
        )


async def store_export(
    engine: Engine,
    export: ExportFile,
    *,
    user_id: str | None = None,
    replace: bool = False,
    skip_damaged: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Store what an export holds, in one transaction; other writers wait meanwhile.

    What is there already and says the same is passed over, so importing again changes nothing. When it was last stored
    and how often it was recalled is not compared: the file's own figures stay.

    Args:
        engine: the open file.
        export: the export, from examined().
        user_id: whose memory it becomes; by default that of the user it came from.
        replace: whether records and sessions of the same identity that say something else are replaced.
        skip_damaged: whether lines that cannot be stored are left out.
        progress: told how many bytes are stored, of how many; on another thread.

    Raises:
        AlreadyExists: a record or session is there already and says something else; nothing was stored.
        InvalidInput: a line cannot be stored; nothing was stored.
        StorageError: and its kin, when the file could not do it; nothing was stored.
    """
    check_flag(replace, "replace")
    owner = export.user_id if user_id is None else check_id(user_id, "user_id")
    return await store_entries(
        engine, export, export.entries(), owner, replace=replace, skip_damaged=skip_damaged, progress=progress
    )


async def store_entries(
    engine: Engine,
    export: ExportFile,
    entries: Iterable[Entry | Problem],
    user_id: str,
    *,
    replace: bool,
    skip_damaged: bool = False,
    progress: Progress | None = None,
    prepare: Callable[[sqlite3.Connection], None] = lambda _: None,
) -> Imported:
    """Store the entries of an export; see store_export.

    Args:
        entries: those of the export, perhaps changed on the way.
        user_id: whose memory they become.
        prepare: what is done first, in the same transaction.
    """
    course = Course(progress)

    def work(connection: sqlite3.Connection) -> Imported:
        begin_immediate(connection, engine.options.busy_timeout)
        connection.text_factory = lenient_text
        try:
            prepare(connection)
            store = Merge(connection, user_id, replace=replace, skip_damaged=skip_damaged)
            done = 0
            for entry in entries:
                course.at(done, export.bytes)
                store.take(entry)
                done += entry.size
            report = store.finish(export.name)
            course.at(export.bytes, export.bytes)
            connection.execute("COMMIT")
            return report
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.text_factory = str

    return await course.run(engine.maintain(work))
