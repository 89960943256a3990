"""What memdb says of a .loki/memory folder that it wrote: whose it is, and what each file was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from memdb.errors import AlreadyExists
from memdb.storage.whole_file import told_of
from memdb.text.check import check_id
from memdb.trees.files import files
from memdb.trees.loki.layout import EPISODES, MANIFEST, SEMANTIC, SKILLS
from memdb.trees.reading import read_manifest

VERSION = 1
_FOLDERS = ((EPISODES, ".json"), (SEMANTIC, ".json"), (SKILLS, ".json"), (SKILLS, ".md"))


@dataclass(slots=True)
class Manifest:
    """What `memdb.json` says.

    Args:
        user_id: whose memory it is.
        files: the hash of each file by its path.
    """

    user_id: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> Self | None:
        """Return what a folder's manifest says; None where it has none.

        Raises:
            InvalidInput: a newer memdb wrote it, or it is damaged.
        """
        path = root / MANIFEST
        with told_of(path, "read"):
            if not path.is_file():
                return None
        return read_manifest(path, "experience", VERSION, cls._made)

    @classmethod
    def _made(cls, value: dict[str, Any]) -> Self:
        files = {str(name): str(of) for name, of in value["files"].items()}
        return cls(check_id(value["user_id"], "its user_id"), files)

    def data(self) -> bytes:
        """Return the file's bytes."""
        said = {"memdb": "experience", "version": VERSION, **asdict(self)}
        return (json.dumps(said, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode("utf-8", "surrogatepass")

    def check(self, root: Path) -> None:
        """Refuse a folder in which anything is other than memdb wrote it.

        Raises:
            AlreadyExists: another program has written there since.
        """
        for folder, ending in _FOLDERS:
            for file in files(root, folder, ending):
                if file.reason or digest((root / file.path).read_bytes()) != self.files.get(file.path):
                    raise AlreadyExists(
                        f"{root / file.path} is other than memdb wrote it: import the folder first, or name another "
                        "one; force replaces it"
                    )


def digest(data: bytes) -> str:
    """Return the hash of a file's bytes."""
    return sha256(data).hexdigest()[:32]
