"""Where a conversation may be cut: pure functions on messages and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from memdb.layers.history import groups, is_users, unanswered
from memdb.layers.message import Message


class Boundary(NamedTuple):
    """Where to cut.

    Args:
        first_kept: the index of the first message that stays.
        tokens: what the messages before it cost.
    """

    first_kept: int
    tokens: int


def turn_boundary(messages: Sequence[Message], sizes: Sequence[int], tokens_to_remove: int) -> Boundary | None:
    """Return the first user's turn before which enough stands, else the last one (LightGrep document, loop, 2).

    So the last user's turn always stays, and a chain of calls after a single user's message has no such boundary.

    Args:
        messages: those after the cursor, oldest first.
        sizes: the tokens of each.
        tokens_to_remove: how many are enough; with 0 or less there is nothing to cut.
    """
    edges = (at for at, message in enumerate(messages) if at > 0 and is_users(message))
    return _first_enough(edges, sizes, tokens_to_remove)


def group_boundary(messages: Sequence[Message], sizes: Sequence[int], tokens_to_remove: int) -> Boundary | None:
    """Return the first place after an answer, or a call with all its results, before which enough stands.

    For a turn that alone fills the window. Never right after a user's message, and the last group always stays.
    """
    return _first_enough(_ends(messages), sizes, tokens_to_remove)


def keeping_boundary(messages: Sequence[Message], keep: int) -> int:
    """Return the last index that leaves at least `keep` messages, a user's turn if there is one; 0 for none."""
    most = len(messages) - keep
    turns = [at for at in range(1, most + 1) if is_users(messages[at])] if keep else []
    ends = [at for at in _ends(messages) if at <= most]
    if keep == 0 and not any(unanswered(group) for group in list(groups(messages))[-1:]):
        return len(messages)
    return max(turns, default=0) or max(ends, default=0)


def _ends(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the indexes after each group that is no user's message, but the last group."""
    at = 0
    for group in groups(messages):
        at += len(group)
        if at < len(messages) and not is_users(group[0]):
            yield at


def _first_enough(places: Iterator[int], sizes: Sequence[int], tokens_to_remove: int) -> Boundary | None:
    if tokens_to_remove <= 0:
        return None
    before = [0, *accumulate(sizes)]
    last = None
    for at in places:
        last = Boundary(at, before[at])
        if last.tokens >= tokens_to_remove:
            break
    return last
