"""Front matter whose values have types: YAML between two lines of three hyphens at the head of a file."""

from __future__ import annotations

from typing import Any

import yaml

from memdb.errors import InvalidInput
from memdb.text.front import join_front, split_front

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TIME = "tag:yaml.org,2002:timestamp"


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Reads a time as the text that stands there: JSON has no other form for it."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIME]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _number(kind: str) -> Any:
    """Return what reads a number; 1:20:30 stays text: in YAML 1.1 it is one of base 60, of any length."""

    def read(loader: Any, node: Any) -> Any:
        return node.value if ":" in node.value else getattr(loader, f"construct_yaml_{kind}")(node)

    return read


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number(_kind))


class _Dumper(_SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def split(text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter of a file and what follows it; {} and the whole text where it has none.

    Raises:
        InvalidInput: it is no valid YAML, or too large.
    """
    return split_front(text, _load)


def join(fields: dict[str, Any], body: str) -> str:
    """Return a file of which `split` gives these fields, JSON all of them, and this body.

    Raises:
        InvalidInput: the fields are too large for that.
    """
    head: str = yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1)
    return join_front(head, body)


def _load(raw: str) -> Any:
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(raw, Loader=_SafeLoader)):
        raise InvalidInput("its front matter refers to itself (*), and so could stand for gigabytes; write it out")
    return yaml.load(raw, Loader=_Loader)
