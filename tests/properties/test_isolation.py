"""The tenant wall: every public method of every layer, called with a foreign scope, finds and changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import (
    AgentCheckpoint,
    BlockConfig,
    Context,
    ContextBuilder,
    EpisodeTrace,
    EpisodicMemory,
    GraphEntity,
    GraphError,
    GraphRelation,
    KnowledgePage,
    KnowledgeRetriever,
    LongTerm,
    Memory,
    MemoryConfig,
    MemoryFilter,
    MemoryItem,
    NotFound,
    PopulateReport,
    ProceduralMemory,
    ProceduralSkill,
    RetrievalResult,
    RetrieverConfig,
    SemanticMemory,
    SemanticPattern,
    TokenCounter,
    UnknownBlock,
)
from memdb.layers.blocks.editing import Edit, Pending
from memdb.layers.blocks.eviction import Original
from memdb.layers.layer import Layer, Live, _Act
from memdb.testing import HashingEmbedder, ScriptedModel
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME, ids

WORD = "plutonium"
ITEM = MemoryItem(id="a", content=f"{WORD} of alice", metadata={"secret": WORD})
PAGE = KnowledgePage(id="a", title=WORD, summary=WORD, content=WORD, tags=[WORD], references=["r"], category=WORD)
FOREIGN = KnowledgePage(id="a", title="foreign")
ENTITIES = [GraphEntity(id=id, name=f"{WORD} {id}", entity_type=WORD, description=WORD, tags=[WORD]) for id in "ab"]
RELATION = GraphRelation(source_id="a", target_id="b", relation_type=WORD, weight=0.5)
STRANGE = GraphEntity(id="a", name="foreign")

PASSAGE = sha256(WORD.encode()).hexdigest()
EDIT = Edit("a", "append", "foreign")
PENDING = Pending(EDIT, 1, 1, Original("", "", 9), "", 9)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EPISODE = EpisodeTrace(id="a", task_id="t", agent="foreign", goal="foreign", timestamp=BEGIN)
PATTERN = SemanticPattern(id="a", pattern="foreign", category="foreign")
SKILL = ProceduralSkill(id="a", name="foreign", description="foreign", steps=["foreign"])
CHECKPOINT = AgentCheckpoint(id="a", status="completed", payload={"a": 1})

NOTHING = RetrievalResult([], 0, WORD, [WORD])


async def _part(found: Awaitable[dict[str, Any]], name: str) -> object:
    return (await found)[name]


# layer -> method -> a call of a foreigner, and what it must come to. A new method is not done before it stands here.
Call = Callable[[Memory[Live]], Awaitable[object]]
CALLS: dict[str, dict[str, tuple[Call, object]]] = {
    "items": {
        "get": (lambda m: m.items.get("a"), None),
        "list": (lambda m: m.items.list(MemoryFilter(prefix="a")), []),
        "search": (lambda m: m.items.search(f'{WORD} "{WORD}" alice'), []),
        "recall_stats": (lambda m: m.items.recall_stats("a"), None),
        "record_recall": (lambda m: m.items.record_recall("a", 0.5), None),
        "delete": (lambda m: m.items.delete("a"), False),
        "save": (lambda m: m.items.save(MemoryItem(id="a", content="foreign")), None),
        "save_many": (lambda m: m.items.save_many([MemoryItem(id="a", content="foreign")]), 1),
    },
    "conversation": {
        "messages": (lambda m: m.conversation.messages(), []),
        "get_history": (lambda m: m.conversation.get_history(), []),
        "search": (lambda m: m.conversation.search(f'{WORD} "{WORD}"', all_sessions=True), []),
        "last_consolidated": (lambda m: m.conversation.last_consolidated(), 0),
        "compact": (lambda m: m.conversation.compact(0), 0),
        "unconsolidated": (lambda m: m.conversation.unconsolidated(), ([], 0)),
        "consolidate_to": (lambda m: m.conversation.consolidate_to(2, if_passed=1), False),
        "failures": (lambda m: m.conversation.failures(), 0),
        "clear_failures": (lambda m: m.conversation.clear_failures(), None),
        "record_failure": (lambda m: m.conversation.record_failure("foreign"), 1),
        "record_recall": (lambda m: m.conversation.record_recall(1, 0.5), None),
        "recall_stats": (lambda m: m.conversation.recall_stats(1), None),
        "clear": (lambda m: m.conversation.clear(), 0),
        "add_message": (lambda m: m.conversation.add_message({"role": "user", "content": "foreign"}), 1),
        "add_messages": (lambda m: m.conversation.add_messages([{"role": "user", "content": "foreign"}]), 1),
    },
    "facts": {
        "read_long_term": (lambda m: m.facts.read_long_term(), ""),
        "long_term": (lambda m: m.facts.long_term(), LongTerm("", 0, "", None)),
        "get_memory_context": (lambda m: m.facts.get_memory_context(), ""),
        "versions": (lambda m: m.facts.versions(), []),
        "read_version": (lambda m: m.facts.read_version(1), NotFound),
        "history": (lambda m: m.facts.history(), []),
        "search_history": (lambda m: m.facts.search_history(WORD), []),
        "grep_history": (lambda m: m.facts.grep_history("."), []),
        "recall_stats": (lambda m: m.facts.recall_stats(1), None),
        "record_recall": (lambda m: m.facts.record_recall(1, 0.5), None),
        "write_long_term": (lambda m: m.facts.write_long_term("foreign", if_version=0), True),
        "append_history": (lambda m: m.facts.append_history("foreign"), 1),
        "append_entries": (lambda m: m.facts.append_entries(["foreign"]), [1]),
        "append_chunk": (
            lambda m: m.facts.append_chunk(
                [WORD], origin="raw", chunk="c", session_id="default", first_position=1, last_position=1
            ),
            1,
        ),
    },
    "blocks": {
        "config": (lambda m: m.blocks.config(), MemoryConfig()),
        "block_configs": (lambda m: m.blocks.block_configs(), {}),
        "get_memory": (lambda m: m.blocks.get_memory(), {}),
        "get_block_info": (lambda m: m.blocks.get_block_info(), {}),
        "render": (lambda m: m.blocks.render(), ""),
        "edits": (lambda m: m.blocks.edits("a"), UnknownBlock),
        "undo": (lambda m: m.blocks.undo("a"), UnknownBlock),
        "update_memory": (lambda m: m.blocks.update_memory("a", "foreign"), UnknownBlock),
        "append_to_memory": (lambda m: m.blocks.append_to_memory("a", "foreign"), UnknownBlock),
        "replace": (lambda m: m.blocks.replace("a", WORD, "foreign"), UnknownBlock),
        "_apply_edit": (lambda m: m.blocks._apply_edit(EDIT), UnknownBlock),
        "_begin_edit": (lambda m: m.blocks._begin_edit(EDIT), UnknownBlock),
        "_finish_edit": (
            lambda m: m.blocks._finish_edit(PENDING, "x"),
            UnknownBlock,
        ),
        "remove_block": (lambda m: m.blocks.remove_block("a"), False),
        "configure": (lambda m: m.blocks.configure({"a": {"size": 5}}, MemoryConfig(total_size=9)), None),
    },
    "archive": {
        "get": (lambda m: m.archive.get(PASSAGE), None),
        "list": (lambda m: m.archive.list(), []),
        "search": (lambda m: m.archive.search(WORD, threshold=0), []),
        "delete": (lambda m: m.archive.delete(PASSAGE), False),
        "recall_stats": (lambda m: m.archive.recall_stats(PASSAGE), None),
        "record_recall": (lambda m: m.archive.record_recall(PASSAGE, 0.5), None),
        "insert": (lambda m: m.archive.insert(WORD), PASSAGE),
        "insert_many": (lambda m: m.archive.insert_many([WORD]), [PASSAGE]),
    },
    "engine": {
        "initialize": (lambda m: m.engine.initialize(), True),
        "retrieve_relevant": (lambda m: m.engine.retrieve_relevant({"goal": WORD, "task_type": "debugging"}), []),
        "retrieve_by_similarity": (lambda m: m.engine.retrieve_by_similarity(WORD, "episodic"), []),
        "retrieve_by_temporal": (lambda m: m.engine.retrieve_by_temporal(BEGIN), []),
        "get_index": (lambda m: _part(m.engine.get_index(), "topics"), []),
        "get_timeline": (lambda m: _part(m.engine.get_timeline(), "recent_actions"), []),
        "rebuild_index": (lambda m: m.engine.rebuild_index(), True),
        "get_stats": (lambda m: _part(m.engine.get_stats(), "total_memories"), 0),
        "get_episode": (lambda m: m.engine.get_episode("a"), None),
        "get_recent_episodes": (lambda m: m.engine.get_recent_episodes(), []),
        "get_pattern": (lambda m: m.engine.get_pattern("a"), None),
        "find_patterns": (lambda m: m.engine.find_patterns(min_confidence=0), []),
        "increment_pattern_usage": (lambda m: m.engine.increment_pattern_usage("a"), False),
        "get_skill": (lambda m: m.engine.get_skill("a"), None),
        "list_skills": (lambda m: m.engine.list_skills(), []),
        "store_episode": (lambda m: m.engine.store_episode(EPISODE), "a"),
        "store_pattern": (lambda m: m.engine.store_pattern(PATTERN), "a"),
        "store_skill": (lambda m: m.engine.store_skill(SKILL), "a"),
    },
    "engine.episodic": {
        "get": (lambda m: m.engine.episodic.get("a"), None),
        "get_recent": (lambda m: m.engine.episodic.get_recent(), []),
        "search": (lambda m: m.engine.episodic.search(WORD), []),
        "get_by_date_range": (lambda m: m.engine.episodic.get_by_date_range(BEGIN), []),
        "timeline": (lambda m: m.engine.episodic.timeline(), []),
        "delete": (lambda m: m.engine.episodic.delete("a"), False),
        "cleanup_some": (lambda m: m.engine.episodic.cleanup_some(0), 0),
        "recall_stats": (lambda m: m.engine.episodic.recall_stats("a"), None),
        "record_recall": (lambda m: m.engine.episodic.record_recall("a", 0.5), None),
        "store": (lambda m: m.engine.episodic.store(EPISODE), "a"),
        "store_many": (lambda m: m.engine.episodic.store_many([EPISODE]), ["a"]),
    },
    "engine.semantic": {
        "get": (lambda m: m.engine.semantic.get("a"), None),
        "find": (lambda m: m.engine.semantic.find(min_confidence=0), []),
        "anti_patterns": (lambda m: m.engine.semantic.anti_patterns(), []),
        "search": (lambda m: m.engine.semantic.search(WORD), []),
        "list": (lambda m: m.engine.semantic.list(), []),
        "increment_usage": (lambda m: m.engine.semantic.increment_usage("a"), False),
        "delete": (lambda m: m.engine.semantic.delete("a"), False),
        "recall_stats": (lambda m: m.engine.semantic.recall_stats("a"), None),
        "record_recall": (lambda m: m.engine.semantic.record_recall("a", 0.5), None),
        "store": (lambda m: m.engine.semantic.store(PATTERN), "a"),
        "store_many": (lambda m: m.engine.semantic.store_many([PATTERN]), ["a"]),
    },
    "engine.procedural": {
        "get": (lambda m: m.engine.procedural.get("a"), None),
        "list_all": (lambda m: m.engine.procedural.list_all(), []),
        "search": (lambda m: m.engine.procedural.search(WORD), []),
        "delete": (lambda m: m.engine.procedural.delete("a"), False),
        "recall_stats": (lambda m: m.engine.procedural.recall_stats("a"), None),
        "record_recall": (lambda m: m.engine.procedural.record_recall("a", 0.5), None),
        "store": (lambda m: m.engine.procedural.store(SKILL), "a"),
        "store_many": (lambda m: m.engine.procedural.store_many([SKILL]), ["a"]),
    },
    "pages": {
        "get_page": (lambda m: m.pages.get_page("a"), None),
        "search": (lambda m: m.pages.search(WORD), []),
        "search_scored": (lambda m: m.pages.search_scored(WORD, category=WORD), []),
        "find_by_keywords": (lambda m: m.pages.find_by_keywords([WORD]), []),
        "get_index": (lambda m: m.pages.get_index(), []),
        "categories": (lambda m: m.pages.categories(), {}),
        "referenced_by": (lambda m: m.pages.referenced_by("r"), []),
        "update_page": (lambda m: m.pages.update_page(FOREIGN), NotFound),
        "delete_page": (lambda m: m.pages.delete_page("a"), NotFound),
        "add_page": (lambda m: m.pages.add_page(FOREIGN), None),
        "add_pages": (lambda m: m.pages.add_pages([FOREIGN], replace=True), 1),
        "sync_tags": (lambda m: m.pages.sync_tags("a", ["a"]), NotFound),
        "record_recall": (lambda m: m.pages.record_recall("a", 0.5), None),
        "recall_stats": (lambda m: m.pages.recall_stats("a"), None),
    },
    "graph": {
        "get_entity": (lambda m: m.graph.get_entity("a"), None),
        "relations": (lambda m: m.graph.relations("a"), []),
        "get_related": (lambda m: m.graph.get_related("a", 3, paths=True), []),
        "find_by_keywords": (lambda m: m.graph.find_by_keywords([WORD, f"{WORD} a"]), []),
        "find_tags": (lambda m: m.graph.find_tags(""), []),
        "entity_count_by_tag": (lambda m: m.graph.entity_count_by_tag(WORD), 0),
        "set_entity_tags": (lambda m: m.graph.set_entity_tags("a", ["foreign"]), NotFound),
        "update_entity": (lambda m: m.graph.update_entity(STRANGE), NotFound),
        "remove_entity": (lambda m: m.graph.remove_entity("a"), NotFound),
        "remove_relation": (lambda m: m.graph.remove_relation("a", "b", WORD), NotFound),
        "add_relation": (lambda m: m.graph.add_relation(RELATION), GraphError),
        "add_relations": (lambda m: m.graph.add_relations([RELATION]), GraphError),
        "add_entity": (lambda m: m.graph.add_entity(STRANGE), None),
        "add_entities": (lambda m: m.graph.add_entities([STRANGE], replace=True), 1),
        "record_recall": (lambda m: m.graph.record_recall("a", 0.5), None),
        "recall_stats": (lambda m: m.graph.recall_stats("a"), None),
    },
    "manager": {
        "get_state": (lambda m: m.manager.get_state(), {}),
        "state_envelope": (lambda m: m.manager.state_envelope(), None),
        "remove_state_keys": (lambda m: m.manager.remove_state_keys([WORD]), {}),
        "clear_state": (lambda m: m.manager.clear_state(), False),
        "update_state": (lambda m: m.manager.update_state({"a": 1}), {"a": 1}),
        "get_working_memory": (lambda m: m.manager.get_working_memory(), ""),
        "working_memory": (lambda m: m.manager.working_memory(), ("", 0, None)),
        "working_memory_revision": (lambda m: m.manager.working_memory_revision(), 0),
        "clear_working_memory": (lambda m: m.manager.clear_working_memory(), False),
        "store_summary": (lambda m: m.manager.store_summary("x", if_revision=1, current_task="x"), False),
        "update_working_memory": (lambda m: m.manager.update_working_memory("x"), True),
        "load_plan": (lambda m: m.manager.load_plan("a"), NotFound),
        "plan_envelope": (lambda m: m.manager.plan_envelope("a"), None),
        "latest_checkpoint": (lambda m: m.manager.latest_checkpoint(), None),
        "checkpoints": (lambda m: m.manager.checkpoints(), []),
        "checkpoint_history": (lambda m: m.manager.checkpoint_history("a"), []),
        "delete_checkpoint": (lambda m: m.manager.delete_checkpoint("a"), 0),
        "prune_checkpoints": (lambda m: m.manager.prune_checkpoints(), 0),
        "save_plan": (lambda m: m.manager.save_plan("a", {"a": 1}), 1),
        "save_checkpoint": (lambda m: m.manager.save_checkpoint(CHECKPOINT), 1),
        "load_tool_result": (lambda m: m.manager.load_tool_result("a"), NotFound),
        "tool_result_envelope": (lambda m: m.manager.tool_result_envelope("a"), None),
        "tool_results": (lambda m: m.manager.tool_results(), []),
        "read_tool_result": (lambda m: m.manager.read_tool_result("a"), NotFound),
        "read_tool_result_lines": (lambda m: m.manager.read_tool_result_lines("a"), NotFound),
        "search_tool_result": (lambda m: m.manager.search_tool_result("a", WORD), NotFound),
        "delete_tool_result": (lambda m: m.manager.delete_tool_result("a"), False),
        "save_tool_result": (lambda m: m.manager.save_tool_result("a", {"content": "x"}), None),
        "externalize": (lambda m: m.manager.externalize("t", "short"), "short"),
    },
    "retriever": {
        "retrieve": (lambda m: m.retriever.with_config(RetrieverConfig(min_score=0)).retrieve(WORD), NOTHING),
    },
}


async def alices(memory: Memory[Live]) -> list[Any]:
    """Return all that alice has, as she sees it; not the scores, for BM25 counts the words of all."""
    return [
        await memory.items.list(),
        [hit.item for hit in await memory.items.search(WORD)],
        await memory.items.recall_stats("a"),
        await memory.pages.get_page("a"),
        await memory.pages.search(WORD),
        await memory.pages.referenced_by("r"),
        await memory.pages.recall_stats("a"),
        await memory.graph.recall_stats("a"),
        await memory.graph.find_by_keywords([WORD]),
        await memory.graph.relations("a"),
        await memory.graph.get_related("a"),
        await memory.graph.find_tags(""),
        await memory.graph.entity_count_by_tag(WORD),
        await memory.conversation.messages(),
        await memory.conversation.last_consolidated(),
        await memory.conversation.recall_stats(1),
        await memory.conversation.unconsolidated(),
        await memory.conversation.failures(),
        await memory.facts.versions(),
        await memory.facts.history(),
        await memory.blocks.block_configs(),
        await memory.blocks.edits("a"),
        await memory.blocks.config(),
        await memory.archive.list(),
        await memory.engine.get_recent_episodes(),
        await memory.engine.semantic.list(),
        await memory.engine.list_skills(),
        (await memory.engine.get_index())["topics"],
        await memory.engine.episodic.recall_stats("a"),
        await memory.archive.recall_stats(PASSAGE),
        [hit.message for hit in await memory.conversation.search(WORD)],
        await memory.manager.state_envelope(),
        await memory.manager.working_memory(),
        await memory.manager.checkpoint_history("a"),
        await memory.manager.load_tool_result("a"),
        await memory.manager.search_tool_result("a", WORD),
        await memory.notes.read_index(),
        await memory.notes.list_user_files("alice", WORD),
        [hit.id for hit in await memory.hybrid.search(WORD)],
    ]


async def fill(memory: Memory[Live]) -> list[Any]:
    await memory.items.save(ITEM)
    await memory.items.record_recall("a", 0.25)
    await memory.pages.record_recall("a", 0.5)
    await memory.pages.add_page(PAGE)
    await memory.graph.add_entities(ENTITIES)
    await memory.graph.add_relation(RELATION)
    await memory.conversation.add_messages([{"role": "user", "content": WORD}, {"role": "assistant", "content": WORD}])
    await memory.conversation.compact(1)
    await memory.conversation.record_recall(1, 0.75)
    await memory.conversation.record_failure(WORD)
    await memory.facts.write_long_term("earlier")
    await memory.facts.write_long_term(WORD)
    await memory.facts.append_history(WORD)
    await memory.blocks.configure({"a": BlockConfig(size=50, description=WORD, initial_value=WORD)})
    await memory.blocks.append_to_memory("a", WORD)
    await memory.engine.store_episode(EPISODE.model_copy(update={"goal": WORD, "agent": WORD}))
    await memory.engine.store_pattern(SemanticPattern(id="a", pattern=WORD, category=WORD, source_episodes=["a"]))
    await memory.engine.store_skill(ProceduralSkill(id="a", name=WORD, description=WORD, steps=[WORD]))
    await memory.engine.episodic.record_recall("a", 0.5)
    await memory.archive.insert(WORD, importance=0.7)
    await memory.archive.record_recall(PASSAGE, 0.5)
    await memory.manager.update_state({WORD: WORD})
    await memory.manager.update_working_memory(WORD)
    await memory.manager.save_plan("a", {"secret": WORD})
    await memory.manager.save_tool_result("a", {"tool": WORD, "content": WORD})
    await memory.notes.update_index_entry("a", "t", "d", [WORD], WORD)
    return await alices(memory)


def test_no_method_of_any_layer_is_left_out() -> None:
    layers = {name: value for name, value in vars(Memory).items() if isinstance(value, cached_property)}
    asking = {"notes", "hybrid"}  # they ask models, so they are no layers; see below
    made = {name: getattr(memdb.Memory(memdb.Scope(), None), name) for name in layers.keys() - asking}  # type: ignore[arg-type]
    for name, layer in made.items():
        if isinstance(layer, Layer):
            methods = {
                method for kind in type(layer).__mro__ for method, act in vars(kind).items() if isinstance(act, _Act)
            }
            assert set(CALLS.get(name, {})) == methods, f"write the foreign calls of memory.{name}"


def test_no_method_of_the_engines_memories_is_left_out() -> None:
    for name, kind in (("episodic", EpisodicMemory), ("semantic", SemanticMemory), ("procedural", ProceduralMemory)):
        methods = {method for one in kind.__mro__ for method, act in vars(one).items() if isinstance(act, _Act)}
        assert set(CALLS[f"engine.{name}"]) == methods


def test_no_public_method_is_left_out() -> None:
    """Also of those that are no acts of a layer: each is in a table, or it is said why it needs no foreigner's call."""
    told = {f"{layer}.{method}" for layer, methods in CALLS.items() for method in methods}
    told |= {name if "." in name else f"notes.{name}" for name in ASKING}
    made = memdb.Memory(memdb.Scope(), None)  # type: ignore[arg-type]
    kinds: dict[str, type[Any]] = {
        **{name: type(getattr(made, name)) for name in CALLS if "." not in name},
        "engine.episodic": EpisodicMemory,
        "engine.semantic": SemanticMemory,
        "engine.procedural": ProceduralMemory,
        "notes": memdb.MarkdownStore,
        "hybrid": memdb.HybridSearch,
    }
    public = {
        f"{layer}.{name}"
        for layer, kind in kinds.items()
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
    }
    assert public - told == set(NEEDS_NO_CALL), "write the foreign call of a new method, or why it needs none"


