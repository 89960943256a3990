"""Experience: episodes, the patterns seen in them, skills, and how their importance ages.

Revision ID: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE aging (
    user_id TEXT NOT NULL,
    session_id TEXT DEFAULT '' NOT NULL,
    layer TEXT NOT NULL,
    aged_at TEXT NOT NULL,
    rate FLOAT DEFAULT (0.023104906018664842) NOT NULL,
    CONSTRAINT aging_pk PRIMARY KEY (user_id, layer, session_id)
)
""",
    """
CREATE TABLE episode (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    task_id TEXT DEFAULT '' NOT NULL,
    agent TEXT DEFAULT '' NOT NULL,
    outcome TEXT DEFAULT 'success' NOT NULL,
    duration_seconds FLOAT DEFAULT 0 NOT NULL,
    tokens_used INTEGER DEFAULT 0 NOT NULL,
    git_commit TEXT,
    CONSTRAINT episode_pk PRIMARY KEY (record_id),
    CONSTRAINT episode_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE pattern (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    kind TEXT DEFAULT 'pattern' NOT NULL,
    confidence FLOAT DEFAULT (0.8) NOT NULL,
    usage_count INTEGER DEFAULT 0 NOT NULL,
    last_used TEXT,
    CONSTRAINT pattern_pk PRIMARY KEY (record_id),
    CONSTRAINT pattern_kind_known CHECK (kind IN ('pattern', 'anti_pattern')),
    CONSTRAINT pattern_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE INDEX episode_by_task ON episode (user_id, task_id)
""",
    """
CREATE TRIGGER episode_ad AFTER DELETE ON record WHEN old.layer = 'episode' BEGIN
DELETE FROM episode WHERE record_id = old.id;
END
""",
    """
CREATE TRIGGER pattern_ad AFTER DELETE ON record WHEN old.layer = 'pattern' BEGIN
DELETE FROM pattern WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_episodes AS
SELECT record.user_id, record.key AS id, record.created_at AS timestamp, episode.task_id, episode.agent,
       record.category AS phase, record.title AS goal, episode.outcome, episode.duration_seconds,
       episode.tokens_used, episode.git_commit, coalesce(recall.importance, 0.5) AS importance,
       coalesce(recall.recall_count, 0) AS access_count, recall.last_recall_at AS last_accessed,
       record.id AS record_id
  FROM record JOIN episode ON episode.record_id = record.id
         LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'episode'
""",
    """
CREATE VIEW v_patterns AS
SELECT record.user_id, record.key AS id, pattern.kind, record.category, record.title AS pattern,
       CASE WHEN json_valid(record.metadata) THEN
         (SELECT group_concat(value, '; ') FROM json_each(coalesce(json_extract(record.metadata, '$.conditions'), '[]')) WHERE type = 'text') END AS conditions,
       CASE WHEN json_valid(record.metadata) THEN json_extract(record.metadata, '$.correct_approach') END
         AS correct_approach,
       CASE WHEN json_valid(record.metadata) THEN json_extract(record.metadata, '$.incorrect_approach') END
         AS incorrect_approach,
       pattern.confidence, pattern.usage_count, pattern.last_used,
       (SELECT group_concat(target_key, ', ')
          FROM (SELECT target_key FROM record_reference
                 WHERE source_id = record.id AND target_layer = 'episode' ORDER BY position)
       ) AS source_episodes,
       coalesce(recall.importance, 0.5) AS importance, coalesce(recall.recall_count, 0) AS access_count,
       record.created_at, record.updated_at, record.id AS record_id
  FROM record JOIN pattern ON pattern.record_id = record.id
         LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'pattern'
""",
    """
CREATE VIEW v_skills AS
SELECT record.user_id, record.key AS id, record.title AS name, record.summary AS description,
       CASE WHEN json_valid(record.metadata) THEN
         (SELECT group_concat(value, '; ') FROM json_each(coalesce(json_extract(record.metadata, '$.steps'), '[]')) WHERE type = 'text') END AS steps, CASE WHEN json_valid(record.metadata) THEN
         (SELECT group_concat(value, '; ') FROM json_each(coalesce(json_extract(record.metadata, '$.prerequisites'), '[]')) WHERE type = 'text') END AS prerequisites,
       CASE WHEN json_valid(record.metadata) THEN
         (SELECT group_concat(value, '; ') FROM json_each(coalesce(json_extract(record.metadata, '$.exit_criteria'), '[]')) WHERE type = 'text') END AS exit_criteria, coalesce(recall.importance, 0.5) AS importance,
       coalesce(recall.recall_count, 0) AS access_count, record.created_at, record.updated_at,
       record.id AS record_id
  FROM record LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'skill'
""",
    """
CREATE VIEW v_timeline AS
SELECT record.user_id, record.created_at AS timestamp, record.title AS action, episode.outcome,
       coalesce(nullif(record.category, ''), 'general') AS topic, episode.agent, episode.task_id,
       record.key AS id, record.id AS record_id
  FROM scope JOIN record ON record.id IN
         (SELECT id FROM record AS newest
           WHERE (newest.user_id, newest.layer, newest.session_id) = (scope.user_id, 'episode', '')
           ORDER BY created_at DESC, id DESC LIMIT 50)
         LEFT JOIN episode ON episode.record_id = record.id
 WHERE (scope.layer, scope.session_id) = ('episode', '')
 ORDER BY record.user_id, record.created_at DESC, record.id DESC
""",
    """
CREATE VIEW v_topics AS
SELECT user_id, layer, lower(coalesce(nullif(category, ''), 'general')) AS topic, count(*) AS records,
       min(created_at) AS first_seen, max(created_at) AS last_seen
  FROM record
 WHERE layer IN ('episode', 'pattern') AND session_id = ''
 GROUP BY user_id, layer, topic
""",
)


def upgrade() -> None:
    """Add what episodes, patterns and skills need; nothing that was there changes."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)


def downgrade() -> None:
    """A file is not taken back: restore the backup that was made."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
