"""Memory blocks: a record whose key is the name, whose summary is the description and whose content is the text."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Table, Text, text

from memdb.storage.schema.base import metadata, trigger, view

block = Table(
    "block",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("size", Integer, nullable=False),  # tokens it may hold
    Column("priority", Integer, nullable=False, server_default=text("1")),  # lower ones give way first
    Column("tokens", Integer),  # it holds, in cl100k_base; NULL: a shell has edited it, so they must be counted
    Column("initial_value", Text, nullable=False, server_default=text("''")),
    CheckConstraint("size > 0", name="size_above_0"),
    CheckConstraint("priority >= 0", name="priority_from_0"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="block_record", ondelete="CASCADE"),
)

# How a session's blocks give way and what a search of the archive returns (MemoryConfig), as JSON.
memory_config = Table(
    "memory_config",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("config", Text, nullable=False),
    PrimaryKeyConstraint("user_id", "session_id", name="memory_config_pk"),
    CheckConstraint("json_valid(config)", name="config_json"),
)

BLOCK_SQL = (
    trigger(
        "block_ad",
        "AFTER DELETE ON record WHEN old.layer = 'block'",
        "DELETE FROM block WHERE record_id = old.id;",
    ),
    trigger(
        "block_edited_au",
        """AFTER UPDATE OF content ON record
  WHEN old.layer = 'block' AND new.content IS NOT old.content AND new.seg_revision IS old.seg_revision""",
        "UPDATE block SET tokens = NULL WHERE record_id = new.id;",
    ),
    view(
        "v_memory_blocks",
        """
        SELECT record.user_id, record.session_id, record.key AS name, record.content, block.tokens, block.size,
               block.priority, record.summary AS description, record.created_at, record.updated_at,
               record.id AS record_id
          FROM record JOIN block ON block.record_id = record.id
         WHERE record.layer = 'block'
        """,
    ),
)
