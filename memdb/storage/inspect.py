"""The engine states its own invariants: what must hold in a healthy file, and how what does not is mended.

Each check is a row: its name, a query for what is wrong, and the statements that mend it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from memdb.storage.quarantine import RAW_SQL
from memdb.storage.schema import SETTINGS, Sql, objects
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


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant.

    Args:
        sentence: what is wrong, with {n} for how many.
        count: a query for how many break it.
        repair: statements that mend it; none when only a backup can.
    """

    sentence: str
    count: str
    repair: tuple[str, ...] = ()


_ORPHANS = "FROM {table} WHERE NOT EXISTS (SELECT 1 FROM record WHERE record.id = {table}.{column})"
_WRONG_TAGS = """
  SELECT record.user_id, json_each.value, record.layer, record.id
    FROM record, json_each(CASE WHEN json_valid(record.tags) THEN record.tags ELSE '[]' END)
   WHERE json_each.type = 'text'"""
_TAG_ROWS = "SELECT user_id, tag, layer, record_id FROM record_tag"
_TRUTH = """
  SELECT user_id, layer, '' AS session_id, count(*) AS records, sum(length(CAST(content AS BLOB))) AS bytes
    FROM record GROUP BY user_id, layer
   UNION ALL
  SELECT user_id, layer, session_id, count(*), sum(length(CAST(content AS BLOB)))
    FROM record WHERE session_id != '' GROUP BY user_id, layer, session_id"""
_COUNTED = "SELECT user_id, layer, session_id, records, bytes FROM scope WHERE (records, bytes) != (0, 0)"


_TOKENS = """(
    (SELECT u.id FROM scope AS u WHERE (u.user_id, u.layer, u.session_id) = (scope.user_id, '', '')) || ' '
    || (SELECT l.id FROM scope AS l WHERE (l.user_id, l.layer, l.session_id) = (scope.user_id, scope.layer, ''))
    || CASE session_id WHEN '' THEN '' ELSE ' ' || id END)"""


def _orphans(table: str, column: str) -> Check:
    rows = _ORPHANS.format(table=table, column=column)
    return Check(f"{{n}} rows of {table} belong to no record", f"SELECT count(*) {rows}", (f"DELETE {rows}",))


_OF_ROWS = "CHECK constraint failed"
_BROKEN_JSON = """FROM record
 WHERE NOT (json_valid(tags) AND json_valid(keywords) AND json_valid(metadata))
    OR id IN (SELECT record_id FROM message
               WHERE NOT (json_valid(coalesce(tool_calls, 'null')) AND json_valid(coalesce(body, 'null'))
                          AND json_valid(coalesce(extra, 'null'))))"""
_BODILESS = "FROM record WHERE layer = 'message' AND id NOT IN (SELECT record_id FROM message)"


_ENTITY = """EXISTS (SELECT 1 FROM record
                    WHERE (record.id, record.user_id, record.layer) = (relation.{end}, relation.user_id, 'entity'))"""


_PASSED_OVER = """FROM eviction
 WHERE EXISTS (SELECT 1 FROM record
                WHERE (record.user_id, record.layer, record.session_id)
                    = (eviction.user_id, eviction.layer, eviction.session_id)
                  AND (record.created_at, record.id) <= (eviction.passed_at, eviction.passed_id)
                  AND NOT EXISTS (SELECT 1 FROM recall WHERE record_id = record.id AND recall_count > 0))"""


def _unreadable(sentence: str, rows: str, reason: str) -> Check:
    """Records that the first read would set aside; the repair does so."""
    return Check(
        sentence,
        f"SELECT count(*) {rows}",
        (
            f"""INSERT INTO quarantine (user_id, layer, session_id, "key", reason, raw, quarantined_at)
                SELECT user_id, layer, session_id, "key", '{reason}', {RAW_SQL},
                       strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z' {rows}""",
            f"DELETE {rows}",
        ),
    )


_LOOSE = f"""FROM relation
 WHERE source_id = target_id
    OR NOT {_ENTITY.format(end="source_id")}
    OR NOT {_ENTITY.format(end="target_id")}"""
_WEIGHTLESS = "NOT coalesce(weight BETWEEN 0 AND 1, 0)"