@pytest.mark.parametrize(("layer", "method"), [(layer, method) for layer in CALLS for method in CALLS[layer]])
@pytest.mark.parametrize("foreigner", ["bob", "Alice", "alic_", "alice\u0301"])
async def test_a_foreigner_finds_and_changes_nothing(
    memory: Memory[Live], db: memdb.Database, layer: str, method: str, foreigner: str
) -> None:
    mine = await fill(memory)
    call, outcome = CALLS[layer][method]
    theirs = db.memory(user_id=foreigner)
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            await call(theirs)
    else:
        assert await call(theirs) == outcome
    assert await alices(memory) == mine
    await db.forget(foreigner)
    assert await alices(memory) == mine


async def _patterns_made(m: Memory[Live]) -> int:
    return (await m.engine.consolidate(24 * 365 * 10)).patterns_created


async def _index_written(m: Memory[Live]) -> object:
    return (await m.notes.write_index({"index_version": 1, "entries": []})).written


async def _resumed(m: Memory[Live]) -> object:
    async with m.manager.run("a", resume=True) as run:
        return run.resumed


FILE = f"{WORD}/a"
MODEL = ScriptedModel([])  # fails the test when it is asked
ASKING: dict[str, tuple[Call, object]] = {
    "list_user_files": (lambda m: m.notes.list_user_files(m.scope.user_id, WORD), []),
    "read_file": (lambda m: m.notes.read_file(FILE), NotFound),
    "delete_file": (lambda m: m.notes.delete_file(FILE), NotFound),
    "write_file": (lambda m: m.notes.write_file(FILE, "foreign"), "a"),
    "bm25_search": (lambda m: m.notes.bm25_search(WORD), []),
    "fast_filter": (lambda m: m.notes.fast_filter(WORD, categories=[WORD]), []),
    "hybrid_search": (lambda m: m.notes.hybrid_search(WORD), []),
    "index_exists": (lambda m: m.notes.index_exists(), False),
    "read_index": (lambda m: m.notes.read_index(), {}),
    "update_index_entry": (lambda m: m.notes.update_index_entry("a", "t", "d", [], WORD), NotFound),
    "get_stale_entries": (lambda m: m.notes.get_stale_entries(m.scope.user_id), []),
    "refresh_stale_entries": (lambda m: m.notes.refresh_stale_entries(m.scope.user_id), []),
    "populate_index_from_files": (
        lambda m: m.notes.populate_index_from_files(m.scope.user_id, [WORD], MODEL), PopulateReport()),
    "entries": (lambda m: m.notes.entries([FILE, "a"]), {}),
    "record_recall": (lambda m: m.notes.record_recall("a", 1.0), None),
    "awaits_model": (lambda m: m.notes.awaits_model(), False),
    "is_fresh": (lambda m: m.notes.is_fresh(), True),
    "hybrid.search": (lambda m: m.hybrid.search(f"{WORD} alice"), []),
    "archive.hybrid_search": (lambda m: m.archive.hybrid_search(WORD, threshold=0), []),
    "archive.recall": (lambda m: m.archive.recall(WORD, threshold=0), []),
    "hybrid.page_ids": (lambda m: m.hybrid.page_ids(WORD), []),
    "context": (lambda m: ContextBuilder(m, TokenCounter()).build(WORD, append_query=False), Context([], {}, 0, [])),
    "notes.write_index": (lambda m: _index_written(m), []),
    "engine.apply_decay": (lambda m: m.engine.apply_decay(1.0), 0),
    "engine.cleanup_old": (lambda m: m.engine.cleanup_old(0), 0),
    "engine.episodic.cleanup_old": (lambda m: m.engine.episodic.cleanup_old(0), 0),
    "engine.consolidate": (lambda m: _patterns_made(m), 0),
    "manager.run": (lambda m: _resumed(m), None),
    "retrieve": (lambda m: KnowledgeRetriever(m.notes, None, TokenCounter()).retrieve(
        query=WORD, user_id=m.scope.user_id, categories=[WORD], max_tokens=500), ""),
}  # fmt: skip


