"""The parameters of a tool: declared once, shown to the model as a JSON Schema, read as models really send them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memdb.errors import InvalidInput
from memdb.text.check import is_valid
from memdb.text.json_text import to_exact_json
from memdb.text.query import cleaned
from memdb.text.shown import shown

MAX_QUERY_CHARS = 10_000  # 50 MB of words would keep a search busy for a minute
_NOTHING = ("", "null", "none")  # what models write where they mean to leave a number out

Read = Callable[[str, Any], Any]  # (the parameter's name, what was sent) -> what it means; None: as if it were left out


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    Args:
        name: its name.
        kind: its type in the schema: "string", "integer" or "number".
        description: what the model is told of it.
        read: makes of what a model sent what the tool works with.
        required: whether a call without it fails.
        default: what it is where nothing usable was sent.
        choices: the texts that the model is told to choose from; others are still taken.
        also: other names under which models send it.
        bounds: of a number that is moved or left out where it lies outside, and the model is told so: what it must be.
    """

    name: str
    kind: str
    description: str
    read: Read
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    bounds: str = ""

    def schema(self) -> dict[str, Any]:
        """Return the parameter's own JSON Schema."""
        made: dict[str, Any] = {"type": self.kind, "description": self.description}
        return made | ({"enum": [*self.choices]} if self.choices else {})

    def strict_schema(self) -> dict[str, Any]:
        """Return its JSON Schema where every parameter has to be sent: one that may be left out is sent as null."""
        made = self.schema()
        if self.required:
            return made
        made["type"] = [self.kind, "null"]
        return made | ({"enum": [*self.choices, None]} if self.choices else {})

    def value(self, given: Mapping[str, Any]) -> Any:
        """Return what the arguments say of this parameter.

        Raises:
            InvalidInput: it is required and missing, or is not what it must be.
        """
        sent = self._sent(given)
        read = None if sent is None else self.read(self.name, sent)
        if read is None and self.required:
            raise InvalidInput(f"{self.name} is missing: send it as {_NAMED[self.kind]} ({self.description})")
        return self.default if read is None else read

    def adjusted(self, given: Mapping[str, Any], value: Any) -> str:
        """Return what to tell the model where it sent another number than the value that is used; else ""."""
        sent = self._sent(given)
        if not self.bounds or sent is None or _says_nothing(sent):
            return ""
        number = _number(self.name, sent, self.bounds)
        if number is not None and number == value:
            return ""
        used = f"{shown(sent)} was left out" if value is None else f"{value:g} was used in place of {shown(sent)}"
        return f"{self.name} must be {self.bounds}: {used}"

    def _sent(self, given: Mapping[str, Any]) -> Any:
        return next((given[name] for name in (self.name, *self.also) if given.get(name) is not None), None)


_NAMED = {"string": "a text", "integer": "a whole number", "number": "a number"}


def text(
    name: str, description: str, *, blank: bool = False, required: bool = True, encoding: bool = False, **more: Any
) -> Parameter:
    """Return a parameter that is a text; NUL and lone surrogates in it become a space and a question mark.

    Args:
        blank: whether a text of white space alone will do.
        encoding: whether what is no text is taken as its JSON (LightGrep document, save_memory).
    """

    def read(name: str, sent: Any) -> str | None:
        if encoding and not isinstance(sent, str):
            try:
                sent = to_exact_json(sent)
            except (TypeError, ValueError, RecursionError):
                raise InvalidInput(f"{name} must be a text, not {_kind_of(sent)}: send it as a JSON string") from None
        if not isinstance(sent, str):
            raise InvalidInput(f"{name} must be a text, not {_kind_of(sent)}: send it as a JSON string")
        if not blank and not sent.strip():
            if not required:
                return None
            raise InvalidInput(f"{name} is blank: send a text that says something ({description})")
        return sent if is_valid(sent) else cleaned(sent)

    return Parameter(name, "string", description, read, required, **more)


def question(description: str, *, required: bool = True) -> Parameter:
    """Return the parameter `query`: of a longer text than anybody asks, the beginning is searched for."""
    parameter = text("query", description, required=required)

    def read(name: str, sent: Any) -> str | None:
        found = parameter.read(name, sent)
        return None if found is None else found[:MAX_QUERY_CHARS]

    return replace(parameter, read=read)


def whole(name: str, description: str, *, default: int | None, most: int, told: bool = True, **more: Any) -> Parameter:
    """Return an optional parameter that counts: 0 and less are the default, more than `most` is `most`.

    Args:
        told: whether the model is told where it is.
    """

    def read(name: str, sent: Any) -> int | None:
        number = _number(name, sent, "a whole number, such as 5")
        if number is None or number < 1:
            return None
        return int(min(number, most))

    bounds = f"a whole number from 1 to {most:,}" if told else ""
    return Parameter(name, "integer", description, read, default=default, bounds=bounds, **more)


def fraction(name: str, description: str, *, default: float | None, clamped: bool, **more: Any) -> Parameter:
    """Return an optional parameter from 0 to 1.

    Args:
        clamped: whether what lies outside is moved to the nearer end; else it is the default.
    """

    def read(name: str, sent: Any) -> float | None:
        number = _number(name, sent, "a number from 0 to 1, such as 0.5")
        if number is None or (not clamped and not 0 <= number <= 1):
            return None
        return float(min(max(number, 0), 1))

    return Parameter(name, "number", description, read, default=default, bounds="a number from 0 to 1", **more)


def _number(name: str, sent: Any, wanted: str) -> int | float | None:
    """Return a number that was sent as one or as its text; None for one that says nothing.

    Raises:
        InvalidInput: it is neither.
    """
    number = sent
    if _says_nothing(sent):
        return None
    if isinstance(sent, str) and len(sent) < 100:
        try:
            number = float(sent)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidInput(f"{name} must be {wanted}, not {_kind_of(sent)}")
    return None if isinstance(number, float) and math.isnan(number) else number


def _says_nothing(sent: Any) -> bool:
    return isinstance(sent, str) and sent.strip().casefold() in _NOTHING


def _kind_of(sent: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return f"the text {shown(sent)}" if isinstance(sent, str) else kinds.get(type(sent), type(sent).__name__)
