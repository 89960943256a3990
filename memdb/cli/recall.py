"""recall: what proved useful, and what never did."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.retrieval.recalled import Usefulness


class Recallable(StrEnum):
    """The layers whose records are recalled, by their public names."""

    items = "items"
    pages = "pages"
    graph = "graph"
    archive = "archive"
    episodes = "episodes"
    patterns = "patterns"
    skills = "skills"


class Order(StrEnum):
    """What the highest is first of."""

    value = "value"
    recalls = "count"
    score = "score"
    last = "last"


def recall(
    file: File,
    user: User = None,
    layer: Annotated[Recallable | None, typer.Option("--layer", help="Only this layer.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 20,
    order: Annotated[Order, typer.Option("--order", help="Highest first of what.")] = Order.value,
    never: Annotated[bool, typer.Option("--never", help="List what was never recalled, oldest first.")] = False,
    as_json: AsJson = False,
) -> None:
    """List which memories proved useful: how often they were recalled, with what scores, when last.

    The value is 0.3 * ln(1 + recalls) + 0.5 * mean score + 0.2 / (1 + days since the last recall): what an eviction by
    recall keeps. Looking does not count.

    Example: memdb recall agent.db --layer pages --order last
    """
    if never and order is not Order.value:
        raise InvalidInput("--never lists the oldest first; leave out --order")
    found = run(_read(file, user, layer, limit, order, never))
    if as_json:
        output.emit([_as_data(one) for one in found])
    if not found:
        what = "that was never recalled" if never else "that was ever recalled"
        whose = " of that user" if user else ""
        output.nothing(f"{file} holds nothing{f' in {layer}' if layer else ''}{whose} {what}")
    if not as_json:
        _show(found, never)


async def _read(
    file: str, user: str | None, layer: Recallable | None, limit: int, order: Order, never: bool
) -> list[Usefulness]:
    async with opened(file) as db:
        from memdb.layers import archive, entity, items, page
        from memdb.layers.experience import stored as experience
        from memdb.retrieval.recalled import LAYERS, never_recalled, recalled
        from memdb.scope import Scope

        names = {
            Recallable.items: items.LAYER,
            Recallable.pages: page.LAYER,
            Recallable.graph: entity.LAYER,
            Recallable.archive: archive.LAYER,
            Recallable.episodes: experience.EPISODE,
            Recallable.patterns: experience.PATTERN,
            Recallable.skills: experience.SKILL,
        }
        owner = await owner_of(db, file, user)
        if owner is None:
            return []
        layers = (names[layer],) if layer else LAYERS
        if never:
            return await db.read(lambda tx: never_recalled(tx, Scope(owner), limit, layers=layers))
        return await db.read(lambda tx: recalled(tx, Scope(owner), limit, layers=layers, order=order.value))


def _as_data(one: Usefulness) -> dict[str, Any]:
    from memdb.storage.clock import to_text

    data = {"id": one.id, "layer": one.layer, "created_at": to_text(one.created_at)}
    if one.stats is None:
        return {**data, "recalls": 0, "mean_score": None, "last_recall_at": None, "value": None}
    return {
        **data,
        "recalls": one.stats.recall_count,
        "mean_score": round(one.stats.total_score / one.stats.recall_count, 4),
        "last_recall_at": to_text(one.stats.last_recall_at),
        "value": round(one.value, 4),
    }


def _show(found: list[Usefulness], never: bool) -> None:
    if never:
        output.table(
            ("id", "layer", "created"), [(one.id, one.layer, f"{one.created_at:%Y-%m-%d %H:%M}") for one in found]
        )
        return
    output.table(
        ("value", "recalls", "mean score", "last recalled", "layer", "id"),
        [
            (
                f"{one.value:.2f}",
                f"{one.stats.recall_count:,}",
                f"{one.stats.total_score / one.stats.recall_count:.2f}",
                f"{one.stats.last_recall_at:%Y-%m-%d %H:%M}",
                one.layer,
                one.id,
            )
            for one in found
            if one.stats is not None
        ],
        numbers=("value", "recalls", "mean score"),
    )
