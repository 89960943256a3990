"""Payloads: what is too large for a row or stored again and again, once a user by its hash, in chunks."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, LargeBinary, Table, Text, UniqueConstraint

from memdb.storage.schema.base import metadata, trigger
from memdb.storage.schema.scope import counted

blob = Table(
    "blob",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("hash", Text, nullable=False),  # SHA-256 of the bytes
    Column("size", Integer, nullable=False),  # in bytes
    Column("lines", Integer, nullable=False),  # how many line feeds
    UniqueConstraint("user_id", "hash", name="blob_identity"),
    sqlite_autoincrement=True,  # a reused id would give what is left of an old reference a stranger's bytes
)

# Cut between characters, so that each chunk is text by itself: CAST(data AS TEXT) reads it in a shell.
blob_chunk = Table(
    "blob_chunk",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("blob_id", Integer, nullable=False),
    Column("start", Integer, nullable=False),  # bytes before it
    Column("line", Integer, nullable=False),  # line feeds before it
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("blob_id", "start", name="blob_chunk_identity"),
)
Index("blob_chunk_by_line", blob_chunk.c.blob_id, blob_chunk.c.line)


# For triggers on what refers to payloads: the payload of the old row goes when nothing else refers to it.
_UNREFERENCED = """
  DELETE FROM blob
   WHERE id = old.blob_id
     AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE blob_id = old.blob_id)
     AND NOT EXISTS (SELECT 1 FROM tool_result WHERE blob_id = old.blob_id);
"""

BLOB_SQL = (
    *counted("blob", "payload", number="size"),
    trigger("blob_ad", "AFTER DELETE ON blob", "DELETE FROM blob_chunk WHERE blob_id = old.id;"),
    trigger("blob_checkpoint_ad", "AFTER DELETE ON checkpoint", _UNREFERENCED),
    trigger("blob_checkpoint_au", "AFTER UPDATE OF blob_id ON checkpoint", _UNREFERENCED),
    trigger("blob_tool_result_ad", "AFTER DELETE ON tool_result", _UNREFERENCED),
    trigger("blob_tool_result_au", "AFTER UPDATE OF blob_id ON tool_result", _UNREFERENCED),
)
