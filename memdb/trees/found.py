"""What a tree holds: its files, read one at a time, each with what it says or why it cannot be taken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memdb.errors import InvalidInput, MemdbError
from memdb.layers.runtime.envelope import check_file_id
from memdb.retrieval.notes.index_form import FileEntry
from memdb.scope import Scope
from memdb.storage.whole_file import told_of
from memdb.trees.files import File, files
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
from memdb.trees.reading import MAX_JSON_BYTES, as_object, as_text, contents

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
    for folder, ending, kind, read in _FOLDERS:
        for file in files(root, folder, ending):
            yield Found(file.path, kind, reason=file.reason) if file.reason else read(root, file, kind, owners)


def _scoped(root: Path, file: File, kind: str, owners: Owners) -> Found | None:
    """Return a state or a working memory, whose name says whose it is."""
    owner = owners.of_stem(file.stem)
    if not isinstance(owner, Scope):
        return _not_ours(file, kind, owner)
    return (_text if kind == "working" else _json)(root, file.path, kind, owner)


def _tool_result(root: Path, file: File, kind: str, owners: Owners) -> Found | None:
    scope_name, _, id = file.stem.rpartition(".")
    owner = owners.of_result(file.path.rpartition("/")[2], scope_name)
    if not isinstance(owner, Scope):
        return _not_ours(file, kind, owner)
    return _enveloped(_json(root, file.path, kind, owner), id)


def _plan(root: Path, file: File, kind: str, owners: Owners) -> Found | None:
    read = _enveloped(_json(root, file.path, kind, owners.unscoped), "")
    owner = owners.of_stem(file.stem.partition(".")[0])
    if isinstance(owner, Scope):
        return replace(read, scope=owner)
    if read.id == file.stem:
        return read  # of the layout before scopes: a file an id
    return _not_ours(file, kind, owner)


def _not_ours(file: File, kind: str, owner: str | None) -> Found | None:
    """Return that a file is left out, because its owner is unknown; None where it is another user's."""
    return None if owner is None else Found(file.path, kind, reason=owner)


_FOLDERS = (
    (STATE, ".json", "state", _scoped),
    (WORKING, ".md", "working", _scoped),
    (PLANS, ".json", "plan", _plan),
    (TOOL_RESULTS, ".json", "tool_result", _tool_result),
)


def _data(root: Path, owners: Owners) -> Iterator[Found | None]:
    if _is_plain(root / INDEX):
        yield _json(root, INDEX, "index", owners.unscoped)
    with told_of(root, "read"):
        folders = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and entry.name[:1] != ".")
    for category in folders:
        for file in files(root, category, *NOTE_ENDINGS):
            yield Found(file.path, "note", reason=file.reason) if file.reason else _note(root, file.path, owners)


def _note(root: Path, path: str, owners: Owners) -> Found | None:
    owner = owners.of_note(path, path.rpartition("/")[2])
    if owner is None or isinstance(owner, str):
        return None if owner is None else Found(path, "note", reason=owner)
    user_id, page_id = owner
    scope = Scope(user_id, owners.unscoped.session_id)
    raw, modified, reason = contents(root / path, MAX_FILE_BYTES)
    return Found(path, "note", len(raw), scope, page_id or "", raw, reason, modified=modified)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


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
        return Found(path, kind, len(raw), scope, value=as_object(raw))
    except InvalidInput as error:
        return Found(path, kind, len(raw), scope, reason=str(error), raw=raw)


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
