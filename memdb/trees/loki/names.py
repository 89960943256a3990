"""What the files of a folder that is written are called: by ids, which may be any text."""

from __future__ import annotations

import re
from pathlib import Path

from memdb.trees.layout import MAX_STEM_CHARS, stem
from memdb.trees.loki.found import found_in
from memdb.trees.loki.layout import EPISODES, SKILLS, Part
from memdb.trees.loki.manifest import digest

_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)  # no file of some systems may be called so


class Names:
    """Names for files that differ by more than letter case.

    Args:
        root: a folder in which another program may have written: what it holds keeps the names that it has there; None
            for one in which none has.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._known: dict[tuple[str, str], str] = {}
        for found in found_in(root, Part("", "")) if root is not None else ():
            if found.value is not None and found.layer != "pattern":
                self._known.setdefault((found.layer, found.value.id), found.path.rpartition(".")[0])
        self._taken = {path.casefold() for path in self._known.values()}

    def of_episode(self, day: str, id: str) -> str:
        """Return the path of an episode's file without its ending."""
        return self._known.get(("episode", id)) or self._new(f"{EPISODES}/{day}", "task-", id)

    def of_skill(self, id: str) -> str:
        """Return the path of a skill's files without their endings."""
        return self._known.get(("skill", id)) or self._new(SKILLS, "", id)

    def _new(self, folder: str, before: str, id: str) -> str:
        """Return a path: of the id itself where it can be a name and is not taken."""
        name = stem(id)
        path = f"{folder}/{before}{name}"
        if not id or _RESERVED.fullmatch(before + name) or path.casefold() in self._taken:
            path = f"{folder}/{before}{name[:MAX_STEM_CHARS]}-{digest(id.encode())[:12]}"
        self._taken.add(path.casefold())
        return path
