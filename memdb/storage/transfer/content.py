"""What an export says, line for line, as the file is at one moment: the head, what can be read, the rest as bytes."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memdb.errors import NotFound, SerializationError
from memdb.storage.lines import MAX_LINE_BYTES
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.transfer import payloads, relations, rows, standing
from memdb.storage.transfer.fields import as_line, say
from memdb.storage.transfer.form import COUNTED, QUARANTINE, SESSION, STANDING, VERSION
from memdb.storage.transfer.relations import StoredRelation
from memdb.storage.transfer.rows import PAGE, Row, Stored, Whose
from memdb.storage.transfer.running import Course
from memdb.text.check import MAX_ID_CHARS

PROBLEMS_KEPT = 5

Line = dict[str, Any]


@dataclass(slots=True)
class Exported:
    """What an export wrote.

    Args:
        user_id: whose memory.
        records: how many records, and rows that are none: states, checkpoints, earlier texts and the like.
        layers: how many of them in each layer.
        relations: relations between entities.
        sessions: sessions of which more is known than their records say.
        quarantine: rows with their raw bytes, the damaged ones among them.
        damaged: records, relations, sessions and rows of the quarantine that could not be read.
        problems: which the first of these are, and what is wrong with them.
        bytes: the size of what was written.
    """

    user_id: str
    records: int = 0
    layers: dict[str, int] = field(default_factory=dict)
    relations: int = 0
    sessions: int = 0
    quarantine: int = 0
    damaged: int = 0
    problems: list[str] = field(default_factory=list)
    bytes: int = 0


# Ids alone are sorted: a sort of whole rows would take as much room as they do.
_IDS = "SELECT id FROM record WHERE {whose} ORDER BY +id"
_COUNTS = tuple(
    f"SELECT count(*) FROM {name} WHERE {{whose}}" for name in ("record", "session", "quarantine", *STANDING)
)


class Content:
    """What an export says, inside its snapshot.

    Args:
        connection: reads text leniently.
        whose: whose rows.
        now: the present time in the stored text form.
        course: told how many records are written.

    Raises:
        NotFound: there is nothing to write.
    """

    def __init__(self, connection: sqlite3.Connection, whose: Whose, now: str, course: Course) -> None:
        self._connection = connection
        self._whose = whose
        self._now = now
        self._course = course
        self._report = Exported(whose.user_id)
        self._damaged = array("q")  # numbers of records that cannot be read
        self._loose = array("q")  # and of relations
        self._payloads: set[str] = set()  # the hashes of those that are whole
        self._counts: Counter[str] = Counter()
        counts = [rows.of_user(connection, query, whose).fetchone()[0] for query in _COUNTS]
        self._total: int = counts[0]
        if not any(counts) and not whose.and_user:  # the state of a scope may say that there is nothing
            where = "" if whose.session_id is None else f" in the session {whose.session_id!r}"
            raise NotFound(f"the file holds nothing of user {whose.user_id!r}{where}; nothing was exported")

    def write(self, put: Callable[[bytes], Any]) -> Exported:
        """Write every line; return what was written.

        Raises:
            SerializationError: one is too long to be read again.
        """
        for line in self._lines():
            text = as_line(line)
            if len(text) > MAX_LINE_BYTES:
                raise SerializationError(
                    f"the {line['kind']} {line.get('key', '')!r} of layer {line.get('layer', '')!r} takes {len(text):,}"
                    f" bytes, a line of an export at most {MAX_LINE_BYTES:,}: shorten it or delete it first"
                )
            put(text)
            self._report.bytes += len(text)
        return self._report

    def _lines(self) -> Iterator[Line]:
        yield self._head()
        for line in self._content():
            self._counts[line["kind"]] += 1
            yield line
        yield {"kind": "end", **{name: self._counts[kind] for kind, name in COUNTED.items()}}

    def _content(self) -> Iterator[Line]:
        yield from payloads.said_payloads(self._connection, self._whose, self._payloads)
        for found in self._stored(self._ids()):
            if line := self._readable(rows.said_record, found, self._payloads):
                self._added(line["layer"])
                yield line
            else:
                self._damaged.append(found.id)
        unreadable = set(self._damaged)
        for relation in self._relations(self._relation_ids()):
            if line := self._readable(relations.said_relation, relation, unreadable):
                self._report.relations += 1
                yield line
            else:
                self._loose.append(relation.id)
        for row in standing.stored_rows(self._connection, self._whose):
            if line := self._readable(standing.said_row, row, self._payloads, unreadable):
                self._added(row.name)
                yield line
        for session in self._sessions():
            if line := self._readable(rows.said_session, *session):
                self._report.sessions += 1
                yield line
        for line in self._aside():
            if (size := len(as_line(line))) > MAX_LINE_BYTES:  # one damaged row must not keep back all the others
                self._damage(f"the quarantine {line['key']!r} of layer {line['layer']!r} was left out: {size:,} bytes")
                continue
            self._report.quarantine += 1
            yield line

    def _added(self, layer: str) -> None:
        self._report.records += 1
        self._report.layers[layer] = self._report.layers.get(layer, 0) + 1

    def _head(self) -> Line:
        head = {"memdb": "export", "version": VERSION, "schema": SCHEMA_VERSION, "user_id": self._whose.user_id}
        if self._whose.session_id is not None:
            head["session_id"] = self._whose.session_id
        if self._whose.and_user:
            head["and_user"] = True
        return {**head, "exported_at": self._now, "records": self._total}

    def _ids(self) -> Iterator[list[int]]:
        cursor = rows.of_user(self._connection, _IDS, self._whose)
        while page := [record_id for (record_id,) in cursor.fetchmany(PAGE)]:
            yield page

    def _stored(self, pages: Iterator[list[int]]) -> Iterator[Stored]:
        done = 0
        for page in pages:
            self._course.at(done, self._total)
            yield from rows.stored(self._connection, self._whose.user_id, page)
            done += len(page)

    def _relation_ids(self) -> Iterator[list[int]]:
        if self._whose.sessionless:  # entities live by user
            cursor = relations.relation_ids(self._connection, self._whose)
            while page := [number for (number,) in cursor.fetchmany(PAGE)]:
                yield page

    def _relations(self, pages: Iterator[list[int]]) -> Iterator[StoredRelation]:
        for page in pages:
            yield from relations.stored_relations(self._connection, page)

    def _sessions(self) -> Iterator[tuple[Row, str | None]]:
        return rows.sessions(self._connection, self._whose, unreadable=self._damaged)

    def _readable(self, said: Callable[..., Line], *found: Any) -> Line | None:
        try:
            return said(*found)
        except SerializationError:
            return None

    # -- the quarantine, and what belongs there ---------------------------------------------------------------------

    def _aside(self) -> Iterator[Line]:
        for columns in rows.aside(self._connection, self._whose):
            try:
                yield {"kind": "quarantine", **say(QUARANTINE, columns)}
            except SerializationError as error:
                yield self._unreadable(columns[:3], rows.raw_columns(QUARANTINE, columns), error)
        for found in self._stored(_pages(self._damaged)):
            try:
                rows.said_record(found, self._payloads)
            except SerializationError as error:
                yield self._unreadable(found.columns[:3], rows.raw_record(self._connection, found), error)
        unreadable = set(self._damaged)
        for relation in self._relations(_pages(self._loose)):
            try:
                relations.said_relation(relation, unreadable)
            except SerializationError as error:
                ends = f"{relation.ends[0]} to {relation.ends[1]}"
                yield self._unreadable(
                    ("relation", "", ends), relations.raw_relation(self._connection, relation), error
                )
        for row in standing.stored_rows(self._connection, self._whose):
            try:
                standing.said_row(row, self._payloads, unreadable)
            except SerializationError as error:
                yield self._unreadable(standing.identity(row), standing.raw_row(row), error)
        for columns, consolidated in self._sessions():
            try:
                rows.said_session(columns, consolidated)
            except SerializationError as error:
                yield self._unreadable(("session", columns[0], ""), rows.raw_columns(SESSION, columns), error)

    def _damage(self, problem: str) -> None:
        self._report.damaged += 1
        if len(self._report.problems) < PROBLEMS_KEPT:
            self._report.problems.append(problem)

    def _unreadable(self, identity: Row, raw: str, error: SerializationError) -> Line:
        """Return what cannot be read as a line of the quarantine; `identity` is its layer, session and key."""
        layer, session_id, key = map(_plain, identity)
        self._damage(f"{layer} {key!r} cannot be read and was exported as its bytes: {error}")
        values = (layer, session_id, key, f"found by an export: {error}", raw, self._now)
        return {"kind": "quarantine", **say(QUARANTINE, values)}


def _pages(numbers: array[int]) -> Iterator[list[int]]:
    return (numbers[at : at + PAGE].tolist() for at in range(0, len(numbers), PAGE))


def _plain(value: Any) -> str:
    """Return an identity that may be broken as text that can be written."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text[:MAX_ID_CHARS].encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
