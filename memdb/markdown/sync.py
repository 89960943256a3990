"""Bringing pages in step with a folder of Markdown notes.

The folder is read with no transaction open. Then one unit reads what is known of it again, decides what is other, and
writes all of it: a sync is whole or did not happen, and a second process that saw the same finds nothing left to do.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memdb.errors import InvalidInput
from memdb.layers.knowledge import DEFAULT_CATEGORY
from memdb.layers.sources import Source, of_folder
from memdb.markdown.apply import apply
from memdb.markdown.note import Note, parse, read_bytes
from memdb.markdown.plan import Known, Seen
from memdb.markdown.report import Skipped, SyncReport
from memdb.markdown.scan import VANISHED, File, real_folder, scan, standing
from memdb.scope import DEFAULT_USER
from memdb.storage.transaction import Transaction
from memdb.text.check import check_id

if TYPE_CHECKING:
    from memdb.database import Database

FRESH_NS = 2_000_000_000  # a file changed so lately may change again without its times saying so
TRIES = 4  # while others sync the same folder; after that it is read with them kept out
LOOKS = 3  # at a folder in which something is missing


async def sync_folder(
    db: Database,
    folder: str | os.PathLike[str],
    *,
    user_id: str = DEFAULT_USER,
    category: str = DEFAULT_CATEGORY,
) -> SyncReport:
    """Bring a user's pages in step with a folder of Markdown notes (local-ai document).

    Every .md and .markdown file is a page: its title the first heading of the first rank (else the file's name), its
    summary the first paragraph, its content the text as it stands. YAML front matter may say id, title, summary, tags,
    category, keywords, references and created_at. A page's id is "category/path" unless the note says its own.
    [[Wiki]] and relative links to notes of the folder become references, also when their target comes later.

    A file is read again when its size or times have changed; its content's hash decides whether the page has. Renamed
    files keep their page and its statistics. Only pages that came from this folder are ever removed. What cannot be
    read is reported and left out, and the page that it had stays.

    Args:
        folder: the folder; also its folders are read, but no hidden ones and no links.
        user_id: whose pages.
        category: of pages whose notes name none.

    Returns:
        What was done, once it is on disk.

    Raises:
        MissingFile: the folder is not there or vanished while it was read; nothing was changed.
        InvalidInput: it is no folder or cannot be read; nothing was changed.
    """
    check_id(user_id, "user_id")
    check_id(category, "category")
    root = await asyncio.to_thread(real_folder, folder)
    for _ in range(TRIES):
        known = await db.read(of_folder, user_id, str(root))
        seen = await asyncio.to_thread(_look, root, known, category)
        if not _anything(seen, known):
            return SyncReport(skipped=seen.skipped, unchanged=len(seen.known))
        report = await db.write(apply, user_id, str(root), seen)
        if report is not None:
            return report
    return await db.write(_look_and_apply, user_id, root, category)


def _look_and_apply(tx: Transaction, user_id: str, root: Path, category: str) -> SyncReport:
    report = apply(tx, user_id, str(root), _look(root, of_folder(tx, user_id, str(root)), category))
    assert report is not None
    return report


def _look(root: Path, known: dict[str, Source], category: str) -> Seen:
    """Read the folder; what is missing counts as gone only when a second look finds the same files.

    A note that moves while the folder is read may be seen in neither of its places. While the folder does not come to
    rest, what is missing stays.
    """
    for _ in range(LOOKS):
        seen, files = _look_once(root, known, category)
        missing = known.keys() - seen.known.keys() - seen.staying
        if not missing or scan(root).files.keys() == files:
            return seen
    seen.staying |= missing
    return seen


def _look_once(root: Path, known: dict[str, Source], category: str) -> tuple[Seen, Set[str]]:
    """Read every note that is new or may be other than what is known; return also which files there are."""
    seen = Seen(known, category)
    with standing(root):
        found = scan(root)
        seen.skipped += found.skipped
        for path, file in found.files.items():
            reason = _see(seen, file)
            if reason:
                seen.skipped.append(Skipped(path, reason))
                seen.staying.add(path)
    seen.staying |= {path for path in known if path not in seen.known and found.is_unread(path)}
    seen.skipped.sort()
    return seen, found.files.keys()


def _see(seen: Seen, file: File) -> str:
    """Add a note to what was seen; return why it is left out, or ""."""
    source = seen.base.get(file.path)
    try:
        if source is not None and source.category == seen.category and _is_as_known(file, source):
            known = Known(source.hash, seen.category, file.size, file.modified_ns, file.changed_ns)
        else:
            known = _read(file, source, seen.category)
    except FileNotFoundError:
        return VANISHED
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"
    except InvalidInput as error:
        return str(error).removeprefix("KnowledgePage.")
    seen.known[file.path] = known
    return ""


def _is_as_known(file: File, source: Source) -> bool:
    return (file.size, file.modified_ns, file.changed_ns) == (source.size, source.modified_ns, source.changed_ns)


def _read(file: File, source: Source | None, category: str) -> Known:
    began = time.time_ns()
    raw = read_bytes(file.real)
    digest = hashlib.sha256(raw).hexdigest()
    note: Note | None = None
    if source is None or source.hash != digest or source.category != category:
        note = parse(raw, file.path, category)
    known = Known(digest, category, file.size, file.modified_ns, file.changed_ns, note)
    fresh = began - max(file.modified_ns, file.changed_ns) < FRESH_NS
    return replace(known, modified_ns=-1) if fresh or len(raw) != file.size else known


def _anything(seen: Seen, known: dict[str, Source]) -> bool:
    """Whether there is anything to write."""
    if known.keys() - seen.known.keys() - seen.staying:
        return True
    return any(path not in known or not now.is_like(known[path]) for path, now in seen.known.items())
