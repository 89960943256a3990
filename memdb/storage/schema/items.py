"""Key-value items as a person reads them."""

from __future__ import annotations

from memdb.storage.schema.base import view

ITEM_SQL = (
    view(
        "v_items",
        """
        SELECT record.user_id, record.key AS id, record.content, record.metadata, record.created_at, record.updated_at,
               record.expires_at, coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
          FROM record LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'item'
        """,
    ),
)
