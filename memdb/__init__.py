"""memdb: the memory of an AI agent in one SQLite file.

>>> async with memdb.open("agent.db") as db:
...     memory = db.memory(user_id="alice")
...     await memory.items.save(memdb.MemoryItem(id="a", content="Alice prefers tea"))
...     hits = await memory.items.search("what does Alice drink")
"""

from __future__ import annotations

import logging
from functools import cache
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
        ModelError,
        NotAMemdbFile,
        NotFound,
        RetrievalError,
        SchemaTooNew,
        SerializationError,
        StorageError,
    )
    from memdb.layers.conversation import ConversationMemory
    from memdb.layers.embeddings import Progress
    from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity, TagConstraints
    from memdb.layers.graph import KnowledgeGraph
    from memdb.layers.items import MemoryFilter, MemoryItem, MemoryStore, ScoredMemory
    from memdb.layers.jsonl import ImportReport
    from memdb.layers.knowledge import KnowledgePage, KnowledgeStore, PageIndexEntry, ScoredPage
    from memdb.layers.message import Message, ScoredMessage
    from memdb.layers.policies import Capacity, EvictionConfig, Hybrid, NoEviction, RecallBased, Ttl
    from memdb.layers.recall import RecallBasedConfig, RecallStats
    from memdb.layers.runtime.checkpoints import AgentCheckpoint
    from memdb.layers.runtime.externalizing import ToolResultReference
    from memdb.layers.runtime.manager import MemoryManager
    from memdb.layers.runtime.result_pages import ToolResultLines, ToolResultSlice
    from memdb.layers.runtime.result_search import ToolResultMatch
    from memdb.layers.runtime.runs import AgentRun
    from memdb.layers.runtime.tool_results import ToolResultInfo
    from memdb.layers.runtime.working_memory import WorkingMemory
    from memdb.layers.window import CompactConfig, ConversationMemoryConfig, MemoryStrategy
    from memdb.llm.anthropic import AnthropicChat
    from memdb.llm.compressor import Compression, WorkingMemoryCompressor
    from memdb.llm.openai import OpenAIChat, OpenAIEmbedder
    from memdb.markdown.export import export_folder
    from memdb.markdown.index_service import MemoryIndexService
    from memdb.markdown.report import ExportReport, Skipped, SyncReport
    from memdb.markdown.sync import sync_folder
    from memdb.markdown.watch import FolderWatch, watch_folder
    from memdb.memory import Memory
    from memdb.retrieval.composed import ComposedRetriever
    from memdb.retrieval.context.builder import ContextBuilder
    from memdb.retrieval.context.parts import Context, ContextSection, LeftOut
    from memdb.retrieval.find import Hit
    from memdb.retrieval.meaning.hybrid import HybridSearch
    from memdb.retrieval.meaning.service import EmbeddingService
    from memdb.retrieval.notes.index_form import IndexReport
    from memdb.retrieval.notes.populating import PopulateReport
    from memdb.retrieval.notes.stages import KnowledgeRetriever, RetrievedNotes
    from memdb.retrieval.notes.store import MarkdownStore
    from memdb.retrieval.ranking import Cut, RetrievalResult, RetrievalStrategy, RetrieverConfig, ScoredItem
    from memdb.retrieval.retriever import MemoryRetriever
    from memdb.retrieval.scoring import ScoreBreakdown, ScoreWeights, ScoringStrategy
    from memdb.scope import Scope
    from memdb.settings import AppSettings, MemorySettings, Settings
    from memdb.storage.inspect import CheckReport
    from memdb.storage.sessions import SessionInfo
    from memdb.storage.upkeep import LayerStats, Stats
    from memdb.text.extractor import SimpleKeywordExtractor, tags_from_name
    from memdb.text.reply import ChatReply
    from memdb.text.tokens import TokenCounter
    from memdb.trees.exporting import export_tree
    from memdb.trees.importing import import_tree
    from memdb.trees.report import TreeReport

