"""Front matter: the YAML between two lines of three hyphens at the head of a note."""

from __future__ import annotations

from typing import Any

import yaml

from memdb.text.front import HANDLER, join_front, split_front

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
    return split_front(text, lambda raw: HANDLER.load(raw, Loader=_Texts))


def join(fields: dict[str, Any], body: str) -> str:
    """Return a note of which `split` gives these fields (texts and lists of texts) and this body.

    Raises:
        InvalidInput: the fields are too large for that.
    """
    head = HANDLER.export(fields, sort_keys=False, default_flow_style=None, width=2**31 - 1)
    return join_front(f"{head}\n", body)
