"""The graph and eviction: relations, what stores that evict keep.

Revision ID: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE eviction (
    user_id TEXT NOT NULL,
    layer TEXT NOT NULL,
    session_id TEXT NOT NULL,
    writes INTEGER DEFAULT 0 NOT NULL,
    passed_at TEXT DEFAULT '' NOT NULL,
    passed_id INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT eviction_pk PRIMARY KEY (user_id, layer, session_id)
)
 WITHOUT ROWID
""",
    """
CREATE TABLE relation (
    id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    source_id INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    relation_type TEXT NOT NULL,
    weight FLOAT NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT relation_pk PRIMARY KEY (id),
    CONSTRAINT relation_weight_range CHECK (weight BETWEEN 0 AND 1),
    CONSTRAINT relation_identity UNIQUE (user_id, source_id, target_id, relation_type)
)
""",
    """
CREATE INDEX relation_inward ON relation (user_id, target_id, weight DESC, source_id, relation_type)
""",
    """
CREATE INDEX relation_outward ON relation (user_id, source_id, weight DESC, target_id, relation_type)
""",
    """
CREATE TRIGGER eviction_ai AFTER INSERT ON record WHEN EXISTS (
    SELECT 1 FROM eviction WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id) AND (passed_at, passed_id) >= (new.created_at, new.id)) BEGIN
UPDATE eviction SET passed_at = new.created_at, passed_id = new.id - 1
 WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id);
END
""",
    """
CREATE TRIGGER eviction_au AFTER UPDATE OF created_at ON record WHEN EXISTS (
    SELECT 1 FROM eviction WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id) AND (passed_at, passed_id) >= (new.created_at, new.id)) BEGIN
UPDATE eviction SET passed_at = new.created_at, passed_id = new.id - 1
 WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id);
END
""",
    """
CREATE TRIGGER relation_ad AFTER DELETE ON record WHEN old.layer = 'entity' BEGIN
DELETE FROM relation WHERE user_id = old.user_id AND source_id = old.id;
DELETE FROM relation WHERE user_id = old.user_id AND target_id = old.id;
END
""",
    """
CREATE VIEW v_graph_entities AS
SELECT record.user_id, record.key AS id, record.title AS name, record.category AS entity_type,
       record.content AS description,
       CASE WHEN json_valid(record.tags) THEN (SELECT group_concat(value, ', ') FROM json_each(record.tags)) END AS tags,
       (SELECT count(*) FROM relation
         WHERE relation.user_id = record.user_id AND relation.source_id = record.id) AS relations_out,
       (SELECT count(*) FROM relation
         WHERE relation.user_id = record.user_id AND relation.target_id = record.id) AS relations_in,
       record.created_at, record.updated_at, coalesce(recall.recall_count, 0) AS recalls,
       record.id AS record_id
  FROM record LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'entity'
""",
    """
CREATE VIEW v_graph_relations AS
SELECT relation.user_id, source.key AS source_id, source.title AS source, relation.relation_type,
       target.key AS target_id, target.title AS target, relation.weight, relation.created_at
  FROM relation JOIN record AS source ON source.id = relation.source_id
                JOIN record AS target ON target.id = relation.target_id
""",
)


def upgrade() -> None:
    """Add what the graph and eviction need; nothing that was there changes."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)


def downgrade() -> None:
    """A file is not taken back: restore the backup that was made."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
