"""Looking over a whole file: the schema's own parts, the invariants of its rows, the index; mending what can be."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from memdb.storage.invariants import CHECKS
from memdb.storage.schema import REBUILD, SETTINGS, Sql, objects
from memdb.storage.segments import wrong_segments


@dataclass(slots=True)
class CheckReport:
    """What Database.check() found.

    Args:
        ok: whether nothing is wrong (any more, after a repair).
        problems: a sentence for each thing that is wrong.
        repaired: a sentence for each thing that was wrong and has been mended.
        notes: what is worth knowing and no fault: what could not be looked at, what a repair would improve.
    """

    ok: bool = True
    problems: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.ok


_OF_ROWS = "CHECK constraint failed"


def check(connection: sqlite3.Connection, *, repair: bool, writable: bool) -> CheckReport:
    """Check a file and, on request, mend what can be mended without losing anything.

    Args:
        connection: not inside a transaction, holding the file's lock when `writable`.
        repair: whether to mend.
        writable: whether the connection may write; the full-text index can only be checked then.
    """
    report = CheckReport()
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(100)") if row[0] != "ok"]
    damage = [line for line in found if not line.startswith(_OF_ROWS)]  # broken rules are looked for row by row below
    report.problems += [
        f"the file is damaged: {line}; restore a backup, or salvage it with sqlite3 .recover" for line in damage
    ]
    if damage:
        report.ok = False
        return report
    connection.execute("BEGIN IMMEDIATE" if writable else "BEGIN")
    try:
        for part in (_check_objects, _check_rows, _check_index, _check_segments):
            part(connection, report, repair and writable, writable)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    report.ok = not report.problems
    return report


def _note(report: CheckReport, sentence: str, *, repaired: bool) -> None:
    (report.repaired if repaired else report.problems).append(sentence)


def _check_objects(connection: sqlite3.Connection, report: CheckReport, repair: bool, writable: bool) -> None:
    """The schema's own parts: a shell may have dropped a trigger, and the index would drift without a word."""
    # As bytes: where a bit has flipped, it is no UTF-8.
    rows = connection.execute(
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master WHERE sql IS NOT NULL"
    )
    texts = ([text.decode(errors="replace") for text in row] for row in rows)
    there = {(kind, name): sql for kind, name, sql in texts}
    wrong = [item for item in objects() if _plain(there.get((item.kind, item.name), "")) != _plain(item.text)]
    for item in wrong:
        state = "is missing" if (item.kind, item.name) not in there else "is not as it was made"
        mended = repair and item.kind != "table"
        if mended:
            _remake(connection, item)
        _note(report, f"the {item.kind} {item.name} {state}", repaired=mended)
    if any(item.kind == "trigger" for item in wrong) and repair:
        _rebuild(connection)
    if repair and wrong:
        for statement in SETTINGS:
            connection.execute(statement)


def _rebuild(connection: sqlite3.Connection) -> None:
    for statement in REBUILD:
        connection.execute(statement)


def _remake(connection: sqlite3.Connection, item: Sql) -> None:
    connection.execute(f"DROP {item.kind} IF EXISTS {item.name}")
    connection.execute(item.text)


def _plain(sql: str) -> str:
    return " ".join(sql.split())


def _check_rows(connection: sqlite3.Connection, report: CheckReport, repair: bool, writable: bool) -> None:
    for check in CHECKS:
        wrong = connection.execute(check.count).fetchone()[0]
        if not wrong:
            continue
        if repair:
            for statement in check.repair:
                connection.execute(statement)
        _note(report, check.sentence.format(n=wrong), repaired=repair)


def _check_segments(connection: sqlite3.Connection, report: CheckReport, repair: bool, writable: bool) -> None:
    """Records written from a shell are searchable at once, but not yet by the parts of unspaced scripts and names."""
    wrong = wrong_segments(connection, repair=repair)
    if wrong and repair:
        report.repaired.append(f"{wrong} records edited by hand were indexed as their scripts need it")
    elif wrong:
        report.notes.append(f"{wrong} records edited by hand are indexed as they stand: a repair indexes them fully")


def _check_index(connection: sqlite3.Connection, report: CheckReport, repair: bool, writable: bool) -> None:
    """integrity_check does not see an index that has drifted from its records; only this does, for a writer."""
    if not writable:
        report.notes.append("the full-text index was not checked: only a handle that may write can")
        return
    try:
        connection.execute("INSERT INTO record_search (record_search, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError:
        if repair:
            _rebuild(connection)
        _note(report, "the full-text index is not in step with the records", repaired=repair)
