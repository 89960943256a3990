"""Writing an export: one snapshot, a page of records at a time, to a file that is whole or not there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from memdb.storage.begin import check_version
from memdb.storage.connection import lenient_text
from memdb.storage.engine import Engine
from memdb.storage.transfer.content import Content, Exported
from memdb.storage.transfer.rows import Whose
from memdb.storage.transfer.running import Course, Progress
from memdb.storage.transfer.target import check_target
from memdb.storage.whole_file import written_whole
from memdb.text.check import check_flag, check_id


async def export_user(
    engine: Engine,
    user_id: str,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    session_id: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write all that a file holds of a user as JSON lines, while others read and write.

    Args:
        engine: the open file.
        user_id: whose memory.
        target: a path, whose file is whole or not there; or a binary stream.
        session_id: only what belongs to this session.
        force: whether a file at the path that is no earlier export may be replaced.
        progress: told how many records are written, of how many; on another thread.

    Returns:
        What was written.

    Raises:
        NotFound: the file holds nothing of the user; nothing was written.
        AlreadyExists: another kind of file is there.
        InvalidInput, MissingFile, StorageError: the path cannot be written; an older file there is as it was.
        SerializationError: a record is too large for a line.
    """
    check_id(user_id, "user_id")
    check_flag(force, "force")
    if session_id is not None:
        check_id(session_id, "session_id")
    return await export_rows(engine, Whose(user_id, session_id), target, force=force, progress=progress)


async def export_rows(
    engine: Engine,
    whose: Whose,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write what a file holds of a user, of a session, or of a scope; see export_user."""
    course, now = Course(progress), engine.clock.text()

    def work(connection: sqlite3.Connection) -> Exported:
        with _snapshot(connection):
            content = Content(connection, whose, now, course)
            if not isinstance(target, str | os.PathLike):
                return content.write(target.write)
            with written_whole(check_target(target, engine.path, force=force), engine.path) as file:
                return content.write(file.write)

    return await course.run(engine.aside(work))


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let all that is read in the block be as it is now; text that is no UTF-8 comes as surrogates."""
    connection.execute("BEGIN")
    connection.text_factory = lenient_text
    try:
        check_version(connection)
        yield
    finally:
        connection.text_factory = str
        connection.rollback()
