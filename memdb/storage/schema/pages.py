"""Knowledge pages as a person reads them."""

from __future__ import annotations

from memdb.storage.schema.base import tag_list, view

PAGE_SQL = (
    view(
        "v_knowledge_pages",
        f"""
        SELECT record.user_id, record.key AS id, record.category, record.title, record.summary, record.content,
               {tag_list("record.tags")} AS tags,
               {tag_list("record.keywords")} AS keywords,
               (SELECT group_concat(target_key, ', ')
                  FROM (SELECT target_key FROM record_reference WHERE source_id = record.id ORDER BY position)
               ) AS "references",
               record.created_at, record.updated_at, coalesce(recall.recall_count, 0) AS recalls,
               record.id AS record_id
          FROM record LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'page'
        """,
    ),
)
