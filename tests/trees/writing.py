"""What the tests of trees share: writing a file of another program's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def put(path: Path, value: Any) -> None:
    """Write bytes, a text, or a value as JSON; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
