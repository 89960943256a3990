"""Setting aside a row that cannot be read: its raw bytes are kept, the table is clean again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from sqlalchemy import Table, bindparam, delete, insert, literal, literal_column, select

from memdb.storage.schema import block, episode, history, message, passage, pattern, quarantine, record, tool_result
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction

log = logging.getLogger("memdb")


def _raw(table: Table) -> str:
    """Return SQL for a row as JSON, each column with its bytes in hexadecimal: what the quarantine keeps of it."""
    kept = [column.name for column in table.c if not column.name.endswith("_seg")]
    return "json_object(" + ", ".join(f"'{name}', hex({table.name}.{name})" for name in kept) + ")"


def _payload(table: Table) -> str:
    """Return SQL for the chunks of a row's payload, each in hexadecimal."""
    return f"""(SELECT json_group_array(hex(data)) FROM
        (SELECT data FROM blob_chunk WHERE blob_chunk.blob_id = {table.name}.blob_id ORDER BY start))"""


def _own(table: Table, *more: str) -> str:
    """Return SQL for the row that a record has in its layer's own table."""
    parts = f"json_set({', '.join((_raw(table), *more))})" if more else _raw(table)
    return f"json((SELECT {parts} FROM {table.name} WHERE record_id = record.id))"


RAW_SQL = f"""CASE record.layer
  WHEN 'message' THEN json_set({_raw(record)}, '$.message', {_own(message)})
  WHEN 'tool_result' THEN json_set({_raw(record)}, '$.tool_result',
    {_own(tool_result, "'$.payload'", f"json({_payload(tool_result)})")})
  WHEN 'block' THEN json_set({_raw(record)}, '$.block', {_own(block)})
  WHEN 'history' THEN json_set({_raw(record)}, '$.history', {_own(history)})
  WHEN 'episode' THEN json_set({_raw(record)}, '$.episode', {_own(episode)})
  WHEN 'pattern' THEN json_set({_raw(record)}, '$.pattern', {_own(pattern)})
  WHEN 'archive' THEN json_set({_raw(record)}, '$.passage', {_own(passage)})
  ELSE {_raw(record)} END"""

NOW_SQL = "strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'"  # where no clock is at hand
_COLUMNS = ("user_id", "layer", "session_id", "key", "reason", "raw", "quarantined_at")
_KEEP = Statement(
    insert(quarantine).from_select(
        _COLUMNS,
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
_KEEP_LINE = Statement(insert(quarantine).values({name: param(name) for name in _COLUMNS}))
_REMOVE = Statement(delete(record).where(record.c.id == bindparam("id")))


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a row cannot be read.

    Args:
        reason: what reading it raised.
        persists: says, in a later transaction, whether the row is still there and still cannot be read.
        move: moves the row to the quarantine, given the transaction and the reason; None for a record.
    """

    reason: str
    persists: Callable[[Transaction], bool]
    move: Callable[[Transaction, str], None] | None = None


class OwnRow:
    """How the rows of a table that stands by itself, without a record, go to the quarantine.

    Args:
        table: has the columns user_id and session_id.
        identity: the columns that tell a row, each a parameter of `move`.
        key: the column that is the row's key there; None where a session has one row.
        payload: whether the table has a column blob_id.
    """

    def __init__(
        self, table: Table, identity: tuple[str, ...], *, key: str | None = None, payload: bool = False
    ) -> None:
        here = [table.c[name] == param(name) for name in identity]
        raw = f"json_set({_raw(table)}, '$.payload', json({_payload(table)}))" if payload else _raw(table)
        self._keep = Statement(
            insert(quarantine).from_select(
                _COLUMNS,
                select(
                    table.c.user_id,
                    literal(table.name),
                    table.c.session_id,
                    literal("") if key is None else table.c[key],
                    param("reason"),
                    literal_column(raw),
                    param("now"),
                ).where(*here),
            )
        )
        self._remove = Statement(delete(table).where(*here))
        named = "''" if key is None else f"{table.name}.{key}"
        self._name, self._values = table.name, f"user_id, '{table.name}', session_id, {named}, '{{reason}}', {raw}"

    def all_of(self, rows: str, reason: str) -> tuple[str, str]:
        """Return statements that move many rows at once: those of `FROM table WHERE ...`."""
        values = self._values.format(reason=reason)
        return (
            f"INSERT INTO quarantine ({', '.join(_COLUMNS)}) SELECT {values}, {NOW_SQL} {rows}",
            f"DELETE {rows}",
        )

    def move(self, tx: Transaction, reason: str, **identity: object) -> None:
        """Move a row to the quarantine."""
        tx.run(self._keep, reason=reason, now=tx.now, **identity)
        tx.run(self._remove, **identity)


def set_aside(tx: Transaction, damaged: Mapping[Hashable, Damage]) -> None:
    """Move rows that cannot be read to the quarantine; those that somebody has mended meanwhile stay.

    Args:
        tx: a write transaction that reads text leniently.
        damaged: what is wrong with them, by record id or, for a row that has none, by what names it.
    """
    for name, damage in damaged.items():
        if damage.persists(tx):
            if damage.move is None:
                tx.run(_KEEP, id=name, reason=damage.reason, now=tx.now)
                tx.run(_REMOVE, id=name)
            else:
                damage.move(tx, damage.reason)
            log.warning("MEMORY_CORRUPT %s was set aside in the quarantine: %s", named(name), damage.reason)


def named(name: Hashable) -> str:
    """Return what a damaged row is called in the log."""
    return f"record {name}" if isinstance(name, int) else str(name)


def keep_line(tx: Transaction, values: Mapping[str, str], raw: bytes, reason: str) -> None:
    """Keep a line of a file that holds no record, as its bytes.

    Args:
        values: user_id, layer and session_id of the record that it should have been, and as key where it stood.
    """
    text = json.dumps({"line": raw.hex().upper()})
    tx.put(_KEEP_LINE, {**values, "raw": text, "reason": reason, "quarantined_at": tx.now})
