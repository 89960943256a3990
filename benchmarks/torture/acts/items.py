"""Acts on items: saved, replaced, deleted, evicted; bad ones refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.torture.acts.act import Act, Chance, Refused
from benchmarks.torture.model import State
from memdb import Capacity, EvictionConfig, MemoryItem

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
BOUND = 6
BAD: dict[str, dict[str, Any]] = {
    "no id": {"id": ""},
    "NUL in the id": {"id": "a\0b"},
    "an id of 10,000 characters": {"id": "x" * 10_000},
    "a lone surrogate": {"content": "\ud800"},
    "a content that is no text": {"content": 7},
    "infinity": {"metadata": {"a": float("inf")}},
    "an integer beyond 64 bits": {"metadata": 2**64},
}


def item(chance: Chance) -> list[Any]:
    """Draw an item: id, content, metadata, and when it was created, as a number that no other has."""
    metadata = {"n": chance.number, "sure": chance.random.random(), "tags": chance.tags(), "none": None}
    text = chance.text()
    return [chance.id("i"), text, metadata, chance.number * 1000 + chance._texts]


def given(one: list[Any]) -> dict[str, Any]:
    """Return an item's fields."""
    id, content, metadata, created = one
    created_at = BEGIN + timedelta(milliseconds=created)
    return {"id": id, "content": content, "metadata": metadata, "created_at": created_at}


def put(state: State, ones: list[list[Any]]) -> None:
    """Put items into a model; created_at stays that of the first."""
    for id, content, metadata, created in ones:
        old = state["items"].get(id)
        state["items"][id] = [content, metadata, old[2] if old else created]


def _save(state: State, one: list[Any]) -> None:
    put(state, [one])


def _save_many(state: State, ones: list[list[Any]]) -> int:
    put(state, ones)
    return len(ones)


def _bound(state: State, one: list[Any]) -> None:
    put(state, [one])
    oldest = sorted(state["items"], key=lambda id: state["items"][id][2])
    for id in oldest[: max(0, len(oldest) - BOUND)]:
        del state["items"][id]


def _delete(state: State, id: str) -> bool:
    return state["items"].pop(id, None) is not None


def _refuse(state: State, args: Any) -> None:
    raise Refused("InvalidInput")


def _spoilt(at: Any, args: list[Any]) -> Any:
    ones, bad = args
    fields = [given(one) for one in ones]
    fields[-1] |= BAD[bad]
    if len(fields) == 1:
        return at("a").items.save(fields[0])
    return at("a").items.save_many(fields)


ACTS = [
    Act("items.save", 8, item, _save, lambda at, one: at("a").items.save(MemoryItem(**given(one)))),
    Act(
        "items.save_many", 4, lambda chance: chance.some(lambda: item(chance)), _save_many,
        lambda at, ones: at("a").items.save_many([MemoryItem(**given(one)) for one in ones]),
    ),
    Act("items.delete", 3, lambda chance: chance.id("i"), _delete, lambda at, id: at("a").items.delete(id)),
    Act(
        "items.save_bounded", 2, item, _bound,
        lambda at, one: at("a").items.with_eviction(EvictionConfig(policy=Capacity(max_items=BOUND))).save(
            MemoryItem(**given(one))
        ),
    ),
    Act(
        "items.spoilt", 2,
        lambda chance: [chance.some(lambda: item(chance), 3), chance.random.choice(list(BAD))], _refuse, _spoilt,
    ),
]  # fmt: skip
