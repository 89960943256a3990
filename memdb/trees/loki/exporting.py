"""Writing a user's episodes, patterns and skills as a .loki/memory folder, which import_experience takes back."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memdb.errors import AlreadyExists, InvalidInput, NotFound
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.form import to_iso
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skill_file import skill_to_markdown
from memdb.markdown.report import Skipped
from memdb.retrieval.experience import overview
from memdb.scope import DEFAULT_USER
from memdb.storage.transaction import Transaction
from memdb.storage.whole_file import file_path, told_of, written_whole
from memdb.text.check import check_flag
from memdb.trees.loki.entries import legible
from memdb.trees.loki.layout import (
    ANTI_PATTERNS,
    EPISODES,
    INDEX,
    MANIFEST,
    PATTERNS,
    SEMANTIC,
    SKILLS,
    TIMELINE,
    Part,
    parts_of,
)
from memdb.trees.loki.manifest import Manifest, digest
from memdb.trees.loki.names import Names
from memdb.trees.loki.report import ExperienceReport
from memdb.trees.loki.stored import LAYERS, Stored, ids_of, values_of

if TYPE_CHECKING:
    from memdb.database import Database

BATCH = 200  # values in memory at once

Progress = Callable[[int, int], None] | None


async def export_experience(
    db: Database,
    folder: str | os.PathLike[str],
    *,
    user_id: str = DEFAULT_USER,
    namespaces: Mapping[str, str | None] | None = None,
    force: bool = False,
    progress: Progress = None,
) -> ExperienceReport:
    """Write a user's episodes, patterns and skills in the files of the loki document; see memdb.trees.loki.

    Each file is whole or not there, and called by the id of what it holds where that can be a file's name. Patterns of
    what to avoid go to anti-patterns.json. `index.json` and `timeline.json` are made anew. What an earlier export wrote
    and is gone since, is removed; a folder in which another program has written since is refused.

    Args:
        folder: what becomes `.loki/memory`; made when it is missing. It must be empty or hold an earlier export of the
            same user.
        user_id: whose memory.
        namespaces: the users that are written as namespaces, folders in it, by the names of these; None for
            <user>/<namespace>.
        force: whether files that are there may be replaced in any folder. What it holds keeps its names; what another
            program wrote there and memdb does not know stays.
        progress: is told how many of how many are written.

    Returns:
        What was written.

    Raises:
        NotFound: the file holds no experience of these users; nothing was written.
        AlreadyExists: the folder holds something else, or what another program wrote.
        InvalidInput: it is no folder, or a name can be none of a namespace.
        StorageError: a file cannot be written.
    """
    root = file_path(folder, "the folder")
    check_flag(force, "force")
    parts = parts_of(user_id, {} if namespaces is None else namespaces)
    report = ExperienceReport(users={part.namespace: part.user_id for part in parts})
    numbers = {part: await db.read(_numbers, part.user_id) for part in parts}
    total = sum(len(ids) for found in numbers.values() for ids in found.values())
    if not total:
        named = ", ".join(repr(part.user_id) for part in parts)
        raise NotFound(f"the file holds no episodes, patterns or skills of user {named}; nothing was exported")
    manifests = {part: await asyncio.to_thread(_prepare, root, part, force) for part in parts}
    writer = _Writer(db, report, lambda done: progress(done, total) if progress is not None else None)
    for part in parts:
        names = await asyncio.to_thread(Names, part.path(root) if force else None)
        await writer.write(part.path(root), part.user_id, manifests[part], numbers[part], names)
    return report


def _numbers(tx: Transaction, user_id: str) -> dict[str, list[int]]:
    return {layer: ids_of(tx, user_id, layer) for layer in LAYERS}


def _derived(tx: Transaction, user_id: str) -> list[tuple[str, bytes]]:
    """Return the files that are made of the rest."""
    index, timeline = overview.index(tx, user_id), overview.timeline(tx, user_id, overview.TIMELINE_LENGTH)
    return [(INDEX, _json(index)), (TIMELINE, _json(timeline))]


def _prepare(folder: Path, part: Part, force: bool) -> Manifest:
    """Return what an earlier export says; refuse a folder that may not be written to."""
    root, user_id = part.path(folder), part.user_id
    with told_of(root):
        if (part.namespace and root.is_symlink()) or (root.exists() and not root.is_dir()):
            raise InvalidInput(f"{root} is no folder; name one to write to")
        manifest = Manifest.read(root)
        empty = not root.exists() or not any(root.iterdir())
    if empty or force:
        return Manifest(user_id, {} if manifest is None else manifest.files)
    if manifest is None:
        raise AlreadyExists(f"{root} holds something that memdb did not write; name another folder, or force it")
    if manifest.user_id != user_id:
        raise AlreadyExists(
            f"{root} holds the memory of user {manifest.user_id[:60]!r}; name another folder, or force it"
        )
    manifest.check(root)
    return manifest


class _Writer:
    """One export.

    Args:
        told: is given how many values are written.
    """

    def __init__(self, db: Database, report: ExperienceReport, told: Callable[[int], None]) -> None:
        self._db, self._report, self._told = db, report, told
        self._done = 0

    async def write(
        self, root: Path, user_id: str, old: Manifest, numbers: Mapping[str, list[int]], names: Names
    ) -> None:
        """Write what a user has into a folder."""
        new = Manifest(user_id)
        async for values in self._values(user_id, "episode", numbers):
            files = [(_episode_path(names, one.value), _json(one.value.to_dict())) for one in values]
            await asyncio.to_thread(_write_all, root, files, new)
            self._report.episodes += len(values)
        await self._patterns(root, user_id, numbers, new)
        async for values in self._values(user_id, "skill", numbers):
            files = [file for one in values for file in self._skill(names, one.value)]
            await asyncio.to_thread(_write_all, root, files, new)
            self._report.skills += len(values)
        await asyncio.to_thread(_finish, root, old, new, await self._db.read(_derived, user_id))

    async def _values(self, user_id: str, layer: str, numbers: Mapping[str, list[int]]) -> AsyncIterator[list[Stored]]:
        ids = numbers[layer]
        for at in range(0, len(ids), BATCH):
            page = ids[at : at + BATCH]
            yield await self._db.read(values_of, user_id, layer, page)
            self._done += len(page)
            self._told(self._done)

    async def _patterns(self, root: Path, user_id: str, numbers: Mapping[str, list[int]], new: Manifest) -> None:
        """Write both files of patterns, some entries at a time."""
        await asyncio.to_thread(_make, root / SEMANTIC, root)
        with ExitStack() as open_files:
            lists = {
                anti: _List(open_files, root / SEMANTIC / name, key)
                for anti, name, key in ((False, PATTERNS, "patterns"), (True, ANTI_PATTERNS, "anti_patterns"))
            }
            async for values in self._values(user_id, "pattern", numbers):
                for one in values:
                    form = one.value.to_dict()
                    lists[one.anti].add(legible(form) if one.anti else form)
                    self._report.anti_patterns += one.anti
                    self._report.patterns += not one.anti
            for one_list in lists.values():
                one_list.end()
            await asyncio.to_thread(open_files.pop_all().close)
        for name in (PATTERNS, ANTI_PATTERNS):
            path = f"{SEMANTIC}/{name}"
            new.files[path] = digest(await asyncio.to_thread((root / path).read_bytes))

    def _skill(self, names: Names, skill: ProceduralSkill) -> list[tuple[str, bytes]]:
        path = names.of_skill(skill.id)
        files = [(f"{path}.json", _json(skill.to_dict()))]
        try:
            files.append((f"{path}.md", skill_to_markdown(skill).encode()))
        except InvalidInput as error:  # the .json holds it all the same
            self._report.skipped.append(Skipped(f"{path}.md", str(error)))
        return files


class _List:
    """A file that holds one list, written entry by entry."""

    def __init__(self, open_files: ExitStack, path: Path, key: str) -> None:
        self._file = open_files.enter_context(written_whole(path, None))
        self._file.write(f'{{\n"{key}": ['.encode())
        self._before = b"\n"

    def add(self, form: dict[str, Any]) -> None:
        """Write an entry."""
        self._file.write(self._before + _json(form).rstrip())
        self._before = b",\n"

    def end(self) -> None:
        """Write the end."""
        self._file.write(b"\n]\n}\n")


def _episode_path(names: Names, trace: EpisodeTrace) -> str:
    day = "undated" if trace.timestamp is None else to_iso(trace.timestamp)[:10]
    return f"{names.of_episode(day, trace.id)}.json"


def _write_all(root: Path, files: list[tuple[str, bytes]], new: Manifest) -> None:
    for path, data in files:
        _write(root, path, data)
        new.files[path] = digest(data)


def _write(root: Path, path: str, data: bytes) -> None:
    """Write a file whole, unless it says the same already."""
    target = root / path
    with told_of(target):
        _make(target.parent, root)
        if target.is_file() and not target.is_symlink() and target.read_bytes() == data:
            return
        if target.is_dir() and not target.is_symlink():
            raise AlreadyExists(f"{target} is a folder; move it away")
        unfinished = target.with_name(f".tmp_{uuid4().hex}.json")  # as the document's program calls its own
        try:
            unfinished.write_bytes(data)
            os.replace(unfinished, target)
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()


def _make(folder: Path, root: Path) -> None:
    """Make a folder, but never one to which a link leads out of the root."""
    with told_of(folder):
        inside = Path(os.path.realpath(folder))
        if not inside.is_relative_to(os.path.realpath(root)):
            raise InvalidInput(f"{folder} leads out of the folder by a link; move it away")
        folder.mkdir(parents=True, exist_ok=True)


def _finish(root: Path, old: Manifest, new: Manifest, last: list[tuple[str, bytes]]) -> None:
    """Write what is made of the rest, remove what is gone since the earlier export, and say what was written."""
    for path, data in last:
        _write(root, path, data)
    for path in old.files.keys() - new.files.keys():
        _remove(root, path)
    with written_whole(root / MANIFEST, None) as file:
        file.write(new.data())


def _remove(root: Path, path: str) -> None:
    """Remove a file of an earlier export, and its folder when that is empty then; the manifest is not trusted."""
    target = root / path
    try:
        inside = Path(os.path.realpath(target.parent)).is_relative_to(os.path.realpath(root))
        inside = inside and (target.is_symlink() or target.is_file())
    except (OSError, ValueError):  # no name that a file can have
        return
    if ".." in Path(path).parts or path.partition("/")[0] not in (EPISODES, SEMANTIC, SKILLS) or not inside:
        return
    with told_of(target, "remove"):
        target.unlink(missing_ok=True)
    with suppress(OSError):
        target.parent.rmdir()


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass")
