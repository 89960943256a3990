"""Whatever is stored and asked, what is retrieved keeps within its budget, in both modes and with the loader."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import TokenCounter
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.retrieval.experience.budget import tokens_of
from memdb.retrieval.experience.engine import MemoryEngine
from memdb.retrieval.experience.loader import ProgressiveLoader
from memdb.retrieval.experience.tasks import TASK_STRATEGIES
from tests.strategies import SAME_EVERY_TIME, ids, json_values, queries, texts

COUNT = TokenCounter().count
importances = st.sampled_from([0.0, 0.5, 1.0, 7.0])
episodes = st.builds(
    EpisodeTrace,
    id=ids,
    task_id=st.just("t"),
    agent=st.just("coder"),
    goal=texts,
    importance=importances,
    action_log=st.lists(st.builds(ActionEntry, tool=st.just("x"), output=json_values), max_size=2),
)
patterns = st.builds(
    SemanticPattern,
    id=ids,
    pattern=texts,
    category=st.sampled_from(["c", "anti-pattern"]),
    confidence=st.sampled_from([0.4, 0.5, 0.9]),
    importance=importances,
)
skills = st.builds(ProceduralSkill, id=ids, name=texts, description=texts, importance=importances)
kinds = st.sampled_from([*TASK_STRATEGIES, "auto", None])


@settings(SAME_EVERY_TIME, max_examples=60)
@given(
    st.lists(episodes, max_size=6),
    st.lists(patterns, max_size=6),
    st.lists(skills, max_size=4),
    queries,
    kinds,
    st.integers(0, 12),
    st.integers(0, 1_500),
)
def test_a_budget_is_never_exceeded(
    lived: list[EpisodeTrace],
    known: list[SemanticPattern],
    done: list[ProceduralSkill],
    goal: str,
    kind: str | None,
    top_k: int,
    budget: int,
) -> None:
    async def run() -> None:
        async with memdb.open(":memory:") as db:
            engine: Any = MemoryEngine(db.memory("alice").scope, db.engine)
            await engine.episodic.store_many(lived)
            await engine.semantic.store_many(known)
            await engine.procedural.store_many(done)
            context = {"goal": goal, "task_type": kind}
            for mode in ("relevance", "weight"):
                free = await engine.retrieve_relevant(context, top_k, mode=mode, look_only=True)
                tight = await engine.retrieve_relevant(context, top_k, mode=mode, token_budget=budget, look_only=True)
                assert len(free) <= top_k
                assert len(tight) <= top_k
                assert sum(tokens_of(one, COUNT) for one in tight) <= budget
                names = [(one["_source"], one["id"]) for one in free]
                assert len(names) == len(set(names))
                assert all(0 <= one["_score"] <= 1 for one in free)
                if sum(tokens_of(one, COUNT) for one in free) <= budget:
                    assert tight == free, "what fits is what would be returned without a budget"
            loader: Any = ProgressiveLoader(engine)
            loaded, metrics = await loader.load_relevant_context(goal, budget)
            assert sum(tokens_of(one, COUNT) for one in loaded) == metrics.total_tokens <= budget

    asyncio.run(run())
