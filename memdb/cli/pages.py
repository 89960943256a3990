"""pages: what lies on the shelves of a user, and one page whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run

if TYPE_CHECKING:
    from memdb.layers.knowledge import KnowledgePage, PageIndexEntry


def pages(
    file: File,
    user: User = None,
    category: Annotated[str | None, typer.Option("--category", metavar="NAME", help="Only this shelf.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 50,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Print this page whole.")] = None,
    as_json: AsJson = False,
) -> None:
    """List knowledge pages, or print one whole.

    The pages of one user, in the order of adding. In a pipe the columns are separated by tabs.

    Example: memdb pages agent.db --id notes/coffee.md
    """
    if id is not None:
        _show_page(file, run(_page(file, user, id)), id, as_json)
        return
    entries = run(_entries(file, user, category))
    if as_json:
        output.emit([_as_data(entry) for entry in entries[:limit]])
    if not entries:
        where = f"in the category {category!r}" if category else "of that user" if user else "yet"
        output.nothing(f"{file} holds no pages {where}")
    if as_json:
        return
    output.table(
        ("id", "title", "category", "tags", "updated"),
        [
            (entry.id, entry.title, entry.category, ", ".join(entry.tags), f"{entry.updated_at:%Y-%m-%d %H:%M}")
            for entry in entries[:limit]
        ],
    )
    if len(entries) > limit and output.on_terminal():
        output.say(f"and {output.amount(len(entries) - limit, 'more page')}; --limit shows more")


async def _entries(file: str, user: str | None, category: str | None) -> list[PageIndexEntry]:
    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        return [] if owner is None else await db.memory(owner).pages.get_index(category=category)


async def _page(file: str, user: str | None, id: str) -> KnowledgePage | None:
    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        return None if owner is None else await db.memory(owner).pages.get_page(id)


def _as_data(entry: PageIndexEntry) -> dict[str, object]:
    from memdb.storage.clock import to_text

    return {**entry._asdict(), "updated_at": to_text(entry.updated_at)}


def _show_page(file: str, page: KnowledgePage | None, id: str, as_json: bool) -> None:
    if page is None:
        output.nothing(f"{file} holds no page {output.shortened(id)}")
    if as_json:
        output.emit(page.model_dump(mode="json"))
        return
    lines = {
        "title": page.title,
        "id": page.id,
        "category": page.category,
        "tags": ", ".join(page.tags),
        "keywords": ", ".join(page.keywords),
        "references": ", ".join(page.references),
        "created": f"{page.created_at:%Y-%m-%d %H:%M:%S} UTC",
        "updated": f"{page.updated_at:%Y-%m-%d %H:%M:%S} UTC",
        "summary": page.summary,
    }
    output.say(*(f"{name:<11} {output.one_line(value)}" for name, value in lines.items() if value))
    output.say("", output.printable(page.content))
