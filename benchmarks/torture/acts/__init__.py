"""Every act there is, by name."""

from __future__ import annotations

from benchmarks.torture.acts import blocks, conversation, experience, facts, graph, items, pages, runtime, whole
from benchmarks.torture.acts.act import ANY, Act, Chance, Refused

__all__ = ["ACTS", "ANY", "Act", "Chance", "Refused", "draw"]

_LAYERS = [
    act for layer in (items, pages, graph, conversation, facts, blocks, experience, runtime) for act in layer.ACTS
]
ACTS = {act.name: act for act in [*_LAYERS, *whole.acts(_LAYERS)]}
_WEIGHTS = [act.weight for act in ACTS.values()]


def draw(chance: Chance) -> tuple[str, object]:
    """Return the name of an act and its arguments."""
    name = whole.due(chance.state) or chance.random.choices(list(ACTS), _WEIGHTS)[0]
    return name, ACTS[name].draw(chance)
