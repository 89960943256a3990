"""Front matter at the head of a text: where it begins and ends, how large it may be, what is wrong with it.

How its values are read is the caller's: as texts (notes) or with types (skills).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from memdb.errors import InvalidInput

MAX_FRONT_BYTES = 1024 * 1024

# The handler's own pattern takes the white space after the line too, and with it the beginning of the text.
HANDLER = YAMLHandler(fm_boundary=re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE))
# What PyYAML raises of a text that is no YAML, and of a value that is not what its tag says: !!int "", !!bool x.
_OF_YAML = (yaml.YAMLError, ValueError, TypeError, RecursionError, LookupError, AttributeError, ArithmeticError)


def split_front(text: str, load: Callable[[str], Any]) -> tuple[dict[str, Any], str]:
    """Return the front matter of a text and what follows it, to the letter; {} and the whole text where it has none.

    Args:
        load: makes values of YAML; it may raise what PyYAML raises, or InvalidInput.

    Raises:
        InvalidInput: it is no valid YAML, or too large.
    """
    if not HANDLER.detect(text):
        return {}, text
    try:
        raw, body = HANDLER.split(text)
    except ValueError:
        return {}, text
    if len(raw.encode()) > MAX_FRONT_BYTES:
        raise InvalidInput(f"its front matter is larger than {MAX_FRONT_BYTES:,} bytes")
    if not raw.strip():
        return {}, body
    found = _loaded(raw, load)
    return (found, body) if isinstance(found, dict) else ({}, text)


def join_front(head: str, body: str) -> str:
    """Return a text with this YAML at its head, which ends with a line feed.

    Raises:
        InvalidInput: the YAML is too large to be read again.
    """
    if len(head.encode()) > MAX_FRONT_BYTES:
        raise InvalidInput(f"its front matter would be larger than {MAX_FRONT_BYTES:,} bytes, too large to be read")
    return f"---\n{head}---\n{body}"


def _loaded(raw: str, load: Callable[[str], Any]) -> Any:
    try:
        return load(raw)
    except InvalidInput:
        raise
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise InvalidInput(f"its front matter is no valid YAML{line}: {error.problem or error.context}") from None
    except _OF_YAML as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidInput(f"its front matter is no valid YAML: {reason}") from None
