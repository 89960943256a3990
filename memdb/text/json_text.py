"""The one JSON text of a value: compact, and never what UTF-8 or JSON could not hold."""

from __future__ import annotations

import json
from typing import Any

from memdb.text.check import is_valid

_COMPACT = (",", ":")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=_COMPACT)  # dumps() makes one a call


def to_json(value: Any) -> str:
    """Return a checked value as the JSON text that is stored.

    Raises:
        ValueError: JSON has no form for it.
    """
    if value or not isinstance(value, list | dict | None):
        return _ENCODER.encode(value)
    return "null" if value is None else "[]" if isinstance(value, list) else "{}"


def to_exact_json(value: Any) -> str:
    """Return any JSON value as text that UTF-8 can hold: escaped where a string in it could not be.

    Raises:
        ValueError: JSON has no form for it, or an integer has more digits than Python will write.
    """
    text = to_json(value)
    return text if is_valid(text) else json.dumps(value, separators=_COMPACT)
