"""Bringing pages in step with a folder of Markdown notes.

The folder is read with no transaction open. Then one unit reads what is known of it again, decides what is other, and
writes all of it: a sync is whole or did not happen, and a second process that saw the same finds nothing left to do.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memdb.errors import Busy, InvalidInput
from memdb.layers.knowledge import DEFAULT_CATEGORY
from memdb.layers.sources import Source, of_folder
from memdb.markdown.apply import Known, apply
from memdb.markdown.note import Note, parse, read_bytes
from memdb.markdown.report import Skipped, SyncReport
from memdb.markdown.scan import File, real_folder, scan
from memdb.scope import DEFAULT_USER
from memdb.text.check import check_id

if TYPE_CHECKING:
    from memdb.database import Database

FRESH_NS = 2_000_000_000  # a file changed so lately may change again without its times saying so
TRIES = 5


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
        InvalidInput: it is no folder.
        Busy: other syncs of the same folder were faster again and again.
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
    raise Busy(f"{root} was changed by another sync each time it was read; sync it again")


@dataclass(slots=True)
class Seen:
    """What was seen of a folder. See Known for its parts."""

    known: dict[str, Known] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    staying: set[str] = field(default_factory=set)
    category: str = ""


def _look(root: Path, known: dict[str, Source], category: str) -> Seen:
    """Read the folder: every note that is new or may be other than what is known."""
    found = scan(root)
    seen = Seen(skipped=list(found.skipped), category=category)
    for path, file in found.files.items():
        source = known.get(path)
        try:
            if source is not None and source.category == category and _is_as_known(file, source):
                seen.known[path] = Known(source.hash, category, file.size, file.modified_ns, file.changed_ns)
            else:
                seen.known[path] = _read(file, source, category)
        except FileNotFoundError:
            pass  # gone since the folder was read
        except OSError as error:
            seen.skipped.append(Skipped(path, f"it cannot be read ({error.strerror or error})"))
            seen.staying.add(path)
        except InvalidInput as error:
            seen.skipped.append(Skipped(path, str(error).removeprefix("KnowledgePage.")))
            seen.staying.add(path)
    seen.staying |= {path for path in known if path not in seen.known and found.is_unread(path)}
    real_folder(root)  # gone meanwhile: then what was not found was not deleted
    seen.skipped.sort()
    return seen


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
