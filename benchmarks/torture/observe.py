"""What a scope holds, asked of memdb through its public methods, in the shape of the model."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

import memdb
from benchmarks.torture.acts.blocks import LOG
from benchmarks.torture.acts.items import BEGIN
from benchmarks.torture.model import SESSIONS, State
from memdb import Memory, Scope

MANY = 10_000  # the most that one answer holds


async def observe(db: memdb.Database, user: str) -> State:
    """Return what a user holds, of one moment: all of it is read in one snapshot."""
    found: State = await db.read(_observe, user)
    return found


def _observe(tx: Any, user: str) -> State:
    memories: dict[str, Any] = {name: Memory(Scope(user, name), tx) for name in SESSIONS}
    m = memories["a"]
    state = {
        "items": {one.id: [one.content, one.metadata, _created(one)] for one in m.items.list()},
        "pages": _pages(m),
        "facts": [version.content for version in reversed(m.facts.versions(MANY))],
        "history": [entry.content for entry in m.facts.history()],
        "episodes": {one.id: [one.goal, one.outcome] for one in m.engine.episodic.get_recent(MANY)},
        "patterns": {
            one.id: [one.pattern, one.category, one.source_episodes, one.usage_count]
            for one in m.engine.semantic.list(MANY)
        },
        "skills": {one.id: [one.name, one.description, one.steps] for one in m.engine.procedural.list_all()},
        "sessions": {name: _session(memories[name]) for name in SESSIONS},
        **_graph(m),
        **_archive(m, memories["b"]),
    }
    seen: State = json.loads(json.dumps(state))
    return seen


def _created(item: Any) -> int:
    return (item.created_at - BEGIN) // timedelta(milliseconds=1)  # type: ignore[no-any-return]


def _pages(m: Any) -> dict[str, Any]:
    pages = {}
    for entry in m.pages.get_index():
        one = m.pages.get_page(entry.id)
        pages[one.id] = [one.title, one.summary, one.content, one.tags, one.references, one.category]
    return pages


def _graph(m: Any) -> dict[str, Any]:
    """Entities are listed by nothing, so those are asked for that could be there."""
    entities, relations = {}, {}
    for id in _entity_ids(m):
        one = m.graph.get_entity(id)
        entities[id] = [one.name, one.entity_type, one.description, one.tags]
        for edge in m.graph.relations(id, direction="out"):
            relations[json.dumps([edge.source_id, edge.target_id, edge.relation_type])] = edge.weight
    return {"entities": entities, "relations": relations}


def _entity_ids(m: Any) -> list[str]:
    found: set[str] = set()
    for kind in ("person", "concept", "部署"):
        found |= {one.id for one in m.graph.find_by_keywords([kind], MANY)}
    return sorted(found)


def _archive(m: Any, b: Any) -> dict[str, Any]:
    """The archive, and the log: each of its lines stands in its block or in a passage that the block gave away."""
    passages = m.archive.list(MANY)
    lines = [line for one in passages if one.source == "block" for line in one.content.split("\n")]
    blocks = b.blocks.get_memory()
    lines += blocks.get(LOG, "").split("\n") if blocks.get(LOG) else []
    given = {one.content: [one.importance, one.tags] for one in passages if one.source != "block"}
    return {"archive": given, "log": sorted(lines), "log_open": LOG in blocks}


def _session(m: Any) -> dict[str, Any]:
    memory = m.manager.working_memory()
    return {
        "messages": [
            [one.position, one.role, one.content, one.tool_calls, one.tool_call_id] for one in m.conversation.messages()
        ],
        "passed": m.conversation.last_consolidated(),
        "state": m.manager.get_state(),
        "summary": [memory.content, memory.revision],
        "saves": {
            one.id: [[save.seq, save.status, save.payload] for save in _oldest_first(m, one.id)]
            for one in m.manager.checkpoints(MANY)
        },
        "results": {one.id: _result(m, one.id) for one in m.manager.tool_results(MANY)},
        "blocks": {name: _texts(m, name) for name in m.blocks.get_memory() if name != LOG},
    }


def _oldest_first(m: Any, id: str) -> list[Any]:
    return list(reversed(m.manager.checkpoint_history(id, MANY)))


def _result(m: Any, id: str) -> list[Any]:
    text = m.manager.load_tool_result(id)["content"]
    return [sha256(text.encode()).hexdigest(), len(text)]


def _texts(m: Any, name: str) -> list[str]:
    return [edit.content for edit in reversed(m.blocks.edits(name, MANY))]


def shown(state: State) -> State:
    """Return a model in the form in which memdb shows it: without what only the model remembers."""
    seen = {name: value for name, value in state.items() if name != "chunks"}
    seen["log"] = sorted(state["log"])
    seen["sessions"] = {name: dict(session) for name, session in state["sessions"].items()}
    for session in seen["sessions"].values():
        session["blocks"] = {name: block["texts"] for name, block in session["blocks"].items()}
        session["saves"] = {id: saves for id, saves in session["saves"].items() if saves}
    return seen


Search = Callable[[Any, str], list[Any]]
SEARCHES: dict[str, tuple[Callable[[State], list[str]], Search]] = {
    # what can be searched for, and what the search finds: texts that hold it
    "items": (
        lambda state: [one[0] for one in state["items"].values()],
        lambda m, words: [hit.item.content for hit in m["a"].items.search(words)],
    ),
    "pages": (
        lambda state: [one[at] for one in state["pages"].values() for at in (0, 1, 2)],
        lambda m, words: [f"{one.title} {one.summary} {one.content}" for one in m["a"].pages.search(words)],
    ),
    "messages": (
        lambda state: [one[2] for one in state["sessions"]["b"]["messages"] if one[2]],
        lambda m, words: [hit.message.content or "" for hit in m["b"].conversation.search(words, 5)],
    ),
    "history": (
        lambda state: state["history"],
        lambda m, words: [hit.entry.content for hit in m["a"].facts.search_history(words)],
    ),
    "archive": (
        lambda state: list(state["archive"]),
        lambda m, words: [hit.passage.content for hit in m["a"].archive.search(words, threshold=0)],
    ),
    "episodes": (
        lambda state: [one[0] for one in state["episodes"].values()],
        lambda m, words: [hit.episode.goal for hit in m["a"].engine.episodic.search(words)],
    ),
    "patterns": (
        lambda state: [one[0] for one in state["patterns"].values()],
        lambda m, words: [hit.pattern.pattern for hit in m["a"].engine.semantic.search(words)],
    ),
    "skills": (
        lambda state: [one[1] for one in state["skills"].values()],
        lambda m, words: [hit.skill.description for hit in m["a"].engine.procedural.search(words)],
    ),
}


async def search(db: memdb.Database, user: str, state: State, chance: random.Random) -> str | None:
    """Search one layer for a word that only one of its texts has; return what went wrong, or None."""
    layer = chance.choice(list(SEARCHES))
    texts, ask = SEARCHES[layer]
    known = texts(state)
    if not known:
        return None
    word = chance.choice(known).split()[0]

    def unit(tx: Any) -> list[Any]:
        return ask({name: Memory(Scope(user, name), tx) for name in SESSIONS}, word)

    found = await db.read(unit)
    if any(word in text for text in found):
        return None
    return f"a search of the {layer} of {user} for {word!r} did not find the text that begins with it, but {found!r}"
