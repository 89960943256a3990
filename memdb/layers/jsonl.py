"""A session as a file of JSON lines (LightGrep document, Session).

The first line is the session itself:

    {"_type": "metadata", "key": "s1", "created_at": "2026-11-30T09:00:00.000000Z", "updated_at": "...",
     "metadata": {}, "last_consolidated": 0}

and each further line a message: role and content, then tool_calls, tool_call_id and name where it has them, every other
key it came with, and its timestamp. Reading takes such a file, or one of messages alone; a timestamp may be missing,
null, ISO 8601 or seconds since 1970. Text is UTF-8.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from sqlalchemy import select

from memdb.errors import InvalidInput, MissingFile, StorageError
from memdb.layers import cursor, reading
from memdb.layers.conversation import ConversationMemory
from memdb.layers.json_values import exact_json
from memdb.layers.layer import Inside
from memdb.layers.message import MESSAGE, Message, as_moment, check_message, message_of
from memdb.layers.reading import here
from memdb.layers.record import Place, Record
from memdb.layers.stored_messages import LAST_KEY
from memdb.scope import Scope
from memdb.storage.clock import to_text
from memdb.storage.engine import Engine
from memdb.storage.lines import Line, json_lines
from memdb.storage.quarantine import keep_line
from memdb.storage.schema import record
from memdb.storage.sessions import list_sessions
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.storage.whole_file import belongs_to_database, file_path, told_of, written_whole
from memdb.text.json_text import to_exact_json

PAGE = 1_000  # messages read at once for an export
PER_UNIT = 10_000  # lines of one transaction of an import: other writers wait a second, no longer
BYTES_PER_UNIT = 8_000_000
PROBLEMS_KEPT = 5

_HEAD = "metadata"  # what the first line's _type says
_KEY_AT = Record._fields.index("key")
_ID = Statement(select(record.c.id).where(here(), record.c.key == param("key")))
_PAGE = Statement(
    MESSAGE.select(here(), record.c.key > param("after"), record.c.key <= param("upto"))
    .order_by(record.c.key)
    .limit(PAGE)
)


@dataclass(slots=True)
class ImportReport:
    """What an import did.

    Args:
        messages: how many were stored.
        skipped: how many lines were not, for they are damaged; the quarantine keeps them.
        problems: where the first of these stand, and what is wrong with them; also what of the first line was left out.
    """

    messages: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)


class _End(NamedTuple):
    """The message at which a page, or the whole export, ends; by its record, too: a position can be given anew."""

    record_id: int
    key: str


# -- writing ----------------------------------------------------------------------------------------------------------


async def export_session(engine: Engine, place: Place, path: str | os.PathLike[str]) -> int:
    """Write a session's messages to a file, whole or not at all; return how many.

    Messages that are added meanwhile are left out.

    Raises:
        InvalidInput: the path is a folder, lies in none, or is the database's own.
        StorageError: the file cannot be written, or the session is cleared meanwhile; an older file is as it was.
    """
    with told_of(path, "write"):
        target = _target(path, engine.path)
        return await _export(engine, place, target)


async def _export(engine: Engine, place: Place, target: Path) -> int:
    head, last = await engine.read(_head, place)
    count, end = 0, _End(0, "")
    with written_whole(target, engine.path) as file:
        await asyncio.to_thread(file.write, f"{to_exact_json(head)}\n".encode())
        while last is not None and end != last:
            end, messages = await engine.read(_page, place, end.key, last.key)
            await asyncio.to_thread(file.writelines, (f"{_as_line(message)}\n".encode() for message in messages))
            count += len(messages)
    return count


def _target(path: str | os.PathLike[str], database: Path | None) -> Path:
    """Return the path to write to, behind symbolic links."""
    target = file_path(path, "the path").resolve()
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInput(f"{target} cannot be written: name a file in a folder that is there")
    if belongs_to_database(target, database):
        raise InvalidInput(f"{target} belongs to the database itself; give the export another path")
    return target


def _head(tx: Transaction, place: Place) -> tuple[dict[str, Any], _End | None]:
    """Return the first line of an export and the last message that belongs to it."""
    info = next((info for info in list_sessions(tx, place.user_id) if info.session_id == place.session_id), None)
    head = {
        "_type": _HEAD,
        "key": place.session_id,
        "created_at": tx.now if info is None else to_text(info.created_at),
        "updated_at": tx.now if info is None else to_text(info.updated_at),
        "metadata": {} if info is None else info.metadata,
        "last_consolidated": cursor.consolidated(tx, place),
    }
    key = tx.value(LAST_KEY, **place.values())
    return head, None if key is None else _End(tx.value(_ID, **place.values(key=key)), key)


def _page(tx: Transaction, place: Place, after: str, upto: str) -> tuple[_End, list[Message]]:
    """Return the next messages, and where they end.

    Raises:
        StorageError: there are none, so the last that was to come is gone.
    """
    rows = tx.all(_PAGE, **place.values(after=after, upto=upto))
    if not rows:
        raise StorageError(f"the session {place.session_id!r} was cleared while it was exported; export it again")
    return _End(rows[-1][0], rows[-1][_KEY_AT]), [*reading.shaped(tx, rows, message_of, MESSAGE)]


def _as_line(message: Message) -> str:
    moment = {} if message.created_at is None else {"timestamp": to_text(message.created_at)}
    return to_exact_json({**message.to_dict(), **(message.model_extra or {}), **moment})


# -- reading ----------------------------------------------------------------------------------------------------------


class _About(NamedTuple):
    """What a first line says of the session: when it began ("" for unknown), and its metadata as JSON."""

    created_at: str
    metadata: str


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What one transaction stores.

    Args:
        messages: what the lines hold.
        damaged: the lines that hold none, each with the reason.
        cursor: at the file's end, how many of all its messages that were stored its cursor has passed; else 0.
    """

    messages: list[Message]
    damaged: list[tuple[Line, str]]
    cursor: int


