"""The graph: what lies around an entity, beside SQL by hand on the same file and beside networkx in memory.

100,000 entities and 500,000 relations that grew as friendships do (Barabasi and Albert): most entities have a handful,
a few over a thousand. Weights are random.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.graph_sides import Found, InMemory, Question, RawGraph
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import GraphEntity, GraphRelation
from memdb.layers.layer import Live
from memdb.layers.traversal import DEFAULT_FAN_OUT
from memdb.memory import Memory

EACH = 5  # relations that an entity brings along
TYPES = ("works_on", "part_of", "related_to", "knows", "uses")
TAGS = ("person", "project", "database", "search", "meeting", "travel", "music", "garden")
PER_CALL = 50_000


async def run(settings: Settings) -> list[Comparison]:
    """Compare get_related at depths 2 and 3, from typical entities and from hubs, with and without the cap."""
    size = settings.size(100_000, 300)
    path = settings.folder / "graph.db"
    async with memdb.open(path) as db:
        memory = db.memory("alice")
        notes: dict[str, object] = {"entities": size, "loading_s": await _fill(memory, size)}
        # Two connections by hand: one alone would find in its cache what the other side has just read.
        with closing(RawGraph(path)) as raw, closing(RawGraph(path)) as plain:
            start = time.perf_counter()
            beside = InMemory.load(raw)
            notes["networkx_loading_s"] = round(time.perf_counter() - start, 2) if beside else InMemory.MISSING
            gc.collect()
            gc.freeze()  # some million objects of networkx, which the collector would walk during our answers
            typical, hubs = raw.typical_and_hubs(settings.size(40, 3), settings.size(5, 2))
            sides = _Sides(memory, raw, plain, beside, settings.size(200, 4), settings.size(10, 2), notes)
            return [
                await sides.compare(name, entities, Question(depth, fan_out))
                for depth in (2, 3)
                for fan_out in (DEFAULT_FAN_OUT, None)
                for name, entities in (("typical", typical), ("hub", hubs))
            ]


def _relations(size: int) -> list[tuple[int, int]]:
    """Return the ends of relations: each new entity joins EACH that are there, each as likely as it has relations."""
    chosen = random.Random(1)
    ends: list[int] = []
    targets = list(range(EACH))
    relations = []
    for source in range(EACH, size):
        relations += [(source, target) if chosen.random() < 0.5 else (target, source) for target in targets]
        ends += targets + [source] * EACH
        distinct: set[int] = set()
        while len(distinct) < EACH:
            distinct.add(chosen.choice(ends))
        targets = sorted(distinct)
    chosen.shuffle(relations)
    return relations


async def _fill(memory: Memory[Live], size: int) -> dict[str, float]:
    """Store the graph and return how long entities and relations took, in seconds."""
    chosen = random.Random(2)
    entities = [
        GraphEntity(id=f"entity-{n:06}", name=f"Name {n}", description=text, tags=chosen.sample(TAGS, 3))
        for n, text in enumerate(sentences(size, seed=3))
    ]
    relations = [
        GraphRelation(
            source_id=entities[source].id,
            target_id=entities[target].id,
            relation_type=chosen.choice(TYPES),
            weight=1 - chosen.random(),
        )
        for source, target in _relations(size)
    ]
    start = time.perf_counter()
    for at in range(0, len(entities), PER_CALL):
        await memory.graph.add_entities(entities[at : at + PER_CALL])
    middle = time.perf_counter()
    for at in range(0, len(relations), PER_CALL):
        await memory.graph.add_relations(relations[at : at + PER_CALL])
    return {"entities": round(middle - start, 2), "relations": round(time.perf_counter() - middle, 2)}


@dataclass(slots=True)
class _Sides:
    """The sides of the comparison.

    Args:
        memory: ours.
        raw: the same file in plain sqlite3.
        plain: the same, for the plain statement.
        beside: networkx, where it is installed.
        rounds: how many questions memdb and its statement on raw sqlite3 are asked.
        slow_rounds: how many the others are.
        notes: what belongs to all comparisons.
    """

    memory: Memory[Live]
    raw: RawGraph
    plain: RawGraph
    beside: InMemory | None
    rounds: int
    slow_rounds: int
    notes: dict[str, object] = field(default_factory=dict)

    async def compare(self, name: str, entities: Sequence[str], question: Question) -> Comparison:
        """Ask all sides one kind of question in turn, of one entity after another."""
        depth, fan_out = question
        result = Comparison(
            f"get_related depth {depth}, {name}, {'default cap' if fan_out else 'no cap'}",
            f"await memory.graph.get_related(id, {depth}, fan_out={fan_out}): 200 entities at most",
            "the same statement on raw sqlite3, same file and thread: its rows, of which nothing is made",
            target=1.5,
        )
        others: dict[str, Callable[[str, Question], Found]] = {"plain SQL": self.plain.plainly}
        if self.beside is not None:
            others["networkx"] = self.beside.ask
        times = {other: Times() for other in others}
        ours_then = Times()
        answers, agree = 0, True
        for at in range(-len(entities), self.rounds):
            id = entities[at % len(entities)]
            ours, theirs = Times(), Times()
            start = time.perf_counter()
            related = await self.memory.graph.get_related(id, depth, fan_out=fan_out, timeout=None)
            ours.add(time.perf_counter() - start)
            start = time.perf_counter()
            self.raw.ask(id, question)
            theirs.add(time.perf_counter() - start)
            if at < 0:  # warm
                continue
            result.round(ours, theirs)
            answers += len(related)
            if at < self.slow_rounds:
                ours_then.add(ours.values[0] / 1e6)
                for other, ask in others.items():
                    start = time.perf_counter()
                    found = ask(id, question)
                    times[other].add(time.perf_counter() - start)
                    agree &= _same(found, [(one.entity.id, one.distance, one.weight) for one in related])
        result.notes = {
            **self.notes,
            "entities_an_answer": round(answers / self.rounds, 1),
            "all_sides_agree": agree,
            **{f"{other}_us": taken.figures() for other, taken in times.items()},
        }
        result.detail = ", ".join(
            f"{other} {statistics.median(taken.values) / ours_then.median:.1f} times ours"
            for other, taken in times.items()
        ) + ("" if self.beside else f"; {InMemory.MISSING}")
        return result


def _same(found: Found, ours: Found) -> bool:
    """Return whether two answers say the same; a product of weights may differ in its last digits."""
    return len(found) == len(ours) and all(
        (one[0], one[1]) == (two[0], two[1]) and abs(one[2] - two[2]) < 1e-12
        for one, two in zip(found, ours, strict=True)
    )
