"""What a tree holds: its files, read one at a time, each with what it says or why it cannot be taken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdb.errors import InvalidInput, MemdbError, StorageError
from memdb.layers.runtime.envelope import check_file_id
from memdb.retrieval.notes.index_form import FileEntry
from memdb.scope import Scope
from memdb.storage.whole_file import told_of
from memdb.trees.layout import (
    GLOBAL_STATE,
    GLOBAL_WORKING,
    INDEX,
    PLANS,
    STATE,
    TOOL_RESULTS,
    WORKING,
    Owners,
    Roots,
)
from memdb.trees.reading import MAX_JSON_BYTES, as_text, contents

MAX_FILE_BYTES = 300 * 1024 * 1024
NOTE_ENDINGS = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a tree.

    Args:
        path: in the tree, with / between its parts.
        kind: "state", "working", "plan", "tool_result", "note" or "index".
        size: its bytes.
        scope: whose it is; None where that is why it is left out.
        id: of a plan or tool result; of a note the page's id where the tree says it.
        value: what it says: an envelope, a text, a note's bytes; None where it cannot be read.
        reason: why it is left out; "" where it is not.
        raw: its bytes where they say nothing that can be stored, for the quarantine.
        modified: of a text, when its file was last changed, in seconds since 1970.
        entry: of a note, what the index says of it.
    """

    path: str
    kind: str
    size: int = 0
    scope: Scope | None = None
    id: str = ""
    value: Any = None
    reason: str = ""
    raw: bytes = b""
    modified: float = 0.0
    entry: FileEntry | None = None


def found_in(roots: Roots, owners: Owners) -> Iterator[Found | None]:
    """Yield what a tree holds, a file at a time in memory; None for a file of another user."""
    if roots.runtime is not None:
        yield from _runtime(roots.runtime, owners)
    if roots.data is not None:
        yield from _data(roots.data, owners)


def _runtime(root: Path, owners: Owners) -> Iterator[Found | None]:
    for name in GLOBAL_STATE:
        if _is_plain(root / name):
            yield _json(root, name, "state", owners.unscoped)
    for name in GLOBAL_WORKING:
        if _is_plain(root / name):
            yield _text(root, name, "working", owners.unscoped)
    for folder, kind in ((STATE, "state"), (WORKING, "working")):
        ending = ".md" if kind == "working" else ".json"
        for path, stem in _files(root, folder, ending):
            owner = owners.of_stem(stem)
            if isinstance(owner, Scope):
                yield _text(root, path, kind, owner) if kind == "working" else _json(root, path, kind, owner)
            else:
                yield None if owner is None else Found(path, kind, reason=owner)
    for path, stem in _files(root, PLANS, ".json"):
        yield _plan(root, path, stem, owners)
    for path, stem in _files(root, TOOL_RESULTS, ".json"):
        scope_name, _, id = stem.rpartition(".")
        owner = owners.of_result(path.rpartition("/")[2], scope_name)
        if isinstance(owner, Scope):
            yield _enveloped(_json(root, path, "tool_result", owner), id)
        else:
            yield None if owner is None else Found(path, "tool_result", reason=owner)


def _plan(root: Path, path: str, stem: str, owners: Owners) -> Found | None:
    scope_name = stem.partition(".")[0]
    read = _enveloped(_json(root, path, "plan", owners.unscoped), "")
    if read.id == stem and not isinstance(owners.of_stem(scope_name), Scope):
        return read  # of the layout before scopes: a file an id
    owner = owners.of_stem(scope_name)
    if isinstance(owner, Scope):
        return Found(path, "plan", read.size, owner, read.id, read.value, read.reason, read.raw)
    return None if owner is None else Found(path, "plan", reason=owner)


def _data(root: Path, owners: Owners) -> Iterator[Found | None]:
    if _is_plain(root / INDEX):
        yield _json(root, INDEX, "index", owners.unscoped)
    with told_of(root, "read"):
        folders = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and entry.name[:1] != ".")
    for category in folders:
        for path, _ in _files(root, category, *NOTE_ENDINGS):
            owner = owners.of_note(path, path.rpartition("/")[2])
            if owner is None or isinstance(owner, str):
                yield None if owner is None else Found(path, "note", reason=owner)
                continue
            user_id, page_id = owner
            scope = Scope(user_id, owners.unscoped.session_id)
            raw, modified, reason = contents(root / path, MAX_FILE_BYTES)
            yield Found(path, "note", len(raw), scope, page_id or "", raw, reason, modified=modified)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _files(root: Path, folder: str, *endings: str) -> Iterator[tuple[str, str]]:
    """Yield the path and stem of each file of a folder and the folders in it, but for hidden ones and leftovers."""
    top = root / folder
    if top.is_symlink():
        return
    for place, folders, names in os.walk(top, onerror=_raised):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            ending = path.suffix.lower()
            if ending in endings and not name.startswith(".") and _is_plain(path):
                yield path.relative_to(root).as_posix(), name[: -len(ending)]


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a folder that cannot be listed is no empty one
        raise StorageError(f"cannot read {error.filename}: {error.strerror or error}") from error


def _text(root: Path, path: str, kind: str, scope: Scope) -> Found:
    raw, modified, reason = contents(root / path, MAX_FILE_BYTES)
    try:
        return Found(path, kind, len(raw), scope, value=as_text(raw), reason=reason, modified=modified)
    except InvalidInput as error:
        return Found(path, kind, len(raw), scope, reason=str(error), raw=raw)


def _json(root: Path, path: str, kind: str, scope: Scope) -> Found:
    raw, _, reason = contents(root / path, MAX_FILE_BYTES if kind == "tool_result" else MAX_JSON_BYTES)
    if reason:
        return Found(path, kind, scope=scope, reason=reason)
    try:
        value = json.loads(raw.decode("utf-8-sig"))
        if not isinstance(value, dict):
            raise InvalidInput("it is no JSON object")
        return Found(path, kind, len(raw), scope, value=value)
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, InvalidInput) else f"it is no JSON ({error})"
        return Found(path, kind, len(raw), scope, reason=said, raw=raw)


def _enveloped(read: Found, id: str) -> Found:
    """Return a plan or a tool result with its id, which the envelope says, else the file's name."""
    if read.reason:
        return read
    try:
        named = check_file_id(read.value.get("id", id))
        if not isinstance(read.value.get("payload"), dict):
            raise InvalidInput("its envelope has no object `payload`")
        return Found(read.path, read.kind, read.size, read.scope, named, read.value)
    except MemdbError as error:
        raw = json.dumps(read.value).encode()
        return Found(read.path, read.kind, read.size, read.scope, reason=str(error), raw=raw)
