"""The numbers of scopes: the digits-only tokens in the index, and how much each scope holds."""

from __future__ import annotations

from sqlalchemy import Column, Integer, Table, Text, UniqueConstraint, text

from memdb.storage.schema.base import metadata, trigger, view

# A row a user (layer and session ''), a user and layer (session ''), and a session. Its id is the token; `tokens` are
# those that a record of this scope carries. records and bytes count what the scope itself holds; a layer's row counts
# all of its sessions.
scope = Table(
    "scope",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("tokens", Text),
    Column("records", Integer, nullable=False, server_default=text("0")),
    Column("bytes", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("user_id", "layer", "session_id", name="scope_identity"),
    sqlite_autoincrement=True,  # a number is never given to another user
)

_NEW_SCOPE = """
      INSERT INTO scope (user_id, layer, session_id)
        SELECT new.user_id, '', ''
         WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
      INSERT INTO scope (user_id, layer, session_id)
        SELECT new.user_id, new.layer, ''
         WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, ''));
      INSERT INTO scope (user_id, layer, session_id)
        SELECT new.user_id, new.layer, new.session_id
         WHERE NOT EXISTS (SELECT 1 FROM scope
                            WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id));
      UPDATE scope
         SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
                   || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, new.layer, ''))
                   || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
       WHERE user_id = new.user_id AND layer = new.layer AND session_id IN ('', new.session_id);
"""
_UNKNOWN_SCOPE = """WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, new.layer, new.session_id) AND tokens != '')"""

SCOPE_SQL = (
    trigger("record_scope_bi", f"BEFORE INSERT ON record {_UNKNOWN_SCOPE}", _NEW_SCOPE),
    trigger("record_scope_bu", f"BEFORE UPDATE OF user_id, layer, session_id ON record {_UNKNOWN_SCOPE}", _NEW_SCOPE),
    view(
        "v_scopes",
        """
        SELECT user_id, layer, session_id, records, bytes, id AS token
          FROM scope
         ORDER BY user_id, layer, session_id
        """,
    ),
)


def count(sign: str, row: str) -> str:
    """Return SQL, for a trigger on record, that adds or takes away (`sign`) the record `row` (new or old)."""
    change = f"SET records = records {sign} 1, bytes = bytes {sign} length(CAST({row}.content AS BLOB))"
    here = f"user_id = {row}.user_id AND layer = {row}.layer"
    # Two plain look-ups: IN would build a list for every row.
    return f"""UPDATE scope {change}
    WHERE {here} AND session_id = '';
  UPDATE scope {change}
    WHERE {row}.session_id != '' AND {here} AND session_id = {row}.session_id;"""
