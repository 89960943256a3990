"""What an act is: drawn at random, done to a model, done to memdb."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.torture.model import State

ANY: Any = type("Any", (), {"__eq__": lambda self, other: True, "__hash__": None})()  # an answer that is not looked at

WORDS = (
    *("tea", "violin", "harbour", "deploy", "token", "parser", "winter", "bridge", "memory", "cathedral", "Zürich"),
    *("naïve", "部署方案", "記憶する", "기억해요", "ความจำ", "память", "स्मृति", "ذاكرة", "😀", "O'Neill", "3.14", "C++"),
)
ODD_IDS = ("é", "a b", "'; DROP TABLE record; --", "%_", "x" * 300, "部署", "-", "NULL")


class Refused(Exception):
    """What the model says that memdb must refuse.

    Args:
        error: the name of the error's class.
    """

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Chance:
    """What acts are drawn with.

    Args:
        source: where the luck comes from.
        state: what the scope holds; acts may look at it, so that many of them hit something.
        number: the number of the act in its scope, which makes its texts unlike all others.
        session: the session that it is about; None to choose one each time.
    """

    def __init__(self, source: random.Random, state: State, number: int, session: str | None = None) -> None:
        self.random = source
        self.state = state
        self.number = number
        self.only = session
        self._texts = 0

    def session(self) -> str:
        """Return "a" or "b"."""
        return self.only or self.random.choice("ab")

    def id(self, kind: str) -> str:
        """Return one of a few ids, so that many acts meet what earlier ones left."""
        if self.random.random() < 0.08:
            return self.random.choice(ODD_IDS)
        return f"{kind}{self.random.randrange(8)}"

    def file_id(self) -> str:
        """Return one of a few ids that could be a file's name."""
        return f"run-{self.random.randrange(4)}"

    def text(self, words: int = 12) -> str:
        """Return a text that begins with a word that no other text has."""
        self._texts += 1
        chosen = self.random.choices(WORDS, k=self.random.randint(1, words))
        return " ".join([f"q{self.number}z{self._texts}q", *chosen])

    def tags(self) -> list[str]:
        """Return up to three tags in the form that they are stored in."""
        return self.random.sample(["ops", "drink", "music", "部署", "state-graph"], self.random.randint(0, 3))

    def some(self, make: Callable[[], Any], most: int = 5) -> list[Any]:
        """Return one to `most` of what `make` returns."""
        return [make() for _ in range(self.random.randint(1, most))]


class Act(NamedTuple):
    """One kind of act.

    Args:
        name: "layer.verb".
        weight: how often it is drawn, beside the others.
        draw: returns its arguments, as JSON.
        apply: does it to a model and returns what memdb must answer; raises Refused, and changes nothing, where memdb
            must refuse it.
        run: calls memdb: gets a function that gives the memory of a session, and the arguments. The memory is live, and
            then what comes back is awaited, or a unit's.
        unit: whether it can be part of a unit.
    """

    name: str
    weight: int
    draw: Callable[[Chance], Any]
    apply: Callable[[State, Any], Any]
    run: Callable[[Callable[[str], Any], Any], Any]
    unit: bool = True


def need(condition: object, error: str) -> None:
    """Refuse an act unless a condition holds."""
    if not condition:
        raise Refused(error)
