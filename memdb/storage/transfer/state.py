"""The state of one scope as a file: what belongs to a session, and what its user has of no session.

It is an export (see the package's docstring) whose head says `"and_user": true`, so any reader of exports takes it. As
a state it goes into any scope: the user and the session of the file become those of the scope.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace

from memdb.errors import InvalidInput
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transfer.content import Exported
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.form import OWN_FIELDS, QUARANTINE, RECORD, SESSION, STANDING_FIELDS
from memdb.storage.transfer.merging import Imported
from memdb.storage.transfer.reading import Problem, examined
from memdb.storage.transfer.rows import Row, Whose
from memdb.storage.transfer.running import Course
from memdb.storage.transfer.storing import store_entries
from memdb.storage.transfer.writing import export_rows
from memdb.storage.whole_file import file_path, told_of
from memdb.text.check import check_flag

_FIELDS = {"record": RECORD, "quarantine": QUARANTINE, "session": SESSION, **STANDING_FIELDS}
_SESSION_AT = {
    kind: next(at for at, field in enumerate(fields) if field.name == "session_id") for kind, fields in _FIELDS.items()
}
_SOURCE_AT = {  # of a layer's own table: the session that a record tells of
    name: at
    for name, fields in OWN_FIELDS.items()
    for at, field in enumerate(fields)
    if field.name == "source_session_id"
}

_WHOSE = Whose("", "", and_user=True).condition
_BY_SCOPE = "layer IN (SELECT layer FROM scope WHERE user_id = :user_id AND +session_id IN ('', :session_id))"
_CLEAR = (
    "DELETE FROM relation WHERE user_id = :user_id",
    f"DELETE FROM record WHERE {_WHOSE} AND {_BY_SCOPE}",
    *(f"DELETE FROM {name} WHERE {_WHOSE}" for name in STANDING_FIELDS),
    f"DELETE FROM eviction WHERE {_WHOSE}",
    "DELETE FROM mirror WHERE user_id = :user_id AND last_key != ''",  # of a HISTORY.md, which has other entries now
    "DELETE FROM session WHERE user_id = :user_id AND session_id = :session_id",
    f"DELETE FROM quarantine WHERE {_WHOSE}",
)


async def export_state(engine: Engine, scope: Scope, path: str | os.PathLike[str]) -> Exported:
    """Write the state of a scope to a file; see Memory.export_state."""
    whose = Whose(scope.user_id, scope.session_id, and_user=True)
    return await export_rows(engine, whose, file_path(path, "the path of a state"))


async def import_state(engine: Engine, scope: Scope, path: str | os.PathLike[str], *, replace: bool) -> Imported:
    """Store the state of a scope; see Memory.import_state."""
    check_flag(replace, "replace")
    with ExitStack() as reading:
        file = file_path(path, "the path of a state")
        with told_of(file, "read"):
            odd = file.exists() and not file.is_file() and not file.is_dir()  # a pipe may never end, nor begin
        if odd:
            raise InvalidInput(f"{file} is no regular file; write it to one first")
        examining = examined(file)
        export = await Course().run(asyncio.to_thread(reading.enter_context, examining))
        if export.session_id is None or not export.of_scope:
            raise InvalidInput(
                f"{export.name} is an export, but not the state of one user and session; take it in with `memdb import`"
            )
        moved = moved_entries(export.entries(), export.session_id, scope.session_id)
        await engine.read_counts(lambda tx: None)  # what was recalled before belongs to what is replaced

        def clear(connection: sqlite3.Connection) -> None:
            for statement in _CLEAR if replace else ():
                connection.execute(statement, {"user_id": scope.user_id, "session_id": scope.session_id})

        return await store_entries(engine, export, moved, scope.user_id, replace=True, prepare=clear)


def moved_entries(entries: Iterable[Entry | Problem], session_id: str, target: str) -> Iterator[Entry | Problem]:
    """Yield what a state holds, with another session in the place of its own.

    An entry of a third session becomes a Problem.
    """
    for entry in entries:
        if isinstance(entry, Problem):
            yield entry
            continue
        columns, at = entry.columns, _SESSION_AT.get(entry.kind)
        if at is not None and columns[at] not in ("", session_id):
            reason = f"it is of the session {columns[at][:40]!r}, the file of {session_id[:40]!r}"
            yield Problem(entry.number, reason, entry.size)
            continue
        own = {
            name: _with(row, _SOURCE_AT[name], session_id, target) if name in _SOURCE_AT else row
            for name, row in entry.own.items()
        }
        yield replace(entry, columns=_with(columns, at, session_id, target), own=own)


def _with(columns: Row, at: int | None, session_id: str, target: str) -> Row:
    if at is None or columns[at] != session_id:
        return columns
    return (*columns[:at], target, *columns[at + 1 :])
