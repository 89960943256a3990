"""What of a list of memories fits into a budget of tokens (loki document, optimize_context; pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from memdb.text.json_text import to_exact_json
from memdb.text.packing import Count, within

T = TypeVar("T")


def text_of(memory: Mapping[str, Any]) -> str:
    """Return the JSON text by which a memory's dict is counted: all of it, compact, characters as they are."""
    return to_exact_json(dict(memory))


def tokens_of(memory: Mapping[str, Any], count: Count) -> int:
    """Return how many tokens a memory's dict costs.

    Args:
        memory: as a retrieval returns it, with its _source and the like.
        count: counts the tokens of a text, such as TokenCounter().count.
    """
    return count(text_of(memory))


def fitting(
    memories: Iterable[T], limit: int, budget: int | None, as_dict: Callable[[T], Mapping[str, Any]], count: Count
) -> tuple[list[T], int]:
    """Return the memories that fit, and what they cost: in their order, one that does not fit is left out.

    The sum never exceeds the budget. The loki document leaves out in the same way; nothing is cut, since half a memory
    is no JSON.

    Args:
        memories: the best first. They are looked at until `limit` fit.
        limit: how many at most.
        budget: how many tokens they may cost together; None for any number, and nothing is counted.
        as_dict: makes the dict that a memory is counted by.
        count: counts the tokens of a text.
    """
    taken: list[T] = []
    spent = 0
    for memory in memories:
        if len(taken) >= limit or (budget is not None and spent >= budget):
            break
        if budget is not None:
            tokens = within(text_of(as_dict(memory)), budget - spent, count)
            if tokens is None:
                continue
            spent += tokens
        taken.append(memory)
    return taken, spent
