"""Retrieval for a task, over one transaction (loki document, retrieve_relevant): what is asked, found and returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args

from memdb.errors import InvalidInput
from memdb.layers.arguments import MAX_LIMIT, check_limit, check_range
from memdb.retrieval.experience.budget import fitting
from memdb.retrieval.experience.relevance import Matched, Ranked, importance_factor, ranked, spread
from memdb.retrieval.experience.said_once import warn_once
from memdb.retrieval.experience.sources import LEAST_CONFIDENCE, SOURCES, Source, form_of_answer, id_of, matching
from memdb.retrieval.experience.tasks import AUTO, TASK_STRATEGIES, how_many, strategy_of, task_signals, task_type_of
from memdb.storage.transaction import Transaction
from memdb.text.check import check_choice
from memdb.text.packing import Count
from memdb.text.shown import shown

Mode = Literal["relevance", "weight"]
MODES = get_args(Mode)
MAX_BUDGET = 10_000_000  # tokens
CONTEXT_KEYS = ("goal", "task_type", "action_type", "phase")
MISTAKEN = ("query", "text", "question", "prompt", "task", "type", "action", "tool")  # for one of these
CLOSE = 0.7  # how like one of them a name must be to be a slip of the pen
WITH_BUDGET = 3  # times as many are looked at where some may not fit


class Asked(NamedTuple):
    """What is asked, checked.

    Args:
        goal: what memories shall be relevant to; "" for nothing.
        task_type: the kind of task.
        why: what speaks for that kind, where it was detected.
        top_k: how many at most.
        mode: "relevance" or "weight".
        budget: tokens; None for any number.
    """

    goal: str
    task_type: str
    why: tuple[str, ...]
    top_k: int
    mode: str
    budget: int | None

    def sources(self) -> Iterator[tuple[Source, float]]:
        """Yield the sources that count for the task, each with what it counts."""
        weights = strategy_of(self.task_type)
        for source in SOURCES:
            if weights[source.weight] > 0:
                yield source, weights[source.weight]


def asked(context: Mapping[str, Any], top_k: int, mode: str, token_budget: int | None) -> Asked:
    """Return what a context asks for.

    Raises:
        InvalidInput: the context is no dict, or something in it no text; another argument is out of range.
    """
    task_type = task_type_of(context)
    _warn_of_mistakes(context)
    goal = context.get("goal")
    if goal is not None and not isinstance(goal, str):
        raise InvalidInput(f"goal of the context must be text, not {type(goal).__name__}")
    check_choice(mode, "mode", MODES)
    budget = None if token_budget is None else check_range(token_budget, "token_budget", 0, MAX_BUDGET)
    why: tuple[str, ...] = ()
    if context.get("task_type") == AUTO:
        signals = (signal for signal in task_signals(context) if signal.task_type == task_type)
        why = tuple(f"{signal.where}: {signal.phrase}" for signal in signals)
    return Asked(goal or "", task_type, why, check_limit(top_k, "top_k"), mode, budget)


def _warn_of_mistakes(context: Mapping[str, Any]) -> None:
    """Log what of a context nothing will be done with, though it looks as if something should."""
    for name in context:
        if name in CONTEXT_KEYS or not isinstance(name, str):
            continue
        if name in MISTAKEN or get_close_matches(name, CONTEXT_KEYS, 1, CLOSE):
            known = ", ".join(CONTEXT_KEYS)
            warn_once(f"the key {shown(name)} of a context is not looked at; there are {known}")
    named = context.get("task_type")
    if named and named != AUTO and named not in TASK_STRATEGIES:
        known = ", ".join((*TASK_STRATEGIES, AUTO))
        warn_once(f"there is no task_type {shown(named)}, so implementation is taken; there are {known}")


def retrieved(tx: Transaction, user_id: str, wanted: Asked, count: Count) -> list[Ranked]:
    """Return what answers, best first: at most top_k, and within the budget."""
    if wanted.top_k == 0:
        return []
    chosen, _ = fitting(_candidates(tx, user_id, wanted), wanted.top_k, wanted.budget, as_dict, count)
    return chosen


def as_dict(one: Ranked) -> dict[str, Any]:
    """Return a memory as the document does: its dict (see form_of_answer) with _source, _weight and _score."""
    return {**form_of_answer(one.memory), "_source": one.source, "_weight": one.weight, "_score": one.score}


def explained(one: Ranked, wanted: Asked) -> dict[str, Any]:
    """Return why a memory was returned, as a dict fit for JSON."""
    if one.score > 0:
        worth = importance_factor(one.memory)
        why = f"relevance {one.relevance:.3f} * sqrt(weight {one.weight:g}) * importance {worth:.3f}"
    elif wanted.mode == "weight":
        why = f"by the weight {one.weight:g} of its source alone, as mode weight asks"
    else:
        why = "it does not match the goal; it fills up what is missing, in the order of the weights"
    return {
        "task_type": wanted.task_type,
        "signals": list(wanted.why),
        "why": why,
        "bm25": one.bm25,
        "reach": one.reach,
        "relevance": one.relevance,
        "importance_factor": importance_factor(one.memory),
    }


def _candidates(tx: Transaction, user_id: str, wanted: Asked) -> Iterator[Ranked]:
    """Yield what may be returned, best first; what fills up is read only once it is asked for."""
    seen: set[tuple[str, str]] = set()
    if wanted.mode == "relevance" and wanted.goal.strip():
        for one in _relevant(tx, user_id, wanted):
            seen.add((one.source, id_of(one.memory)))
            yield one
    for one in _by_weight(tx, user_id, wanted):
        if (one.source, id_of(one.memory)) not in seen:
            yield one


def _relevant(tx: Transaction, user_id: str, wanted: Asked) -> list[Ranked]:
    most = min(wanted.top_k if wanted.budget is None else wanted.top_k * WITH_BUDGET, MAX_LIMIT)
    weights = dict(wanted.sources())
    found = matching(tx, user_id, [*weights], wanted.goal, most, least_confidence=LEAST_CONFIDENCE)
    matches = [Matched(source.name, weight, found[source.name]) for source, weight in weights.items()]
    return spread(ranked(wanted.goal, matches))


def _by_weight(tx: Transaction, user_id: str, wanted: Asked) -> list[Ranked]:
    """Return the documented order: of each source so many, the weightier sources first."""
    made = [
        Ranked(source.name, weight, memory)
        for source, weight in wanted.sources()
        for memory in source.in_order(tx, user_id, min(how_many(wanted.top_k, weight), MAX_LIMIT))
    ]
    return sorted(made, key=lambda one: -one.weight)
