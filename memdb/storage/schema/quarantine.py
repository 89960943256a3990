"""Rows that could not be read, with their raw bytes."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text

from memdb.storage.schema.base import metadata, view

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("raw", Text, nullable=False),  # JSON: column -> its bytes in hexadecimal
    Column("quarantined_at", Text, nullable=False),
    Index("quarantine_by_user", "user_id"),
    sqlite_autoincrement=True,
)

QUARANTINE_SQL = (
    view(
        "v_quarantine",
        """
        SELECT user_id, layer, session_id, key AS id, reason, quarantined_at, raw
          FROM quarantine
        """,
    ),
)
