"""References: which record points at which key, in the order given. The target need not exist yet."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, PrimaryKeyConstraint, Table, Text

from memdb.storage.schema.base import metadata

record_reference = Table(
    "record_reference",
    metadata,
    Column("source_id", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("target_layer", Text, nullable=False),
    Column("target_key", Text, nullable=False),
    PrimaryKeyConstraint("source_id", "position", name="record_reference_pk"),
    ForeignKeyConstraint(["source_id"], ["record.id"], name="record_reference_source", ondelete="CASCADE"),
    Index("record_reference_by_target", "user_id", "target_layer", "target_key"),
    sqlite_with_rowid=False,
)
