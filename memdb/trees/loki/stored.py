"""Reading what is to be written to a folder: in the order of storing, some at a time; over a transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import select

from memdb.layers import reading
from memdb.layers.experience.skills import SKILLS, skill_of
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.experience.stored_episodes import EPISODES, episode_of
from memdb.layers.experience.stored_patterns import PATTERNS, pattern_of
from memdb.layers.reading import Columns, alive, here
from memdb.layers.record import Place, Record
from memdb.storage.schema import record
from memdb.storage.statement import Statement
from memdb.storage.transaction import Transaction

LAYERS = (EPISODE, PATTERN, SKILL)

_IDS = Statement(select(record.c.id).where(here(), alive()).order_by(record.c.created_at, record.c.id))


class Stored(NamedTuple):
    """What is stored.

    Args:
        value: an EpisodeTrace, SemanticPattern or ProceduralSkill.
        anti: whether it is a pattern of what to avoid.
    """

    value: Any
    anti: bool = False


def ids_of(tx: Transaction, user_id: str, layer: str) -> list[int]:
    """Return the numbers of a user's records of a layer, oldest first."""
    return [id for (id,) in tx.all(_IDS, **Place(layer, user_id).values(now=tx.now))]


def values_of(tx: Transaction, user_id: str, layer: str, ids: Sequence[int]) -> list[Stored]:
    """Return what records say, in the order of the ids; those that are gone or cannot be read are left out."""
    columns, shape = _SHAPES[layer]
    order = {id: at for at, id in enumerate(ids)}
    rows = sorted(reading.by_ids(tx, user_id, ids, columns), key=lambda row: order[row[0]])
    return [*reading.shaped(tx, rows, shape, columns)]


def _stored(shape: Callable[..., Any], found: Record, *own: Any) -> Stored:
    return Stored(shape(found, *own))


def _pattern(found: Record, kind: str, *own: Any) -> Stored:
    return Stored(pattern_of(found, kind, *own), kind == "anti_pattern")


_SHAPES: dict[str, tuple[Columns, Callable[..., Stored]]] = {
    EPISODE: (EPISODES, partial(_stored, episode_of)),
    PATTERN: (PATTERNS, _pattern),
    SKILL: (SKILLS, partial(_stored, skill_of)),
}
