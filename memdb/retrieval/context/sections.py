"""The sections of a context: a row a kind, in the order in which they stand in the prompt.

A layer whose text belongs into every prompt is a row of KINDS: its label, what reads it, how long it is kept when the
budget is short, and how it is cut. Stored texts stand below their labels so that no line of theirs reads as one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memdb.layers.blocks.rendering import HEADING as BLOCKS_LABEL
from memdb.layers.blocks.rendering import blocks_text
from memdb.layers.facts.store import long_term
from memdb.layers.runtime import state, working_memory
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.text.packing import Count, cut
from memdb.text.section_headings import GOAL
from memdb.text.sections import parse_sections, trim_sections

SYSTEM, STATE, WORKING_MEMORY, FACTS, BLOCKS = "system", "state", "working_memory", "facts", "blocks"
RETRIEVED, HISTORY, QUESTION = "retrieved", "history", "question"
SECTIONS = (STATE, WORKING_MEMORY, FACTS, BLOCKS, RETRIEVED, HISTORY)  # those that a caller may choose of

RETRIEVED_LABEL = "Retrieved memory:"

MAX_TRIMMED_CHARS = 200_000  # of a working memory that are parsed to trim it by its sections
_FIRST_KEYS = ("current_task", "current_step", "plan_id")  # local-ai document, "L0 agent state"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of section whose text is read whole.

    Args:
        name: what a caller calls it.
        label: the line or lines above its text, as the documents write them.
        read: returns its text; "" for none.
        kept: which of them is cut last: the one with the highest number.
        trim: returns what is left of its text within a number of tokens; "" for nothing.
    """

    name: str
    label: str
    read: Callable[[Transaction, Scope], str]
    kept: int
    trim: Callable[[str, int, Count], str] = cut


def state_text(tx: Transaction, scope: Scope) -> str:
    """Return the agent's state, a line a key; the keys that the document names come first."""
    return formatted_state(state.get(tx, scope))


def formatted_state(values: Mapping[str, Any]) -> str:
    """Return a state as `agent_state` text: a text of one line as it is, every other value as JSON."""
    first = [key for key in _FIRST_KEYS if key in values]
    return "\n".join(f"{_on_a_line(key)}: {_on_a_line(values[key])}" for key in dict.fromkeys((*first, *values)))


def _on_a_line(value: Any) -> str:
    if isinstance(value, str) and value.splitlines() == [value]:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.splitlines() == [text] else json.dumps(value)


def working_memory_text(tx: Transaction, scope: Scope) -> str:
    """Return the session's working memory."""
    return working_memory.read(tx, scope).content


def trim_working_memory(text: str, limit: int, count: Count) -> str:
    """Return a working memory with its oldest entries left out, the goal last of all; any other text cut at its end."""
    if len(text) <= MAX_TRIMMED_CHARS:
        sections = parse_sections(text)
        if sections.get(GOAL):
            text = trim_sections(sections, limit, count)
    return cut(text, limit, count)


def facts_text(tx: Transaction, scope: Scope) -> str:
    """Return the user's long-term text."""
    return long_term(tx, scope).content


def shown_blocks(tx: Transaction, scope: Scope) -> str:
    """Return the session's blocks without the heading, which is the section's label."""
    return blocks_text(tx, scope).removeprefix(BLOCKS_LABEL)


# Blocks are bounded, by their sizes; the long-term text is not, and must not leave them without room.
KINDS = (
    Kind(STATE, "agent_state:", state_text, kept=9),
    Kind(WORKING_MEMORY, "Working memory:", working_memory_text, kept=5, trim=trim_working_memory),
    Kind(FACTS, "# Memory\n## Long-term Memory", facts_text, kept=7),
    Kind(BLOCKS, BLOCKS_LABEL, shown_blocks, kept=8),
)
ORDER = (SYSTEM, *(kind.name for kind in KINDS), RETRIEVED)  # in which the texts stand
# What a stored line must not read as. Not "# Memory": a line such as "memory: 16 GB" would.
LABELS = (*(kind.label.splitlines()[-1] for kind in KINDS), RETRIEVED_LABEL, "Archival Memory")
