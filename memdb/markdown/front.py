"""Front matter: the YAML between two lines of three hyphens at the head of a note."""

from __future__ import annotations

import re
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from memdb.errors import InvalidInput

MAX_FRONT_BYTES = 1024 * 1024

# The handler's own pattern takes the white space after the line too, and with it the beginning of the text.
_HANDLER = YAMLHandler(fm_boundary=re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE))
_NOTHING = ("", "~", "null", "Null", "NULL")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Texts(_Loader):  # type: ignore[misc]
    """Reads every scalar as the text that stands there (`007` stays `007`); an empty one is None."""

    def construct_scalar(self, node: yaml.ScalarNode) -> str | None:
        value: str = super().construct_scalar(node)
        return None if not node.style and value in _NOTHING else value


def split(text: str) -> tuple[dict[str, Any], str]:
    """Return a note's front matter and what follows it, to the letter.

    Args:
        text: the whole note, without a byte order mark.

    Returns:
        The keys with their values: texts, lists, dicts and None. Empty, with the whole text, where there is no front
        matter: no second line of hyphens, or no `key: value` between the two (a horizontal rule is none).

    Raises:
        InvalidInput: it is no valid YAML, or too large.
    """
    if not _HANDLER.detect(text):
        return {}, text
    try:
        raw, body = _HANDLER.split(text)
    except ValueError:
        return {}, text
    if len(raw.encode()) > MAX_FRONT_BYTES:
        raise InvalidInput(f"its front matter is larger than {MAX_FRONT_BYTES:,} bytes")
    if not raw.strip():
        return {}, body
    found = _load(raw)
    return (found, body) if isinstance(found, dict) else ({}, text)


def _load(raw: str) -> Any:
    try:
        return _HANDLER.load(raw, Loader=_Texts)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise InvalidInput(f"its front matter is no valid YAML{line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"its front matter is no valid YAML: {reason}") from None


def join(fields: dict[str, Any], body: str) -> str:
    """Return a note of which `split` gives these fields (texts and lists of texts) and this body.

    Raises:
        InvalidInput: the fields are too large for that.
    """
    head = _HANDLER.export(fields, sort_keys=False, default_flow_style=None, width=2**31 - 1)
    if len(head.encode()) >= MAX_FRONT_BYTES:
        raise InvalidInput(f"its front matter would be larger than {MAX_FRONT_BYTES:,} bytes, too large to be read")
    return f"---\n{head}\n---\n{body}"
