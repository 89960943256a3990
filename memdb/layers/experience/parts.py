"""What episodes, patterns and skills are made of (loki document)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from memdb.layers.experience import checks
from memdb.layers.experience.checks import Rule
from memdb.layers.experience.fields import Figure, Said, Seconds, Short, Texts, check_entries
from memdb.layers.experience.form import Experience, Key, as_text, as_texts
from memdb.layers.models import Content, Title

PHASES = ("REASON", "ACT", "REFLECT", "VERIFY")
OUTCOMES = ("success", "failure", "partial")
RELATIONS = (
    "derived_from",
    "related_to",
    "contradicts",
    "elaborates",
    "example_of",
    "supersedes",
    "superseded_by",
    "supports",
)

E = TypeVar("E", bound=Experience)


def as_entries(kind: type[E]) -> Callable[[Any], list[E]]:
    """Return what reads a list of entries of a kind, each in any form."""

    def read(value: Any) -> list[E]:
        check_entries(value)
        return [entry if isinstance(entry, kind) else kind.from_object(entry) for entry in value]

    return read


class ActionEntry(Experience):
    """One thing an agent did. In JSON: action, target, result, t.

    Args:
        tool: the tool's name.
        input: what it was given: a text, or any other JSON.
        output: what it gave.
        timestamp: seconds from the start of the episode.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("timestamp", "t"),
        Key("tool", "action", as_text),
        Key("input", "target"),
        Key("output", "result"),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (checks.required("tool"), checks.at_least_zero("timestamp"))

    tool: Title
    input: Said = ""
    output: Said = ""
    timestamp: Seconds = 0


class ErrorEntry(Experience):
    """An error that was met. In JSON error_type is called type.

    Args:
        error_type: what kind of error: what anti-patterns are made by.
        message: what it said.
        resolution: what helped.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("error_type", "type", as_text),
        Key("message", "message", as_text),
        Key("resolution", "resolution", as_text),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (checks.required("error_type", "message"),)

    error_type: Title
    message: Content = ""
    resolution: Content = ""


class Link(Experience):
    """A link from one memory to another. In JSON to_id is called to.

    Args:
        to_id: the other's id.
        relation: one of RELATIONS.
        strength: from 0 to 1.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("to_id", "to", as_text),
        Key("relation", "relation", as_text),
        Key("strength", "strength"),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (
        checks.required("to_id"),
        checks.one_of("relation", RELATIONS),
        checks.shares("strength"),
    )

    to_id: Short
    relation: Short
    strength: Figure = 1.0


class ErrorFix(Experience):
    """An error that a skill often meets, and what helps.

    Args:
        error: the error.
        fix: what helps.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (Key("error", "error", as_text), Key("fix", "fix", as_text))
    _RULES: ClassVar[tuple[Rule, ...]] = (checks.required("error", "fix"),)

    error: Content
    fix: Content = ""


class TaskContext(Experience):
    """What a task is about. In JSON files is called files_involved.

    Args:
        goal: what shall be reached.
        phase: one of PHASES, or "".
        files: paths.
        constraints: what must be kept to.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("goal", "goal", as_text),
        Key("phase", "phase", as_text),
        Key("files", "files_involved", as_texts),
        Key("constraints", "constraints", as_texts),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (checks.required("goal"), checks.one_of("phase", PHASES, may_be_empty=True))

    goal: Content
    phase: Short = ""
    files: Texts = []
    constraints: Texts = []
