"""Taking a .loki/memory folder into a file: read with no transaction open, stored some files at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memdb.errors import InvalidInput, NotFound
from memdb.layers.experience.pattern import SemanticPattern
from memdb.markdown.report import Skipped
from memdb.scope import DEFAULT_USER
from memdb.storage.whole_file import told_of
from memdb.text.check import check_flag
from memdb.text.shown import shown
from memdb.trees.loki.found import Found, count_files, found_in
from memdb.trees.loki.layout import (
    EPISODES,
    INDEX,
    MANIFEST,
    SEMANTIC,
    SKILLS,
    TIMELINE,
    Part,
    find_root,
    namespaces_in,
    parts_of,
)
from memdb.trees.loki.manifest import Manifest
from memdb.trees.loki.report import ExperienceReport
from memdb.trees.loki.storing import CONFLICT, NEW, REPLACED, SAME, store

if TYPE_CHECKING:
    from memdb.database import Database

BATCH_BYTES = 8_000_000  # of files that are stored in one transaction
BATCH = 200
_READ = frozenset((EPISODES, SEMANTIC, SKILLS, INDEX, TIMELINE, MANIFEST, "vectors"))
_COUNTS = {"episode": "episodes", "skill": "skills"}


async def import_experience(
    db: Database,
    folder: str | os.PathLike[str],
    *,
    user_id: str | None = None,
    namespaces: Mapping[str, str | None] | None = None,
    replace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ExperienceReport:
    """Store the episodes, patterns and skills of a `.loki/memory` folder (loki document; see memdb.trees.loki).

    Importing again changes nothing: what is there already and says the same, but for what use changes (importance,
    counts, times of use), is passed over. What is there and says something else stays, and is reported, unless
    `replace` lets the folder win. What is damaged is left out, reported, and kept in the quarantine with its bytes, up
    to 16 MB of them. An episode without a time gets that of its day's folder, one without an id that of its file.

    Some files at a time are one transaction, so a folder of any size takes little memory and stops nobody for long, and
    what was stored before an error stays.

    Args:
        folder: `.loki/memory`, or a folder that holds it.
        user_id: whose memory it becomes; by default whose memdb exported it, else "default".
        namespaces: the namespaces to take with their users, None for <user>/<namespace>; by default all of them.
        replace: whether the folder wins.
        progress: is told how many files are read, and of how many.

    Returns:
        What was done.

    Raises:
        MissingFile: there is no such folder.
        NotFound: it has no such namespace.
        InvalidInput: it holds no such memory, or an id is no valid text.
        StorageError: a folder cannot be read, or the file could not do it.
    """
    check_flag(replace, "replace")
    root = await asyncio.to_thread(find_root, folder)
    parts = await asyncio.to_thread(_parts, root, user_id, namespaces)
    report = ExperienceReport(users={part.namespace: part.user_id for part in parts})
    report.others = await asyncio.to_thread(_others, root, parts)
    total = 0 if progress is None else await asyncio.to_thread(count_files, root, parts)
    done = 0
    found = (one for part in parts for one in found_in(root, part))
    while batch := await asyncio.to_thread(_batch, found):
        for one, outcome in zip(batch, await db.write(store, batch, replace), strict=True):
            _count(report, one, outcome)
        done += sum(one.ends_file for one in batch)
        if progress is not None:
            progress(done, total)
    return report


def _parts(root: Path, user_id: str | None, namespaces: Mapping[str, str | None] | None) -> list[Part]:
    if namespaces is not None and not isinstance(namespaces, Mapping):
        raise InvalidInput("namespaces must be a dict: the user of each namespace, or None for <user>/<namespace>")
    known = namespaces_in(root)
    wanted = dict.fromkeys(known) if namespaces is None else namespaces
    if missing := next((name for name in wanted if name not in known), None):
        raise NotFound(f"{root} has no namespace {shown(missing)}; it has {', '.join(known) or 'none'}")
    if user_id is None:
        manifest = Manifest.read(root)
        user_id = DEFAULT_USER if manifest is None else manifest.user_id
        owners = {name: owner or _exported_of(root / name) for name, owner in wanted.items()}
        return parts_of(user_id, owners)
    return parts_of(user_id, wanted)


def _exported_of(root: Path) -> str | None:
    manifest = Manifest.read(root)
    return None if manifest is None else manifest.user_id


def _others(root: Path, parts: list[Part]) -> list[str]:
    """Return what lies in the folder and is not looked into: other namespaces, and what is no memory."""
    others = []
    for part in parts:
        with told_of(root, "read"), os.scandir(part.path(root)) as entries:
            names = [
                entry.name for entry in entries if not (entry.is_dir(follow_symlinks=False) and _empty(entry.path))
            ]
        read = _READ | ({other.namespace for other in parts} if not part.namespace else frozenset())
        before = f"{part.namespace}/" if part.namespace else ""
        others += [f"{before}{name}" for name in names if name not in read and not _is_leftover(name)]
    return sorted(others)


def _empty(folder: str) -> bool:
    return not os.listdir(folder)


def _is_leftover(name: str) -> bool:
    return name.startswith(".") or name.endswith(".lock")


def _batch(found: Iterator[Found]) -> list[Found]:
    batch: list[Found] = []
    size = 0
    for one in found:
        batch.append(one)
        size += one.size
        if size >= BATCH_BYTES or len(batch) >= BATCH:
            break
    return batch


def _count(report: ExperienceReport, found: Found, outcome: str) -> None:
    if outcome in (NEW, REPLACED):
        name = _COUNTS.get(found.layer) or ("anti_patterns" if _is_anti(found) else "patterns")
        setattr(report, name, getattr(report, name) + 1)
        report.replaced += outcome == REPLACED
    elif outcome == SAME:
        report.same += 1
    elif outcome == CONFLICT:
        report.conflicts.append(found.path)
    else:
        report.skipped.append(Skipped(found.path, outcome))


def _is_anti(found: Found) -> bool:
    return bool(found.anti) or (isinstance(found.value, SemanticPattern) and found.value.is_anti_pattern)
