"""Acts over all layers: a turn in one transaction, a session deleted, a user forgotten."""

from __future__ import annotations

from typing import Any

from benchmarks.torture.acts.act import ANY, Act, Chance, Refused
from benchmarks.torture.model import State, clone, empty, empty_session

LAYERS_OF_A_TURN = 6  # at least
SPOILT = 0.15  # of the turns may hold an act that is refused, and all of it with it
IN_B = ("blocks.open_log", "blocks.log", "conversation.consolidate")  # what is done in the session "b" alone
LONG_HISTORY = 80  # entries


class Turns:
    """Turns: acts of several layers as one.

    Args:
        acts: what a turn can consist of, by name.
    """

    def __init__(self, acts: dict[str, Act]) -> None:
        self.acts = acts

    def draw(self, chance: Chance) -> list[Any]:
        """Draw a session and acts of at least six layers; each sees what those before it have done."""
        session, state = chance.session(), clone(chance.state)
        layers: dict[str, list[Act]] = {}
        for act in self.acts.values():
            if session == "b" or act.name not in IN_B:
                layers.setdefault(act.name.split(".")[0], []).append(act)
        chosen = chance.random.sample(sorted(layers), chance.random.randint(LAYERS_OF_A_TURN, LAYERS_OF_A_TURN + 3))
        may_fail = chance.random.random() < SPOILT
        inner = Chance(chance.random, state, chance.number, session)
        drawn: list[Any] = []
        for layer in chosen:
            act = chance.random.choices(layers[layer], [one.weight for one in layers[layer]])[0]
            args = act.draw(inner)
            try:
                act.apply(state, args)
            except Refused:
                if not may_fail:
                    continue
            drawn.append([act.name, args])
        return [session, drawn]

    def apply(self, state: State, args: list[Any]) -> list[Any]:
        """Do all of it to a model, or nothing."""
        after = clone(state)
        answers = [self.acts[name].apply(after, inner) for name, inner in args[1]]
        state.update(after)
        return answers

    def run(self, at: Any, args: list[Any]) -> Any:
        """Do all of it in one transaction."""
        session, drawn = args

        def unit(m: Any) -> list[Any]:
            return [self.acts[name].run(lambda session: m, inner) for name, inner in drawn]

        return at(session).atomic(unit)


def _delete_session(state: State, session: str) -> Any:
    state["sessions"][session] = empty_session()
    return ANY


def _forget(state: State, args: None) -> Any:
    state.update(empty())
    return ANY


def acts(inner: list[Act]) -> list[Act]:
    """Return the acts over all layers; those of a turn are `inner`."""
    turns = Turns({act.name: act for act in inner if act.unit})
    return [
        Act("turn", 18, turns.draw, turns.apply, turns.run, unit=False),
        # These two are called on the database; see Player._call.
        Act("delete_session", 1, lambda chance: "a", _delete_session, lambda at, _: None, unit=False),
        Act("forget", 1, lambda chance: None, _forget, lambda at, _: None, unit=False),
    ]


def due(state: State) -> str | None:
    """Return the act that is due whatever the luck: what only grows is forgotten once it is long."""
    long = (
        len(state["history"]) > LONG_HISTORY or len(state["facts"]) > LONG_HISTORY or len(state["log"]) > LONG_HISTORY
    )
    return "forget" if long else None
