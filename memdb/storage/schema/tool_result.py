"""Tool results (L3): a record whose title is the tool and whose summary is the beginning; the content is a payload."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Index, Integer, Table, Text

from memdb.storage.schema.base import metadata, trigger, view

tool_result = Table(
    "tool_result",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("form", Text, nullable=False),  # 'text': the blob is the payload's content; 'json': it is the whole payload
    Column("head", Text, nullable=False),  # the payload as JSON, its content left out where the blob is it
    Column("blob_id", Integer, nullable=False),
    CheckConstraint("form IN ('text', 'json')", name="form_known"),
    CheckConstraint("json_valid(head)", name="head_json"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="tool_result_record", ondelete="CASCADE"),
)
Index("tool_result_by_blob", tool_result.c.blob_id)

TOOL_RESULT_SQL = (
    trigger(
        "tool_result_ad",
        "AFTER DELETE ON record WHEN old.layer = 'tool_result'",
        "DELETE FROM tool_result WHERE record_id = old.id;",
    ),
    view(
        "v_tool_results",
        """
        SELECT record.user_id, record.session_id, record.key AS id, record.title AS tool,
               replace(record.summary, char(10), ' ') AS summary, blob.size, blob.lines, 1 AS format_version,
               record.created_at, record.updated_at AS saved_at, record.expires_at,
               coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
          FROM record JOIN tool_result ON tool_result.record_id = record.id
                 LEFT JOIN blob ON blob.id = tool_result.blob_id
                 LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'tool_result'
        """,
    ),
)
