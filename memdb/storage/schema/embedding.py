"""Vectors of records: by model, with its dimensions; which records still wait for theirs."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, text

from memdb.storage.schema.base import metadata, trigger, view

# A row a user, layer and model that vectors are kept of. From then on triggers note which records lack one, so that
# nobody has to look for them, and users without an embedder pay one look-up a write.
embedding_model = Table(
    "embedding_model",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("dimensions", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("user_id", "layer", "model", name="embedding_model_identity"),
    sqlite_autoincrement=True,
)

# A row a part of a record's text. Part 0 is there as soon as the record is, without a vector: it waits for one.
embedding = Table(
    "embedding",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("model_id", Integer, nullable=False),
    Column("record_id", Integer, nullable=False),
    Column("part", Integer, nullable=False, server_default=text("0")),
    Column("vector", LargeBinary),  # float32, little-endian, of length 1; empty: there is no text
    UniqueConstraint("record_id", "model_id", "part", name="embedding_identity"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="embedding_record", ondelete="CASCADE"),
    sqlite_autoincrement=True,  # a number is one text's for ever: what was read of it can be kept, and compared by it
)
Index("embedding_by_model", embedding.c.user_id, embedding.c.model_id)
Index("embedding_waiting", embedding.c.user_id, embedding.c.model_id, sqlite_where=embedding.c.vector.is_(None))

_KEPT = "SELECT 1 FROM embedding_model WHERE user_id = new.user_id AND layer = new.layer"
_WAIT = """
  INSERT OR IGNORE INTO embedding (user_id, model_id, record_id, part)
    SELECT user_id, id, new.id, 0 FROM embedding_model WHERE user_id = new.user_id AND layer = new.layer;
"""

EMBEDDING_SQL = (
    trigger("embedding_ai", f"AFTER INSERT ON record WHEN EXISTS ({_KEPT})", _WAIT),
    trigger(
        "embedding_au",
        """AFTER UPDATE OF title, summary, content, user_id, layer ON record
  WHEN (new.title, new.summary, new.content, new.user_id, new.layer)
       IS NOT (old.title, old.summary, old.content, old.user_id, old.layer)
   AND (EXISTS (SELECT 1 FROM embedding WHERE record_id = old.id) OR EXISTS ("""
        + _KEPT
        + "))",
        "  DELETE FROM embedding WHERE record_id = old.id;" + _WAIT,
    ),
    trigger("embedding_ad", "AFTER DELETE ON record", "DELETE FROM embedding WHERE record_id = old.id;"),
    trigger(
        "embedding_model_ad",
        "AFTER DELETE ON embedding_model",
        "DELETE FROM embedding WHERE user_id = old.user_id AND model_id = old.id;",
    ),
    view(
        "v_embeddings",
        """
        SELECT kept.user_id, kept.layer, kept.model, kept.dimensions,
               (SELECT count(DISTINCT record_id) FROM embedding
                 WHERE user_id = kept.user_id AND model_id = kept.id AND vector IS NOT NULL) AS embedded,
               (SELECT count(*) FROM embedding
                 WHERE user_id = kept.user_id AND model_id = kept.id AND vector IS NULL) AS waiting,
               kept.created_at
          FROM embedding_model AS kept
        """,
    ),
)
