"""Acts on pages: added, replaced, updated, deleted, with their tags and references."""

from __future__ import annotations

from typing import Any

from benchmarks.torture.acts.act import Act, Chance, need
from benchmarks.torture.model import State
from memdb import KnowledgePage

FIELDS = ("title", "summary", "content", "tags", "references", "category")


def _page(chance: Chance) -> list[Any]:
    references = sorted({chance.id("p") for _ in range(chance.random.randint(0, 3))})
    category = chance.random.choice(["knowledge", "rules"])
    fields = [chance.text(3), chance.text(6), chance.text(40), chance.tags(), references, category]
    return [chance.id("p"), *fields]


def _given(one: list[Any]) -> KnowledgePage:
    return KnowledgePage(id=one[0], **dict(zip(FIELDS, one[1:], strict=True)))


def _add(state: State, one: list[Any]) -> None:
    need(one[0] not in state["pages"], "AlreadyExists")
    state["pages"][one[0]] = one[1:]


def _put_many(state: State, ones: list[list[Any]]) -> int:
    for one in ones:
        state["pages"][one[0]] = one[1:]
    return len(ones)


def _add_many(state: State, ones: list[list[Any]]) -> int:
    ids = [one[0] for one in ones]
    need(len({*ids}) == len(ids) and state["pages"].keys().isdisjoint(ids), "AlreadyExists")
    return _put_many(state, ones)


def _update(state: State, one: list[Any]) -> None:
    need(one[0] in state["pages"], "NotFound")
    state["pages"][one[0]] = one[1:]


def _delete(state: State, id: str) -> None:
    need(id in state["pages"], "NotFound")
    del state["pages"][id]


def _pages(chance: Chance) -> list[Any]:
    return chance.some(lambda: _page(chance), 3)


ACTS = [
    Act("pages.add", 3, _page, _add, lambda at, one: at("a").pages.add_page(_given(one))),
    Act("pages.add_many", 1, _pages, _add_many, lambda at, ones: at("a").pages.add_pages(map(_given, ones))),
    Act(
        "pages.put_many", 3, _pages, _put_many,
        lambda at, ones: at("a").pages.add_pages([_given(one) for one in ones], replace=True),
    ),
    Act("pages.update", 2, _page, _update, lambda at, one: at("a").pages.update_page(_given(one))),
    Act("pages.delete", 2, lambda chance: chance.id("p"), _delete, lambda at, id: at("a").pages.delete_page(id)),
]  # fmt: skip
