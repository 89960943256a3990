"""What any text must be before it is stored: no NUL, no lone surrogate, within its limit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

from memdb.errors import InvalidInput
from memdb.text.shown import shown

_Unit = TypeVar("_Unit", bound=Callable[..., Any])

MAX_ID_CHARS = 1_000
MAX_ENTRIES = 10_000  # of one list in a record
MAX_TITLE_CHARS = 10_000
MAX_CONTENT_BYTES = 16 * 1024 * 1024  # FTS5 indexes 25 MB in 0.5 s under the write lock: larger texts belong in parts


def is_valid(text: str) -> bool:
    """Return whether SQLite keeps a text as it stands: no NUL, no lone surrogate."""
    if "\x00" in text:
        return False
    try:
        return text.isascii() or text.encode() is not None
    except UnicodeEncodeError:
        return False


def check_text(value: object, name: str, *, max_chars: int | None = None) -> str:
    """Return `value` if it is text that SQLite keeps as it stands.

    Args:
        value: what the caller gave.
        name: the argument's name, for the message.
        max_chars: the longest that is accepted, in characters; by default MAX_CONTENT_BYTES in UTF-8 bytes.

    Raises:
        InvalidInput: not a str, a NUL or a lone surrogate in it, or too long.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    if "\x00" in value:
        raise InvalidInput(f"{name} holds a NUL character at position {value.index(chr(0))}; remove it")
    if max_chars is not None and len(value) > max_chars:
        raise InvalidInput(f"{name} has {len(value):,} characters; at most {max_chars:,} are kept")
    if value.isascii():
        size = len(value)
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{name} holds a lone surrogate at position {error.start}; it is not valid text"
            ) from None
    if max_chars is None and size > MAX_CONTENT_BYTES:
        raise InvalidInput(f"{name} has {size:,} bytes; at most {MAX_CONTENT_BYTES:,} are kept: store it in parts")
    return value


def check_id(value: object, name: str) -> str:
    """Return `value` if it can be an id: text of 1 to MAX_ID_CHARS characters, kept exactly as given.

    Raises:
        InvalidInput: empty, or not such a text.
    """
    text = check_text(value, name, max_chars=MAX_ID_CHARS)
    if not text:
        raise InvalidInput(f"{name} must not be empty")
    return text


def check_flag(value: object, name: str) -> bool:
    """Return `value` if it is True or False: "no" and "false" would else be taken for yes.

    Raises:
        InvalidInput: it is neither.
    """
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, not {shown(value)}")
    return value


def check_choice(value: object, name: str, choices: Iterable[str], besides: str = "") -> str:
    """Return `value` if it is one of some names.

    Args:
        besides: what else may be given, for the message, such as ", or None for all".

    Raises:
        InvalidInput: it is none of them.
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}{besides}, not {shown(value)}")
    return value


def path_text(value: object) -> str:
    """Return the text of a path as the system takes it; "" where it is no text, holds NUL or a stray surrogate."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
    try:
        return text if isinstance(text, str) and b"\x00" not in os.fsencode(text) else ""
    except UnicodeEncodeError:
        return ""


def check_callable(unit: _Unit) -> _Unit:
    """Return `unit` if it can be called.

    Raises:
        InvalidInput: it cannot.
    """
    if not callable(unit):
        raise InvalidInput(f"a unit must be a function, not {shown(unit)}")
    return unit


def as_finite(value: object) -> object:
    """Return a value of a list's field; of an iterator at most MAX_ENTRIES + 1 entries, for it may never end."""
    if isinstance(value, list | tuple | str | bytes | Mapping) or not isinstance(value, Iterable):
        return value
    return [*islice(value, MAX_ENTRIES + 1)]
