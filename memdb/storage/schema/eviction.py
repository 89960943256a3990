"""What stores that evict keep between two writes: how many there were, and how far all records were recalled."""

from __future__ import annotations

from sqlalchemy import Column, Integer, PrimaryKeyConstraint, Table, Text, text

from memdb.storage.schema.base import metadata, trigger

# Only places that are written to by a store with an eviction policy have a row.
eviction = Table(
    "eviction",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("writes", Integer, nullable=False, server_default=text("0")),  # since the last check
    # In the order of (created_at, id), every record up to this one was recalled: who looks for one that never was
    # begins here, so each is passed over once, however many there are.
    Column("passed_at", Text, nullable=False, server_default=text("''")),
    Column("passed_id", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("user_id", "layer", "session_id", name="eviction_pk"),
    sqlite_with_rowid=False,
)

_HERE = "(user_id, layer, session_id) = (new.user_id, new.layer, new.session_id)"
_PASSED = f"""WHEN EXISTS (
    SELECT 1 FROM eviction WHERE {_HERE} AND (passed_at, passed_id) >= (new.created_at, new.id))"""
_STEP_BACK = f"""
  UPDATE eviction SET passed_at = new.created_at, passed_id = new.id - 1
   WHERE {_HERE};
"""

# A record that comes with an older date than those that were passed.
EVICTION_SQL = (
    trigger("eviction_ai", f"AFTER INSERT ON record {_PASSED}", _STEP_BACK),
    trigger("eviction_au", f"AFTER UPDATE OF created_at ON record {_PASSED}", _STEP_BACK),
)
