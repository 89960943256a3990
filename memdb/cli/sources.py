"""What `memdb ingest` reads: files of JSONL or text, folders of text, stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from memdb.cli.rows import Row, lines, text_file
from memdb.errors import InvalidInput, MissingFile

STDIN = "-"
JSONL_FILES = (".jsonl", ".ndjson")
TEXT_FILES = (".md", ".markdown", ".txt")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or stdin.

    Args:
        path: the file; "-" for stdin.
        id: the page's id, for a file of text.
    """

    path: str
    id: str = ""

    @property
    def size(self) -> int:
        """How many bytes it has; 0 for stdin and where nobody can tell."""
        try:
            return 0 if self.path == STDIN else os.path.getsize(self.path)
        except OSError:
            return 0

    def rows(self) -> Iterator[Row]:
        """Yield what it holds, never more than one line or one text in memory."""
        try:
            if self.path == STDIN:
                yield from lines(sys.stdin.buffer, "line")
            elif self.id:
                yield text_file(self.path, self.id)
            else:
                with open(self.path, "rb") as file:
                    yield from lines(file, f"{self.path} line")
        except OSError as error:
            yield Row(self.path, 0, reason=f"it cannot be read ({error.strerror or error})")


def find_sources(paths: list[str]) -> list[Source]:
    """Return the files that paths name, for a folder all text files in it.

    Raises:
        MissingFile: a path that is not there.
        InvalidInput: a file of a kind that is not read, or two texts that would be one page.
    """
    found = [source for path in paths for source in _sources(path)]
    taken: dict[str, str] = {}
    for source in found:
        if source.id and (other := taken.setdefault(source.id, source.path)) != source.path:
            raise InvalidInput(
                f"{other} and {source.path} would both be the page {source.id!r}; ingest a folder that holds them both"
            )
    return found


def _sources(path: str) -> Iterator[Source]:
    ending = os.path.splitext(path)[1].lower()
    if path == STDIN:
        yield Source(path)
    elif os.path.isdir(path):
        yield from _in_folder(path)
    elif not os.path.exists(path):
        raise MissingFile(f"there is no file {path} to ingest")
    elif ending in JSONL_FILES:
        yield Source(path)
    elif ending in TEXT_FILES:
        yield Source(path, _id_of(path))
    else:
        known = " ".join((*JSONL_FILES, *TEXT_FILES))
        raise InvalidInput(f"{path} is of no kind that is read: {known}, a folder of text, or - for JSONL from stdin")


def _in_folder(folder: str) -> Iterator[Source]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if os.path.splitext(name)[1].lower() in TEXT_FILES and not name.startswith("."):
                path = os.path.join(here, name)
                yield Source(path, PurePath(os.path.relpath(path, folder)).as_posix())


def _id_of(path: str) -> str:
    """Return the id of a text that is named itself: its path as given, or only its name when that leads elsewhere."""
    normal = PurePath(os.path.normpath(path))
    return normal.name if normal.is_absolute() or ".." in normal.parts else normal.as_posix()
