"""Earlier texts of what is replaced as a whole: the long-term facts, and memory blocks. A row a text."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Integer, PrimaryKeyConstraint, Table, Text, text

from memdb.storage.schema.base import metadata, trigger, view
from memdb.storage.schema.scope import counted

KEPT_EDITS = 200  # of a block; of the facts every version is kept

# Written by a trigger, so that an edit in a shell keeps what it replaces, too. The present text is the record's own:
# its number is one above the last of these. Who wrote a text and how stands in its metadata: author, act, restored.
# A record that is set aside in the quarantine leaves its earlier texts where they are.
version = Table(
    "version",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False, server_default=text("''")),
    Column("layer", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("number", Integer, nullable=False),  # from 1
    Column("written_at", Text, nullable=False),
    Column("replaced_at", Text, nullable=False),
    Column("metadata", Text, nullable=False, server_default=text("'{}'")),
    Column("content", Text, nullable=False),
    PrimaryKeyConstraint("user_id", "layer", "session_id", "key", "number", name="version_pk"),
    CheckConstraint("json_valid(metadata)", name="metadata_json"),
)

_OF_RECORD = "(user_id, layer, session_id, key) = (old.user_id, old.layer, old.session_id, old.key)"
_LAST = f"coalesce((SELECT max(number) FROM version WHERE {_OF_RECORD}), 0)"
BY_SHELL = '{"author": "shell", "act": "edit"}'
_VERSIONED = "old.layer IN ('fact', 'block')"

VERSION_SQL = (
    *counted("version", "version", text="content", sessionless=True),
    trigger(
        "version_record_au",
        f"AFTER UPDATE OF content ON record WHEN {_VERSIONED} AND new.content IS NOT old.content",
        f"""
  INSERT INTO version (user_id, session_id, layer, key, number, written_at, replaced_at, metadata, content)
  VALUES (old.user_id, old.session_id, old.layer, old.key, {_LAST} + 1, old.updated_at, new.updated_at,
          CASE WHEN old.seg_revision = 0 THEN '{BY_SHELL}'
               WHEN json_valid(old.metadata) THEN old.metadata ELSE '{{}}' END, old.content);
  DELETE FROM version
   WHERE old.layer = 'block' AND {_OF_RECORD} AND number <= {_LAST} - {KEPT_EDITS};
""",
    ),
    trigger(
        "version_record_ad",
        f"AFTER DELETE ON record WHEN {_VERSIONED} AND NOT EXISTS (SELECT 1 FROM quarantine WHERE {_OF_RECORD})",
        f"DELETE FROM version WHERE {_OF_RECORD};",
    ),
    view(
        "v_versions",
        """
        SELECT user_id, session_id, layer, key AS id, number,
               CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.author') END AS author,
               CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.act') END AS act,
               written_at, replaced_at, content
          FROM version
        """,
    ),
)
