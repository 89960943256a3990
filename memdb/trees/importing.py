"""Taking a tree into a file: read with no transaction open, stored some files at a time, each whole or not at all."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memdb.errors import MemdbError, StorageError
from memdb.markdown.report import Skipped
from memdb.scope import DEFAULT_SESSION, DEFAULT_USER, Scope
from memdb.storage.clock import to_text
from memdb.storage.quarantine import keep_line
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_CONTENT_BYTES, MAX_ID_CHARS, check_flag, check_id
from memdb.trees.found import Found, found_in
from memdb.trees.indexing import IndexEntries
from memdb.trees.layout import Manifest, Owners, find_roots
from memdb.trees.report import TreeReport
from memdb.trees.storing import Conflict, Same, store

if TYPE_CHECKING:
    from memdb.database import Database

BATCH_BYTES = 8_000_000  # of files that are stored in one transaction
BATCH_FILES = 200
_COUNTS = {
    "state": "states",
    "working": "working_memories",
    "plan": "checkpoints",
    "tool_result": "tool_results",
    "note": "notes",
}


async def import_tree(
    db: Database,
    folder: str | os.PathLike[str],
    *,
    user_id: str | None = None,
    session_id: str = DEFAULT_SESSION,
    replace: bool = False,
) -> TreeReport:
    """Store what a `memory/` and `memory_data/` tree holds (local-ai document; see memdb.trees for its layout).

    Importing again changes nothing: what is there already and says the same is passed over. What is there and says
    something else stays, and is reported, unless `replace` lets the tree win. A file that is damaged is left out,
    reported, and kept in the quarantine with its bytes, up to 16 MB of them. The times of things are kept: those that
    their files say, else the files' own.

    A note's title, description and keywords are those of `memory_index.json` where that has the time of the file (the
    document's rule); otherwise they are made of its text. Copy a tree with its times (cp -a).

    Some files at a time are one transaction, so a tree of any size takes little memory, and what was stored before an
    error stays.

    Args:
        folder: the one that holds `memory/` or `memory_data/`, or one of these itself.
        user_id: only this user's files. Without it, runtime files whose names have one underscore say whose they are;
            others, and notes with an underscore, are left out, since an id may hold underscores, too.
        session_id: whose session becomes what belongs to none: tool results, and files of the layout before scopes.
        replace: whether the tree wins.

    Returns:
        What was done.

    Raises:
        MissingFile: there is no such folder.
        InvalidInput: it holds no tree, or an id is no valid text.
        StorageError: the file could not do it.
    """
    if user_id is not None:
        check_id(user_id, "user_id")
    check_id(session_id, "session_id")
    check_flag(replace, "replace")
    roots = await asyncio.to_thread(find_roots, folder)
    manifest = await asyncio.to_thread(Manifest.read, roots.runtime)
    owners = Owners(manifest, user_id, session_id, DEFAULT_USER)
    report, entries = TreeReport(), IndexEntries()
    files = found_in(roots, owners)
    while batch := await asyncio.to_thread(_batch, files, report, entries):
        outcomes = await db.write(_store, batch, replace)
        for found, outcome in zip(batch, outcomes, strict=True):
            _count(report, found, outcome)
    report.old_entries = entries.passed_over
    return report


def _batch(files: Iterator[Found | None], report: TreeReport, entries: IndexEntries) -> list[Found]:
    batch: list[Found] = []
    size = 0
    for found in files:
        if found is None:
            report.others += 1
            continue
        if found.kind == "index" and not found.reason:
            entries.read(found.value)
            continue
        if found.kind == "note":
            category, _, filename = found.path.partition("/")
            found = dataclasses.replace(found, entry=entries.of(category, filename, found.modified))
        batch.append(found)
        size += found.size
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            break
    return batch


def _store(tx: Transaction, batch: list[Found], replace: bool) -> list[str]:
    """Store files; return of each "new", "replaced", "same", "conflict", or why it was left out. A unit."""
    outcomes = []
    for found in batch:
        if found.reason:
            _set_aside(tx, found, found.reason)
            outcomes.append(found.reason)
            continue
        assert found.scope is not None
        try:
            with tx.undone_on_error(), tx.dated(_moment(found) or tx.now):
                outcomes.append("replaced" if store(tx, found.scope, found, replace=replace) else "new")
        except Same:
            outcomes.append("same")
        except Conflict:
            outcomes.append("conflict")
        except StorageError:  # of the file, not of what is stored
            raise
        except MemdbError as error:
            _set_aside(tx, found, str(error))
            outcomes.append(str(error))
    return outcomes


def _set_aside(tx: Transaction, found: Found, reason: str) -> None:
    if found.raw and found.scope is not None:
        scope: Scope = found.scope
        values = {"layer": found.kind, "user_id": scope.user_id, "session_id": scope.session_id}
        keep_line(tx, {**values, "key": found.path[-MAX_ID_CHARS:]}, found.raw[:MAX_CONTENT_BYTES], reason)


def _moment(found: Found) -> str | None:
    """Return the time of an envelope, or of a file that has none, in the stored text form."""
    value: Any = found.value
    seconds = value.get("updated_at", value.get("saved_at")) if isinstance(value, dict) else found.modified
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return to_text(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError, MemdbError):
        return None


def _count(report: TreeReport, found: Found, outcome: str) -> None:
    if outcome in ("new", "replaced"):
        name = _COUNTS[found.kind]
        setattr(report, name, getattr(report, name) + 1)
        report.replaced += outcome == "replaced"
    elif outcome == "same":
        report.same += 1
    elif outcome == "conflict":
        report.conflicts.append(found.path)
    else:
        report.skipped.append(Skipped(found.path, outcome))
