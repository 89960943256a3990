"""Which memories proved useful. Apart from the text: SQLite rewrites a whole row for one changed number."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKeyConstraint, Integer, Table, Text, text

from memdb.storage.schema.base import metadata, view

recall = Table(
    "recall",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("importance", Float),
    Column("recall_count", Integer, nullable=False, server_default=text("0")),
    Column("total_score", Float, nullable=False, server_default=text("0")),
    Column("last_recall_at", Text),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="recall_record", ondelete="CASCADE"),
)

RECALL_SQL = (
    view(
        "v_recall_stats",
        """
        SELECT record.user_id, record.layer, record.session_id, record.key AS id, recall.recall_count,
               CASE WHEN recall.recall_count > 0 THEN recall.total_score / recall.recall_count END AS mean_score,
               recall.total_score, recall.last_recall_at, recall.importance
          FROM recall JOIN record ON record.id = recall.record_id
        """,
    ),
)