# The public names of each module. Loaded on first use, so that `import memdb` stays light.
_HOMES = {
    "memdb.database": "Database open",
    "memdb.errors": (
        "AlreadyExists Busy Closed Corrupt GraphError InvalidInput MemdbError MissingExtra MissingFile "
        "ModelError NotAMemdbFile NotFound RetrievalError SchemaTooNew SerializationError StorageError"
    ),
    "memdb.layers.conversation": "ConversationMemory",
    "memdb.layers.embeddings": "Progress",
    "memdb.layers.entity": "GraphEntity GraphRelation ScoredEntity TagConstraints",
    "memdb.layers.graph": "KnowledgeGraph",
    "memdb.layers.items": "MemoryFilter MemoryItem MemoryStore ScoredMemory",
    "memdb.layers.jsonl": "ImportReport",
    "memdb.layers.knowledge": "KnowledgePage KnowledgeStore PageIndexEntry ScoredPage",
    "memdb.layers.message": "Message ScoredMessage",
    "memdb.layers.policies": "Capacity EvictionConfig Hybrid NoEviction RecallBased Ttl",
    "memdb.layers.recall": "RecallBasedConfig RecallStats",
    "memdb.layers.runtime.checkpoints": "AgentCheckpoint",
    "memdb.layers.runtime.externalizing": "ToolResultReference",
    "memdb.layers.runtime.manager": "MemoryManager",
    "memdb.layers.runtime.result_pages": "ToolResultLines ToolResultSlice",
    "memdb.layers.runtime.result_search": "ToolResultMatch",
    "memdb.layers.runtime.runs": "AgentRun",
    "memdb.layers.runtime.tool_results": "ToolResultInfo",
    "memdb.layers.runtime.working_memory": "WorkingMemory",
    "memdb.layers.window": "CompactConfig ConversationMemoryConfig MemoryStrategy",
    "memdb.llm.anthropic": "AnthropicChat",
    "memdb.llm.compressor": "Compression WorkingMemoryCompressor",
    "memdb.llm.openai": "OpenAIChat OpenAIEmbedder",
    "memdb.markdown.export": "export_folder",
    "memdb.markdown.index_service": "MemoryIndexService",
    "memdb.markdown.report": "ExportReport Skipped SyncReport",
    "memdb.markdown.sync": "sync_folder",
    "memdb.markdown.watch": "FolderWatch watch_folder",
    "memdb.memory": "Memory",
    "memdb.retrieval.composed": "ComposedRetriever",
    "memdb.retrieval.context.builder": "ContextBuilder",
    "memdb.retrieval.context.parts": "Context ContextSection LeftOut",
    "memdb.retrieval.find": "Hit",
    "memdb.retrieval.meaning.hybrid": "HybridSearch",
    "memdb.retrieval.meaning.service": "EmbeddingService",
    "memdb.retrieval.notes.index_form": "IndexReport",
    "memdb.retrieval.notes.populating": "PopulateReport",
    "memdb.retrieval.notes.stages": "KnowledgeRetriever RetrievedNotes",
    "memdb.retrieval.notes.store": "MarkdownStore",
    "memdb.retrieval.ranking": "Cut RetrievalResult RetrievalStrategy RetrieverConfig ScoredItem",
    "memdb.retrieval.retriever": "MemoryRetriever",
    "memdb.retrieval.scoring": "ScoreBreakdown ScoreWeights ScoringStrategy",
    "memdb.scope": "Scope",
    "memdb.settings": "AppSettings MemorySettings Settings",
    "memdb.storage.inspect": "CheckReport",
    "memdb.storage.sessions": "SessionInfo",
    "memdb.storage.upkeep": "LayerStats Stats",
    "memdb.text.extractor": "SimpleKeywordExtractor tags_from_name",
    "memdb.text.reply": "ChatReply",
    "memdb.text.tokens": "TokenCounter",
    "memdb.trees.exporting": "export_tree",
    "memdb.trees.importing": "import_tree",
    "memdb.trees.report": "TreeReport",
}

__all__ = [
    "AgentCheckpoint",
    "AgentRun",
    "AlreadyExists",
    "AnthropicChat",
    "AppSettings",
    "Busy",
    "Capacity",
    "ChatReply",
    "CheckReport",
    "Closed",
    "CompactConfig",
    "ComposedRetriever",
    "Compression",
    "Context",
    "ContextBuilder",
    "ContextSection",
    "ConversationMemory",
    "ConversationMemoryConfig",
    "Corrupt",
    "Cut",
    "Database",
    "EmbeddingService",
    "EvictionConfig",
    "ExportReport",
    "FolderWatch",
    "GraphEntity",
    "GraphError",
    "GraphRelation",
    "Hit",
    "Hybrid",
    "HybridSearch",
    "ImportReport",
    "IndexReport",
    "InvalidInput",
    "KnowledgeGraph",
    "KnowledgePage",
    "KnowledgeRetriever",
    "KnowledgeStore",
    "LayerStats",
    "LeftOut",
    "MarkdownStore",
    "MemdbError",
    "Memory",
    "MemoryFilter",
    "MemoryIndexService",
    "MemoryItem",
    "MemoryManager",
    "MemoryRetriever",
    "MemorySettings",
    "MemoryStore",
    "MemoryStrategy",
    "Message",
    "MissingExtra",
    "MissingFile",
    "ModelError",
    "NoEviction",
    "NotAMemdbFile",
    "NotFound",
    "OpenAIChat",
    "OpenAIEmbedder",
    "PageIndexEntry",
    "PopulateReport",
    "Progress",
    "RecallBased",
    "RecallBasedConfig",
    "RecallStats",
    "RetrievalError",
    "RetrievalResult",
    "RetrievalStrategy",
    "RetrievedNotes",
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
    "Settings",
    "SimpleKeywordExtractor",
    "Skipped",
    "Stats",
    "StorageError",
    "SyncReport",
    "TagConstraints",
    "TokenCounter",
    "ToolResultInfo",
    "ToolResultLines",
    "ToolResultMatch",
    "ToolResultReference",
    "ToolResultSlice",
    "TreeReport",
    "Ttl",
    "WorkingMemory",
    "WorkingMemoryCompressor",
    "export_folder",
    "export_tree",
    "import_tree",
    "open",
    "sync_folder",
    "tags_from_name",
    "watch_folder",
]

# A library does not write to stderr on its own: without a handler, Python would print our warnings there.
logging.getLogger("memdb").addHandler(logging.NullHandler())


@cache
def _home_of() -> dict[str, str]:
    return {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in ("protocols", "testing"):  # modules of public names of their own
        return import_module(f"memdb.{name}")
    home = _home_of().get(name)
    if home is None:
        raise AttributeError(f"module 'memdb' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted((*__all__, "__version__"))
