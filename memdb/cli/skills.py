"""skills: how things are done, and one skill as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.layers.experience.skill import ProceduralSkill

MAX_DESCRIPTION_CHARS = 160  # of a text in a table


def skills(
    file: File,
    user: User = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="WORDS", help="Only the best for these words.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 50,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Print this skill as Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """List skills in the order of their storing, or print one as Markdown.

    In a pipe the columns are separated by tabs. --json prints skills whole. Looking does not count as recall.

    Example: memdb skills agent.db --id skill-api-endpoint
    """
    if id is not None:
        if search is not None:
            raise InvalidInput("--id prints one skill; leave out --search")
        _show(file, run(_one(file, user, id)), id, as_json)
        return
    found = run(_read(file, user, search, limit))
    if as_json:
        output.emit([_as_data(skill, score) for skill, score in found[:limit]])
    if not found:
        where = f" that match {output.shortened(search)}" if search is not None else " of that user" if user else " yet"
        output.nothing(f"{file} holds no skills{where}")
    if as_json:
        return
    rows = [(one.id, one.name, f"{len(one.steps):,}", _cut(one.description)) for one, _ in found[:limit]]
    output.table(("id", "name", "steps", "description"), rows, numbers=("steps",))
    if len(found) > limit and output.on_terminal():
        output.say("there are more; --limit shows them")


async def _read(
    file: str, user: str | None, search: str | None, limit: int
) -> list[tuple[ProceduralSkill, float | None]]:
    """Return skills with their scores, and one more where there are more."""
    async with opened(file) as db:
        from memdb.layers.experience import skills as store

        owner = await owner_of(db, file, user)
        if owner is None:
            return []
        if search is not None:
            return [*await db.read(store.scored, owner, search, limit)]
        return [(skill, None) for skill in await db.read(store.all_of, owner, limit + 1)]


async def _one(file: str, user: str | None, id: str) -> ProceduralSkill | None:
    async with opened(file) as db:
        from memdb.layers.experience.skills import ProceduralMemory
        from memdb.layers.layer import Live
        from memdb.scope import Scope

        owner = await owner_of(db, file, user)
        if owner is None:
            return None
        skills: ProceduralMemory[Live] = ProceduralMemory(Scope(owner), db.engine)
        return await skills.get(id)


def _as_data(skill: ProceduralSkill, score: float | None) -> dict[str, Any]:
    data = skill.to_dict()
    return data if score is None else {**data, "score": round(score, 4)}


def _cut(text: str) -> str:
    line = output.one_line(text)
    return line if len(line) <= MAX_DESCRIPTION_CHARS else f"{line[: MAX_DESCRIPTION_CHARS - 1]}…"


def _show(file: str, skill: ProceduralSkill | None, id: str, as_json: bool) -> None:
    from memdb.layers.experience.skill_file import skill_to_markdown

    if skill is None:
        output.nothing(f"{file} holds no skill {output.shortened(id)}")
    if as_json:
        output.emit(skill.to_dict())
    else:
        output.say(output.printable(skill_to_markdown(skill)).removesuffix("\n"))
