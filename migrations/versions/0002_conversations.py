"""Conversations and synced notes: messages, sessions, sources.

Revision ID: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE session (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    consolidated_id INTEGER DEFAULT 0 NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    CONSTRAINT session_pk PRIMARY KEY (user_id, session_id),
    CONSTRAINT session_metadata_json CHECK (json_valid(metadata))
)
 WITHOUT ROWID
""",
    """
CREATE TABLE message (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    role TEXT NOT NULL,
    name TEXT,
    tokens INTEGER,
    tool_call_id TEXT,
    tool_calls TEXT,
    body TEXT,
    extra TEXT,
    CONSTRAINT message_pk PRIMARY KEY (record_id),
    CONSTRAINT message_tool_calls_json CHECK (tool_calls IS NULL OR json_valid(tool_calls)),
    CONSTRAINT message_body_json CHECK (body IS NULL OR json_valid(body)),
    CONSTRAINT message_extra_json CHECK (extra IS NULL OR json_valid(extra)),
    CONSTRAINT message_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE source (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    folder TEXT NOT NULL,
    path TEXT NOT NULL,
    hash TEXT NOT NULL,
    category TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    synced_at TEXT NOT NULL,
    links TEXT DEFAULT '[]' NOT NULL,
    CONSTRAINT source_pk PRIMARY KEY (record_id),
    CONSTRAINT source_file UNIQUE (user_id, folder, path),
    CONSTRAINT source_links_json CHECK (json_valid(links)),
    CONSTRAINT source_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TRIGGER message_ad AFTER DELETE ON record WHEN old.layer = 'message' BEGIN
DELETE FROM message WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_messages AS
SELECT record.user_id, record.session_id, CAST(record.key AS INTEGER) AS position, message.role, message.name,
       record.content,
       CASE WHEN json_valid(message.tool_calls)
            THEN (SELECT group_concat(coalesce(json_extract(value, '$.function.name'),
                                               json_extract(value, '$.name')), ', ')
                    FROM json_each(message.tool_calls) WHERE type = 'object') END AS calls,
       message.tool_call_id, message.tokens, record.created_at,
       record.id <= coalesce((SELECT consolidated_id FROM session
                               WHERE (session.user_id, session.session_id)
                                   = (record.user_id, record.session_id)), 0) AS consolidated,
       coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
  FROM record JOIN message ON message.record_id = record.id
         LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'message'
""",
    """
CREATE VIEW v_sessions AS
SELECT known.user_id, known.session_id, coalesce(scope.records, 0) AS messages,
       coalesce(min(session.created_at, first.created_at), session.created_at, first.created_at) AS created_at,
       coalesce(max(session.updated_at, last.created_at), session.updated_at, last.created_at) AS updated_at,
       coalesce(session.metadata, '{}') AS metadata
  FROM (SELECT user_id, session_id FROM session
         UNION SELECT user_id, session_id FROM scope WHERE session_id != '') AS known
       LEFT JOIN scope ON (scope.user_id, scope.layer, scope.session_id)
                        = (known.user_id, 'message', known.session_id)
       LEFT JOIN session ON (session.user_id, session.session_id) = (known.user_id, known.session_id)
       LEFT JOIN record AS first ON first.id =
         (SELECT id FROM record
           WHERE (user_id, layer, session_id) = (known.user_id, 'message', known.session_id)
           ORDER BY key LIMIT 1)
       LEFT JOIN record AS last ON last.id =
         (SELECT id FROM record
           WHERE (user_id, layer, session_id) = (known.user_id, 'message', known.session_id)
           ORDER BY key DESC LIMIT 1)
""",
    """
CREATE TRIGGER source_ad AFTER DELETE ON record WHEN old.layer = 'page' BEGIN
DELETE FROM source WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_sources AS
SELECT source.user_id, source.folder, source.path, record.key AS page_id, record.title, source.size,
       source.hash, source.synced_at, source.record_id
  FROM source JOIN record ON record.id = source.record_id
""",
)


def upgrade() -> None:
    """Add what conversations and synced notes need; nothing of the first schema changes."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)


def downgrade() -> None:
    """A file is not taken back: restore the backup that was made."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
