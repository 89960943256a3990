"""What one invariant is: its sentence, a query for what breaks it, the statements that mend it."""

from __future__ import annotations

from dataclasses import dataclass

from memdb.storage.quarantine import NOW_SQL, RAW_SQL, OwnRow


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

_STRANGERS = "FROM {table} WHERE user_id IS NOT (SELECT user_id FROM record WHERE id = record_id)"


def orphans(table: str, column: str) -> Check:
    """Rows of a layer's own table that are of no record; the repair deletes them."""
    rows = _ORPHANS.format(table=table, column=column)
    return Check(f"{{n}} rows of {table} belong to no record", f"SELECT count(*) {rows}", (f"DELETE {rows}",))


def of_another_user(table: str) -> Check:
    """Rows of a layer's own table that bear another user than their record; the repair gives them its user."""
    rows = _STRANGERS.format(table=table)
    return Check(
        f"{{n}} rows of {table} bear another user than their record",
        f"SELECT count(*) {rows}",
        (
            f"""UPDATE OR IGNORE {table} SET user_id = (SELECT user_id FROM record WHERE id = record_id)
                 WHERE record_id IN (SELECT record_id {rows})""",
            f"DELETE {rows}",  # its user has another entry of the same messages: one of the two bears the mark
        ),
    )


def unreadable_rows(sentence: str, rows: str, move: OwnRow, reason: str) -> Check:
    """Rows of a table that stands by itself that the first read would set aside; the repair does so."""
    return Check(sentence, f"SELECT count(*) {rows}", move.all_of(rows, reason))


def unreadable(sentence: str, rows: str, reason: str) -> Check:
    """Records that the first read would set aside; the repair does so."""
    return Check(
        sentence,
        f"SELECT count(*) {rows}",
        (
            f"""INSERT INTO quarantine (user_id, layer, session_id, "key", reason, raw, quarantined_at)
                SELECT user_id, layer, session_id, "key", '{reason}', {RAW_SQL}, {NOW_SQL} {rows}""",
            f"DELETE {rows}",
        ),
    )
