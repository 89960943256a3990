"""The files of a folder that is not trusted: links are not followed, and told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memdb.errors import StorageError
from memdb.text.check import is_valid

LINK = "it is a link, and links are not followed"


class File(NamedTuple):
    """A file.

    Args:
        path: in the root, with / between its parts.
        stem: its name without the ending.
        reason: why it is not read; "" where it can be.
    """

    path: str
    stem: str
    reason: str = ""


def files(root: Path, folder: str, *endings: str, deep: bool = True) -> Iterator[File]:
    """Yield the files of a folder with one of some endings, sorted; hidden ones and what lies beside is passed over.

    Args:
        folder: in the root; when it is not there, there are none.
        deep: whether the folders in it are looked into, too.

    Raises:
        StorageError: a folder cannot be listed: it is no empty one.
    """
    top = root / folder
    if top.is_symlink():
        yield File(folder, "", LINK)
        return
    for place, folders, names in os.walk(top, onerror=_raised):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()] if deep else []
        folders[:] = sorted(name for name in folders if deep and not name.startswith(".") and name not in links)
        for name in sorted(links):
            yield File(_within(root, here / name), "", LINK)
        for name in sorted(names):
            stem, its = os.path.splitext(name)
            if its.lower() not in endings or name.startswith("."):
                continue
            path = here / name
            within = _within(root, path)
            if path.is_symlink():
                yield File(within, stem, LINK)
            elif path.is_file():
                yield File(within, stem, "" if is_valid(within) else "its name is not UTF-8: give it another")


def _within(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise StorageError(f"cannot read {error.filename}: {error.strerror or error}") from error
