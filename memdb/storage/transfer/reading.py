"""Reading an export: every line is checked before anything is stored, and named when something is wrong with it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from memdb.errors import InvalidInput, MemdbError, MissingFile, StorageError
from memdb.storage.lines import Line, json_lines
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.transfer.form import (
    LAYERS,
    OWN_FIELDS,
    QUARANTINE,
    RECALL,
    RECORD,
    SESSION,
    VERSION,
    check_identity,
    check_words,
    understand,
)
from memdb.storage.transfer.rows import References, Row
from memdb.storage.transfer.running import Course, Progress
from memdb.storage.transfer.target import is_database
from memdb.text.check import check_id

PROBLEMS_KEPT = 5
_COUNTED = ("records", "sessions", "quarantine")  # in the last line
_AT = {field.name: at for at, field in enumerate(RECORD)}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that can be stored.

    Args:
        number: its place in the file, from 1.
        size: how many bytes it takes.
        kind: "record", "session" or "quarantine".
        columns: those of RECORD, SESSION or QUARANTINE.
        references: layer and key of what a record points at.
        recall: the columns of RECALL; None when there are none.
        own: for each table of the record's layer that has a row of it, its columns.
        tags: the record's tags.
        keywords: the record's keywords.
        consolidated: the key of the session's last consolidated message; None where none is.
    """

    number: int
    size: int
    kind: str
    columns: Row
    references: References = field(default_factory=list)
    recall: Row | None = None
    own: dict[str, Row] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    consolidated: str | None = None

    @property
    def identity(self) -> Row:
        """Layer, session and key of a record."""
        return self.columns[:3]

    def column(self, name: str) -> Any:
        """Return a column of a record."""
        return self.columns[_AT[name]]


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

    Raises:
        InvalidInput: it is no export, or one that a newer memdb wrote.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
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
        except InvalidInput as error:
            raise InvalidInput(f"{name}, line 1: {error}") from None

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
                yield _entry(line)
            except MemdbError as error:
                yield Problem(line.number, str(error), line.size)
        if not ended:
            yield Problem(0, "the file is cut short: its closing line is missing")
        elif sum(count for name in _COUNTED if isinstance(count := end.get(name), int)) != between:
            yield Problem(0, f"the file is not whole: it has {between:,} lines, and its last line counts others")

    def _lines(self) -> Iterator[Line]:
        self._stream.seek(0)
        return json_lines(self._stream)


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
            f"{export.name}: {first}{others}; nothing was imported: --skip-damaged leaves out what is damaged"
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


# -- a line -----------------------------------------------------------------------------------------------------------


def _entry(line: Line) -> Entry:
    """Return what a line says.

    Raises:
        InvalidInput, SerializationError: it cannot be stored.
    """
    if line.reason:
        raise InvalidInput(line.reason)
    if not isinstance(line.value, dict):
        raise InvalidInput('it is no object such as {"kind": "record", ...}')
    fields = dict(line.value)
    kind = fields.pop("kind", None)
    made = _MAKERS.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise InvalidInput(f"its kind is {str(kind)[:40]!r}, which this memdb does not know")
    entry = made(line, fields)
    _nothing_left(fields)
    return entry


def _record(line: Line, fields: dict[str, Any]) -> Entry:
    columns = understand(RECORD, fields)
    check_identity(*columns[:3])
    layer = columns[0]
    if layer not in LAYERS:
        raise InvalidInput(f"its layer is {layer[:40]!r}, which this memdb does not know")
    own: dict[str, Row] = {}
    for table in LAYERS[layer]:
        name = table.table.name
        if name in fields:
            own[name] = _within(OWN_FIELDS[name], fields.pop(name), name)
        elif table.always:
            raise InvalidInput(f"a record of layer {layer!r} needs the field {name}")
    return Entry(
        line.number,
        line.size,
        "record",
        columns,
        references=_references(fields.pop("references", [])),
        recall=_within(RECALL, fields.pop("recall"), "recall") if "recall" in fields else None,
        own=own,
        tags=check_words(columns[_AT["tags"]], "tags"),
        keywords=check_words(columns[_AT["keywords"]], "keywords"),
    )


def _session(line: Line, fields: dict[str, Any]) -> Entry:
    columns = understand(SESSION, fields)
    check_id(columns[0], "session_id")
    consolidated = None
    if "consolidated" in fields:
        ((layer, consolidated),) = _references([fields.pop("consolidated")], "consolidated")
        if layer != "message":
            raise InvalidInput(f"consolidated must name a message, not a record of layer {layer[:40]!r}")
    return Entry(line.number, line.size, "session", columns, consolidated=consolidated)


def _quarantine(line: Line, fields: dict[str, Any]) -> Entry:
    return Entry(line.number, line.size, "quarantine", understand(QUARANTINE, fields))


_MAKERS = {"record": _record, "session": _session, "quarantine": _quarantine}


def _within(columns: Any, value: Any, name: str) -> Row:
    if not isinstance(value, dict):
        raise InvalidInput(f"the field {name} must be an object, not {type(value).__name__}")
    fields = dict(value)
    try:
        found = understand(columns, fields)
        _nothing_left(fields)
    except InvalidInput as error:
        raise InvalidInput(f"in {name}, {error}") from None
    return found


def _references(value: Any, name: str = "references") -> References:
    if not isinstance(value, list):
        raise InvalidInput(f"the field {name} must be a list, not {type(value).__name__}")
    found: References = []
    for target in value:
        if not isinstance(target, dict) or target.keys() != {"layer", "key"}:
            raise InvalidInput(f'the field {name} must hold objects such as {{"layer": "page", "key": "auth"}}')
        check_identity(target["layer"], "", target["key"])
        found.append((target["layer"], target["key"]))
    return found


def _nothing_left(fields: dict[str, Any]) -> None:
    if fields:
        raise InvalidInput(f"the field {next(iter(fields))[:40]!r} is none that this memdb knows")
