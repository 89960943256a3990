"""The full-text index over every record, kept in step by triggers in plain SQL.

External content over the view record_text, so that 'delete', 'rebuild' and the integrity check see the very bytes that
were indexed. AFTER triggers with the old text rebuilt from OLD: a BEFORE trigger drifts with UPDATE OR IGNORE, and two
UPDATE triggers that fire for each other damage the index.
"""

from __future__ import annotations

from memdb.storage.schema.base import trigger, view, virtual_table
from memdb.storage.schema.scope import count

TEXT_COLUMNS = ("title", "tags", "summary", "keywords", "content")
# bm25 weights in the order of the index's columns; scope counts nothing.
WEIGHTS = {"title": 2.5, "tags": 2.0, "summary": 1.2, "keywords": 1.0, "content": 1.0, "scope": 0.0}
TOKENIZER = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
RANK = f"bm25({', '.join(str(weight) for weight in WEIGHTS.values())})"

_COLUMNS = ", ".join((*TEXT_COLUMNS, "scope"))


def _indexed(column: str, row: str = "") -> str:
    dot = f"{row}." if row else ""
    return f"CASE WHEN {dot}seg_revision > 0 THEN coalesce({dot}{column}_seg, {dot}{column}) ELSE {dot}{column} END" + (
        "" if row else f" AS {column}"
    )


def _texts(row: str) -> str:
    return ",\n           ".join(_indexed(column, row) for column in TEXT_COLUMNS)


def _tokens(row: str) -> str:
    same = f"({row}.user_id, {row}.layer, {row}.session_id)"
    return f"(SELECT tokens FROM scope WHERE (user_id, layer, session_id) = {same})"


def _remove(row: str) -> str:
    return f"""INSERT INTO record_search (record_search, rowid, {_COLUMNS})
    VALUES ('delete', {row}.id, {_texts(row)},
           {_tokens(row)});"""


def _changed(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"new.{column} IS NOT old.{column}" for column in columns)


_TWINS = tuple(f"{column}_seg" for column in TEXT_COLUMNS)
# What an entry of the index is made of.
WATCHED = ", ".join((*TEXT_COLUMNS, *_TWINS, "user_id", "layer", "session_id"))

SEARCH_SQL = (
    view(
        "record_text",
        f"""
        SELECT record.id,
               {("," + chr(10) + " " * 15).join(_indexed(column) for column in TEXT_COLUMNS)},
               (SELECT tokens FROM scope
                 WHERE (scope.user_id, scope.layer, scope.session_id)
                     = (record.user_id, record.layer, record.session_id)) AS scope
          FROM record
        """,
    ),
    virtual_table(
        "record_search",
        f"fts5({_COLUMNS}, content='record_text', content_rowid='id', tokenize='{TOKENIZER}')",
    ),
    virtual_table("record_vocabulary", "fts5vocab(record_search, row)"),
    trigger(
        "record_search_ai",
        "AFTER INSERT ON record",
        f"""
  {count("+", "new")}
  INSERT INTO record_search (rowid, {_COLUMNS})
    VALUES (new.id, {_texts("new")},
           {_tokens("new")});
""",
    ),
    trigger(
        "record_search_ad",
        "AFTER DELETE ON record",
        f"""
  {_remove("old")}
  {count("-", "old")}
  DELETE FROM record_tag WHERE record_id = old.id;
  DELETE FROM record_reference WHERE source_id = old.id;
  DELETE FROM recall WHERE record_id = old.id;
""",
    ),
    # One trigger, its statements in this order: the entry as it was goes, twins that a shell's edit left behind are
    # marked (seg_revision is in no trigger's list, so nothing fires again), the entry as it now is comes.
    trigger(
        "record_search_au",
        f"AFTER UPDATE OF {WATCHED} ON record",
        f"""
  {_remove("old")}
  UPDATE record SET seg_revision = 0
   WHERE id = new.id AND new.seg_revision IS old.seg_revision
     AND ({_changed(TEXT_COLUMNS)});
  INSERT INTO record_search (rowid, {_COLUMNS})
    SELECT id, {_COLUMNS} FROM record_text WHERE id = new.id;
  {count("-", "old")}
  {count("+", "new")}
""",
    ),
)
