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
    from memdb.layers.items import MemoryFilter, MemoryItem, MemoryStore, ScoredMemory
    from memdb.layers.jsonl import ImportReport
    from memdb.layers.knowledge import KnowledgePage, KnowledgeStore, PageIndexEntry, ScoredPage
    from memdb.layers.message import Message, ScoredMessage
    from memdb.layers.policies import Capacity, EvictionConfig, Hybrid, NoEviction, RecallBased, Ttl
    from memdb.layers.recall import RecallBasedConfig, RecallStats
    from memdb.markdown.export import export_folder
    from memdb.markdown.report import ExportReport, Skipped, SyncReport
    from memdb.markdown.sync import sync_folder
    from memdb.markdown.watch import FolderWatch, watch_folder
    from memdb.memory import Memory
    from memdb.scope import Scope
    from memdb.storage.inspect import CheckReport
    from memdb.storage.sessions import SessionInfo
    from memdb.storage.upkeep import LayerStats, Stats
    from memdb.text.tokens import TokenCounter

# Public name -> the module it lives in. Loaded on first use, so that `import memdb` stays light.
_HOMES = {
    "AlreadyExists": "memdb.errors",
    "Busy": "memdb.errors",
    "Capacity": "memdb.layers.policies",
    "CheckReport": "memdb.storage.inspect",
    "Closed": "memdb.errors",
    "ConversationMemory": "memdb.layers.conversation",
    "Corrupt": "memdb.errors",
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
    "KnowledgePage": "memdb.layers.knowledge",
    "KnowledgeStore": "memdb.layers.knowledge",
    "LayerStats": "memdb.storage.upkeep",
    "MemdbError": "memdb.errors",
    "Memory": "memdb.memory",
    "MemoryFilter": "memdb.layers.items",
    "MemoryItem": "memdb.layers.items",
    "MemoryStore": "memdb.layers.items",
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
    "SchemaTooNew": "memdb.errors",
    "Scope": "memdb.scope",
    "ScoredEntity": "memdb.layers.entity",
    "ScoredMemory": "memdb.layers.items",
    "ScoredMessage": "memdb.layers.message",
    "ScoredPage": "memdb.layers.knowledge",
    "SerializationError": "memdb.errors",
    "SessionInfo": "memdb.storage.sessions",
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
    "watch_folder": "memdb.markdown.watch",
}

__all__ = [
    "AlreadyExists",
    "Busy",
    "Capacity",
    "CheckReport",
    "Closed",
    "ConversationMemory",
    "Corrupt",
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
    "KnowledgePage",
    "KnowledgeStore",
    "LayerStats",
    "MemdbError",
    "Memory",
    "MemoryFilter",
    "MemoryItem",
    "MemoryStore",
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
    "SchemaTooNew",
    "Scope",
    "ScoredEntity",
    "ScoredMemory",
    "ScoredMessage",
    "ScoredPage",
    "SerializationError",
    "SessionInfo",
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
    "watch_folder",
]

# A library does not write to stderr on its own: without a handler, Python would print our warnings there.
logging.getLogger("memdb").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'memdb' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted((*__all__, "__version__"))
