"""Every public read of every layer, asked by a user who owns nothing for what another one has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import memdb
from benchmarks.torture.acts.facts import passage_text
from benchmarks.torture.faults import Fault
from memdb import Memory, MemoryConfig, NotFound
from memdb.layers.layer import Live

WORDS = "tea 部署 violin passage1p deploy"
LONG_AGO = datetime(2019, 1, 1, tzinfo=UTC)
PASSAGE = sha256(passage_text(1).encode()).hexdigest()
Call = Callable[[Memory[Live]], Awaitable[Any]]

# What each must come to; an error's class where it must be raised.
READS: dict[str, tuple[Call, Any]] = {
    "items.get": (lambda m: m.items.get("i1"), None),
    "items.list": (lambda m: m.items.list(), []),
    "items.search": (lambda m: m.items.search(WORDS), []),
    "items.recall_stats": (lambda m: m.items.recall_stats("i1"), None),
    "pages.get_page": (lambda m: m.pages.get_page("p1"), None),
    "pages.search": (lambda m: m.pages.search(WORDS), []),
    "pages.search_scored": (lambda m: m.pages.search_scored(WORDS, category="knowledge"), []),
    "pages.find_by_keywords": (lambda m: m.pages.find_by_keywords(["tea", "ops", "部署"]), []),
    "pages.get_index": (lambda m: m.pages.get_index(), []),
    "pages.categories": (lambda m: m.pages.categories(), {}),
    "pages.referenced_by": (lambda m: m.pages.referenced_by("p1"), []),
    "pages.recall_stats": (lambda m: m.pages.recall_stats("p1"), None),
    "graph.get_entity": (lambda m: m.graph.get_entity("e1"), None),
    "graph.relations": (lambda m: m.graph.relations("e1"), []),
    "graph.get_related": (lambda m: m.graph.get_related("e1", 3, paths=True), []),
    "graph.find_by_keywords": (lambda m: m.graph.find_by_keywords(["person", "ops", "部署"]), []),
    "graph.find_tags": (lambda m: m.graph.find_tags(""), []),
    "graph.entity_count_by_tag": (lambda m: m.graph.entity_count_by_tag("ops"), 0),
    "conversation.messages": (lambda m: m.conversation.messages(), []),
    "conversation.get_history": (lambda m: m.conversation.get_history(), []),
    "conversation.search": (lambda m: m.conversation.search(WORDS, all_sessions=True), []),
    "conversation.last_consolidated": (lambda m: m.conversation.last_consolidated(), 0),
    "conversation.unconsolidated": (lambda m: m.conversation.unconsolidated(), ([], 0)),
    "conversation.failures": (lambda m: m.conversation.failures(), 0),
    "conversation.recall_stats": (lambda m: m.conversation.recall_stats(1), None),
    "facts.read_long_term": (lambda m: m.facts.read_long_term(), ""),
    "facts.long_term": (lambda m: m.facts.long_term(), ("", 0, "", None)),
    "facts.get_memory_context": (lambda m: m.facts.get_memory_context(), ""),
    "facts.versions": (lambda m: m.facts.versions(), []),
    "facts.read_version": (lambda m: m.facts.read_version(1), NotFound),
    "facts.history": (lambda m: m.facts.history(), []),
    "facts.search_history": (lambda m: m.facts.search_history(WORDS), []),
    "facts.grep_history": (lambda m: m.facts.grep_history("."), []),
    "facts.recall_stats": (lambda m: m.facts.recall_stats(1), None),
    "blocks.config": (lambda m: m.blocks.config(), MemoryConfig()),
    "blocks.block_configs": (lambda m: m.blocks.block_configs(), {}),
    "blocks.get_memory": (lambda m: m.blocks.get_memory(), {}),
    "blocks.get_block_info": (lambda m: m.blocks.get_block_info(), {}),
    "blocks.render": (lambda m: m.blocks.render(), ""),
    "blocks.edits": (lambda m: m.blocks.edits("task"), NotFound),
    "archive.get": (lambda m: m.archive.get(PASSAGE), None),
    "archive.list": (lambda m: m.archive.list(), []),
    "archive.search": (lambda m: m.archive.search(WORDS, threshold=0), []),
    "archive.hybrid_search": (lambda m: m.archive.hybrid_search(WORDS, threshold=0), []),
    "archive.recall": (lambda m: m.archive.recall(WORDS, threshold=0), []),
    "archive.recall_stats": (lambda m: m.archive.recall_stats(PASSAGE), None),
    "episodic.get": (lambda m: m.engine.episodic.get("ep1"), None),
    "episodic.get_recent": (lambda m: m.engine.episodic.get_recent(), []),
    "episodic.search": (lambda m: m.engine.episodic.search(WORDS), []),
    "episodic.get_by_date_range": (lambda m: m.engine.episodic.get_by_date_range(LONG_AGO), []),
    "episodic.timeline": (lambda m: m.engine.episodic.timeline(), []),
    "semantic.get": (lambda m: m.engine.semantic.get("pa1"), None),
    "semantic.find": (lambda m: m.engine.semantic.find(min_confidence=0, anti=None), []),
    "semantic.anti_patterns": (lambda m: m.engine.semantic.anti_patterns(), []),
    "semantic.search": (lambda m: m.engine.semantic.search(WORDS), []),
    "semantic.list": (lambda m: m.engine.semantic.list(), []),
    "procedural.get": (lambda m: m.engine.procedural.get("sk1"), None),
    "procedural.list_all": (lambda m: m.engine.procedural.list_all(), []),
    "procedural.search": (lambda m: m.engine.procedural.search(WORDS), []),
    "engine.retrieve_relevant": (lambda m: m.engine.retrieve_relevant({"goal": WORDS}), []),
    "engine.retrieve_by_similarity": (lambda m: m.engine.retrieve_by_similarity(WORDS, "episodic"), []),
    "engine.retrieve_by_temporal": (lambda m: m.engine.retrieve_by_temporal(LONG_AGO), []),
    "manager.get_state": (lambda m: m.manager.get_state(), {}),
    "manager.state_envelope": (lambda m: m.manager.state_envelope(), None),
    "manager.working_memory": (lambda m: m.manager.working_memory(), ("", 0, None)),
    "manager.load_plan": (lambda m: m.manager.load_plan("run-1"), NotFound),
    "manager.plan_envelope": (lambda m: m.manager.plan_envelope("run-1"), None),
    "manager.latest_checkpoint": (lambda m: m.manager.latest_checkpoint(), None),
    "manager.checkpoints": (lambda m: m.manager.checkpoints(), []),
    "manager.checkpoint_history": (lambda m: m.manager.checkpoint_history("run-1"), []),
    "manager.load_tool_result": (lambda m: m.manager.load_tool_result("run-1"), NotFound),
    "manager.tool_result_envelope": (lambda m: m.manager.tool_result_envelope("run-1"), None),
    "manager.tool_results": (lambda m: m.manager.tool_results(), []),
    "manager.read_tool_result": (lambda m: m.manager.read_tool_result("run-1"), NotFound),
    "manager.read_tool_result_lines": (lambda m: m.manager.read_tool_result_lines("run-1"), NotFound),
    "manager.search_tool_result": (lambda m: m.manager.search_tool_result("run-1", "line"), NotFound),
    "hybrid.search": (lambda m: m.hybrid.search(WORDS), []),
    "hybrid.page_ids": (lambda m: m.hybrid.page_ids(WORDS), []),
    "notes.entries": (lambda m: m.notes.entries(["p1.md", "p1"]), {}),
}


async def ask(db: memdb.Database, user: str, session: str, reads: list[str]) -> None:
    """Ask some reads for a user; a fault when one finds something.

    Args:
        user: one who has stored nothing.
        session: any session; others have one of this name.
        reads: names of READS.
    """
    memory = db.memory(user, session)
    for name in reads:
        call, nothing = READS[name]
        try:
            found = await call(memory)
        except NotFound:
            found = NotFound
        if found != nothing:
            raise Fault(f"{name} found what is another user's: {found!r}")
    if held := await db.sessions(user):
        raise Fault(f"sessions found what is another user's: {held!r}")
