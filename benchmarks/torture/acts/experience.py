"""Acts on episodes, patterns and skills."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from benchmarks.torture.acts.act import Act, Chance
from benchmarks.torture.model import State
from memdb import EpisodeTrace, ProceduralSkill, SemanticPattern

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def _episode(chance: Chance) -> list[Any]:
    return [chance.id("ep"), chance.text(8), chance.random.choice(["success", "failure", "partial"])]


def _trace(one: list[Any]) -> EpisodeTrace:
    id, goal, outcome = one
    return EpisodeTrace(id=id, task_id="t", agent="coder", goal=goal, outcome=outcome, timestamp=LONG_AGO)


def _store(state: State, one: list[Any]) -> str:
    state["episodes"][one[0]] = one[1:]
    return str(one[0])


def _store_many(state: State, ones: list[list[Any]]) -> list[str]:
    return [_store(state, one) for one in ones]


def _delete(state: State, id: str) -> bool:
    return state["episodes"].pop(id, None) is not None


def _clean_up(state: State, args: None) -> int:
    kept = {id for pattern in state["patterns"].values() for id in pattern[2]}
    gone = [id for id in state["episodes"] if id not in kept]
    for id in gone:
        del state["episodes"][id]
    return len(gone)


def _pattern(chance: Chance) -> list[Any]:
    sources = sorted({chance.id("ep") for _ in range(chance.random.randint(0, 3))})
    return [chance.id("pa"), chance.text(8), chance.random.choice(["testing", "anti-pattern"]), sources]


def _learn(state: State, one: list[Any]) -> str:
    old = state["patterns"].get(one[0])
    state["patterns"][one[0]] = [*one[1:], old[3] if old else 0]
    return str(one[0])


def _use(state: State, id: str) -> bool:
    if id not in state["patterns"]:
        return False
    state["patterns"][id][3] += 1
    return True


def _unlearn(state: State, id: str) -> bool:
    return state["patterns"].pop(id, None) is not None


def _given(one: list[Any]) -> SemanticPattern:
    id, pattern, category, sources = one
    return SemanticPattern(id=id, pattern=pattern, category=category, source_episodes=sources)


def _skill(chance: Chance) -> list[Any]:
    return [chance.id("sk"), chance.text(2), chance.text(8), chance.some(lambda: chance.text(3), 3)]


def _practise(state: State, one: list[Any]) -> str:
    state["skills"][one[0]] = one[1:]
    return str(one[0])


def _known(one: list[Any]) -> ProceduralSkill:
    id, name, description, steps = one
    return ProceduralSkill(id=id, name=name, description=description, steps=steps)


def _unlearn_skill(state: State, id: str) -> bool:
    return state["skills"].pop(id, None) is not None


ACTS = [
    Act("episodes.store", 4, _episode, _store, lambda at, one: at("a").engine.episodic.store(_trace(one))),
    Act(
        "episodes.store_many", 2, lambda chance: chance.some(lambda: _episode(chance), 4), _store_many,
        lambda at, ones: at("a").engine.episodic.store_many([_trace(one) for one in ones]),
    ),
    Act(
        "episodes.delete", 1, lambda chance: chance.id("ep"), _delete,
        lambda at, id: at("a").engine.episodic.delete(id),
    ),
    Act("episodes.clean_up", 1, lambda chance: None, _clean_up, lambda at, _: at("a").engine.episodic.cleanup_some(0)),
    Act("patterns.store", 3, _pattern, _learn, lambda at, one: at("a").engine.semantic.store(_given(one))),
    Act(
        "patterns.use", 2, lambda chance: chance.id("pa"), _use,
        lambda at, id: at("a").engine.semantic.increment_usage(id),
    ),
    Act(
        "patterns.delete", 1, lambda chance: chance.id("pa"), _unlearn,
        lambda at, id: at("a").engine.semantic.delete(id),
    ),
    Act("skills.store", 2, _skill, _practise, lambda at, one: at("a").engine.procedural.store(_known(one))),
    Act(
        "skills.delete", 1, lambda chance: chance.id("sk"), _unlearn_skill,
        lambda at, id: at("a").engine.procedural.delete(id),
    ),
]  # fmt: skip
