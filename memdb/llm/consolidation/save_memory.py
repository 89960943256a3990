"""The tool by which a model says what to remember, and what is made of what models really send it.

The schema is that of the LightGrep document (section 2). Which forms of arguments are taken is tabled in the decisions
on it: an object, its JSON text, a list of which the first counts, and values that are no text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memdb.errors import InvalidInput
from memdb.text.check import check_text
from memdb.text.query import cleaned

NAME = "save_memory"
SAVE_MEMORY: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Save what is worth remembering of the conversation.",
        "parameters": {
            "type": "object",
            "properties": {
                "history_entry": {
                    "type": "string",
                    "description": (
                        "A paragraph of two to five sentences on what happened and what was decided. Begin with "
                        "[YYYY-MM-DD HH:MM]. Name people, files, numbers and other words that one would search for."
                    ),
                },
                "memory_update": {
                    "type": "string",
                    "description": (
                        "The whole long-term memory as Markdown: all that still holds of the present one, with what "
                        "is new. Return it unchanged when there is nothing new."
                    ),
                },
            },
            "required": ["history_entry", "memory_update"],
        },
    },
}


class SavedMemory(NamedTuple):
    """What a model wants to be remembered.

    Args:
        history_entry: what happened, never blank.
        memory_update: the whole new text of the facts; "" or blank: they stay as they are (decisions).
    """

    history_entry: str
    memory_update: str


def read_save_memory(tool_calls: Any) -> SavedMemory:
    """Return what the first call of save_memory among a model's tool calls says.

    Args:
        tool_calls: those of a ChatReply; anything else is refused, too.

    Raises:
        InvalidInput: save_memory was not called, or its arguments are of no use.
    """
    for name, arguments in _calls(tool_calls):
        if name == NAME:
            return read_arguments(arguments)
    others = ", ".join(str(name)[:40] for name, _ in _calls(tool_calls))
    raise InvalidInput(f"the model called {cleaned(others) or 'no tool'} instead of {NAME}")


def read_arguments(arguments: Any) -> SavedMemory:
    """Return what the arguments of save_memory say, in any form that models send.

    Args:
        arguments: an object, a list whose first item is one, or either as JSON text. Other keys are ignored.

    Raises:
        InvalidInput: they are nothing of this, a value is missing, or history_entry says nothing.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"the arguments of {NAME} are no JSON: {type(error).__name__}") from None
    if isinstance(arguments, list):
        arguments = arguments[0] if arguments else None
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f"the arguments of {NAME} are no object, but {type(arguments).__name__}")
    missing = [name for name in SavedMemory._fields if arguments.get(name) is None]
    if missing:
        raise InvalidInput(f"the arguments of {NAME} lack {' and '.join(missing)}")
    entry, update = (_text(arguments[name], name) for name in SavedMemory._fields)
    if not entry.strip():
        raise InvalidInput(f"history_entry of {NAME} is blank")
    return SavedMemory(entry.strip(), update)


def _calls(tool_calls: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the names and arguments of tool calls, in the OpenAI shape or flat."""
    for call in tool_calls if isinstance(tool_calls, list | tuple) else ():
        if isinstance(call, Mapping):
            function = call.get("function")
            asked = function if isinstance(function, Mapping) else call
            yield asked.get("name"), asked.get("arguments")


def _text(value: Any, name: str) -> str:
    """Return a value as text; one that is none is written as JSON."""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput(f"{name} of {NAME} is neither text nor JSON") from None
    return check_text(cleaned(value), f"{name} of {NAME}")
