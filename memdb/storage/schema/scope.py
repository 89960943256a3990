"""The numbers of scopes: the digits-only tokens in the index, and how much each scope holds."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text, UniqueConstraint, text

from memdb.storage.schema.base import Sql, metadata, trigger, view

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

# Layers and users are found among any number of sessions (400,000: stats() and each search 0.2 s without it).
Index("scope_by_session", scope.c.session_id, scope.c.user_id, scope.c.layer)


_BREAK = f"\n{' ' * 28}"  # as the first files have it, to the letter


def _new_scope(layer: str, session: str) -> str:
    """Return SQL, for a trigger, that makes the rows of a layer and session that are not there."""
    rows = [("''", "''", " "), (layer, "''", " "), (layer, session, _BREAK)]
    made = ""
    for name, its, gap in rows if session != "''" else rows[:2]:
        known = f"(user_id, layer, session_id) = (new.user_id, {name}, {its})"
        made += f"""
      INSERT INTO scope (user_id, layer, session_id)
        SELECT new.user_id, {name}, {its}
         WHERE NOT EXISTS (SELECT 1 FROM scope{gap}WHERE {known});"""
    return f"""{made}
      UPDATE scope
         SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
                   || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, {layer}, ''))
                   || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
       WHERE user_id = new.user_id AND layer = {layer} AND session_id IN ('', {session});
"""


def _unknown(layer: str, session: str) -> str:
    return f"""WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, {layer}, {session}) AND tokens != '')"""


def _named(table: str, layer: str, session: str, whose: str) -> tuple[Sql, ...]:
    """Return triggers that give what is written to a table a scope that counts it."""
    unknown, made = _unknown(layer, session), _new_scope(layer, session)
    return (
        trigger(f"{table}_scope_bi", f"BEFORE INSERT ON {table} {unknown}", made),
        trigger(f"{table}_scope_bu", f"BEFORE UPDATE OF {whose} ON {table} {unknown}", made),
    )


SCOPE_SQL = (
    *_named("record", "new.layer", "new.session_id", "user_id, layer, session_id"),
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


def counted(
    table: str, layer: str, *, text: str | None = None, number: str | None = None, sessionless: bool = False
) -> tuple[Sql, ...]:
    """Return triggers that count the rows of a table that stands by itself, as records of a layer.

    Args:
        table: has the column user_id and, unless its bytes are a `number`, session_id.
        layer: what its rows are counted as.
        text: the column whose bytes are counted, where there is one.
        number: the column that says how many bytes a row is; such a table has no sessions.
        sessionless: whether some rows are of no session (session_id '').
    """
    by_session = number is None

    def size(row: str) -> str:
        return f"length(CAST({row}.{text} AS BLOB))" if text else f"{row}.{number}" if number else "0"

    def change(row: str, change: str) -> str:
        own = f"{row}.session_id) AND {row}.session_id != (''" if sessionless else f"{row}.session_id"
        places = ("''", own) if by_session else ("''",)
        return "".join(
            f"""
  UPDATE scope SET {change}
   WHERE (user_id, layer, session_id) = ({row}.user_id, '{layer}', {session});"""
            for session in places
        )

    added = change("new", f"records = records + 1, bytes = bytes + {size('new')}")
    removed = change("old", f"records = records - 1, bytes = bytes - {size('old')}")
    whose = "user_id, session_id" if by_session else "user_id"
    grown = change("new", f"bytes = bytes + {size('new')} - {size('old')}")
    return (
        *_named(table, f"'{layer}'", "new.session_id" if by_session else "''", whose),
        trigger(f"{table}_counted_ai", f"AFTER INSERT ON {table}", added),
        trigger(f"{table}_counted_ad", f"AFTER DELETE ON {table}", removed),
        trigger(f"{table}_moved_au", f"AFTER UPDATE OF {whose} ON {table}", removed + added),
        *([trigger(f"{table}_counted_au", f"AFTER UPDATE OF {text} ON {table}", grown)] if text else []),
    )
