"""What of an export is new, the same, or in conflict with what a file holds; the new is put into it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from memdb.errors import AlreadyExists, InvalidInput
from memdb.storage.transfer import rows
from memdb.storage.transfer.entry import Entry
from memdb.storage.transfer.form import QUARANTINE, SESSION
from memdb.storage.transfer.payloads import Payloads
from memdb.storage.transfer.putting import Records, insert_into, without
from memdb.storage.transfer.reading import Problem
from memdb.storage.transfer.relations import Relations
from memdb.storage.transfer.rows import PAGE, Row, Whose
from memdb.storage.transfer.standing import Standing, named

PAGE_BYTES = 8_000_000  # of lines that are stored with one statement
NAMED = 5  # conflicts and problems that are named


@dataclass(slots=True)
class Imported:
    """What an import stored.

    Args:
        user_id: whose memory it is now.
        records: how many records were new.
        layers: how many of them in each layer.
        relations: relations that were new.
        replaced: records, relations and sessions that took the place of others.
        same: records, relations, sessions and rows of the quarantine that were there already.
        sessions: sessions that were new.
        quarantine: rows that were added to the quarantine.
        skipped: lines that were left out, for they are damaged.
        problems: the first of these, and what is wrong with them.
    """

    user_id: str
    records: int = 0
    layers: dict[str, int] = field(default_factory=dict)
    relations: int = 0
    replaced: int = 0
    same: int = 0
    sessions: int = 0
    quarantine: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)


_SET_ASIDE = insert_into("quarantine", ("user_id", *(field.name for field in QUARANTINE)))
_PUT_SESSION = insert_into(
    "session", ("user_id", *(field.name for field in SESSION), "consolidated_id"), or_replace=True
)
_UP_TO = """
SELECT id, key FROM record WHERE (user_id, layer, session_id) = (?, 'message', ?) AND key <= ? ORDER BY key DESC LIMIT 1
"""
_USAGE_OF_SESSION = tuple(at for at, field in enumerate(SESSION) if field.name == "updated_at")


class Merge:
    """One import, inside its transaction, on the worker's thread.

    Args:
        connection: inside a write transaction; reads text leniently.
        user_id: whose memory it becomes.
        replace: see store_export.
        skip_damaged: see store_export.
    """

    def __init__(self, connection: sqlite3.Connection, user_id: str, *, replace: bool, skip_damaged: bool) -> None:
        self._connection = connection
        self._user_id = user_id
        self._table = Records(connection, user_id, exact=replace)
        self._edges = Relations(connection, user_id)
        self._payloads = Payloads(connection, user_id)
        self._standing = Standing(connection, user_id, exact=replace)
        self._replace = replace
        self._skip_damaged = skip_damaged
        self._report = Imported(user_id)
        self._page: dict[Row, Entry] = {}  # of one kind
        self._kind = ""
        self._page_bytes = 0
        self._aside: Counter[bytes] | None = None
        self._conflicts: list[str] = []
        self._conflict_count = 0

    def take(self, entry: Entry | Problem) -> None:
        """Store a line, now or with those that follow."""
        if isinstance(entry, Problem):
            self._problem(entry)
        elif entry.kind in ("record", "relation"):
            if entry.kind != self._kind or entry.identity in self._page:  # the same again meets the first in the file
                self._flush()
            self._kind = entry.kind
            self._page[entry.identity] = entry
            self._page_bytes += entry.size
            if len(self._page) >= PAGE or self._page_bytes >= PAGE_BYTES:
                self._flush()
        else:
            self._flush()
            single = {"session": self._session, "quarantine": self._quarantine, "payload": self._payload}
            self._guarded([entry], single.get(entry.kind, self._standing_row))

    def finish(self, name: str) -> Imported:
        """Store what waits and return what was done.

        Raises:
            AlreadyExists: something is there already and says something else.
        """
        self._flush()
        try:
            self._payloads.finish()
        except InvalidInput as error:
            self._problem(Problem(0, str(error)))
        self._payloads.tidy()
        self._standing.finish()
        if self._conflict_count:
            others = self._conflict_count - len(self._conflicts)
            more = f" and {others:,} more" if others else ""
            raise AlreadyExists(
                f"{self._conflict_count:,} of what {name} holds is there already with other content:"
                f" {', '.join(self._conflicts)}{more}; nothing was imported: --replace lets the import win"
            )
        return self._report

    def _flush(self) -> None:
        page, self._page, self._page_bytes = list(self._page.values()), {}, 0
        if page:
            self._guarded(page, self._records if self._kind == "record" else self._relations)

    def _guarded(self, entries: list[Entry], store: Callable[[list[Entry]], None]) -> None:
        """Store lines; where one of them breaks a rule of its table, find it by storing each alone."""
        self._connection.execute("SAVEPOINT page")
        try:
            store(entries)
        except (sqlite3.IntegrityError, InvalidInput) as error:
            self._connection.execute("ROLLBACK TO page")
            if len(entries) == 1:
                rule = f"it breaks a rule of its table ({error})" if isinstance(error, sqlite3.Error) else str(error)
                self._problem(Problem(entries[0].number, rule))
            else:
                for entry in entries:
                    self._guarded([entry], store)
        finally:
            if self._connection.in_transaction:
                self._connection.execute("RELEASE page")

    def _problem(self, problem: Problem) -> None:
        if not self._skip_damaged:
            raise InvalidInput(
                f"{problem}; nothing was imported: `memdb import --skip-damaged` leaves out what is damaged"
            )
        self._report.skipped += problem.number > 0
        if len(self._report.problems) < NAMED:
            self._report.problems.append(f"{problem}; it was left out" if problem.number else str(problem))

    def _conflict(self, what: str) -> None:
        self._conflict_count += 1
        if len(self._conflicts) < NAMED:
            self._conflicts.append(what)

    # -- records ------------------------------------------------------------------------------------------------------

    def _records(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._payloads.check(entry)
        there = self._table.there(entries)
        changed, same, conflicts = [], 0, []
        for entry in entries:
            old = there.get(entry.identity)
            if old is None or (not old[1] and self._replace):
                changed.append(entry)
            elif old[1]:
                same += 1
            else:
                conflicts.append(f"{entry.identity[0]} {entry.identity[2]!r}")
        if not conflicts and not self._conflict_count and changed:
            self._table.put(changed, [there[entry.identity][0] for entry in changed if entry.identity in there])
        for conflict in conflicts:
            self._conflict(conflict)
        # Counted last: a page that fails is stored again line by line.
        self._report.same += same
        for entry in changed:
            if entry.identity in there:
                self._report.replaced += 1
            else:
                self._added(entry.identity[0])

    def _added(self, layer: str) -> None:
        self._report.records += 1
        self._report.layers[layer] = self._report.layers.get(layer, 0) + 1

    # -- payloads, and rows that are no records -----------------------------------------------------------------------

    def _payload(self, entries: list[Entry]) -> None:
        self._payloads.take(entries[0].columns)

    def _standing_row(self, entries: list[Entry]) -> None:
        (entry,) = entries
        self._payloads.check(entry)
        same = self._standing.meet(entry)
        if same:
            self._report.same += 1
        elif same is not None and not self._replace:
            self._conflict(named(entry))
        else:
            if not self._conflict_count:
                self._standing.put(entry)
            if same is None:
                self._added(entry.kind)
            else:
                self._report.replaced += 1

    # -- relations ----------------------------------------------------------------------------------------------------

    def _relations(self, entries: list[Entry]) -> None:
        changed, same, conflicts, replaced = [], 0, [], 0
        for entry, there in zip(entries, self._edges.meet(entries), strict=True):
            if there[2] is None:
                changed.append((entry, there))
            elif there[3:] == entry.columns[3:]:
                same += 1
            elif self._replace:
                changed.append((entry, there))
                replaced += 1
            else:
                conflicts.append("relation {0!r} {2} {1!r}".format(*entry.identity))
        if not conflicts and not self._conflict_count:
            self._edges.put(changed)
        for conflict in conflicts:
            self._conflict(conflict)
        self._report.same += same
        self._report.replaced += replaced
        self._report.relations += len(changed) - replaced

    # -- sessions and the quarantine ----------------------------------------------------------------------------------

    def _session(self, entries: list[Entry]) -> None:
        (entry,) = entries
        session_id = entry.columns[0]
        old = next(rows.sessions(self._connection, Whose(self._user_id, session_id)), None)
        new = (entry.columns, entry.consolidated)
        if old == new or (not self._replace and old is not None and _session_says(old) == _session_says(new)):
            self._report.same += 1
            return
        if old is not None and not self._replace:
            self._conflict(f"session {session_id!r}")
            return
        if not self._conflict_count:
            consolidated = self._number_of_message(session_id, entry.consolidated)
            self._connection.execute(_PUT_SESSION, (self._user_id, *entry.columns, consolidated))
        if old is None:
            self._report.sessions += 1
        else:
            self._report.replaced += 1

    def _number_of_message(self, session_id: str, key: str | None) -> int:
        if key is None:
            return 0
        found = self._connection.execute(_UP_TO, (self._user_id, session_id, key)).fetchone()
        if found is not None and (found[1] == key or self._skip_damaged):
            return int(found[0])
        if self._skip_damaged:
            return 0
        raise InvalidInput(
            f"the session {session_id[:40]!r} is consolidated up to message {key[:40]!r}, which is not there"
        )

    def _quarantine(self, entries: list[Entry]) -> None:
        (entry,) = entries
        if self._aside is None:
            there = rows.aside(self._connection, Whose(self._user_id))
            self._aside = Counter(_digest(columns) for columns in there)
        digest = _digest(entry.columns)
        if self._aside[digest]:  # as often as it is there already, it is passed over
            self._aside[digest] -= 1
            self._report.same += 1
            return
        if not self._conflict_count:
            self._connection.execute(_SET_ASIDE, (self._user_id, *entry.columns))
        self._report.quarantine += 1


def _session_says(found: tuple[Row, str | None]) -> tuple[Row, str | None]:
    return without(found[0], _USAGE_OF_SESSION), found[1]


def _digest(columns: Row) -> bytes:
    return hashlib.sha256(repr(columns).encode("utf-8", "surrogateescape")).digest()
