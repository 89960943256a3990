"""Where a synced page came from: the folder, the file in it, and what the file was when it was read."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Integer, Table, Text, UniqueConstraint, text

from memdb.storage.schema.base import metadata, trigger, view

source = Table(
    "source",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("folder", Text, nullable=False),  # its real path
    Column("path", Text, nullable=False),  # in the folder, with / between its parts
    Column("hash", Text, nullable=False),  # SHA-256 of the file's bytes
    Column("category", Text, nullable=False),  # what the sync was told, for notes that name none
    Column("size", Integer, nullable=False),
    Column("modified_ns", Integer, nullable=False),  # -1: too fresh to be trusted
    Column("changed_ns", Integer, nullable=False),  # of the inode: a restored older time of modification does not hide
    Column("synced_at", Text, nullable=False),
    Column("links", Text, nullable=False, server_default=text("'[]'")),  # as the note writes them, in order
    UniqueConstraint("user_id", "folder", "path", name="source_file"),
    CheckConstraint("json_valid(links)", name="links_json"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="source_record", ondelete="CASCADE"),
)

SOURCE_SQL = (
    trigger(
        "source_ad", "AFTER DELETE ON record WHEN old.layer = 'page'", "DELETE FROM source WHERE record_id = old.id;"
    ),
    view(
        "v_sources",
        """
        SELECT source.user_id, source.folder, source.path, record.key AS page_id, record.title, source.size,
               source.hash, source.synced_at, source.record_id
          FROM source JOIN record ON record.id = source.record_id
        """,
    ),
)
