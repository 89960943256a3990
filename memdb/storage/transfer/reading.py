"""Reading an export: every line is checked before anything is stored, and named when something is wrong with it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memdb.errors import InvalidInput, MemdbError, MissingFile, StorageError
from memdb.storage.lines import Line, json_lines
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.transfer.entry import Entry, entry_of
from memdb.storage.transfer.form import COUNTED, VERSION
from memdb.storage.transfer.running import Course, Progress
from memdb.storage.transfer.target import is_database
from memdb.storage.whole_file import told_of
from memdb.text.check import check_id

PROBLEMS_KEPT = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a line, or with the file (number 0)."""

    number: int
    reason: str
    size: int = 0

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}" if self.number else self.reason


class ExportFile:
    """An export that is being read. Made by examined().

    Args:
        stream: its bytes, from the beginning; must be seekable.
        name: what messages call it.

    Has `user_id`, whose memory it is; `session_id`, where it is only of one; and `of_scope`, whether it is the state of
    one scope: of that session, and what the user has of no session.

    Raises:
        InvalidInput: it is no export, or one that a newer memdb wrote.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        with told_of(name, "read"):
            self.bytes = stream.seek(0, os.SEEK_END)
        self._stream = stream
        head = next(self._lines(), None)
        value = None if head is None or head.reason else head.value
        if not isinstance(value, dict) or value.get("memdb") != "export":
            raise InvalidInput(f'{name} is no export of memdb: its first line is not {{"memdb": "export", ...}}')
        for what, known in (("version", VERSION), ("schema", SCHEMA_VERSION)):
            number = value.get(what)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise InvalidInput(f"{name}, line 1: the {what} is no number from 1 on")
            if number > known:
                raise InvalidInput(
                    f"{name} was written by a newer memdb ({what} {str(number)[:20]}, this one knows {known}): install"
                    " that one to import it"
                )
        try:
            self.user_id = check_id(value.get("user_id"), "user_id")
            session_id = value.get("session_id")
            self.session_id = None if session_id is None else check_id(session_id, "session_id")
        except InvalidInput as error:
            raise InvalidInput(f"{name}, line 1: {error}") from None
        self.of_scope = self.session_id is not None and value.get("and_user") is True

    def entries(self) -> Iterator[Entry | Problem]:
        """Yield every line after the head, in order, then what is wrong with the file as a whole."""
        lines = self._lines()
        next(lines, None)
        ended, between = False, 0
        end: dict[str, Any] = {}
        for line in lines:
            if ended:
                yield Problem(line.number, "it stands after the closing line", line.size)
                continue
            kind = line.value.get("kind") if isinstance(line.value, dict) else None
            if kind == "end":
                ended, end = True, line.value
                continue
            between += 1
            try:
                yield entry_of(line)
            except MemdbError as error:
                yield Problem(line.number, str(error), line.size)
        if not ended:
            yield Problem(0, "the file is cut short: its closing line is missing")
        elif sum(count for name in COUNTED.values() if isinstance(count := end.get(name), int)) != between:
            yield Problem(0, f"the file is not whole: it has {between:,} lines, and its last line counts others")

    def _lines(self) -> Iterator[Line]:
        with told_of(self.name, "read"):
            self._stream.seek(0)
            yield from json_lines(self._stream)


@contextmanager
def examined(
    source: str | os.PathLike[str] | BinaryIO, *, skip_damaged: bool = False, progress: Progress | None = None
) -> Iterator[ExportFile]:
    """Open an export and check every line of it.

    Args:
        source: its path, or a binary stream, which is copied to a temporary file first when it cannot be read twice.
        skip_damaged: whether lines that cannot be imported may be left out, and a file that is cut short is taken.
        progress: told how many bytes are checked, of how many.

    Raises:
        MissingFile, StorageError: it is not there, or cannot be read.
        InvalidInput: it is no export, or one of a newer memdb, or a line of it cannot be imported.
    """
    with _stream(source) as (stream, name):
        export = ExportFile(stream, name)
        if not skip_damaged:
            _check(export, Course(progress))
        yield export


def _check(export: ExportFile, course: Course) -> None:
    first, count, done = None, 0, 0
    for at, entry in enumerate(export.entries()):
        if isinstance(entry, Problem):
            count += 1
            if first is None or not entry.number:  # of the file as a whole: it tells most
                first = entry
        done += entry.size
        if at % 500 == 0:
            course.at(done, export.bytes)
    if first is not None:
        others = f" (and {count - 1:,} more)" if count > 1 else ""
        raise InvalidInput(
            f"{export.name}: {first}{others}; nothing was imported: `memdb import --skip-damaged` leaves out what is"
            " damaged"
        )


@contextmanager
def _stream(source: str | os.PathLike[str] | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    if not isinstance(source, str | os.PathLike):
        if source.seekable():
            yield source, "the export"
            return
        with tempfile.TemporaryFile() as copy:  # it is read twice
            shutil.copyfileobj(source, copy)
            yield copy, "the export"
        return
    path = Path(source)
    try:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder, no export")
        if path.is_file() and is_database(path):
            raise InvalidInput(f"{path} is a database, no export; make one with `memdb export {path}`")
        file = path.open("rb")
    except FileNotFoundError:
        raise MissingFile(f"there is no file {path} to import") from None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    with file, _stream(file) as (stream, _):
        yield stream, str(path)
