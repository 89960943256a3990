"""The schema as it is now: tables and indexes in SQLAlchemy Core, triggers and views in plain SQL, a file a subject.

How a file got there is told by migrations/; a test holds the two texts against each other.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy.schema import CreateIndex, CreateTable

from memdb.storage.schema.base import Sql, metadata
from memdb.storage.schema.blob import BLOB_SQL, blob, blob_chunk
from memdb.storage.schema.block import BLOCK_SQL, block, memory_config
from memdb.storage.schema.consolidation import consolidation
from memdb.storage.schema.embedding import EMBEDDING_SQL, embedding, embedding_model
from memdb.storage.schema.eviction import EVICTION_SQL, eviction
from memdb.storage.schema.experience import EXPERIENCE_SQL, aging, episode, pattern
from memdb.storage.schema.facts import FACT_SQL, history, mirror
from memdb.storage.schema.index_change import INDEX_CHANGE_SQL, REBUILD, index_change
from memdb.storage.schema.items import ITEM_SQL
from memdb.storage.schema.message import MESSAGE_SQL, message, session
from memdb.storage.schema.note_index import NOTE_INDEX_SQL, note_index
from memdb.storage.schema.pages import PAGE_SQL
from memdb.storage.schema.passage import PASSAGE_SQL, passage
from memdb.storage.schema.quarantine import QUARANTINE_SQL, quarantine
from memdb.storage.schema.recall import RECALL_SQL, recall
from memdb.storage.schema.record import record
from memdb.storage.schema.reference import record_reference
from memdb.storage.schema.relation import RELATION_SQL, relation
from memdb.storage.schema.runtime import RUNTIME_SQL, checkpoint, state, working_memory
from memdb.storage.schema.scope import SCOPE_SQL, scope
from memdb.storage.schema.search import RANK, SEARCH_SQL, TEXT_COLUMNS, TOKENIZER, WEIGHTS
from memdb.storage.schema.source import SOURCE_SQL, source
from memdb.storage.schema.tag import TAG_SQL, record_tag
from memdb.storage.schema.tool_result import TOOL_RESULT_SQL, tool_result
from memdb.storage.schema.version import VERSION_SQL, version
from memdb.storage.statement import DIALECT

__all__ = [
    "RANK",
    "REBUILD",
    "REVISION",
    "SCHEMA_VERSION",
    "SETTINGS",
    "TEXT_COLUMNS",
    "TOKENIZER",
    "WEIGHTS",
    "Sql",
    "aging",
    "blob",
    "blob_chunk",
    "block",
    "checkpoint",
    "consolidation",
    "embedding",
    "embedding_model",
    "episode",
    "eviction",
    "history",
    "index_change",
    "memory_config",
    "message",
    "metadata",
    "mirror",
    "note_index",
    "objects",
    "passage",
    "pattern",
    "quarantine",
    "recall",
    "record",
    "record_reference",
    "record_tag",
    "relation",
    "scope",
    "session",
    "source",
    "state",
    "tool_result",
    "version",
    "working_memory",
]

SCHEMA_VERSION = 7  # PRAGMA user_version of a file of this schema
REVISION = "0007"  # the migration that leads to it

# Triggers and views, in the order in which they can be made.
_SUBJECTS = (
    SCOPE_SQL,
    SEARCH_SQL,
    INDEX_CHANGE_SQL,
    TAG_SQL,
    RECALL_SQL,
    QUARANTINE_SQL,
    ITEM_SQL,
    PAGE_SQL,
    MESSAGE_SQL,
    SOURCE_SQL,
    EVICTION_SQL,
    RELATION_SQL,
    RUNTIME_SQL,
    TOOL_RESULT_SQL,
    BLOB_SQL,
    NOTE_INDEX_SQL,
    EMBEDDING_SQL,
    FACT_SQL,
    BLOCK_SQL,
    PASSAGE_SQL,
    VERSION_SQL,
    EXPERIENCE_SQL,
)


@cache
def objects() -> tuple[Sql, ...]:
    """Return every table, index, view and trigger of the schema, in the order in which they can be made."""
    tables = [Sql("table", table.name, _ddl(CreateTable(table))) for table in metadata.sorted_tables]
    indexes = [
        Sql("index", str(index.name), _ddl(CreateIndex(index)))
        for table in metadata.sorted_tables
        for index in sorted(table.indexes, key=lambda index: str(index.name))
    ]
    return (*tables, *indexes, *(item for subject in _SUBJECTS for item in subject))


def _ddl(element: CreateTable | CreateIndex) -> str:
    """Return a statement as a person reads it in .schema: no tabs, no blanks at the ends of lines."""
    lines = str(element.compile(dialect=DIALECT)).strip().replace("\t", "    ").splitlines()
    return "\n".join(line.rstrip() for line in lines)


# After the objects: what bm25() weighs when a person writes ORDER BY rank in a shell.
SETTINGS = (f"INSERT INTO record_search (record_search, rank) VALUES ('rank', '{RANK}')",)
