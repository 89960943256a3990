"""Which entries of the full-text index have changed, by number: what was read of it before can be kept in memory.

Numbers of records alone, no texts. A new record needs no entry here: its number is above all that there were.
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, Table

from memdb.storage.schema.base import metadata, trigger, virtual_table
from memdb.storage.schema.search import WATCHED

# Make the whole index anew, and say so to those that keep what they have read of it: 0 is no record's number. First the
# list of its segments (record 10) is emptied: FTS5 opens no index whose list it cannot read, not even to make it anew.
REBUILD = (
    "INSERT OR REPLACE INTO record_search_data (id, block) VALUES (10, x'00000000000000')",
    "INSERT INTO record_search (record_search) VALUES ('rebuild')",
    "INSERT INTO index_change (record_id) VALUES (0)",
)
KEPT = 1_000  # changes: whoever has missed more reads the index anew

index_change = Table(
    "index_change",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("record_id", Integer, nullable=False),
    sqlite_autoincrement=True,  # a number is one change's for ever: the greatest tells whether there was any
)


def _note(row: str) -> str:
    return f"""
  INSERT INTO index_change (record_id) VALUES ({row}.id);
  DELETE FROM index_change WHERE number <= (SELECT max(number) FROM index_change) - {KEPT};
"""


INDEX_CHANGE_SQL = (
    # A number that was chosen by hand, below others.
    trigger(
        "index_change_ai",
        "AFTER INSERT ON record WHEN EXISTS (SELECT 1 FROM record WHERE id > new.id)",
        _note("new"),
    ),
    trigger("index_change_au", f"AFTER UPDATE OF {WATCHED} ON record", _note("old")),
    trigger("index_change_ad", "AFTER DELETE ON record", _note("old")),
    virtual_table("record_instance", "fts5vocab(record_search, instance)"),
)
