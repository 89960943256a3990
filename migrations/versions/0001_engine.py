"""The engine: records, scopes, the full-text index, tags, references, recall, quarantine, items and pages.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE quarantine (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    layer TEXT NOT NULL,
    session_id TEXT NOT NULL,
    "key" TEXT NOT NULL,
    reason TEXT NOT NULL,
    raw TEXT NOT NULL,
    quarantined_at TEXT NOT NULL
)
""",
    """
CREATE TABLE record (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    layer TEXT NOT NULL,
    session_id TEXT DEFAULT '' NOT NULL,
    "key" TEXT NOT NULL,
    category TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    expires_at TEXT,
    seg_revision INTEGER DEFAULT 0 NOT NULL,
    tags TEXT DEFAULT '[]' NOT NULL,
    keywords TEXT DEFAULT '[]' NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    title TEXT DEFAULT '' NOT NULL,
    summary TEXT DEFAULT '' NOT NULL,
    content TEXT DEFAULT '' NOT NULL,
    title_seg TEXT,
    tags_seg TEXT,
    summary_seg TEXT,
    keywords_seg TEXT,
    content_seg TEXT,
    CONSTRAINT record_identity UNIQUE (user_id, layer, session_id, "key"),
    CONSTRAINT record_tags_json CHECK (json_valid(tags)),
    CONSTRAINT record_keywords_json CHECK (json_valid(keywords)),
    CONSTRAINT record_metadata_json CHECK (json_valid(metadata))
)
""",
    """
CREATE TABLE scope (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    layer TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tokens TEXT,
    records INTEGER DEFAULT 0 NOT NULL,
    bytes INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT scope_identity UNIQUE (user_id, layer, session_id)
)
""",
    """
CREATE TABLE recall (
    record_id INTEGER NOT NULL,
    importance FLOAT,
    recall_count INTEGER DEFAULT 0 NOT NULL,
    total_score FLOAT DEFAULT 0 NOT NULL,
    last_recall_at TEXT,
    CONSTRAINT recall_pk PRIMARY KEY (record_id),
    CONSTRAINT recall_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE record_reference (
    source_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    target_layer TEXT NOT NULL,
    target_key TEXT NOT NULL,
    CONSTRAINT record_reference_pk PRIMARY KEY (source_id, position),
    CONSTRAINT record_reference_source FOREIGN KEY(source_id) REFERENCES record (id) ON DELETE CASCADE
)
 WITHOUT ROWID
""",
    """
CREATE TABLE record_tag (
    user_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    layer TEXT NOT NULL,
    record_id INTEGER NOT NULL,
    CONSTRAINT record_tag_pk PRIMARY KEY (user_id, tag, layer, record_id),
    CONSTRAINT record_tag_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
 WITHOUT ROWID
""",
    """
CREATE INDEX quarantine_by_user ON quarantine (user_id)
""",
    """
CREATE INDEX record_by_category ON record (user_id, layer, category) WHERE category IS NOT NULL
""",
    """
CREATE INDEX record_by_time ON record (user_id, layer, session_id, created_at)
""",
    """
CREATE INDEX record_by_title ON record (user_id, layer, title COLLATE "NOCASE") WHERE title != ''
""",
    """
CREATE INDEX record_expiring ON record (user_id, expires_at) WHERE expires_at IS NOT NULL
""",
    """
CREATE INDEX record_unsegmented ON record (id) WHERE seg_revision = 0
""",
    """
CREATE INDEX record_reference_by_target ON record_reference (user_id, target_layer, target_key)
""",
    """
CREATE INDEX record_tag_by_record ON record_tag (record_id)
""",
    """
CREATE TRIGGER record_scope_bi BEFORE INSERT ON record WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, new.layer, ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, new.layer, new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = new.layer AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER record_scope_bu BEFORE UPDATE OF user_id, layer, session_id ON record WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, new.layer, ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, new.layer, new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = new.layer AND session_id IN ('', new.session_id);
END
""",
    """
CREATE VIEW v_scopes AS
SELECT user_id, layer, session_id, records, bytes, id AS token
  FROM scope
 ORDER BY user_id, layer, session_id
""",
    """
CREATE VIEW record_text AS
SELECT record.id,
       CASE WHEN seg_revision > 0 THEN coalesce(title_seg, title) ELSE title END AS title,
       CASE WHEN seg_revision > 0 THEN coalesce(tags_seg, tags) ELSE tags END AS tags,
       CASE WHEN seg_revision > 0 THEN coalesce(summary_seg, summary) ELSE summary END AS summary,
       CASE WHEN seg_revision > 0 THEN coalesce(keywords_seg, keywords) ELSE keywords END AS keywords,
       CASE WHEN seg_revision > 0 THEN coalesce(content_seg, content) ELSE content END AS content,
       (SELECT tokens FROM scope
         WHERE (scope.user_id, scope.layer, scope.session_id)
             = (record.user_id, record.layer, record.session_id)) AS scope
  FROM record
""",
    """
CREATE VIRTUAL TABLE record_search USING fts5(title, tags, summary, keywords, content, scope, content='record_text', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''')
""",
    """
CREATE VIRTUAL TABLE record_vocabulary USING fts5vocab(record_search, row)
""",
    """
CREATE TRIGGER record_search_ai AFTER INSERT ON record BEGIN
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
  WHERE user_id = new.user_id AND layer = new.layer AND session_id = '';
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
  WHERE new.session_id != '' AND user_id = new.user_id AND layer = new.layer AND session_id = new.session_id;
INSERT INTO record_search (rowid, title, tags, summary, keywords, content, scope)
  VALUES (new.id, CASE WHEN new.seg_revision > 0 THEN coalesce(new.title_seg, new.title) ELSE new.title END,
         CASE WHEN new.seg_revision > 0 THEN coalesce(new.tags_seg, new.tags) ELSE new.tags END,
         CASE WHEN new.seg_revision > 0 THEN coalesce(new.summary_seg, new.summary) ELSE new.summary END,
         CASE WHEN new.seg_revision > 0 THEN coalesce(new.keywords_seg, new.keywords) ELSE new.keywords END,
         CASE WHEN new.seg_revision > 0 THEN coalesce(new.content_seg, new.content) ELSE new.content END,
         (SELECT tokens FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id)));
END
""",
    """
CREATE TRIGGER record_search_ad AFTER DELETE ON record BEGIN
INSERT INTO record_search (record_search, rowid, title, tags, summary, keywords, content, scope)
  VALUES ('delete', old.id, CASE WHEN old.seg_revision > 0 THEN coalesce(old.title_seg, old.title) ELSE old.title END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.tags_seg, old.tags) ELSE old.tags END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.summary_seg, old.summary) ELSE old.summary END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.keywords_seg, old.keywords) ELSE old.keywords END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.content_seg, old.content) ELSE old.content END,
         (SELECT tokens FROM scope WHERE (user_id, layer, session_id) = (old.user_id, old.layer, old.session_id)));
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
  WHERE user_id = old.user_id AND layer = old.layer AND session_id = '';
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
  WHERE old.session_id != '' AND user_id = old.user_id AND layer = old.layer AND session_id = old.session_id;
DELETE FROM record_tag WHERE record_id = old.id;
DELETE FROM record_reference WHERE source_id = old.id;
DELETE FROM recall WHERE record_id = old.id;
END
""",
    """
CREATE TRIGGER record_search_au AFTER UPDATE OF title, tags, summary, keywords, content, title_seg, tags_seg, summary_seg, keywords_seg, content_seg, user_id, layer, session_id ON record BEGIN
INSERT INTO record_search (record_search, rowid, title, tags, summary, keywords, content, scope)
  VALUES ('delete', old.id, CASE WHEN old.seg_revision > 0 THEN coalesce(old.title_seg, old.title) ELSE old.title END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.tags_seg, old.tags) ELSE old.tags END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.summary_seg, old.summary) ELSE old.summary END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.keywords_seg, old.keywords) ELSE old.keywords END,
         CASE WHEN old.seg_revision > 0 THEN coalesce(old.content_seg, old.content) ELSE old.content END,
         (SELECT tokens FROM scope WHERE (user_id, layer, session_id) = (old.user_id, old.layer, old.session_id)));
UPDATE record SET seg_revision = 0
 WHERE id = new.id AND new.seg_revision IS old.seg_revision
   AND (new.title IS NOT old.title OR new.tags IS NOT old.tags OR new.summary IS NOT old.summary OR new.keywords IS NOT old.keywords OR new.content IS NOT old.content);
INSERT INTO record_search (rowid, title, tags, summary, keywords, content, scope)
  SELECT id, title, tags, summary, keywords, content, scope FROM record_text WHERE id = new.id;
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
  WHERE user_id = old.user_id AND layer = old.layer AND session_id = '';
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
  WHERE old.session_id != '' AND user_id = old.user_id AND layer = old.layer AND session_id = old.session_id;
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
  WHERE user_id = new.user_id AND layer = new.layer AND session_id = '';
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
  WHERE new.session_id != '' AND user_id = new.user_id AND layer = new.layer AND session_id = new.session_id;
END
""",
    """
CREATE TRIGGER record_tag_ai AFTER INSERT ON record WHEN new.tags IS NOT '[]' BEGIN
INSERT INTO record_tag (user_id, tag, layer, record_id)
    SELECT DISTINCT new.user_id, value, new.layer, new.id
      FROM json_each(CASE WHEN json_valid(new.tags) THEN new.tags ELSE '[]' END)
     WHERE type = 'text';
END
""",
    """
CREATE TRIGGER record_tag_au AFTER UPDATE OF tags, user_id, layer ON record BEGIN
DELETE FROM record_tag WHERE record_id = old.id;
INSERT INTO record_tag (user_id, tag, layer, record_id)
  SELECT DISTINCT new.user_id, value, new.layer, new.id
    FROM json_each(CASE WHEN json_valid(new.tags) THEN new.tags ELSE '[]' END)
   WHERE type = 'text';
END
""",
    """
CREATE VIEW v_recall_stats AS
SELECT record.user_id, record.layer, record.session_id, record.key AS id, recall.recall_count,
       CASE WHEN recall.recall_count > 0 THEN recall.total_score / recall.recall_count END AS mean_score,
       recall.total_score, recall.last_recall_at, recall.importance
  FROM recall JOIN record ON record.id = recall.record_id
""",
    """
CREATE VIEW v_quarantine AS
SELECT user_id, layer, session_id, key AS id, reason, quarantined_at, raw
  FROM quarantine
""",
    """
CREATE VIEW v_items AS
SELECT record.user_id, record.key AS id, record.content, record.metadata, record.created_at, record.updated_at,
       record.expires_at, coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
  FROM record LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'item'
""",
    """
CREATE VIEW v_knowledge_pages AS
SELECT record.user_id, record.key AS id, record.category, record.title, record.summary, record.content,
       CASE WHEN json_valid(record.tags) THEN (SELECT group_concat(value, ', ') FROM json_each(record.tags)) END AS tags,
       CASE WHEN json_valid(record.keywords) THEN (SELECT group_concat(value, ', ') FROM json_each(record.keywords)) END AS keywords,
       (SELECT group_concat(target_key, ', ')
          FROM (SELECT target_key FROM record_reference WHERE source_id = record.id ORDER BY position)
       ) AS "references",
       record.created_at, record.updated_at, coalesce(recall.recall_count, 0) AS recalls,
       record.id AS record_id
  FROM record LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'page'
""",
    """
INSERT INTO record_search (record_search, rank) VALUES ('rank', 'bm25(2.5, 2.0, 1.2, 1.0, 1.0, 0.0)')
""",
)


def upgrade() -> None:
    """Make the first schema."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)


def downgrade() -> None:
    """There is nothing before the first schema: restore a backup instead."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