class _File:
    """A session's file while it is read; its stream is to be closed."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise MissingFile(f"there is no file {path} to import")
        if not path.is_file():
            raise InvalidInput(f"{path} is no file of JSON lines; name one")
        self.stream: BinaryIO = path.open("rb")
        lines = json_lines(self.stream)
        first = next(lines, None)
        head: dict[str, Any] = first.value if first is not None and _is_head(first.value) else {}
        self._lines = lines if head or first is None else chain([first], lines)
        self.problems: list[str] = []
        self.about = _about(head, self.problems) if head else None
        cursor = head.get("last_consolidated")
        self._cursor = cursor if isinstance(cursor, int) and not isinstance(cursor, bool) else 0
        self._seen = self._passed = 0
        self._more = True

    def chunk(self) -> _Chunk | None:
        """Return what the next transaction stores; None after the end. An empty file gives an empty one."""
        if not self._more:
            return None
        lines = self._some_lines()
        messages: list[Message] = []
        damaged: list[tuple[Line, str]] = []
        for line in lines:
            self._seen += 1
            try:
                messages.append(_message(line))
                self._passed += self._seen <= self._cursor
            except InvalidInput as error:
                damaged.append((line, str(error)))
        ends = not self._more and 0 < self._cursor <= self._seen
        return _Chunk(messages, damaged, self._passed if ends else 0)

    def _some_lines(self) -> list[Line]:
        lines: list[Line] = []
        size = 0
        for line in self._lines:
            lines.append(line)
            size += line.size
            if len(lines) == PER_UNIT or size >= BYTES_PER_UNIT:
                return lines
        self._more = False
        return lines


async def import_session(engine: Engine, place: Place, path: str | os.PathLike[str]) -> ImportReport:
    """Append a file's messages to a session, up to 10,000 lines or 8 MB a transaction.

    The file's cursor is taken over when the session was empty; one that is no number of its messages counts as 0.

    Raises:
        MissingFile: there is no such file.
        InvalidInput: it is a folder or another thing that is no file.
        StorageError: it cannot be read.
    """
    with told_of(path, "read"):
        return await _import(engine, place, file_path(path, "the path"))


async def _import(engine: Engine, place: Place, path: Path) -> ImportReport:
    fresh: bool | None = None
    file = await asyncio.to_thread(_File, path)
    report = ImportReport(problems=file.problems)
    with file.stream:
        while (chunk := await asyncio.to_thread(file.chunk)) is not None:
            fresh = await engine.write(_store, place, file.about, chunk, fresh)
            report.messages += len(chunk.messages)
            report.skipped += len(chunk.damaged)
            room = PROBLEMS_KEPT - len(report.problems)
            report.problems += [f"line {line.number} was skipped: {why}" for line, why in chunk.damaged[:room]]
    return report


def _store(tx: Transaction, place: Place, about: _About | None, chunk: _Chunk, fresh: bool | None) -> bool:
    """Store one chunk: a unit. Returns whether the session was empty before the file's first."""
    if fresh is None:
        fresh = tx.value(LAST_KEY, **place.values()) is None
        if about is not None:
            cursor.remember_session(tx, place, about.created_at or tx.now, about.metadata)
    talk: ConversationMemory[Inside] = ConversationMemory(Scope(place.user_id, place.session_id), tx)
    talk.add_messages(chunk.messages)
    for line, reason in chunk.damaged:
        keep_line(tx, place.values(key=f"line {line.number}"), line.raw, reason)
    if fresh and chunk.cursor:
        cursor.consolidate(tx, place, chunk.cursor)
    return fresh


def _about(head: dict[str, Any], problems: list[str]) -> _About:
    """Return what a first line says; what of it cannot be kept is left out and told."""
    metadata, created_at = head.get("metadata"), ""
    try:
        text = exact_json(metadata, "metadata") if isinstance(metadata, dict) else "{}"
    except InvalidInput as error:
        text = "{}"
        problems.append(f"line 1: the session's metadata was left out: {error}")
    with suppress(InvalidInput):
        moment = as_moment(head.get("created_at"))
        created_at = to_text(moment) if moment else ""
    return _About(created_at, text)


def _is_head(value: object) -> bool:
    return isinstance(value, dict) and value.get("_type") == _HEAD and "role" not in value


def _message(line: Line) -> Message:
    if line.reason:
        raise InvalidInput(line.reason)
    if not isinstance(line.value, dict) or _is_head(line.value):
        raise InvalidInput('it is no message such as {"role": "user", "content": "..."}')
    message = Message.model_validate(line.value)
    check_message(message)
    return message
