"""Setting aside a row that cannot be read: its raw bytes are kept, the table is clean again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, literal_column, select

from memdb.storage.schema import message, quarantine, record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction

# A record's columns as JSON, each with its bytes in hexadecimal: what the quarantine keeps of a row.
_KEPT = [column.name for column in record.c if not column.name.endswith("_seg")]
_OWN = ", ".join(f"'{column.name}', hex(message.{column.name})" for column in message.c)
_RAW = "json_object(" + ", ".join(f"'{name}', hex(record.{name})" for name in _KEPT) + ")"
RAW_SQL = f"""CASE record.layer WHEN 'message'
  THEN json_set({_RAW}, '$.message', json((SELECT json_object({_OWN}) FROM message WHERE record_id = record.id)))
  ELSE {_RAW} END"""
_SCOPE = ("user_id", "layer", "session_id")
log = logging.getLogger("memdb")

_KEEP = Statement(
    insert(quarantine).from_select(
        [*_SCOPE, "key", "reason", "raw", "quarantined_at"],
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
_KEEP_LINE = Statement(
    insert(quarantine).values({name: param(name) for name in (*_SCOPE, "key", "reason", "raw", "quarantined_at")})
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


def keep_line(tx: Transaction, values: Mapping[str, str], raw: bytes, reason: str) -> None:
    """Keep a line of a file that holds no record, as its bytes.

    Args:
        values: user_id, layer and session_id of the record that it should have been, and as key where it stood.
    """
    text = json.dumps({"line": raw.hex().upper()})
    tx.put(_KEEP_LINE, {**values, "raw": text, "reason": reason, "quarantined_at": tx.now})
