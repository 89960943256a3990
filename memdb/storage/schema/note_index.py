"""The index of notes: which pages are indexed, of which text, and which have changed since."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, Table, Text, text

from memdb.storage.schema.base import metadata, trigger, view

# A page's title, description and keywords stand in its record; here is of which content they were made. Users without
# an index have no rows. `stale` is set by triggers, so that nobody has to compare every page with its hash.
note_index = Table(
    "note_index",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("hash", Text),  # SHA-256 of the content that was indexed; NULL: never
    Column("by_model", Integer, nullable=False, server_default=text("0")),  # whether a model chose the keywords
    Column("stale", Integer),  # 1: new or changed since; NULL: as it was indexed
    Column("indexed_at", Text),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="note_index_record", ondelete="CASCADE"),
)
Index("note_index_by_user", note_index.c.user_id)
Index("note_index_stale", note_index.c.user_id, sqlite_where=note_index.c.stale.is_not(None))

NOTE_INDEX_SQL = (
    trigger(
        "note_index_ai",
        """AFTER INSERT ON record
  WHEN new.layer = 'page' AND EXISTS (SELECT 1 FROM note_index WHERE user_id = new.user_id)""",
        "INSERT OR IGNORE INTO note_index (record_id, user_id, stale) VALUES (new.id, new.user_id, 1);",
    ),
    trigger(
        "note_index_au",
        "AFTER UPDATE OF content, title, summary, keywords, user_id, layer ON record WHEN old.layer = 'page'",
        """
  UPDATE note_index
     SET stale = 1, user_id = new.user_id,
         by_model = CASE WHEN new.keywords IS NOT old.keywords THEN 0 ELSE by_model END  -- whoever wrote them, no model
   WHERE record_id = old.id AND new.layer = 'page';
  DELETE FROM note_index WHERE record_id = old.id AND new.layer != 'page';
""",
    ),
    trigger(
        "note_index_ad",
        "AFTER DELETE ON record WHEN old.layer = 'page'",
        "DELETE FROM note_index WHERE record_id = old.id;",
    ),
    view(
        "v_note_index",
        """
        SELECT record.user_id, record.category,
               CASE WHEN substr(record.key, 1, length(record.category) + 1) = record.category || '/'
                    THEN substr(record.key, length(record.category) + 2) ELSE record.key END AS filename,
               record.title, record.summary AS description,
               CASE WHEN json_valid(record.keywords)
                    THEN (SELECT group_concat(value, ', ') FROM json_each(record.keywords)) END AS keywords,
               iif(note_index.by_model AND note_index.hash IS NOT NULL, 'model', 'rule') AS keywords_by,
               record.updated_at AS last_modified, note_index.indexed_at, coalesce(note_index.stale, 0) AS stale,
               3 AS index_version, record.key AS page_id, record.id AS record_id
          FROM note_index JOIN record ON record.id = note_index.record_id
        """,
    ),
)
