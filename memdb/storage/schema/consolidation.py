"""What is kept of a session's consolidation besides its cursor: how often it failed in a row."""

from __future__ import annotations

from sqlalchemy import Column, Integer, PrimaryKeyConstraint, Table, Text, text

from memdb.storage.schema.base import metadata

consolidation = Table(
    "consolidation",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("reason", Text),  # of the last one
    Column("failed_at", Text),
    PrimaryKeyConstraint("user_id", "session_id", name="consolidation_pk"),
)
