"""What a mutant is: a naive part with one fault, and the case of its suite that must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from memdb.testing import KEYWORD_EXTRACTOR, KNOWLEDGE_GRAPH, KNOWLEDGE_STORE, MEMORY_STORE
from tests.naive_parts import Graph, Items, Pages, Words


class Mutant(NamedTuple):
    """A faulty part.

    Args:
        suite: which suite it is run through.
        part: the class.
        case: the name of a case that must fail.
    """

    suite: tuple[Any, ...]
    part: type[Any]
    case: str


_SUITES = {Items: MEMORY_STORE, Pages: KNOWLEDGE_STORE, Graph: KNOWLEDGE_GRAPH, Words: KEYWORD_EXTRACTOR}


def mutant(case: str, base: type[Any], name: str, **methods: Callable[..., Any]) -> Mutant:
    """Return the naive part with these methods in place of its own."""
    return Mutant(_SUITES[base], type(name, (base,), methods), case)
