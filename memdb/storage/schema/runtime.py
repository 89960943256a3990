"""What an agent is doing: its state (L0), working summary (L1) and checkpoints (L2), a row a session or a save."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from memdb.storage.schema.base import metadata, trigger, view
from memdb.storage.schema.scope import counted

# No records: they are replaced at every step, are never searched, and a row of their own is written in half the time.
state = Table(
    "state",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("format_version", Integer, nullable=False, server_default=text("1")),
    Column("updated_at", Text, nullable=False),
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("user_id", "session_id", name="state_pk"),
    CheckConstraint("json_valid(state)", name="state_json"),
)

working_memory = Table(
    "working_memory",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("revision", Integer, nullable=False, server_default=text("1")),  # for compare-and-set
    Column("updated_at", Text, nullable=False),
    Column("content", Text, nullable=False),
    PrimaryKeyConstraint("user_id", "session_id", name="working_memory_pk"),
)

# A row a save. What is saved again under an id gets the next seq; the older ones are the id's history.
checkpoint = Table(
    "checkpoint",
    metadata,
    Column("number", Integer, primary_key=True),  # the order of saving, over all ids
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("format_version", Integer, nullable=False, server_default=text("1")),
    Column("status", Text),  # NULL: saved as a plan
    Column("superseded", Integer, nullable=False, server_default=text("0")),  # by a later save under the id
    Column("saved_at", Text, nullable=False),
    Column("blob_id", Integer, nullable=False),
    UniqueConstraint("user_id", "session_id", "id", "seq", name="checkpoint_identity"),
    CheckConstraint("status IN ('in_progress', 'completed', 'interrupted')", name="status_known"),
    sqlite_autoincrement=True,
)
Index(
    "checkpoint_latest",
    checkpoint.c.user_id,
    checkpoint.c.session_id,
    checkpoint.c.superseded,
    checkpoint.c.status,
    checkpoint.c.number,
)
Index(
    "checkpoint_current",
    checkpoint.c.user_id,
    checkpoint.c.session_id,
    checkpoint.c.superseded,
    checkpoint.c.number,
)
Index("checkpoint_by_blob", checkpoint.c.blob_id)

_OF_ID = "(user_id, session_id, id) = ({row}.user_id, {row}.session_id, {row}.id)"

RUNTIME_SQL = (
    *counted("state", "state", text="state"),
    *counted("working_memory", "working_memory", text="content"),
    *counted("checkpoint", "checkpoint"),
    trigger(
        "checkpoint_ai",
        "AFTER INSERT ON checkpoint",
        f"""
  UPDATE checkpoint SET superseded = 1
   WHERE {_OF_ID.format(row="new")} AND superseded = 0
     AND seq = (SELECT max(seq) FROM checkpoint WHERE {_OF_ID.format(row="new")} AND seq < new.seq);
  UPDATE checkpoint SET superseded = 1
   WHERE number = new.number
     AND EXISTS (SELECT 1 FROM checkpoint WHERE {_OF_ID.format(row="new")} AND seq > new.seq);
""",
    ),
    trigger(
        "checkpoint_ad",
        "AFTER DELETE ON checkpoint",
        f"""
  UPDATE checkpoint SET superseded = 0
   WHERE old.superseded = 0 AND {_OF_ID.format(row="old")}
     AND seq = (SELECT max(seq) FROM checkpoint WHERE {_OF_ID.format(row="old")});
""",
    ),
    view(
        "v_states",
        """
        SELECT user_id, session_id, format_version,
               CASE WHEN json_valid(state) THEN json_extract(state, '$.current_task') END AS current_task,
               CASE WHEN json_valid(state) THEN json_extract(state, '$.current_step') END AS current_step,
               CASE WHEN json_valid(state) THEN json_extract(state, '$.plan_id') END AS plan_id,
               state, updated_at
          FROM state
        """,
    ),
    view(
        "v_working_summaries",
        """
        SELECT user_id, session_id, content, revision, updated_at
          FROM working_memory
        """,
    ),
    view(
        "v_checkpoints",
        """
        SELECT checkpoint.user_id, checkpoint.session_id, checkpoint.id, checkpoint.seq, checkpoint.format_version,
               checkpoint.status, NOT checkpoint.superseded AS latest, checkpoint.saved_at, blob.size,
               (SELECT CAST(data AS TEXT) FROM blob_chunk
                 WHERE (blob_chunk.blob_id, blob_chunk.start) = (checkpoint.blob_id, 0)) AS payload
          FROM checkpoint LEFT JOIN blob ON blob.id = checkpoint.blob_id
        """,
    ),
)
