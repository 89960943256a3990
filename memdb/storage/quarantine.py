"""Setting aside a row that cannot be read: its raw bytes are kept, the table is clean again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, select

from memdb.storage.schema import quarantine, record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction


def _named(column: Any) -> tuple[Any, Any]:
    return literal_column(f"'{column.name}'"), func.hex(column)


_RAW = [part for column in record.c if not column.name.endswith("_seg") for part in _named(column)]
_KEEP = Statement(
    insert(quarantine).from_select(
        ["user_id", "layer", "session_id", "key", "reason", "raw", "quarantined_at"],
        select(
            record.c.user_id,
            record.c.layer,
            record.c.session_id,
            record.c.key,
            param("reason"),
            func.json_object(*_RAW),
            param("now"),
        ).where(record.c.id == bindparam("id")),
    )
)
_REMOVE = Statement(delete(record).where(record.c.id == bindparam("id")))


def set_aside(tx: Transaction, damaged: dict[int, str]) -> None:
    """Move records to the quarantine.

    Args:
        damaged: record id -> what is wrong with it.
    """
    for record_id, reason in damaged.items():
        tx.run(_KEEP, id=record_id, reason=reason, now=tx.now)
        tx.run(_REMOVE, id=record_id)