CHECKS = (
    _unreadable("{n} records hold broken JSON, and would be set aside by the first read", _BROKEN_JSON, "broken JSON"),
    _unreadable("{n} messages have no row in `message`, and would be set aside", _BODILESS, "no row in message"),
    _orphans("record_tag", "record_id"),
    _orphans("record_reference", "source_id"),
    _orphans("recall", "record_id"),
    _orphans("message", "record_id"),
    _orphans("source", "record_id"),
    Check(
        "{n} stores that evict pass over records that never were recalled",
        f"SELECT count(*) {_PASSED_OVER}",
        (
            f"""UPDATE eviction SET passed_at = '', passed_id = 0
                 WHERE (user_id, layer, session_id) IN (SELECT user_id, layer, session_id {_PASSED_OVER})""",
        ),
    ),
    Check("{n} relations do not join two entities of their user", f"SELECT count(*) {_LOOSE}", (f"DELETE {_LOOSE}",)),
    Check(
        "{n} relations have no weight from 0 to 1",
        f"SELECT count(*) FROM relation WHERE {_WEIGHTLESS}",
        (
            f"""UPDATE relation
                   SET weight = CASE WHEN typeof(weight) IN ('real', 'integer') THEN min(max(weight, 0), 1) ELSE 1 END
                 WHERE {_WEIGHTLESS}""",
        ),
    ),
    Check(
        "{n} tags are not in step with their records",
        f"""SELECT (SELECT count(*) FROM ({_WRONG_TAGS} EXCEPT {_TAG_ROWS}))
                 + (SELECT count(*) FROM ({_TAG_ROWS} EXCEPT {_WRONG_TAGS}))""",
        (
            "DELETE FROM record_tag",
            f"INSERT INTO record_tag (user_id, tag, layer, record_id) SELECT DISTINCT * FROM ({_WRONG_TAGS})",
        ),
    ),
    Check(
        "{n} scopes have no number or wrong tokens",
        f"""SELECT (SELECT count(*) FROM (SELECT user_id, layer, session_id FROM record
                                        EXCEPT SELECT user_id, layer, session_id FROM scope))
                 + (SELECT count(*) FROM scope WHERE layer != '' AND tokens IS NOT {_TOKENS})""",
        (
            """INSERT INTO scope (user_id, layer, session_id)
               SELECT user_id, '', '' FROM record UNION SELECT user_id, '', '' FROM scope
               UNION SELECT user_id, layer, '' FROM record UNION SELECT user_id, layer, '' FROM scope
               UNION SELECT user_id, layer, session_id FROM record
               EXCEPT SELECT user_id, layer, session_id FROM scope""",
            f"UPDATE scope SET tokens = {_TOKENS} WHERE layer != ''",
            "INSERT INTO record_search (record_search) VALUES ('rebuild')",
        ),
    ),
    Check(
        "{n} scopes count their records wrongly",
        f"""SELECT (SELECT count(*) FROM ({_COUNTED} EXCEPT SELECT * FROM ({_TRUTH})))
                 + (SELECT count(*) FROM (SELECT * FROM ({_TRUTH}) EXCEPT {_COUNTED}))""",
        (
            "UPDATE scope SET records = 0, bytes = 0",
            f"""UPDATE scope SET records = truth.records, bytes = truth.bytes FROM ({_TRUTH}) AS truth
                 WHERE (scope.user_id, scope.layer, scope.session_id)
                     = (truth.user_id, truth.layer, truth.session_id)""",
        ),
    ),
)


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
    there = {
        (kind, name): sql
        for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    }
    wrong = [item for item in objects() if _plain(there.get((item.kind, item.name), "")) != _plain(item.text)]
    for item in wrong:
        state = "is missing" if (item.kind, item.name) not in there else "is not as it was made"
        mended = repair and item.kind != "table"
        if mended:
            _remake(connection, item)
        _note(report, f"the {item.kind} {item.name} {state}", repaired=mended)
    if any(item.kind == "trigger" for item in wrong) and repair:
        connection.execute("INSERT INTO record_search (record_search) VALUES ('rebuild')")
    if repair and wrong:
        for statement in SETTINGS:
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
            connection.execute("INSERT INTO record_search (record_search) VALUES ('rebuild')")
        _note(report, "the full-text index is not in step with the records", repaired=repair)
