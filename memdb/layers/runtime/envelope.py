"""What plans, checkpoints and tool results share: the rule for their ids, and the envelope they are shown in.

The local-ai document keeps each in a JSON file of its own, so an id must be fit for a file's name; memdb holds to that.
"""

from __future__ import annotations

import re
from typing import Any

from memdb.errors import InvalidInput
from memdb.storage.clock import from_text

FORMAT_VERSION = 1
MAX_FILE_ID_CHARS = 200
_FILE_ID = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def check_file_id(id: object) -> str:
    """Return `id` if it can be the id of a plan, a checkpoint or a tool result.

    Raises:
        InvalidInput: it holds anything but A-Z, a-z, 0-9, _ and -, or is empty or too long.
    """
    if not isinstance(id, str):
        raise InvalidInput(f"the id must be text, not {type(id).__name__}")
    if not _FILE_ID.fullmatch(id) or len(id) > MAX_FILE_ID_CHARS:
        shown = repr(id[:60]) + ("..." if len(id) > 60 else "")
        raise InvalidInput(
            f"the id {shown} cannot be kept: use 1 to {MAX_FILE_ID_CHARS} characters of A-Z, a-z, 0-9, _ and -"
        )
    return id


def envelope(id: str, saved_at: str, payload: Any) -> dict[str, Any]:
    """Return a payload as the document lays out its file.

    Args:
        saved_at: the time in the stored text form; in the envelope it is in seconds since 1970.
    """
    return {"format_version": FORMAT_VERSION, "id": id, "saved_at": epoch(saved_at), "payload": payload}


def epoch(text: str) -> float:
    """Return a stored time in seconds since 1970.

    Raises:
        SerializationError: the text is no time.
    """
    return from_text(text).timestamp()
