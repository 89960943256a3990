"""Facts and history: one text a user that stands in every prompt, and entries of what happened, in their order."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from memdb.storage.schema.base import metadata, trigger, view

# Beside a record of layer 'history', whose key is its number and whose content is the entry.
history = Table(
    "history",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("origin", Text, nullable=False, server_default=text("'written'")),
    Column("source_session_id", Text),  # whose messages it tells of, where it tells of messages
    Column("first_position", Integer),  # of these messages, by their positions
    Column("last_position", Integer),
    Column("chunk", Text),  # a hash of these messages: what was consolidated once is not stored again
    UniqueConstraint("user_id", "chunk", name="history_chunk"),
    CheckConstraint("origin IN ('written', 'consolidated', 'raw', 'file')", name="origin_known"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="history_record", ondelete="CASCADE"),
)

# What a folder with MEMORY.md and HISTORY.md was when it was last the same as the file: a row a file.
mirror = Table(
    "mirror",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("hash", Text, nullable=False),  # SHA-256 of its bytes
    Column("size", Integer, nullable=False),
    Column("modified_ns", Integer, nullable=False),  # -1: too fresh to be trusted
    Column("last_key", Text, nullable=False, server_default=text("''")),  # of the last entry in HISTORY.md
    Column("mirrored_at", Text, nullable=False),
    PrimaryKeyConstraint("user_id", "path", name="mirror_pk"),
)

FACT_SQL = (
    trigger(
        "history_ad",
        "AFTER DELETE ON record WHEN old.layer = 'history'",
        "DELETE FROM history WHERE record_id = old.id;",
    ),
    view(
        "v_facts",
        """
        SELECT user_id, content,
               (SELECT coalesce(max(number), 0) + 1 FROM version
                 WHERE (version.user_id, version.layer, version.session_id, version.key)
                     = (record.user_id, record.layer, record.session_id, record.key)) AS version,
               CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.author') END AS author,
               created_at, updated_at, id AS record_id
          FROM record
         WHERE layer = 'fact'
        """,
    ),
    view(
        "v_history",
        """
        SELECT record.user_id, CAST(record.key AS INTEGER) AS number, record.created_at, record.content AS entry,
               coalesce(history.origin, 'written') AS origin, history.source_session_id, history.first_position,
               history.last_position, record.id AS record_id
          FROM record LEFT JOIN history ON history.record_id = record.id
         WHERE record.layer = 'history'
        """,
    ),
)
