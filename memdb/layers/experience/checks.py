"""What `validate()` looks for: the rules of the loki document, a row each; none raises, whatever stands in a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Rule(NamedTuple):
    """One rule and the fields it holds for.

    Args:
        fields: the names of the fields.
        problems: yields, of a value, what follows the field's name in a message: " is required".
    """

    fields: tuple[str, ...]
    problems: Callable[[Any], Iterator[str]]


def required(*fields: str) -> Rule:
    """Return the rule that fields say something."""
    return Rule(fields, lambda value: iter(() if value else (" is required",)))


def at_least_zero(*fields: str) -> Rule:
    """Return the rule that fields are numbers of at least 0."""
    return Rule(fields, lambda value: iter(() if _is_number(value) and value >= 0 else (" must be at least 0",)))


def shares(*fields: str) -> Rule:
    """Return the rule that fields are numbers from 0 to 1."""
    return Rule(fields, lambda value: iter(() if _is_number(value) and 0 <= value <= 1 else (" must be from 0 to 1",)))


def one_of(field: str, choices: tuple[str, ...], *, may_be_empty: bool = False) -> Rule:
    """Return the rule that a field is one of some names."""

    def problems(value: Any) -> Iterator[str]:
        if not (value in choices or (may_be_empty and not value)):
            yield f" must be one of {', '.join(choices)}"

    return Rule((field,), problems)


def entries(field: str, kind: type[Any]) -> Rule:
    """Return the rule that a field is a list of valid entries; a message begins with the entry's place."""

    def problems(value: Any) -> Iterator[str]:
        if not isinstance(value, list):
            yield " must be a list"
            return
        for at, entry in enumerate(value):
            found = entry.validate() if isinstance(entry, kind) else [f"it is no {kind.__name__}"]
            yield from (f"[{at}]: {problem}" for problem in found)

    return Rule((field,), problems)


def told(what: str, value: object, rules: tuple[Rule, ...]) -> list[str]:
    """Return what rules find in a value.

    Args:
        what: what the value is called in the messages.

    Returns:
        "EpisodeTrace.goal is required" of a field, "action_log[0]: ActionEntry.tool is required" of an entry.
    """
    return [
        f"{field}{problem}" if problem.startswith("[") else f"{what}.{field}{problem}"
        for fields, problems in rules
        for field in fields
        for problem in problems(getattr(value, field, None))
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
