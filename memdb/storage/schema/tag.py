"""Tags as rows: they follow record.tags by trigger, so that every layer shares one vocabulary with an index."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, PrimaryKeyConstraint, Table, Text

from memdb.storage.schema.base import metadata, trigger

record_tag = Table(
    "record_tag",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("tag", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("record_id", Integer, nullable=False),
    PrimaryKeyConstraint("user_id", "tag", "layer", "record_id", name="record_tag_pk"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="record_tag_record", ondelete="CASCADE"),
    Index("record_tag_by_record", "record_id"),
    sqlite_with_rowid=False,
)

_FOLLOW = """INSERT INTO record_tag (user_id, tag, layer, record_id)
    SELECT DISTINCT new.user_id, value, new.layer, new.id
      FROM json_each(CASE WHEN json_valid(new.tags) THEN new.tags ELSE '[]' END)
     WHERE type = 'text';"""

TAG_SQL = (
    trigger("record_tag_ai", "AFTER INSERT ON record WHEN new.tags IS NOT '[]'", _FOLLOW),
    trigger(
        "record_tag_au",
        "AFTER UPDATE OF tags, user_id, layer ON record",
        f"""
  DELETE FROM record_tag WHERE record_id = old.id;
  {_FOLLOW}
""",
    ),
)
