"""The record: everything an agent remembers is one, a layer is a shape of it, a scope says whose it is."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, Integer, Table, Text, UniqueConstraint, text

from memdb.storage.schema.base import metadata

# Small columns first, the long texts last: SQLite walks a row from its start, and over its overflow pages.
record = Table(
    "record",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("session_id", Text, nullable=False, server_default=text("''")),
    Column("key", Text, nullable=False),
    Column("category", Text),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("expires_at", Text),
    # 0: the texts to index (the *_seg columns) are not to be trusted; an application's write raises it, a shell's
    # does not, which is how the update trigger tells them apart.
    Column("seg_revision", Integer, nullable=False, server_default=text("0")),
    Column("tags", Text, nullable=False, server_default=text("'[]'")),
    Column("keywords", Text, nullable=False, server_default=text("'[]'")),
    Column("metadata", Text, nullable=False, server_default=text("'{}'")),
    Column("title", Text, nullable=False, server_default=text("''")),
    Column("summary", Text, nullable=False, server_default=text("''")),
    Column("content", Text, nullable=False, server_default=text("''")),
    Column("title_seg", Text),
    Column("tags_seg", Text),
    Column("summary_seg", Text),
    Column("keywords_seg", Text),
    Column("content_seg", Text),
    UniqueConstraint("user_id", "layer", "session_id", "key", name="record_identity"),
    CheckConstraint("json_valid(tags)", name="tags_json"),
    CheckConstraint("json_valid(keywords)", name="keywords_json"),
    CheckConstraint("json_valid(metadata)", name="metadata_json"),
    sqlite_autoincrement=True,  # a reused id would credit a stranger's recall
)

Index("record_by_time", record.c.user_id, record.c.layer, record.c.session_id, record.c.created_at)
Index(
    "record_by_category",
    record.c.user_id,
    record.c.layer,
    record.c.category,
    sqlite_where=record.c.category.is_not(None),
)
Index(
    "record_by_title",
    record.c.user_id,
    record.c.layer,
    record.c.title.collate("NOCASE"),
    sqlite_where=record.c.title != text("''"),
)
Index("record_expiring", record.c.user_id, record.c.expires_at, sqlite_where=record.c.expires_at.is_not(None))
Index("record_unsegmented", record.c.id, sqlite_where=record.c.seg_revision == text("0"))
