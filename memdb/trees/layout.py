"""What the files of a tree are called, and whose they are."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memdb.errors import InvalidInput, MissingFile
from memdb.scope import Scope
from memdb.storage.whole_file import file_path, told_of
from memdb.text.check import check_id, is_valid
from memdb.trees.loki.layout import root_in
from memdb.trees.reading import read_manifest

RUNTIME, DATA = "memory", "memory_data"
STATE, WORKING, PLANS, TOOL_RESULTS = "state", "working", "plans", "tool_results"
MANIFEST, INDEX = "scopes.json", "memory_index.json"
GLOBAL_STATE = ("state.json", "agent_state.json")  # of the layout before scopes
GLOBAL_WORKING = ("working_memory.md", "working.md")
VERSION = 1  # of the manifest

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
MAX_STEM_CHARS = 100


@dataclass(frozen=True, slots=True)
class Roots:
    """Where a tree's two parts are; None for one that is not there."""

    runtime: Path | None
    data: Path | None


def find_roots(folder: object) -> Roots:
    """Return the parts of the tree in a folder: that of both, or one of them itself.

    Raises:
        MissingFile: there is no such folder.
        InvalidInput: it holds neither part, or is one of .loki/memory.
    """
    path = file_path(folder, "the tree")
    named = (STATE, WORKING, PLANS, TOOL_RESULTS, *GLOBAL_STATE, *GLOBAL_WORKING)
    with told_of(path, "read"):
        if not path.is_dir():
            kind = f"{path} is no folder" if path.exists() else f"there is no folder {path} to import"
            raise InvalidInput(kind) if path.exists() else MissingFile(kind)
        runtime = path / RUNTIME if (path / RUNTIME).is_dir() else None
        data = path / DATA if (path / DATA).is_dir() else None
        if runtime is None and data is None:
            runtime = path if any((path / name).exists() for name in named) else None
            data = path if runtime is None and (path.name == DATA or (path / INDEX).exists()) else None
        is_tree = data is not None or (runtime is not None and any((runtime / name).exists() for name in named))
        of_loki = None if is_tree else root_in(path)
    if of_loki is not None:
        raise InvalidInput(
            f"{of_loki} holds episodes, patterns or skills of loki: import it with memdb.import_experience(db, folder)"
        )
    if runtime is None and data is None:
        raise InvalidInput(
            f"{path} holds no {RUNTIME}/ and no {DATA}/: name the folder that does, or use `memdb sync` for plain notes"
        )
    return Roots(runtime, data)


@dataclass(slots=True)
class Manifest:
    """What `scopes.json` says: whose each file is, where its name does not say it for certain.

    Args:
        scopes: user and session by the name that stands for them.
        results: user and session by the name of a file in tool_results/.
        notes: user and page id by the path of a note in memory_data/.
    """

    scopes: dict[str, tuple[str, str]] = field(default_factory=dict)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, runtime: Path | None) -> Manifest:
        """Return what the tree's manifest says; an empty one where it has none.

        Raises:
            InvalidInput: a newer memdb wrote it, or it is damaged.
        """
        path = None if runtime is None else runtime / MANIFEST
        if path is None or not path.is_file():
            return cls()
        return read_manifest(
            path, "tree", VERSION, lambda value: cls(*(_pairs(value[name]) for name in ("scopes", "results", "notes")))
        )

    def text(self) -> str:
        """Return the file's text."""
        said = {"memdb": "tree", "version": VERSION, **asdict(self)}
        return json.dumps(said, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def stem(text: str) -> str:
    """Return a text as a file's name: itself where it can be one."""
    safe = _UNSAFE.sub("-", text)
    return text if safe == text and len(text) <= MAX_STEM_CHARS else f"{safe[:MAX_STEM_CHARS]}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class FileNaming:
    """Names for files of a tree that is written; what a manifest says already stays.

    Args:
        manifest: is told of each name.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._names = {whose: name for name, whose in manifest.scopes.items()}
        # Folded: on some disks letter case does not count.
        self._results = {file.casefold(): (file, whose) for file, whose in manifest.results.items()}
        self._taken = {name.casefold() for name in manifest.scopes}

    def of_scope(self, scope: Scope) -> str:
        """Return the name that stands for a scope; where it is another's, it gets one of its own."""
        whose = (scope.user_id, scope.session_id)
        if whose not in self._names:
            name = stem("_".join(whose))
            if name.casefold() in self._taken:
                name = f"{name[:MAX_STEM_CHARS]}-{_digest(repr(whose))}"
            self._names[whose] = name
            self._taken.add(name.casefold())
        self._manifest.scopes[self._names[whose]] = whose
        return self._names[whose]

    def of_result(self, scope: Scope, id: str) -> str:
        """Return the name of a tool result's file: its id, unless that is taken."""
        whose = (scope.user_id, scope.session_id)
        name = self.of_scope(scope)
        for file in (f"{id}.json", f"{name}.{stem(id)}.json", f"{name}.{stem(id + '.')}.json"):
            if self._results.setdefault(file.casefold(), (file, whose)) == (file, whose):
                break
        self._manifest.results[file] = whose
        return file


def _pairs(value: Any) -> dict[str, tuple[str, str]]:
    pairs = {name: (first, second) for name, (first, second) in value.items()}
    for pair in pairs.values():
        for part in pair:
            check_id(part, "an id in it")
    return pairs


class Owners:
    """Whose files are, by their names.

    Args:
        manifest: what the tree says itself.
        user_id: the user that is imported; None for all whose names are certain.
        session_id: the session of what belongs to none.
    """

    def __init__(self, manifest: Manifest, user_id: str | None, session_id: str, default_user: str) -> None:
        self._manifest = manifest
        self._user_id = user_id
        self.unscoped = Scope(user_id or default_user, session_id)

    def of_stem(self, name: str) -> Scope | str | None:
        """Return the scope that a name stands for; why it is not known; None when it is another user's."""
        if not is_valid(name):
            return "its name is not UTF-8: give it another"
        if name in self._manifest.scopes:
            user_id, session_id = self._manifest.scopes[name]
            return Scope(user_id, session_id) if self._user_id in (None, user_id) else None
        if self._user_id is not None:
            session_id = name.removeprefix(f"{self._user_id}_")
            return Scope(self._user_id, session_id) if session_id and session_id != name else None
        user_id, _, session_id = name.partition("_")
        if user_id and session_id and "_" not in session_id:
            return Scope(user_id, session_id)
        return f"its name does not say where the user's id ends in {name!r}: name the user"

    def of_result(self, file: str, name: str) -> Scope | str | None:
        """Return the scope of a tool result; `name` is what stands before its id, "" where nothing does."""
        if not is_valid(file):
            return "its name is not UTF-8: give it another"
        if file in self._manifest.results:
            user_id, session_id = self._manifest.results[file]
            return Scope(user_id, session_id) if self._user_id in (None, user_id) else None
        return self.of_stem(name) if name else self.unscoped

    def of_note(self, path: str, filename: str) -> tuple[str, str | None] | str | None:
        """Return the user of a note, and the page's id where the tree says it; or as of_stem does."""
        if not is_valid(path):
            return "its name is not UTF-8: give it another"
        if path in self._manifest.notes:
            user_id, page_id = self._manifest.notes[path]
            return (user_id, page_id) if self._user_id in (None, user_id) else None
        if "_" not in filename:
            return self.unscoped.user_id, None
        if self._user_id is not None:
            return (self._user_id, None) if filename.startswith(f"{self._user_id}_") else None
        return f"its name does not say where the user's id ends in {filename!r}: name the user"
