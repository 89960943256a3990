"""Values that no caller means to give: each by a name, made anew for each call."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from itertools import count, repeat
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

try:
    import numpy as np
except ImportError:  # its numbers are worth trying where it is there
    np = None  # type: ignore[assignment]

DEPTH = 100_000


class OwnError(Exception):
    """What a value's own code raises; it comes to the caller as it is."""


class Text(str):
    """A str of another class."""


class LyingText(str):
    """A str that says it is short."""

    def __len__(self) -> int:
        return 3


class Whole(int):
    """An int of another class."""


class Number(float):
    """A float of another class."""


class Colour(IntEnum):
    """An int with a name."""

    RED = 1


class Kind(Enum):
    """A name."""

    A = "a"


class Unshowable:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise OwnError("repr")


class Incomparable:
    """Cannot be compared or hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise OwnError("eq")


class Uncounted:
    """Cannot be counted or walked."""

    def __iter__(self) -> Iterator[Any]:
        raise OwnError("iter")

    def __len__(self) -> int:
        raise OwnError("len")


class Unreadable(dict[str, Any]):
    """A dict whose items cannot be read."""

    def items(self) -> Any:
        raise OwnError("items")


class Endless:
    """A list that does not end, and is no iterator."""

    def __iter__(self) -> Iterator[str]:
        return repeat("a")


def _deep(wrap: Callable[[Any], Any]) -> Any:
    value: Any = wrap(None)
    for _ in range(DEPTH):
        value = wrap(value)
    return value


DEEP_LIST, DEEP_DICT = _deep(lambda inner: [inner]), _deep(lambda inner: {"a": inner})


def _own_list() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _own_dict() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


TEXTS: dict[str, Any] = {
    "empty": "", "blank": " \n\t", "NUL": "a\0b", "surrogate": "\ud800", "surrogate inside": "x\udfffy",
    "bidi": "\u202eabc\u2066", "long": "x" * 10_001, "many lines": "x\n" * 2_000, "longest id": "\U0010ffff" * 1_000,
    "backslashes": "\\" * 2_000, "digits": "9" * 5_000, "up": "../../etc/passwd", "query": '"a" NEAR( OR * ^ : {-',
    "pattern": "(a+)+$", "no pattern": "(((", "marks": "a" + "\u0301" * 1_000, "a name": "__class__", "a": "a",
}  # fmt: skip
NUMBERS: dict[str, Any] = {
    "None": None, "True": True, "0": 0, "-1": -1, "2**63": 2**63, "-2**63-1": -(2**63) - 1,
    "-0.0": -0.0, "NaN": float("nan"), "infinity": float("inf"), "-infinity": float("-inf"), "1e308": 1e308, "0.5": 0.5,
    "Decimal": Decimal("0.5"), "sNaN": Decimal("sNaN"), "Fraction": Fraction(1, 3), "complex": 1j, "Whole": Whole(3),
    "Number": Number(0.5), "IntEnum": Colour.RED, "Enum": Kind.A,
}  # fmt: skip
TIMES: dict[str, Any] = {
    "naive": datetime(2026, 1, 1), "aware": datetime(2026, 1, 1, tzinfo=UTC), "first": datetime.min,
    "before the first": datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
    "after the last": datetime.max.replace(tzinfo=timezone(timedelta(hours=-9))),
    "date": date(2026, 1, 1), "timedelta": timedelta(days=1),
}  # fmt: skip
MADE: dict[str, Callable[[], Any]] = {
    "bytes": lambda: b"a", "bytearray": lambda: bytearray(b"a"), "memoryview": lambda: memoryview(b"a"),
    "list": list, "tuple": tuple, "dict": dict, "set": lambda: {1}, "frozenset": lambda: frozenset({"a"}),
    "list of surrogate": lambda: ["\ud800"], "list of None": lambda: [None], "list of NUL": lambda: ["\0"],
    "list of lists": lambda: [["a"]], "key 1": lambda: {1: 2}, "key None": lambda: {None: None},
    "dict of NaN": lambda: {"a": float("nan")}, "dict of surrogate": lambda: {"\ud800": "\ud800"},
    "dict of NUL": lambda: {"a\0": "\0"},
    "dict of a set": lambda: {"a": {1}},
    "list of itself": _own_list, "dict of itself": _own_dict, "object": object, "class": lambda: int,
    "function": lambda: lambda: 1, "module": lambda: types, "generator": lambda: (text for text in ["a"]),
    "range": lambda: range(100_001), "Text": lambda: Text("a"),
    "lying text": lambda: LyingText("abcdefgh"), "Path": lambda: Path("x"), "unshowable": Unshowable,
    "incomparable": Incomparable, "uncounted": Uncounted, "unreadable": lambda: Unreadable(a=1), "mock": MagicMock,
    "namespace": lambda: types.SimpleNamespace(id="a"), "...": lambda: ..., "exception": lambda: ValueError("x"),
    "proxy": lambda: types.MappingProxyType({"a": 1}), "UserDict": lambda: collections.UserDict(a=1),
    "deque": lambda: collections.deque(["a"]),
}  # fmt: skip

VALUES: dict[str, Callable[[], Any]] = {
    **{name: (lambda value=value: value) for name, value in {**TEXTS, **NUMBERS, **TIMES}.items()},  # type: ignore[misc]
    **MADE,
}
VALUES |= {
    "deep list": lambda: DEEP_LIST, "deep dict": lambda: DEEP_DICT, "endless iterator": count, "endless": Endless,
    "10**5000": lambda: 10**5_000,
}  # fmt: skip
if np is not None:
    VALUES |= {
        "numpy int": lambda: np.int64(3), "numpy float": lambda: np.float64(0.5), "numpy bool": lambda: np.bool_(True),
        "numpy text": lambda: np.str_("a"), "numpy NaN": lambda: np.float32("nan"),
        "numpy array": lambda: np.array([1, 2]), "numpy texts": lambda: np.array(["a", "b"]),
        "numpy time": lambda: np.datetime64("2026-01-01"),
    }  # fmt: skip


def complaint(error: BaseException) -> str | None:
    """Return what is wrong with an error that a caller got for a value, or None when it is as it should be.

    It should be one of memdb's, saying in one short line of plain text what was wrong; or the value's own.
    """
    from memdb import MemdbError

    if isinstance(error, OwnError):
        return None
    if not isinstance(error, MemdbError):
        return f"{type(error).__name__} is none of memdb's"
    text = str(error)
    if not text.isprintable() and any(ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 for char in text):
        return f"it is no line of plain text: {text[:60]!a}"
    if len(text.split()) < 3 or len(text) > 500:
        return f"it is no sentence of at most 500 characters: {text[:60]!a}"
    return None
