"""What kind of task a context is about, and which memories such a task needs (loki document, TASK_STRATEGIES; pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memdb.errors import InvalidInput
from memdb.text.keywords import name_parts
from memdb.text.phrases import Phrases
from memdb.text.scripts import fold, tokens

IMPLEMENTATION = "implementation"  # where nothing says otherwise
AUTO = "auto"  # asks for detection
LOOKED_CHARS = 20_000  # of a goal

# What each source counts for each kind of task.
TASK_STRATEGIES: Mapping[str, Mapping[str, float]] = {
    "exploration": {"episodic": 0.60, "semantic": 0.30, "skills": 0.10, "anti_patterns": 0.00},
    IMPLEMENTATION: {"episodic": 0.15, "semantic": 0.50, "skills": 0.35, "anti_patterns": 0.00},
    "debugging": {"episodic": 0.40, "semantic": 0.20, "skills": 0.00, "anti_patterns": 0.40},
    "review": {"episodic": 0.30, "semantic": 0.50, "skills": 0.00, "anti_patterns": 0.20},
    "refactoring": {"episodic": 0.25, "semantic": 0.45, "skills": 0.30, "anti_patterns": 0.00},
}

# What a word or phrase is worth by where it stands.
POINTS: Mapping[str, int] = {"goal": 2, "action_type": 3, "phase": 4}

# The words and phrases of each kind of task: those of a goal, of an action, of a phase. Of two with the same points the
# one that stands first is taken.
TASK_SIGNALS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "exploration": {
        "goal": (
            *("explore", "understand", "research", "investigate", "analyze", "discover", "find", "what is", "how does"),
            *("architecture", "structure", "overview"),
        ),
        "action_type": ("read_file", "search", "list_files"),
        "phase": ("planning", "discovery", "research"),
    },
    IMPLEMENTATION: {
        "goal": ("implement", "create", "build", "add", "write", "develop", "make", "construct", "new feature"),
        "action_type": ("write_file", "create_file", "edit_file"),
        "phase": ("development", "implementation", "coding"),
    },
    "debugging": {
        "goal": (
            *("fix", "debug", "error", "bug", "issue", "broken", "failing", "crash", "exception"),
            "investigate error",
        ),
        "action_type": ("run_test", "check_logs", "trace"),
        "phase": ("debugging", "troubleshooting", "fixing"),
    },
    "review": {
        "goal": ("review", "check", "validate", "verify", "audit", "inspect", "quality", "standards", "lint"),
        "action_type": ("diff", "review_pr", "check_style"),
        "phase": ("review", "qa", "validation"),
    },
    "refactoring": {
        "goal": (
            *("refactor", "restructure", "reorganize", "clean up", "improve structure", "extract", "rename", "move"),
        ),
        "action_type": ("rename", "move_file", "extract_function"),
        "phase": ("refactoring", "cleanup", "optimization"),
    },
}

# What the document's words for debugging mean, in other words. They count in a goal that holds none of the document's
# own for it, so that what the document decides stays as it is ("add a timeout" is an implementation).
DEBUGGING = "debugging"
OTHER_WORDS = ("fail", "failure", "time out", "timeout", "stack trace", "stacktrace", "traceback")


class Signal(NamedTuple):
    """A word or phrase that speaks for a kind of task.

    Args:
        task_type: the kind.
        where: "goal", "action_type" or "phase".
        phrase: as it stands in TASK_SIGNALS, or in OTHER_WORDS.
        points: what it is worth.
    """

    task_type: str
    where: str
    phrase: str
    points: int


_KIND_OF = {
    where: {phrase: kind for kind, signals in TASK_SIGNALS.items() for phrase in signals[where]} for where in POINTS
}
_PHRASES = {where: Phrases(kinds) for where, kinds in _KIND_OF.items()}
_OTHER = Phrases(OTHER_WORDS)
_ERROR_NAME = re.compile(r"\b\w*[^\W_](?=(?:Error|Exception)s?\b)")  # what stands before Error in TypeError


def task_signals(context: Mapping[str, Any]) -> list[Signal]:
    """Return what speaks for each kind of task: whole words with any regular ending, each once.

    The name of an error, such as TypeError or TimeoutException, is the word error or exception. Where no word of the
    document speaks for debugging in a goal, OTHER_WORDS do.

    Args:
        context: `goal` is a sentence, `action_type` a tool's name (readFile and read_file are one), `phase` a word.
            Each may be missing or None.

    Returns:
        Signals of the goal first, then of the action, then of the phase, each in the order of TASK_SIGNALS.

    Raises:
        InvalidInput: it is no dict, or one of the three is no text.
    """
    if not isinstance(context, Mapping):
        raise InvalidInput(f"the context must be a dict, not {type(context).__name__}")
    found = []
    for where, points in POINTS.items():
        text = _text(context, where)[:LOOKED_CHARS]
        if where == "goal":
            text = _ERROR_NAME.sub("", text)
        words = name_parts(text) if where == "action_type" else tokens(fold(text))
        kinds = _KIND_OF[where]
        found += [Signal(kinds[phrase], where, phrase, points) for phrase in _PHRASES[where].among(words)]
        if where == "goal" and all(signal.task_type != DEBUGGING for signal in found):
            found += [Signal(DEBUGGING, where, phrase, points) for phrase in _OTHER.among(words)]
    return found


def task_scores(signals: list[Signal]) -> dict[str, int]:
    """Return the points of each kind of task, in the order of TASK_SIGNALS."""
    return {kind: sum(signal.points for signal in signals if signal.task_type == kind) for kind in TASK_SIGNALS}


def detect_task_type(context: Mapping[str, Any]) -> str:
    """Return the kind of task with most points; of several the first, implementation where nothing has any.

    Args:
        context: see task_signals. Its task_type is not looked at.

    Raises:
        InvalidInput: see task_signals.
    """
    scores = task_scores(task_signals(context))
    best = max(scores, key=lambda kind: scores[kind])
    return best if scores[best] else IMPLEMENTATION


def task_type_of(context: Mapping[str, Any]) -> str:
    """Return the kind of task that a context names: its task_type, detected where that is "auto".

    Without one it is implementation (loki document). A name that is not in TASK_STRATEGIES stays as it is.

    Raises:
        InvalidInput: task_type is no text; see task_signals.
    """
    if not isinstance(context, Mapping):
        raise InvalidInput(f"the context must be a dict, not {type(context).__name__}")
    named = _text(context, "task_type")
    return detect_task_type(context) if named == AUTO else named or IMPLEMENTATION


def strategy_of(task_type: str) -> Mapping[str, float]:
    """Return what each source counts for a kind of task; those of an implementation for a kind that is not known."""
    return TASK_STRATEGIES.get(task_type, TASK_STRATEGIES[IMPLEMENTATION])


def how_many(top_k: int, weight: float) -> int:
    """Return how many memories are taken of a source before the best are chosen (loki document).

    Args:
        top_k: how many are asked for in all.
        weight: what the source counts; a source of weight 0 is left out.
    """
    return max(1, int(top_k * weight * 2)) if weight > 0 else 0


def _text(context: Mapping[str, Any], name: str) -> str:
    value = context.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} of the context must be text, not {type(value).__name__}")
    return value or ""
