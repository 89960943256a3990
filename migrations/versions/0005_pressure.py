"""Memory under pressure: facts and history, memory blocks, archived passages, earlier texts.

Revision ID: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE consolidation (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    failures INTEGER DEFAULT 0 NOT NULL,
    reason TEXT,
    failed_at TEXT,
    CONSTRAINT consolidation_pk PRIMARY KEY (user_id, session_id)
)
""",
    """
CREATE TABLE memory_config (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    config TEXT NOT NULL,
    CONSTRAINT memory_config_pk PRIMARY KEY (user_id, session_id),
    CONSTRAINT memory_config_config_json CHECK (json_valid(config))
)
""",
    """
CREATE TABLE mirror (
    user_id TEXT NOT NULL,
    path TEXT NOT NULL,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    last_key TEXT DEFAULT '' NOT NULL,
    mirrored_at TEXT NOT NULL,
    CONSTRAINT mirror_pk PRIMARY KEY (user_id, path)
)
""",
    """
CREATE TABLE version (
    user_id TEXT NOT NULL,
    session_id TEXT DEFAULT '' NOT NULL,
    layer TEXT NOT NULL,
    "key" TEXT NOT NULL,
    number INTEGER NOT NULL,
    written_at TEXT NOT NULL,
    replaced_at TEXT NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    content TEXT NOT NULL,
    CONSTRAINT version_pk PRIMARY KEY (user_id, layer, session_id, "key", number),
    CONSTRAINT version_metadata_json CHECK (json_valid(metadata))
)
""",
    """
CREATE TABLE block (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    size INTEGER NOT NULL,
    priority INTEGER DEFAULT 1 NOT NULL,
    tokens INTEGER,
    initial_value TEXT DEFAULT '' NOT NULL,
    CONSTRAINT block_pk PRIMARY KEY (record_id),
    CONSTRAINT block_size_above_0 CHECK (size > 0),
    CONSTRAINT block_priority_from_0 CHECK (priority >= 0),
    CONSTRAINT block_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE history (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    origin TEXT DEFAULT 'written' NOT NULL,
    source_session_id TEXT,
    first_position INTEGER,
    last_position INTEGER,
    chunk TEXT,
    CONSTRAINT history_pk PRIMARY KEY (record_id),
    CONSTRAINT history_chunk UNIQUE (user_id, chunk),
    CONSTRAINT history_origin_known CHECK (origin IN ('written', 'consolidated', 'raw', 'file')),
    CONSTRAINT history_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE passage (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT,
    source_session_id TEXT,
    CONSTRAINT passage_pk PRIMARY KEY (record_id),
    CONSTRAINT passage_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE INDEX passage_by_source ON passage (user_id, source, source_session_id, source_id)
""",
    """
CREATE TRIGGER history_ad AFTER DELETE ON record WHEN old.layer = 'history' BEGIN
DELETE FROM history WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_facts AS
SELECT user_id, content,
       (SELECT coalesce(max(number), 0) + 1 FROM version
         WHERE (version.user_id, version.layer, version.session_id, version.key)
             = (record.user_id, record.layer, record.session_id, record.key)) AS version,
       CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.author') END AS author,
       created_at, updated_at, id AS record_id
  FROM record
 WHERE layer = 'fact'
""",
    """
CREATE VIEW v_history AS
SELECT record.user_id, CAST(record.key AS INTEGER) AS number, record.created_at, record.content AS entry,
       coalesce(history.origin, 'written') AS origin, history.source_session_id, history.first_position,
       history.last_position, record.id AS record_id
  FROM record LEFT JOIN history ON history.record_id = record.id
 WHERE record.layer = 'history'
""",
    """
CREATE TRIGGER block_ad AFTER DELETE ON record WHEN old.layer = 'block' BEGIN
DELETE FROM block WHERE record_id = old.id;
END
""",
    """
CREATE TRIGGER block_edited_au AFTER UPDATE OF content ON record
  WHEN old.layer = 'block' AND new.content IS NOT old.content AND new.seg_revision IS old.seg_revision BEGIN
UPDATE block SET tokens = NULL WHERE record_id = new.id;
END
""",
    """
CREATE VIEW v_memory_blocks AS
SELECT record.user_id, record.session_id, record.key AS name, record.content, block.tokens, block.size,
       block.priority, record.summary AS description, record.created_at, record.updated_at,
       record.id AS record_id
  FROM record JOIN block ON block.record_id = record.id
 WHERE record.layer = 'block'
""",
    """
CREATE TRIGGER passage_ad AFTER DELETE ON record WHEN old.layer = 'archive' BEGIN
DELETE FROM passage WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_archive AS
SELECT record.user_id, record.key AS id, record.content, record.summary, CASE WHEN json_valid(record.tags) THEN (SELECT group_concat(value, ', ') FROM json_each(record.tags)) END AS tags,
       recall.importance, passage.source, passage.source_id, passage.source_session_id, record.created_at,
       coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
  FROM record LEFT JOIN passage ON passage.record_id = record.id
         LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'archive'
""",
    """
CREATE TRIGGER version_scope_bi BEFORE INSERT ON version WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'version', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'version', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'version', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'version', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'version' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER version_scope_bu BEFORE UPDATE OF user_id, session_id ON version WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'version', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'version', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'version', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'version', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'version' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER version_counted_ai AFTER INSERT ON version BEGIN
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'version', '');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id) AND new.session_id != ('');
END
""",
    """
CREATE TRIGGER version_counted_ad AFTER DELETE ON version BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'version', '');
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'version', old.session_id) AND old.session_id != ('');
END
""",
    """
CREATE TRIGGER version_moved_au AFTER UPDATE OF user_id, session_id ON version BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'version', '');
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'version', old.session_id) AND old.session_id != ('');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'version', '');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id) AND new.session_id != ('');
END
""",
    """
CREATE TRIGGER version_counted_au AFTER UPDATE OF content ON version BEGIN
UPDATE scope SET bytes = bytes + length(CAST(new.content AS BLOB)) - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'version', '');
UPDATE scope SET bytes = bytes + length(CAST(new.content AS BLOB)) - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'version', new.session_id) AND new.session_id != ('');
END
""",
    """
CREATE TRIGGER version_record_au AFTER UPDATE OF content ON record WHEN old.layer IN ('fact', 'block') AND new.content IS NOT old.content BEGIN
INSERT INTO version (user_id, session_id, layer, key, number, written_at, replaced_at, metadata, content)
VALUES (old.user_id, old.session_id, old.layer, old.key, coalesce((SELECT max(number) FROM version WHERE (user_id, layer, session_id, key) = (old.user_id, old.layer, old.session_id, old.key)), 0) + 1, old.updated_at, new.updated_at,
        CASE WHEN old.seg_revision = 0 THEN '{"author": "shell", "act": "edit"}'
             WHEN json_valid(old.metadata) THEN old.metadata ELSE '{}' END, old.content);
DELETE FROM version
 WHERE old.layer = 'block' AND (user_id, layer, session_id, key) = (old.user_id, old.layer, old.session_id, old.key) AND number <= coalesce((SELECT max(number) FROM version WHERE (user_id, layer, session_id, key) = (old.user_id, old.layer, old.session_id, old.key)), 0) - 200;
END
""",
    """
CREATE TRIGGER version_record_ad AFTER DELETE ON record WHEN old.layer IN ('fact', 'block') AND NOT EXISTS (SELECT 1 FROM quarantine WHERE (user_id, layer, session_id, key) = (old.user_id, old.layer, old.session_id, old.key)) BEGIN
DELETE FROM version WHERE (user_id, layer, session_id, key) = (old.user_id, old.layer, old.session_id, old.key);
END
""",
    """
CREATE VIEW v_versions AS
SELECT user_id, session_id, layer, key AS id, number,
       CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.author') END AS author,
       CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.act') END AS act,
       written_at, replaced_at, content
  FROM version
""",
)


def upgrade() -> None:
    """Add what facts, history, blocks and the archive need; nothing that was there changes."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)


def downgrade() -> None:
    """A file is not taken back: restore the backup that was made."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