# Public methods that stand in no table, and why.
NEEDS_NO_CALL = dict.fromkeys(
    ("items.with_eviction", "pages.with_eviction", "graph.with_eviction", "conversation.configure",
     "retriever.with_config", "retriever.with_extractor", "blocks.with_llm"), "makes an object; no I/O",
) | dict.fromkeys(
    ("conversation.history_of", "graph.tag_constraints", "engine.count_tokens", "notes.category_dir"), "no I/O",
) | dict.fromkeys(
    ("conversation.export_jsonl", "conversation.import_jsonl"), "reads and writes by messages() and add_messages()"
) | {"facts.consolidate": "asks a model; writes by append_chunk() and write_long_term()"}  # fmt: skip


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize("foreigner", ["bob", "Alice"])
async def test_a_foreigner_gets_nothing_from_what_asks_models(place: Path | str, method: str, foreigner: str) -> None:
    async with memdb.open(place, embedder=HashingEmbedder(16)) as db:
        memory = db.memory("alice")
        mine = await fill(memory)
        call, outcome = ASKING[method]
        if isinstance(outcome, type):
            with pytest.raises(outcome):
                await call(db.memory(foreigner))
        else:
            assert await call(db.memory(foreigner)) == outcome
        assert await alices(memory) == mine
        assert (await db.check()).ok


