"""What a context is made of and what it is: values that the filling takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memdb.layers.message import Message
from memdb.retrieval.context.history import NO_HISTORY, History
from memdb.retrieval.context.hits import Found
from memdb.retrieval.context.sections import Kind
from memdb.text.packing import Count


class LeftOut(NamedTuple):
    """What is not in a context, or not whole.

    Args:
        section: the section it belongs to.
        id: which of its parts, such as "page:tea", or "12-47" for messages by their positions; "" for all of it.
        reason: "budget": there was no room. "cut": its end had no room. "limit": the retrieved memories had their
            tokens. "not legal": a message that a model API refuses, such as a call without its result, or that cannot
            be read. "failed: ...": the retriever did, and why.
        tokens: what it would cost, messages by the counts that are stored with them; None where it was not read, or is
            too long to be counted for this.
    """

    section: str
    id: str
    reason: str
    tokens: int | None


@dataclass(frozen=True, slots=True)
class ContextSection:
    """A section as it stands in a context.

    Args:
        text: its text with its label; "" for the history and the question, which are messages.
        tokens: what it takes, by itself.
        ids: of what it holds: memories such as "page:tea", messages by their positions.
    """

    text: str
    tokens: int
    ids: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Context:
    """What a model is sent at its next call.

    Args:
        messages: dicts for a chat API: one system message that holds the texts, the history, the user's new message.
        sections: by their names, in the order in which they stand.
        tokens: what the messages cost by the counter's count_messages; never more than was asked for.
        left_out: what is not in it, or not whole, and why.
    """

    messages: list[dict[str, Any]]
    sections: dict[str, ContextSection]
    tokens: int
    left_out: list[LeftOut]


class Counting(NamedTuple):
    """How tokens are counted.

    Args:
        text: of a text.
        messages: of chat messages.
        kept: whether the counts that stored messages bring are of the same encoding.
    """

    text: Count
    messages: Callable[[Iterable[Any]], int]
    kept: bool


@dataclass(frozen=True, slots=True)
class Materials:
    """What was read for a context.

    Args:
        session_id: whose history it is.
        system: the system prompt.
        question: the user's new message; None for none.
        texts: of the kinds of sections that are read whole.
        words: of the query, for the best stretches of long texts.
        hits: memories, best first; more than `most_hits`, since the history may hold some.
        asked: the message of the user that ends the history; None where another ends it.
        history: reads the newest messages before it that cost at most a number of tokens.
        most_hits: how many memories at most.
        retrieved_tokens: how many tokens they take at most.
        failed: why there are no hits; "" where nothing failed.
    """

    session_id: str
    system: str = ""
    question: dict[str, Any] | None = None
    texts: Sequence[tuple[Kind, str]] = ()
    words: Sequence[str] = ()
    hits: Sequence[Found] = ()
    asked: Message | None = None
    history: Callable[[int], History] = lambda most: NO_HISTORY
    most_hits: int = 10
    retrieved_tokens: int = 2_000
    failed: str = ""
