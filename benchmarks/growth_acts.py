"""The acts of the growth table: the main act of every layer, and how what is stored is found, listed and deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from benchmarks.growth_sides import MARK, MARKED, Side, bound, checkpoint, episode, pattern, skill
from memdb import ContextBuilder, GraphEntity, GraphRelation, KnowledgePage, MemoryFilter, MemoryItem, TokenCounter

Call = Callable[[], Awaitable[object]]
Made = Callable[[Side, str], Call]

NEWEST = 20
LARGE_CHARS = 8_000  # of a tool result: more than a model is given whole
_FILTER = MemoryFilter(limit=NEWEST)
_counter = TokenCounter()


class Act(NamedTuple):
    """One act.

    Args:
        name: what it is called in the table.
        measured: the call.
        made: makes the call ready, of a side and a text; what that takes is not measured.
        before: what must be done before each, not measured either.
    """

    name: str
    measured: str
    made: Made
    before: Callable[[Side, str], Awaitable[object]] | None = None


def _state(side: Side, text: str) -> Call:
    manager = side.session().manager
    return lambda: manager.update_state({"current_task": text})


def _summary(side: Side, text: str) -> Call:
    manager = side.session().manager
    return lambda: manager.update_working_memory(f"# Current Goal\n{text}")


def _edit(side: Side, text: str) -> Call:
    blocks = side.session().blocks
    return lambda: blocks.update_memory("task", text)


def _context(side: Side, text: str) -> Call:
    builder = ContextBuilder(side.memory, _counter)
    return lambda: builder.build(query=MARK, max_tokens=4_000, look_only=True)


def _checkpoint(side: Side, text: str) -> Call:
    saved = checkpoint(side.run(), text)
    return lambda: side.memory.manager.save_checkpoint(saved)


def _relation(side: Side, text: str) -> Call:
    source, target = side.chosen.sample(range(side.size), 2)
    relation = GraphRelation(source_id=f"e{source}", target_id=f"e{target}", relation_type="uses", weight=0.5)
    return lambda: side.memory.graph.add_relation(relation)


def _entity(side: Side, text: str) -> Call:
    entity = GraphEntity(id=f"e{next(side.numbers)}", name=text[:30], description=text)
    return lambda: side.memory.graph.add_entity(entity)


def _evict(side: Side, text: str) -> Call:
    store, item = side.full.items.with_eviction(bound(side.size)), _item(side, text)
    return lambda: store.save(item)


def _item(side: Side, text: str) -> MemoryItem:
    return MemoryItem(id=f"i{next(side.numbers)}", content=text)


def _delete(side: Side, text: str) -> Call:
    id = f"i{side.items.pop(side.chosen.randrange(len(side.items)))}"
    return lambda: side.memory.items.delete(id)


async def _one_more(side: Side, text: str) -> object:
    """Store another item for the one that goes, so that there are always as many."""
    item = _item(side, text)
    side.items.append(int(item.id[1:]))
    return await side.memory.items.save(item)


def _saves(side: Side, text: str) -> Call:
    item = _item(side, text)
    return lambda: side.memory.items.save(item)


def _gets(side: Side, text: str) -> Call:
    id = f"i{side.chosen.choice(side.items)}"
    return lambda: side.memory.items.get(id)


def _page(side: Side, text: str) -> Call:
    page = KnowledgePage(id=f"p{next(side.numbers)}", title=text[:30], content=text)
    return lambda: side.memory.pages.add_page(page)


def _changed_page(side: Side, text: str) -> Call:
    number = side.old()
    page = KnowledgePage(id=f"p{number}", title=f"Page {number}", content=text)
    return lambda: side.memory.pages.update_page(page)


def _externalized(side: Side, text: str) -> Call:
    output = f"{next(side.numbers)} {text * (LARGE_CHARS // len(text) + 1)}"
    return lambda: side.memory.manager.externalize("search", output)


def _result_page(side: Side, text: str) -> Call:
    id = f"r{side.old()}"
    return lambda: side.memory.manager.read_tool_result(id, size=4_096)


def _around(side: Side, text: str) -> Call:
    id = f"e{side.old()}"
    return lambda: side.memory.graph.get_related(id, 2)


def _episode(side: Side, text: str) -> Call:
    number = next(side.numbers)
    trace = episode(f"ep{number}", number, text)
    return lambda: side.memory.engine.store_episode(trace)


def _pattern(side: Side, text: str) -> Call:
    number = next(side.numbers)
    learnt = pattern(f"sem{number}", number, text)
    return lambda: side.memory.engine.store_pattern(learnt)


def _skill(side: Side, text: str) -> Call:
    known = skill(f"sk{next(side.numbers)}", text)
    return lambda: side.memory.engine.store_skill(known)


WRITES = (
    Act("save an item", "await memory.items.save(item)", _saves),
    Act("add a page", "await memory.pages.add_page(page)", _page),
    Act("update a page", "await memory.pages.update_page(page)", _changed_page),
    Act("save a checkpoint", "await memory.manager.save_checkpoint(checkpoint)", _checkpoint),
    Act("put state", "await memory.manager.update_state(patch), of one of as many sessions", _state),
    Act("update the summary", "await memory.manager.update_working_memory(text), likewise", _summary),
    Act("edit a block", "await memory.blocks.update_memory(name, text), likewise", _edit),
    Act(
        "append a message",
        "await memory.conversation.add_message(message)",
        lambda side, text: lambda: side.memory.conversation.add_message({"role": "user", "content": text}),
    ),
    Act("externalise a tool result", f"await memory.manager.externalize(tool, {LARGE_CHARS:,} chars)", _externalized),
    Act(
        "insert a passage",
        "await memory.archive.insert(text)",
        lambda side, text: lambda: side.memory.archive.insert(text),
    ),
    Act(
        "append to history",
        "await memory.facts.append_history(entry)",
        lambda side, text: lambda: side.memory.facts.append_history(text),
    ),
    Act(
        "write facts",
        "await memory.facts.write_long_term(text), the earlier text kept",
        lambda side, text: lambda: side.memory.facts.write_long_term(text),
    ),
    Act("store an episode", "await memory.engine.store_episode(trace)", _episode),
    Act("store a pattern", "await memory.engine.store_pattern(pattern)", _pattern),
    Act("save a skill", "await memory.engine.store_skill(skill)", _skill),
    Act("add an entity", "await memory.graph.add_entity(entity)", _entity),
    Act("add a relation", "await memory.graph.add_relation(relation)", _relation),
    Act("delete an item", "await memory.items.delete(id)", _delete, _one_more),
    Act("save into a full store", "await memory.items.with_eviction(Capacity(n)).save(item)", _evict),
)


def _asks(name: str, measured: str, call: Callable[[Side], Awaitable[object]]) -> Act:
    return Act(name, measured, lambda side, _: lambda: call(side))


READS = (
    Act("get an item", "await memory.items.get(id)", _gets),
    Act(
        "get a page",
        "await memory.pages.get_page(id)",
        lambda side, _: partial(side.memory.pages.get_page, f"p{side.old()}"),
    ),
    Act("read a tool result", "await memory.manager.read_tool_result(id, size=4096)", _result_page),
    Act(
        "get state",
        "await memory.manager.get_state(), of one of as many sessions",
        lambda side, _: side.session().manager.get_state,
    ),
    Act("render blocks", "await memory.blocks.render(), likewise", lambda side, _: side.session().blocks.render),
    _asks(
        "latest checkpoint", "await memory.manager.latest_checkpoint()", lambda s: s.memory.manager.latest_checkpoint()
    ),
    _asks(
        "facts for a prompt", "await memory.facts.get_memory_context()", lambda s: s.memory.facts.get_memory_context()
    ),
    Act("traverse depth 2", "await memory.graph.get_related(id, 2)", _around),
    Act(
        "relations of an entity",
        "await memory.graph.relations(id)",
        lambda side, _: partial(side.memory.graph.relations, f"e{side.old()}"),
    ),
    _asks("list 20 items", f"await memory.items.list(limit={NEWEST})", lambda s: s.memory.items.list(_FILTER)),
    _asks(
        "newest 20 messages", "await memory.conversation.messages(20)", lambda s: s.memory.conversation.messages(NEWEST)
    ),
    _asks(
        "history for a model",
        "await memory.conversation.get_history(20)",
        lambda s: s.memory.conversation.get_history(NEWEST),
    ),
    _asks("newest 20 passages", "await memory.archive.list(20)", lambda s: s.memory.archive.list(NEWEST)),
    _asks("newest 20 of history", "await memory.facts.history(20)", lambda s: s.memory.facts.history(NEWEST)),
    _asks("newest 20 versions", "await memory.facts.versions(20)", lambda s: s.memory.facts.versions(NEWEST)),
    _asks(
        "newest 20 checkpoints", "await memory.manager.checkpoints(20)", lambda s: s.memory.manager.checkpoints(NEWEST)
    ),
    _asks(
        "newest 20 tool results",
        "await memory.manager.tool_results(20)",
        lambda s: s.memory.manager.tool_results(NEWEST),
    ),
    _asks(
        "newest 20 episodes",
        "await memory.engine.episodic.get_recent(20)",
        lambda s: s.memory.engine.episodic.get_recent(NEWEST),
    ),
    _asks(
        "newest 20 patterns", "await memory.engine.semantic.list(20)", lambda s: s.memory.engine.semantic.list(NEWEST)
    ),
    _asks("find items", f"await memory.items.search(query), {MARKED} match", lambda s: s.memory.items.search(MARK)),
    _asks("find pages", f"await memory.pages.search(query), {MARKED} match", lambda s: s.memory.pages.search(MARK)),
    _asks(
        "find messages",
        "await memory.conversation.search(query), likewise",
        lambda s: s.memory.conversation.search(MARK),
    ),
    _asks("find passages", "await memory.archive.search(query), likewise", lambda s: s.memory.archive.search(MARK)),
    _asks(
        "find history",
        "await memory.facts.search_history(query), likewise",
        lambda s: s.memory.facts.search_history(MARK),
    ),
    _asks(
        "find episodes",
        "await memory.engine.episodic.search(query), likewise",
        lambda s: s.memory.engine.episodic.search(MARK),
    ),
    _asks(
        "what a task needs",
        "await memory.engine.retrieve_relevant(goal, look_only=True), likewise",
        lambda s: s.memory.engine.retrieve_relevant({"goal": MARK}, look_only=True),
    ),
    Act(
        "build a context",
        "await ContextBuilder(memory).build(query, max_tokens=4000), likewise of each layer",
        _context,
    ),
    _asks("stats", "await db.stats()", lambda s: s.db.stats()),
)
