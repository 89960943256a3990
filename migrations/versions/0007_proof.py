"""What searches keep in memory stays true: which entries of the index have changed; scopes found by session.

Revision ID: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE index_change (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    record_id INTEGER NOT NULL
)
""",
    """
CREATE INDEX scope_by_session ON scope (session_id, user_id, layer)
""",
    """
CREATE TRIGGER index_change_ai AFTER INSERT ON record WHEN EXISTS (SELECT 1 FROM record WHERE id > new.id) BEGIN
INSERT INTO index_change (record_id) VALUES (new.id);
DELETE FROM index_change WHERE number <= (SELECT max(number) FROM index_change) - 1000;
END
""",
    """
CREATE TRIGGER index_change_au AFTER UPDATE OF title, tags, summary, keywords, content, title_seg, tags_seg, summary_seg, keywords_seg, content_seg, user_id, layer, session_id ON record BEGIN
INSERT INTO index_change (record_id) VALUES (old.id);
DELETE FROM index_change WHERE number <= (SELECT max(number) FROM index_change) - 1000;
END
""",
    """
CREATE TRIGGER index_change_ad AFTER DELETE ON record BEGIN
INSERT INTO index_change (record_id) VALUES (old.id);
DELETE FROM index_change WHERE number <= (SELECT max(number) FROM index_change) - 1000;
END
""",
    """
CREATE VIRTUAL TABLE record_instance USING fts5vocab(record_search, instance)
""",
)


def upgrade() -> None:
    """Add what is new, and leave no statistics: those of a sample misled SQLite, and no statement of memdb needs any."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)
    for (name,) in bind.exec_driver_sql(
        "SELECT name FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')"
    ).fetchall():
        bind.exec_driver_sql(f"DROP TABLE {name}")


def downgrade() -> None:
    """A file is not taken back: restore the backup that was made."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
