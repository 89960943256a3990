"""Setting aside a row that cannot be read: its raw bytes are kept, the table is clean again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, select

from memdb.storage.schema import quarantine, record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction


def _named(column: Any) -> tuple[Any, Any]:
    return literal_column(f"'{column.name}'"), func.hex(column)


_RAW = [part for column in record.c if not column.name.endswith("_seg") for part in _named(column)]
log = logging.getLogger("memdb")

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


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a row cannot be read.

    Args:
        reason: what reading it raised.
        persists: says, in a later transaction, whether the row is still there and still cannot be read.
    """

    reason: str
    persists: Callable[[Transaction], bool]


def set_aside(tx: Transaction, damaged: Mapping[int, Damage]) -> None:
    """Move records that cannot be read to the quarantine; those that somebody has mended meanwhile stay.

    Args:
        tx: a write transaction that reads text leniently.
        damaged: record id -> what is wrong with it.
    """
    for record_id, damage in damaged.items():
        if damage.persists(tx):
            tx.run(_KEEP, id=record_id, reason=damage.reason, now=tx.now)
            tx.run(_REMOVE, id=record_id)
            log.warning("MEMORY_CORRUPT record %d was set aside in the quarantine: %s", record_id, damage.reason)
