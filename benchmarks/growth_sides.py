"""The two files of the growth table: filled with so many records of every kind, by bulk forms."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from benchmarks.texts import sentences
from memdb import (
    AgentCheckpoint,
    BlockConfig,
    Capacity,
    Database,
    GraphEntity,
    GraphRelation,
    KnowledgePage,
    Memory,
    MemoryItem,
    Scope,
)
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Inside, Live
from memdb.storage.transaction import Transaction

USER, FULL_USER = "alice", "bob"
PER_CALL = 2_500
MARK = "zanzibar"  # a word that MARKED records of each kind hold: a search for it finds as many in either file
MARKED = 20
SAVES_A_RUN = 10
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Side:
    """One of the two files.

    Args:
        db: the file, open.
        size: how many records of each kind it holds.
        memory: of the user and session that hold them.
        full: of the user whose store is full.
        numbers: what new records are called by.
        chosen: draws old ones.
        items: the numbers of the items that are there.
    """

    db: Database
    size: int
    memory: Memory[Live]
    full: Memory[Live]
    numbers: count[int] = field(default_factory=lambda: count(10_000_000))
    chosen: random.Random = field(default_factory=lambda: random.Random(17))
    items: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, db: Database, size: int) -> Side:
        """Return the side of a file."""
        return cls(db, size, db.memory(USER, "s1"), db.memory(FULL_USER, "s1"), items=[*range(size)])

    def old(self) -> int:
        """Return the number of a record that is there."""
        return self.chosen.randrange(self.size)

    def run(self) -> int:
        """Return the number of a run of which there are checkpoints."""
        return self.chosen.randrange(runs(self.size))

    def session(self) -> Memory[Live]:
        """Return the memory of one of the sessions that have a state, a summary and a block of their own."""
        return self.db.memory(USER, session_of(self.old()))


def session_of(number: int) -> str:
    """Return the name of a session of its own."""
    return f"t{number}"


def runs(size: int) -> int:
    """Return of how many runs there are checkpoints."""
    return max(1, size // SAVES_A_RUN)


def bound(size: int) -> Capacity:
    """Return the policy under which the store of FULL_USER is full."""
    return Capacity(max_items=size)


async def fill(side: Side) -> None:
    """Let a file hold so many records of every kind."""
    for at in range(0, side.size, PER_CALL):
        texts = _texts(at, min(PER_CALL, side.size - at), side.size)
        await _texts_of_layers(side, at, texts)
        await _experience(side, at, texts)
        await _in_units(side, at, texts)
    await side.memory.conversation.compact(keep_last=MARKED)


def _texts(at: int, count: int, size: int) -> list[str]:
    """Return texts, of which one in size / MARKED holds the mark."""
    step = max(1, size // MARKED)
    return [
        f"{text[:-1]} {MARK}." if number % step == step // 2 else text
        for number, text in enumerate(sentences(count, seed=at + 1), at)
    ]


async def _texts_of_layers(side: Side, at: int, texts: Sequence[str]) -> None:
    memory, numbered = side.memory, list(enumerate(texts, at))
    await memory.items.save_many(MemoryItem(id=f"i{n}", content=text) for n, text in numbered)
    await side.full.items.save_many(MemoryItem(id=f"i{n}", content=text) for n, text in numbered)
    await memory.pages.add_pages(KnowledgePage(id=f"p{n}", title=f"Page {n}", content=text) for n, text in numbered)
    await memory.archive.insert_many([f"{n}: {text}" for n, text in numbered])
    await memory.facts.append_entries(texts)
    await memory.conversation.add_messages(
        {"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in numbered
    )
    await memory.graph.add_entities(GraphEntity(id=f"e{n}", name=f"Name {n}", description=text) for n, text in numbered)
    # Those that are there already: four relations an entity, wherever it lies.
    await memory.graph.add_relations(
        GraphRelation(source_id=f"e{n}", target_id=f"e{side.chosen.randrange(n)}", relation_type="knows", weight=0.5)
        for n, _ in numbered
        if n > 0
    )


async def _experience(side: Side, at: int, texts: Sequence[str]) -> None:
    engine, numbered = side.memory.engine, list(enumerate(texts, at))
    await engine.episodic.store_many(episode(f"ep{n}", n, text) for n, text in numbered)
    await engine.semantic.store_many(pattern(f"sem{n}", n, text) for n, text in numbered)
    await engine.procedural.store_many(skill(f"sk{n}", text) for n, text in numbered)


def episode(id: str, number: int, text: str) -> EpisodeTrace:
    """Return an episode."""
    return EpisodeTrace(
        id=id,
        task_id=f"task-{number}",
        agent="coder",
        goal=text,
        phase="ACT",
        timestamp=BEGIN + timedelta(seconds=number),
        action_log=[ActionEntry(tool="edit_file", input=text)],
    )


def pattern(id: str, number: int, text: str) -> SemanticPattern:
    """Return a pattern."""
    return SemanticPattern(id=id, pattern=text, category=f"kind-{number % 20}", correct_approach="look first")


def skill(id: str, text: str) -> ProceduralSkill:
    """Return a skill."""
    return ProceduralSkill(id=id, name=id, description=text, steps=["look", "do"])


async def _in_units(side: Side, at: int, texts: Sequence[str]) -> None:
    """Store what has no bulk form: many acts in one transaction."""

    def unit(tx: Transaction) -> None:
        memory: Memory[Inside] = Memory(Scope(USER, "s1"), tx)
        for number, text in enumerate(texts, at):
            memory.manager.save_checkpoint(checkpoint(number % runs(side.size), text))
            memory.manager.save_tool_result(f"r{number}", {"tool": "search", "content": text})
            memory.facts.write_long_term(text)
            own: Memory[Inside] = Memory(Scope(USER, session_of(number)), tx)
            own.manager.update_state({"current_task": text, "current_step": number})
            own.manager.update_working_memory(f"# Current Goal\n{text}")
            own.blocks.configure({"task": BlockConfig(size=2_000)})
            own.blocks.update_memory("task", text)

    await side.db.write(unit)


def checkpoint(run: int, text: str) -> AgentCheckpoint:
    """Return a checkpoint of one of the runs."""
    return AgentCheckpoint(id=f"run-{run}", status="in_progress", payload={"step": 3, "messages": [text]})
