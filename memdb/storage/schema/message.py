"""Messages of conversations, and what is kept of a session besides its records."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Table, Text, text

from memdb.storage.schema.base import metadata, trigger, view

# Beside a record of layer 'message', whose key is the position in its session and whose content is the searchable text.
message = Table(
    "message",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("name", Text),
    Column("tokens", Integer),  # what a model is sent of it, in cl100k_base
    Column("tool_call_id", Text),
    Column("tool_calls", Text),
    Column("body", Text),  # the content as JSON, where it is not the very text of record.content
    Column("extra", Text),  # the keys of a message that have no column of their own
    CheckConstraint("tool_calls IS NULL OR json_valid(tool_calls)", name="tool_calls_json"),
    CheckConstraint("body IS NULL OR json_valid(body)", name="body_json"),
    CheckConstraint("extra IS NULL OR json_valid(extra)", name="extra_json"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="message_record", ondelete="CASCADE"),
)

# Only sessions of which more is known than their records say: a cursor, metadata, a beginning before the first record.
session = Table(
    "session",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    # The last message that was consolidated: its record, since a count would move when old messages go.
    Column("consolidated_id", Integer, nullable=False, server_default=text("0")),
    Column("metadata", Text, nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("user_id", "session_id", name="session_pk"),
    CheckConstraint("json_valid(metadata)", name="metadata_json"),
    sqlite_with_rowid=False,
)

MESSAGE_SQL = (
    trigger(
        "message_ad",
        "AFTER DELETE ON record WHEN old.layer = 'message'",
        "DELETE FROM message WHERE record_id = old.id;",
    ),
    view(
        "v_messages",
        """
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
    ),
    view(
        "v_sessions",
        """
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
    ),
)
