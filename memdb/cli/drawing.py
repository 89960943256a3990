"""A graph as text that other programs draw: for Graphviz (dot) and for Mermaid.

Whatever names hold, the text is valid: nodes are called by number, labels are shortened and escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memdb.cli import output

if TYPE_CHECKING:
    from memdb.layers.entity import GraphRelation

LABEL_CHARS = 60
# Of ASCII only what means nothing to Mermaid stands as it is; the rest as character references (#35; is a number sign).
_MEANS_SOMETHING = re.compile(r"(?=[\x00-\x7f])[^\w .,()+/-]", re.ASCII)
Names = Mapping[str, str]


def dot(names: Names, relations: Iterable[GraphRelation], start: str | None = None) -> list[str]:
    """Return a graph in the language of Graphviz, line by line.

    Args:
        names: what the entities are called, by id, in the order in which they are written.
        relations: what joins them; an end that is not among them is called by its id.
        start: the id of the entity that stands out.
    """
    relations = list(relations)
    nodes = _nodes(names, relations)
    lines = ["digraph memory {", "  rankdir=LR;", '  node [shape=box, style="rounded"];']
    for id, node in nodes.items():
        bold = ', style="rounded,bold"' if id == start else ""
        lines.append(f'  {node} [label="{_dot_text(names.get(id, id))}"{bold}];')
    for one in relations:
        label = _dot_text(_said(one))
        ends = f"{nodes[one.source_id]} -> {nodes[one.target_id]}"
        lines.append(f'  {ends} [label="{label}", penwidth={0.5 + one.weight:.2f}];')
    return [*lines, "}"]


def mermaid(names: Names, relations: Iterable[GraphRelation], start: str | None = None) -> list[str]:
    """Return a graph in the language of Mermaid, line by line; the arguments are those of `dot`."""
    relations = list(relations)
    nodes = _nodes(names, relations)
    lines = ["graph LR"]
    for id, node in nodes.items():
        left, right = ("([", "])") if id == start else ("[", "]")
        lines.append(f'  {node}{left}"{_mermaid_text(names.get(id, id))}"{right}')
    return lines + [
        f'  {nodes[one.source_id]} -->|"{_mermaid_text(_said(one))}"| {nodes[one.target_id]}' for one in relations
    ]


def _nodes(names: Names, relations: Iterable[GraphRelation]) -> dict[str, str]:
    """Return what the nodes are called in the text: n1, n2, ..., by the ids of the entities."""
    ids = dict.fromkeys(names)
    for one in relations:
        ids |= {one.source_id: None, one.target_id: None}
    return {id: f"n{at}" for at, id in enumerate(ids, 1)}


def _said(relation: GraphRelation) -> str:
    kind = relation.relation_type
    return kind if relation.weight == 1 else f"{short(kind)} {relation.weight:.3g}"


def short(text: str) -> str:
    """Return a text as a label: on one line, cut where it is long; never empty."""
    line = output.one_line(text) or "\ufffd"
    return line if len(line) <= LABEL_CHARS else f"{line[: LABEL_CHARS - 1]}…"


def _dot_text(text: str) -> str:
    # Graphviz takes character references (&amp;) in labels for what they stand for.
    return short(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _mermaid_text(text: str) -> str:
    return _MEANS_SOMETHING.sub(lambda found: f"#{ord(found[0])};", short(text))
