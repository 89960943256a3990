"""Setting aside a row that cannot be read: its raw bytes are kept, the table is clean again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, literal_column, select

from memdb.storage.schema import quarantine, record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction

# A record's columns as JSON, each with its bytes in hexadecimal: what the quarantine keeps of a row.
_KEPT = [column.name for column in record.c if not column.name.endswith("_seg")]
RAW_SQL = "json_object(" + ", ".join(f"'{name}', hex(record.{name})" for name in _KEPT) + ")"
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
            literal_column(RAW_SQL),
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
