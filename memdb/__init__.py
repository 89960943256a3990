"""memdb: the memory of an AI agent in one SQLite file.

>>> async with memdb.open("agent.db") as db:
...     memory = db.memory(user_id="alice")
...     await memory.items.save(memdb.MemoryItem(id="a", content="Alice prefers tea"))
...     hits = await memory.items.search("what does Alice drink")
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memdb.database import Database, open
    from memdb.errors import (
        AlreadyExists,
        Busy,
        Closed,
        Corrupt,
        GraphError,
        InvalidInput,
        MemdbError,
        MissingExtra,
        MissingFile,
        NotAMemdbFile,
        NotFound,
        RetrievalError,
        SchemaTooNew,
        SerializationError,
        StorageError,
    )
    from memdb.layers.conversation import ConversationMemory
    from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity, TagConstraints
    from memdb.layers.graph import KnowledgeGraph
    from memdb.layers.items import MemoryFilter, MemoryItem, MemoryStore, ScoredMemory
    from memdb.layers.jsonl import ImportReport
    from memdb.layers.knowledge import KnowledgePage, KnowledgeStore, PageIndexEntry, ScoredPage
    from memdb.layers.message import Message, ScoredMessage
    from memdb.layers.policies import Capacity, EvictionConfig, Hybrid, NoEviction, RecallBased, Ttl
    from memdb.layers.recall import RecallBasedConfig, RecallStats
    from memdb.layers.window import CompactConfig, ConversationMemoryConfig, MemoryStrategy
    from memdb.markdown.export import export_folder
    from memdb.markdown.report import ExportReport, Skipped, SyncReport
    from memdb.markdown.sync import sync_folder
    from memdb.markdown.watch import FolderWatch, watch_folder
    from memdb.memory import Memory
    from memdb.retrieval.composed import ComposedRetriever
    from memdb.retrieval.ranking import Cut, RetrievalResult, RetrievalStrategy, RetrieverConfig, ScoredItem
    from memdb.retrieval.retriever import MemoryRetriever
    from memdb.retrieval.scoring import ScoreBreakdown, ScoreWeights, ScoringStrategy
    from memdb.scope import Scope
    from memdb.storage.inspect import CheckReport
    from memdb.storage.sessions import SessionInfo
    from memdb.storage.upkeep import LayerStats, Stats
    from memdb.text.extractor import SimpleKeywordExtractor, tags_from_name
    from memdb.text.tokens import TokenCounter

# Public name -> the module it lives in. Loaded on first use, so that `import memdb` stays light.
_HOMES = {
    "AlreadyExists": "memdb.errors",
    "Busy": "memdb.errors",
    "Capacity": "memdb.layers.policies",
    "CheckReport": "memdb.storage.inspect",
    "Closed": "memdb.errors",
    "CompactConfig": "memdb.layers.window",
    "ComposedRetriever": "memdb.retrieval.composed",
    "ConversationMemory": "memdb.layers.conversation",
    "ConversationMemoryConfig": "memdb.layers.window",
    "Corrupt": "memdb.errors",
    "Cut": "memdb.retrieval.ranking",
    "Database": "memdb.database",
    "EvictionConfig": "memdb.layers.policies",
    "ExportReport": "memdb.markdown.report",
    "FolderWatch": "memdb.markdown.watch",
    "GraphEntity": "memdb.layers.entity",
    "GraphError": "memdb.errors",
    "GraphRelation": "memdb.layers.entity",
    "Hybrid": "memdb.layers.policies",
    "ImportReport": "memdb.layers.jsonl",
    "InvalidInput": "memdb.errors",
    "KnowledgeGraph": "memdb.layers.graph",
    "KnowledgePage": "memdb.layers.knowledge",
    "KnowledgeStore": "memdb.layers.knowledge",
    "LayerStats": "memdb.storage.upkeep",
    "MemdbError": "memdb.errors",
    "Memory": "memdb.memory",
    "MemoryFilter": "memdb.layers.items",
    "MemoryItem": "memdb.layers.items",
    "MemoryRetriever": "memdb.retrieval.retriever",
    "MemoryStore": "memdb.layers.items",
    "MemoryStrategy": "memdb.layers.window",
    "Message": "memdb.layers.message",
    "MissingExtra": "memdb.errors",
    "MissingFile": "memdb.errors",
    "NoEviction": "memdb.layers.policies",
    "NotAMemdbFile": "memdb.errors",
    "NotFound": "memdb.errors",
    "PageIndexEntry": "memdb.layers.knowledge",
    "RecallBased": "memdb.layers.policies",
    "RecallBasedConfig": "memdb.layers.recall",
    "RecallStats": "memdb.layers.recall",
    "RetrievalError": "memdb.errors",
    "RetrievalResult": "memdb.retrieval.ranking",
    "RetrievalStrategy": "memdb.retrieval.ranking",
    "RetrieverConfig": "memdb.retrieval.ranking",
    "SchemaTooNew": "memdb.errors",
    "Scope": "memdb.scope",
    "ScoreBreakdown": "memdb.retrieval.scoring",
    "ScoreWeights": "memdb.retrieval.scoring",
    "ScoredEntity": "memdb.layers.entity",
    "ScoredItem": "memdb.retrieval.ranking",
    "ScoredMemory": "memdb.layers.items",
    "ScoredMessage": "memdb.layers.message",
    "ScoredPage": "memdb.layers.knowledge",
    "ScoringStrategy": "memdb.retrieval.scoring",
    "SerializationError": "memdb.errors",
    "SessionInfo": "memdb.storage.sessions",
    "SimpleKeywordExtractor": "memdb.text.extractor",
    "Skipped": "memdb.markdown.report",
    "Stats": "memdb.storage.upkeep",
    "StorageError": "memdb.errors",
    "SyncReport": "memdb.markdown.report",
    "TagConstraints": "memdb.layers.entity",
    "TokenCounter": "memdb.text.tokens",
    "Ttl": "memdb.layers.policies",
    "export_folder": "memdb.markdown.export",
    "open": "memdb.database",
    "sync_folder": "memdb.markdown.sync",
    "tags_from_name": "memdb.text.extractor",
    "watch_folder": "memdb.markdown.watch",
}

__all__ = [
    "AlreadyExists",
    "Busy",
    "Capacity",
    "CheckReport",
    "Closed",
    "CompactConfig",
    "ComposedRetriever",
    "ConversationMemory",
    "ConversationMemoryConfig",
    "Corrupt",
    "Cut",
    "Database",
    "EvictionConfig",
    "ExportReport",
    "FolderWatch",
    "GraphEntity",
    "GraphError",
    "GraphRelation",
    "Hybrid",
    "ImportReport",
    "InvalidInput",
    "KnowledgeGraph",
    "KnowledgePage",
    "KnowledgeStore",
    "LayerStats",
    "MemdbError",
    "Memory",
    "MemoryFilter",
    "MemoryItem",
    "MemoryRetriever",
    "MemoryStore",
    "MemoryStrategy",
    "Message",
    "MissingExtra",
    "MissingFile",
    "NoEviction",
    "NotAMemdbFile",
    "NotFound",
    "PageIndexEntry",
    "RecallBased",
    "RecallBasedConfig",
    "RecallStats",
    "RetrievalError",
    "RetrievalResult",
    "RetrievalStrategy",
    "RetrieverConfig",
    "SchemaTooNew",
    "Scope",
    "ScoreBreakdown",
    "ScoreWeights",
    "ScoredEntity",
    "ScoredItem",
    "ScoredMemory",
    "ScoredMessage",
    "ScoredPage",
    "ScoringStrategy",
    "SerializationError",
    "SessionInfo",
    "SimpleKeywordExtractor",
    "Skipped",
    "Stats",
    "StorageError",
    "SyncReport",
    "TagConstraints",
    "TokenCounter",
    "Ttl",
    "export_folder",
    "open",
    "sync_folder",
    "tags_from_name",
    "watch_folder",
]

# A library does not write to stderr on its own: without a handler, Python would print our warnings there.
logging.getLogger("memdb").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in ("protocols", "testing"):  # modules of public names of their own
        return import_module(f"memdb.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'memdb' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted((*__all__, "__version__"))
