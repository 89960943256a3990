"""The arguments of a call as models send them: an object, its JSON text, or a list that begins with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memdb.errors import InvalidInput
from memdb.llm.tools.parameters import Parameter
from memdb.text.shown import shown

MAX_JSON_CHARS = 64 * 1024 * 1024  # of arguments: a text of 16 MB, escaped
UNKNOWN_SHOWN = 5
_WRAPPINGS = 3  # JSON text of JSON text of an object: models send that, too


def named_arguments(given: Any, parameters: Sequence[Parameter]) -> Mapping[str, Any]:
    """Return the arguments of a call by their names.

    Args:
        given: a mapping, its JSON text, a list whose first item is one, or None for no arguments.

    Raises:
        InvalidInput: it is none of these; the message tells the model what to send.
    """
    try:
        return _object(given)
    except InvalidInput as error:
        wanted = ", ".join(f'"{one.name}": ...' for one in parameters if one.required)
        raise InvalidInput(f"{error}: send a JSON object such as {{{wanted}}}") from None


def read_arguments(given: Any, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return what the arguments of a call say of each parameter; other keys are left out.

    Args:
        given: see named_arguments.

    Raises:
        InvalidInput: an argument is missing or not what it must be; the message tells the model what to send.
    """
    named = named_arguments(given, parameters)
    return {parameter.name: parameter.value(named) for parameter in parameters}


def unknown_arguments(named: Mapping[str, Any], parameters: Sequence[Parameter]) -> str:
    """Return which arguments there are, where others were sent; "" where none were. For the end of a sentence."""
    known = {name for one in parameters for name in (one.name, *one.also)}
    unknown = [key for key in named if isinstance(key, str) and key not in known]
    if not unknown:
        return ""
    listed = ", ".join(shown(key) for key in unknown[:UNKNOWN_SHOWN])
    listed += f" and {len(unknown) - UNKNOWN_SHOWN} more" if len(unknown) > UNKNOWN_SHOWN else ""
    what = "unknown argument" if len(unknown) == 1 else "unknown arguments"
    return f"; {what} {listed}: the arguments are {', '.join(one.name for one in parameters)}"


def adjusted(
    named: Mapping[str, Any], parameters: Sequence[Parameter], asked: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """Return what was used in place of numbers out of their range, by name, and a note that tells the model of it."""
    told = {one.name: note for one in parameters if (note := one.adjusted(named, asked[one.name]))}
    return {name: asked[name] for name in told}, f"({'; '.join(told.values())}.)" if told else ""


def _object(given: Any) -> Mapping[str, Any]:
    for _ in range(_WRAPPINGS):
        if isinstance(given, str):
            given = _parsed(given) if given.strip() else {}
        elif isinstance(given, list) and given and isinstance(given[0], Mapping):
            given = given[0]
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the arguments are {_named(given)}, not an object")
    return given


def _parsed(text: str) -> Any:
    if len(text) > MAX_JSON_CHARS:
        raise InvalidInput(f"the arguments have {len(text):,} characters, more than {MAX_JSON_CHARS:,}")
    try:
        return json.loads(text, strict=False)  # models forget to escape the line feeds in a text
    except json.JSONDecodeError as error:
        raise InvalidInput(f"the arguments are no JSON ({error.msg} at character {error.pos + 1:,})") from None
    except (ValueError, RecursionError):  # an integer of thousands of digits; nested without end
        raise InvalidInput("the arguments are JSON that cannot be read") from None


def _named(given: Any) -> str:
    names = {list: "a list without one", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(given), type(given).__name__)
