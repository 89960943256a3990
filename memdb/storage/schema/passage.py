"""Archived passages: a record whose key is a hash of its content; how important it is stands in `recall`."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, Table, Text

from memdb.storage.schema.base import metadata, tag_list, trigger, view

passage = Table(
    "passage",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("source", Text, nullable=False),  # what it comes from: 'agent', 'block', 'conversation', 'tool', ...
    Column("source_id", Text),  # which of these: a block's name, positions of messages, a tool result's id
    Column("source_session_id", Text),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="passage_record", ondelete="CASCADE"),
)
Index("passage_by_source", passage.c.user_id, passage.c.source, passage.c.source_session_id, passage.c.source_id)

PASSAGE_SQL = (
    trigger(
        "passage_ad",
        "AFTER DELETE ON record WHEN old.layer = 'archive'",
        "DELETE FROM passage WHERE record_id = old.id;",
    ),
    view(
        "v_archive",
        f"""
        SELECT record.user_id, record.key AS id, record.content, record.summary, {tag_list("record.tags")} AS tags,
               recall.importance, passage.source, passage.source_id, passage.source_session_id, record.created_at,
               coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
          FROM record LEFT JOIN passage ON passage.record_id = record.id
                 LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'archive'
        """,
    ),
)
