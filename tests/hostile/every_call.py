"""Every public method and function of memdb by its name, and for each of its parameters a value that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import memdb
from memdb.testing import ScriptedModel

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MESSAGE = {"role": "user", "content": "tea"}

# The objects whose methods are called: their class, and how to come from a memory to one.
OBJECTS: dict[str, tuple[type[Any], Callable[[memdb.Database, Any], Any]]] = {
    "db": (memdb.Database, lambda db, m: db),
    "memory": (memdb.Memory, lambda db, m: m),
    "items": (memdb.MemoryStore, lambda db, m: m.items),
    "conversation": (memdb.ConversationMemory, lambda db, m: m.conversation),
    "facts": (memdb.FactStore, lambda db, m: m.facts),
    "blocks": (memdb.MemoryBlocks, lambda db, m: m.blocks),
    "archive": (memdb.ArchivalMemory, lambda db, m: m.archive),
    "pages": (memdb.KnowledgeStore, lambda db, m: m.pages),
    "graph": (memdb.KnowledgeGraph, lambda db, m: m.graph),
    "engine": (memdb.MemoryEngine, lambda db, m: m.engine),
    "episodic": (memdb.EpisodicMemory, lambda db, m: m.engine.episodic),
    "semantic": (memdb.SemanticMemory, lambda db, m: m.engine.semantic),
    "procedural": (memdb.ProceduralMemory, lambda db, m: m.engine.procedural),
    "manager": (memdb.MemoryManager, lambda db, m: m.manager),
    "retriever": (memdb.MemoryRetriever, lambda db, m: m.retriever),
    "notes": (memdb.MarkdownStore, lambda db, m: m.notes),
    "hybrid": (memdb.HybridSearch, lambda db, m: m.hybrid),
    "context": (memdb.ContextBuilder, lambda db, m: memdb.ContextBuilder(m)),
    "three stages": (memdb.KnowledgeRetriever, lambda db, m: memdb.KnowledgeRetriever(m.notes)),
    "access": (memdb.UnifiedMemoryAccess, lambda db, m: memdb.UnifiedMemoryAccess(m.engine)),
    "loader": (memdb.ProgressiveLoader, lambda db, m: memdb.ProgressiveLoader(m.engine)),
    "composed": (memdb.ComposedRetriever, lambda db, m: memdb.ComposedRetriever(m.pages, m.graph)),
    "tools": (memdb.MemoryTools, lambda db, m: memdb.create_memory_tools(m)),
    "counter": (memdb.TokenCounter, lambda db, m: memdb.TokenCounter()),
    "consolidator": (memdb.MemoryConsolidator, lambda db, m: memdb.MemoryConsolidator(m, ScriptedModel([]))),
    "compressor": (memdb.WorkingMemoryCompressor, lambda db, m: memdb.WorkingMemoryCompressor(m, ScriptedModel([]))),
}
# Not called with strange values, and why.
LEFT_OUT = {
    "db.close", "db.memory",  # the one takes none, the other's are tried in tests/hostile/test_values.py
    "facts.consolidate", "conversation.consolidate",  # a model is asked
    "db.forget",  # it empties the log each time; its one argument is an id as that of db.sessions
    *(f"tools.{name}" for name in dir(list)),  # a list's own
}  # fmt: skip

FUNCTIONS = (
    "open", "Scope", "ContextBuilder", "KnowledgeRetriever", "TokenCounter", "OpenAIChat", "AnthropicChat",
    "OpenAIEmbedder", "MemoryConsolidator", "WorkingMemoryCompressor", "SummarizingBlocks", "ComposedRetriever",
    "ConsolidationService", "create_memory_tools", "FactFolder", "MemoryIndexService", "sync_folder", "export_folder",
    "watch_folder", "copy_namespace", "merge_namespaces", "export_tree", "import_tree", "export_experience",
    "import_experience", "tags_from_name", "UnifiedMemoryAccess", "ProgressiveLoader", "SimpleKeywordExtractor",
)  # fmt: skip

_PAGE: dict[str, Any] = {"id": "a", "title": "tea", "content": "tea leaves"}
_ENTITY: dict[str, Any] = {"id": "a", "name": "tea", "entity_type": "drink"}
_RELATION: dict[str, Any] = {"source_id": "a", "target_id": "b", "relation_type": "likes", "weight": 0.5}
_PATTERN: dict[str, Any] = {"id": "a", "pattern": "tea", "category": "c"}
_EPISODE: dict[str, Any] = {"id": "a", "task_id": "t", "agent": "x", "goal": "tea", "timestamp": BEGIN}
_SKILL: dict[str, Any] = {"id": "a", "name": "tea", "description": "tea", "steps": ["pour"]}

# Of each model the fields that it must have.
MODELS: dict[str, dict[str, Any]] = {
    "MemoryItem": {"id": "a", "content": "tea"}, "KnowledgePage": _PAGE, "GraphEntity": _ENTITY,
    "GraphRelation": _RELATION, "SemanticPattern": _PATTERN, "EpisodeTrace": _EPISODE, "ProceduralSkill": _SKILL,
    "Passage": {"content": "tea"}, "Message": MESSAGE, "MemoryFilter": {}, "BlockConfig": {"size": 50},
    "AgentCheckpoint": {"id": "a", "status": "completed", "payload": {"a": 1}}, "MemoryConfig": {},
    "ConversationMemoryConfig": {}, "CompactConfig": {"context_window": 1_000, "reserved_tokens": 10},
    "EvictionConfig": {}, "Capacity": {"max_items": 5}, "Ttl": {"ttl_secs": 5}, "Hybrid": {}, "RecallBased": {},
    "RecallBasedConfig": {}, "RetrieverConfig": {}, "ScoreWeights": {}, "ActionEntry": {}, "ErrorEntry": {},
    "ErrorFix": {}, "Link": {"to_id": "b"}, "TaskContext": {}, "AppSettings": {}, "MemorySettings": {},
}  # fmt: skip

# By the parameter's name, or by "object.method.parameter" where one name means several things.
GOOD: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("id", "name", "page_id", "entity_id", "source_id", "episode_id", "pattern_id", "skill_id",
                     "filename", "tool", "task_id", "agent", "source", "user_id", "session_id", "chunk"), lambda: "a"),
    **dict.fromkeys(("query", "content", "text", "entry", "old", "pattern", "reason", "title", "description", "new",
                     "goal", "action"), lambda: "tea"),
    **dict.fromkeys(("texts", "passages", "keywords", "tags", "keys", "entity_ids", "names", "categories", "sources",
                     "prerequisites", "actions"), lambda: ["tea"]),
    **dict.fromkeys(("position", "number", "first_position"), lambda: 1),
    **dict.fromkeys(("payload", "patch"), lambda: {"a": 1}),
    **dict.fromkeys(("if_passed", "if_revision"), lambda: 0),
    "score": lambda: 0.5, "last_position": lambda: 2, "origin": lambda: "raw", "target_id": lambda: "b",
    "relation_type": lambda: "likes", "tag": lambda: "t", "collection": lambda: "episodic", "since": lambda: BEGIN,
    "category": lambda: "knowledge", "current_task": lambda: "t", "task_type": lambda: "debugging",
    "context": lambda: {"goal": "tea", "task_type": "debugging"}, "index": dict, "call": lambda: {"id": "c"},
    "new_messages": lambda: [MESSAGE], "unit": lambda: lambda *given: 1, "path": lambda: "state.jsonl",
    "target": lambda: "copy.db",
    "folder": lambda: "folder", "model": lambda: "m", "dimensions": lambda: 8, "max_tokens": lambda: 50,
    "llm": lambda: ScriptedModel([]), "extractor": memdb.SimpleKeywordExtractor, "config": lambda: None,
    "item": lambda: memdb.MemoryItem(id="a", content="tea"), "message": lambda: MESSAGE, "messages": lambda: [MESSAGE],
    "items": lambda: [memdb.MemoryItem(id="a", content="tea")], "page": lambda: memdb.KnowledgePage(**_PAGE),
    "pages": lambda: [memdb.KnowledgePage(**_PAGE)], "entity": lambda: memdb.GraphEntity(**_ENTITY),
    "entities": lambda: [memdb.GraphEntity(**_ENTITY)], "relation": lambda: memdb.GraphRelation(**_RELATION),
    "relations": lambda: [memdb.GraphRelation(**_RELATION)], "trace": lambda: memdb.EpisodeTrace(**_EPISODE),
    "traces": lambda: [memdb.EpisodeTrace(**_EPISODE)], "patterns": lambda: [memdb.SemanticPattern(**_PATTERN)],
    "skill": lambda: memdb.ProceduralSkill(**_SKILL), "skills": lambda: [memdb.ProceduralSkill(**_SKILL)],
    "checkpoint": lambda: memdb.AgentCheckpoint(id="a", status="completed", payload={}),
    "semantic.store.pattern": lambda: memdb.SemanticPattern(**_PATTERN),
    "engine.store_pattern.pattern": lambda: memdb.SemanticPattern(**_PATTERN),
    "context.system": lambda: "", "user": lambda: "a", "tokens_to_remove": lambda: 10,
    "copy_namespace.target": lambda: "b", "merge_namespaces.target": lambda: "b",
}  # fmt: skip


def methods() -> Iterator[str]:
    """Yield "object.method" for every public method that takes an argument."""
    for name, (kind, _) in OBJECTS.items():
        for method in dir(kind):
            full = f"{name}.{method}"
            if not method.startswith("_") and full not in LEFT_OUT and parameters(getattr(kind, method)):
                yield full


def parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters that a caller gives by name; none of what is no function."""
    if not callable(function):
        return []
    given = inspect.signature(function).parameters.values()
    return [one for one in given if one.name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def good(full: str, folder: Path) -> Any:
    """Return what "object.method.parameter" takes; paths lie in the folder."""
    value = GOOD.get(full, GOOD.get(full.rsplit(".", 1)[1]))
    assert value is not None, f"write into GOOD what {full} takes"
    made = value()
    return str(folder / made) if full.rsplit(".", 1)[1] in ("path", "target", "folder") and "." in str(made) else made
