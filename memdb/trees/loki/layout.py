"""Where in a folder the memory of the loki document lies, and whose its parts are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from memdb.errors import InvalidInput, MissingFile
from memdb.storage.whole_file import file_path, told_of
from memdb.text.check import check_id
from memdb.text.shown import shown

EPISODES, SEMANTIC, SKILLS = "episodic", "semantic", "skills"
PATTERNS, ANTI_PATTERNS = "patterns.json", "anti-patterns.json"
INDEX, TIMELINE, MANIFEST = "index.json", "timeline.json", "memdb.json"
# What the document's program keeps beside: made of the rest, or no memory that it would find again.
BESIDE = ("vectors", "ledgers", "handoffs", "learnings")

_NAMESPACE = re.compile(r"[A-Za-z0-9_-]+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TAKEN = frozenset((EPISODES, SEMANTIC, SKILLS, *BESIDE))
MAX_NAMESPACE_CHARS = 100


def is_day(name: str) -> bool:
    """Return whether a folder of episodes is that of a day."""
    return _DAY.fullmatch(name) is not None


def find_root(folder: object) -> Path:
    """Return where the memory lies: the folder itself, or `memory` or `.loki/memory` in it.

    Raises:
        MissingFile: there is no such folder.
        InvalidInput: it holds none.
    """
    path = file_path(folder, "the folder")
    found = root_in(path)
    if found is None:
        if not path.exists():
            raise MissingFile(f"there is no folder {path} to import")
        raise InvalidInput(f"{path} holds no episodes, patterns or skills: name the folder .loki/memory itself")
    return found


def root_in(path: Path) -> Path | None:
    """Return where in a folder the memory lies; None where it holds none."""
    with told_of(path, "read"):
        places = [place for place in (path, path / "memory", path / ".loki" / "memory") if place.is_dir()]
        for place in places:
            if _holds_memory(place):
                return place
        return next((place for place in places if namespaces_in(place)), None)


def namespaces_in(root: Path) -> list[str]:
    """Return the namespaces that a memory has, sorted; folders that are links are none."""
    with told_of(root, "read"), os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and is_namespace(entry.name)]
    return sorted(name for name in names if _holds_memory(root / name))


def is_namespace(name: str) -> bool:
    """Return whether a folder's name can be that of a namespace."""
    return len(name) <= MAX_NAMESPACE_CHARS and _NAMESPACE.fullmatch(name) is not None and name not in _TAKEN


def _holds_memory(root: Path) -> bool:
    semantic, skills, episodes = root / SEMANTIC, root / SKILLS, root / EPISODES
    if (semantic / PATTERNS).is_file() or (semantic / ANTI_PATTERNS).is_file():
        return True
    if episodes.is_dir() and any(is_day(name) for name in os.listdir(episodes)):
        return True
    if not skills.is_dir():
        return False
    endings = {os.path.splitext(name)[1] for name in os.listdir(skills)}
    return ".json" in endings or (".md" in endings and (root / INDEX).is_file() and (root / TIMELINE).is_file())


class Part(NamedTuple):
    """The memory of one user in a folder.

    Args:
        namespace: the folder in it; "" for the folder itself.
        user_id: whose it is.
    """

    namespace: str
    user_id: str

    def path(self, root: Path) -> Path:
        """Return where it lies."""
        return root / self.namespace if self.namespace else root


def user_of(user_id: str, namespace: str) -> str:
    """Return the user that a namespace of a user becomes, unless another is named: alice/reviews."""
    return check_id(f"{user_id}/{namespace}", f"the user of the namespace {namespace!r}")


def parts_of(user_id: str, namespaces: Mapping[str, str | None]) -> list[Part]:
    """Return the user's own part and those of the namespaces.

    Args:
        namespaces: the user that each is of; None for <user>/<namespace>.

    Raises:
        InvalidInput: a name can be none of a namespace, an id is no valid text, or two parts are of one user.
    """
    parts = [Part("", check_id(user_id, "user_id"))]
    if not isinstance(namespaces, Mapping):
        raise InvalidInput("namespaces must be a dict: the user of each namespace, or None for <user>/<namespace>")
    for name, owner in namespaces.items():
        if not isinstance(name, str) or not is_namespace(name):
            raise InvalidInput(
                f"{shown(name)} cannot be a namespace: take at most {MAX_NAMESPACE_CHARS} of A-Z, a-z, 0-9, _ "
                f"and -, and none of {', '.join(sorted(_TAKEN))}"
            )
        parts.append(Part(name, user_of(user_id, name) if owner is None else check_id(owner, "a namespace's user")))
    owners = [part.user_id for part in parts]
    if twice := next((owner for owner in owners if owners.count(owner) > 1), None):
        raise InvalidInput(
            f"two parts of the folder would be of user {twice[:60]!r}; give each namespace a user of its own"
        )
    return parts