async def test_a_foreigner_inside_a_unit_finds_nothing_either(memory: Memory[Live], db: memdb.Database) -> None:
    await fill(memory)
    found = await db.memory("bob").atomic(lambda m: [m.items.list(), m.items.search(WORD), m.pages.search(WORD)])
    assert found == [[], [], []]


@settings(SAME_EVERY_TIME, max_examples=40)
@given(st.lists(ids, min_size=2, max_size=5, unique=True), st.data())
def test_users_with_any_names_see_their_own_alone(names: list[str], data: st.DataObject) -> None:
    owner = {f"k{n}": data.draw(st.sampled_from(names)) for n in range(8)}
    query = data.draw(st.sampled_from(["common", "common 1 2 3 4 5 6 7 8 9", "scope 1", '"1 2"', *names]))

    async def go(db: memdb.Database) -> None:
        for key, name in owner.items():
            await db.memory(name).items.save(MemoryItem(id=key, content=f"common {name} {len(key)}"))
        for name in names:
            mine = {key for key in owner if owner[key] == name}
            items = db.memory(name).items
            assert {item.id for item in await items.list()} == mine
            assert {hit.item.id for hit in await items.search(query)} <= mine
            assert {hit.item.id for hit in await items.search("common")} == mine
            assert [await items.get(key) is not None for key in owner] == [key in mine for key in owner]
        stats = await db.stats()
        assert {(row.user_id, row.records) for row in stats.layers} == {
            (name, list(owner.values()).count(name)) for name in owner.values()
        }

    run(go)
