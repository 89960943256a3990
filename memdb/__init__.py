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
from typing import Any

__version__ = "0.1.0"

# The public names of each module. Loaded on first use, so that `import memdb` stays light.
_HOMES = {
    "memdb.database": "Database open",
    "memdb.errors": (
        "AlreadyExists Busy Closed Corrupt GraphError InvalidInput MemdbError MissingExtra MissingFile "
        "ModelError NotAMemdbFile NotFound RetrievalError SchemaTooNew SerializationError StorageError "
        "UnknownBlock"
    ),
    "memdb.layers.archive": "ArchivalMemory",
    "memdb.layers.blocks.config": "BlockConfig MemoryConfig",
    "memdb.layers.blocks.store": "BlockChange BlockInfo MemoryBlocks",
    "memdb.layers.consolidated": "Unconsolidated",
    "memdb.layers.conversation": "ConversationMemory",
    "memdb.layers.embeddings": "Progress",
    "memdb.layers.entity": "GraphEntity GraphRelation ScoredEntity TagConstraints",
    "memdb.layers.experience.episode": "EpisodeTrace",
    "memdb.layers.experience.episodes": "EpisodicMemory ScoredEpisode TimelineEntry",
    "memdb.layers.experience.parts": "ActionEntry ErrorEntry ErrorFix Link TaskContext",
    "memdb.layers.experience.pattern": "SemanticPattern",
    "memdb.layers.experience.patterns": "ScoredPattern SemanticMemory",
    "memdb.layers.experience.skill": "ProceduralSkill",
    "memdb.layers.experience.skills": "ProceduralMemory ScoredSkill",
    "memdb.layers.facts.entry": "HistoryEntry ScoredEntry",
    "memdb.layers.facts.store": "FactStore LongTerm",
    "memdb.layers.graph": "KnowledgeGraph",
    "memdb.layers.items": "MemoryFilter MemoryItem MemoryStore ScoredMemory",
    "memdb.layers.jsonl": "ImportReport",
    "memdb.layers.knowledge": "KnowledgePage KnowledgeStore PageIndexEntry ScoredPage",
    "memdb.layers.message": "Message ScoredMessage",
    "memdb.layers.passage": "Passage",
    "memdb.layers.passage_search": "ScoredPassage",
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
    "memdb.layers.versions": "Version",
    "memdb.layers.window": "CompactConfig ConversationMemoryConfig MemoryStrategy",
    "memdb.llm.anthropic": "AnthropicChat",
    "memdb.llm.blocks": "SummarizingBlocks",
    "memdb.llm.compressor": "Compression WorkingMemoryCompressor",
    "memdb.llm.consolidation.consolidator": "MemoryConsolidator",
    "memdb.llm.consolidation.parts": "Consolidated Extracted",
    "memdb.llm.consolidation.service": "ConsolidationService",
    "memdb.llm.openai": "OpenAIChat OpenAIEmbedder",
    "memdb.llm.tools.result": "ToolResult",
    "memdb.llm.tools.tool": "MemoryTool",
    "memdb.llm.tools.toolset": "MemoryTools create_memory_tools",
    "memdb.markdown.export": "export_folder",
    "memdb.markdown.facts.folder": "FactFolder",
    "memdb.markdown.facts.report": "Conflict FolderReport",
    "memdb.markdown.index_service": "MemoryIndexService",
    "memdb.markdown.report": "ExportReport Skipped SyncReport",
    "memdb.markdown.sync": "sync_folder",
    "memdb.markdown.watch": "FolderWatch watch_folder",
    "memdb.memory": "Memory",
    "memdb.retrieval.composed": "ComposedRetriever",
    "memdb.retrieval.context.builder": "ContextBuilder",
    "memdb.retrieval.context.parts": "Context ContextSection LeftOut",
    "memdb.retrieval.experience.access": "MemoryContext UnifiedMemoryAccess",
    "memdb.retrieval.experience.consolidating": "ConsolidationResult",
    "memdb.retrieval.experience.engine": "MemoryEngine",
    "memdb.retrieval.experience.loader": "ProgressiveLoader TokenMetrics",
    "memdb.retrieval.experience.namespaces": "NamespaceReport copy_namespace merge_namespaces",
    "memdb.retrieval.experience.tasks": "TASK_STRATEGIES",
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
    "memdb.trees.loki.exporting": "export_experience",
    "memdb.trees.loki.importing": "import_experience",
    "memdb.trees.loki.report": "ExperienceReport",
    "memdb.trees.report": "TreeReport",
}

__all__ = sorted(name for names in _HOMES.values() for name in names.split())

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
