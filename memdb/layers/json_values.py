"""What JSON values may be before they are stored: those that come back equal to what they were."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from memdb.errors import InvalidInput
from memdb.text.check import MAX_CONTENT_BYTES, check_text, is_valid
from memdb.text.json_text import to_exact_json, to_json
from memdb.text.shown import shown

MAX_METADATA_BYTES = 1024 * 1024
MAX_METADATA_DEPTH = 64
_INT64 = 2**63


def check_json(value: Any, name: str) -> Any:
    """Return `value` if it is JSON that SQLite can hold value by value, and that comes back equal to what it was.

    Raises:
        InvalidInput: NaN or an infinity, an integer beyond 64 bits, a key or text that is no valid text, something JSON
            has no form for, too deep, or too large.
    """
    if _fits(value, MAX_METADATA_BYTES):  # nearly all: a third of the time of what can say what is wrong
        return value
    _check_node(value, name, 0, _check_leaf, _nodes_of(MAX_METADATA_BYTES))
    if len(to_json(value).encode()) > MAX_METADATA_BYTES:
        raise InvalidInput(f"{name} is larger than {MAX_METADATA_BYTES:,} bytes as JSON; put large texts into content")
    return value


def exact_json(value: Any, name: str) -> str:
    """Return any JSON value as the text that is stored and comes back equal to it, whatever its strings hold.

    Unlike check_json's values, texts may hold NUL and lone surrogates, and integers may have any size.

    Raises:
        InvalidInput: NaN or an infinity, a key that is no text, something JSON has no form for, too deep, or larger
            than MAX_CONTENT_BYTES.
    """
    if _fits(value, MAX_CONTENT_BYTES):  # nearly all: what SQLite can hold is fine here, too
        return to_exact_json(value)
    _check_node(value, name, 0, lambda leaf, place: None, _nodes_of(MAX_CONTENT_BYTES))
    try:
        return check_text(to_exact_json(value), name)
    except InvalidInput:
        raise
    except ValueError as error:  # an integer of more digits than Python will write
        raise InvalidInput(f"{name} cannot be kept: {error}") from None


def check_exact_json(value: Any, name: str) -> None:
    """Refuse what exact_json would refuse, without making the text where that is not needed.

    Raises:
        InvalidInput: see exact_json.
    """
    if not _fits(value, MAX_CONTENT_BYTES):
        exact_json(value, name)


def _fits(value: Any, most: int) -> bool:
    """Return whether a value surely is what check_json accepts, and makes at most `most` bytes; False: perhaps not.

    Level by level and no further than `most` bytes: a list that holds itself twice would else be walked for ever.
    """
    size, depth, level = 0, 0, [value]
    while level:
        below: list[Any] = []
        for node in level:
            kind = type(node)
            if kind is str:
                if not is_valid(node):
                    return False
                size += 6 * len(node) + 3  # a control character is written with six
            elif kind is dict or kind is list:
                size += 2 + 2 * len(node)
                if size > most or depth == MAX_METADATA_DEPTH:
                    return False
                if kind is list:
                    below += node
                    continue
                for key in node:
                    if type(key) is not str or not is_valid(key):
                        return False
                    size += 6 * len(key) + 3
                below += node.values()
            elif node is None or kind is bool:
                size += 5
            elif kind is int and -_INT64 <= node < _INT64:
                size += 20
            elif kind is float and math.isfinite(node):
                size += 25
            else:
                return False
        level, depth = below, depth + 1
    return size <= most


def _check_leaf(node: str | int, name: str) -> None:
    if isinstance(node, str):
        check_text(node, name)
    elif not -_INT64 <= node < _INT64:
        raise InvalidInput(f"{name} holds the integer {shown(node)}, which does not fit in 64 bits; keep it as text")


def _nodes_of(most: int) -> Iterator[int]:
    """Return as many numbers as a JSON text of `most` bytes has values at most: one and a comma each."""
    return iter(range(most, 0, -2))


def _check_node(node: Any, name: str, depth: int, check_leaf: Callable[[Any, str], None], left: Iterator[int]) -> None:
    """Refuse a value that is not what JSON can say.

    Args:
        left: as many numbers as values may be looked at: two lists that hold each other twice are a few objects, and
            more values than could ever be looked at.
    """
    if depth > MAX_METADATA_DEPTH:
        raise InvalidInput(f"{name} is nested deeper than {MAX_METADATA_DEPTH} levels")
    if next(left, None) is None:
        raise InvalidInput(f"{name} holds more values than there is room for; split it up")
    if node is None or isinstance(node, bool):
        return
    if isinstance(node, str | int):
        check_leaf(node, name)
    elif isinstance(node, float):
        if not math.isfinite(node):
            raise InvalidInput(f"{name} holds {node}, which JSON cannot say; leave it out or use null")
    elif isinstance(node, dict):
        for key, child in node.items():
            if not isinstance(key, str):
                raise InvalidInput(f"{name} has the key {shown(key)}; keys must be text")
            check_leaf(key, name)
            _check_node(child, f"{name}.{key}" if depth < 3 else name, depth + 1, check_leaf, left)
    elif isinstance(node, list):
        for child in node:
            _check_node(child, name, depth + 1, check_leaf, left)
    else:
        raise InvalidInput(f"{name} holds a {type(node).__name__}, which JSON has no form for")
