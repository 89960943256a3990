"""graph: entities and relations; add them, look at them, draw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import entities, output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.cli.relate import add
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity
    from memdb.retrieval.subgraph import Subgraph, TagCount

MAX_DEPTH = 6  # of a traversal; the library's, which is heavy to load

commands = typer.Typer(rich_markup_mode=None)


class Format(StrEnum):
    """The forms in which a graph is printed."""

    table = "table"
    json = "json"
    dot = "dot"
    mermaid = "mermaid"


class ListFormat(StrEnum):
    """The forms in which a list is printed."""

    table = "table"
    json = "json"


class Direction(StrEnum):
    """Which way relations are followed."""

    out = "out"
    into = "in"
    both = "both"


Entity = Annotated[
    str, typer.Argument(metavar="ENTITY", help="Its id, its name, or how only its name begins.", show_default=False)
]
AsFormat = Annotated[Format, typer.Option("--format", help="How to print it; dot is for Graphviz.")]


@commands.callback(invoke_without_command=True)
def graph(context: typer.Context) -> None:
    """What an agent knows: entities and how they are related.

    Add entities and relations, look at the graph or draw it, follow relations, list the tags.

    Example: memdb graph add agent.db Ana lives_in Lisbon
    """
    if context.invoked_subcommand is None:
        output.say(context.get_help())


commands.command()(add)


@commands.command()
def show(
    file: File,
    entity: Annotated[
        str | None,
        typer.Argument(metavar="ENTITY", help="Its id, its name, or how only its name begins.", show_default=False),
    ] = None,
    user: User = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, max=MAX_DEPTH, help="How far around ENTITY; by default 1.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many relations at most.")] = 200,
    format: AsFormat = Format.table,
    as_json: AsJson = False,
) -> None:
    """Print the graph, or one entity with its relations in both directions.

    The whole graph begins with its strongest relations, what lies around an entity with the nearest. --depth 2 also
    shows the relations of its neighbours.

    Example: memdb graph show agent.db Lisbon --format mermaid
    """
    form = chosen(format, as_json)
    if depth is not None and entity is None:
        raise InvalidInput("--depth says how far around an entity; name one")
    found = run(_show(file, entity, user, depth or 1, limit))
    if found is None or not found.entities:
        if form is Format.json:
            output.emit({"entities": [], "relations": [], "more": False})
        output.nothing(f"{file} holds no entities {'of that user' if user else 'yet'}")
    if form is Format.json:
        output.emit(entities.graph_data(found))
    elif form is Format.table:
        entities.show_graph(found)
    else:
        _draw(form, found.entities, found.relations, found.start)
    if found.more:
        output.complain(f"there is more than --limit {limit} lets show")


async def _show(file: str, entity: str | None, user: str | None, depth: int, limit: int) -> Subgraph | None:
    async with opened(file) as db:
        from memdb.retrieval.subgraph import around, whole
        from memdb.scope import Scope

        owner = await owner_of(db, file, user)
        if owner is None:
            return None
        if entity is None:
            return await db.read(whole, Scope(owner), limit)
        return await db.read(around, Scope(owner), entity, depth, limit)


@commands.command()
def related(
    file: File,
    entity: Entity,
    user: User = None,
    depth: Annotated[int, typer.Option("--depth", min=1, max=MAX_DEPTH, help="How many relations away at most.")] = 2,
    direction: Annotated[
        Direction, typer.Option("--direction", help="Follow relations that leave, that arrive, or either.")
    ] = Direction.both,
    relation: Annotated[
        list[str] | None, typer.Option("--relation", metavar="TYPE", help="Follow only these; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 20,
    paths: Annotated[bool, typer.Option("--paths", help="Tell the whole way, not only its last relation.")] = False,
    format: AsFormat = Format.table,
    as_json: AsJson = False,
) -> None:
    """Find what an entity is related to, over one relation or several.

    The nearest first, then by the weight of the way: the product of the weights of its relations. Of each entity the 50
    strongest relations are followed.

    Example: memdb graph related agent.db Ana --depth 3 --relation lives_in --relation part_of --paths
    """
    form = chosen(format, as_json)
    whole_ways = paths or form in (Format.dot, Format.mermaid)
    start, found = run(_related(file, entity, user, depth, direction, relation or None, limit, whole_ways))
    if form is Format.json:
        output.emit(entities.related_data(start, found))
    if start is None:
        output.nothing(f"{file} holds no entities {'of that user' if user else 'yet'}")
    if not found:
        by = f" by {', '.join(map(output.shortened, relation))}" if relation else ""
        output.nothing(f"nothing is related to {output.shortened(start.name)}{by} within --depth {depth}")
    if form is Format.table:
        entities.show_related(start, found)
    elif form is not Format.json:
        reached = {one.id: one for one in (start, *(hit.entity for hit in found))}
        ways = {(one.source_id, one.relation_type, one.target_id): one for hit in found for one in hit.relations}
        _draw(form, reached, ways.values(), start)


async def _related(
    file: str,
    entity: str,
    user: str | None,
    depth: int,
    direction: Direction,
    types: list[str] | None,
    limit: int,
    paths: bool,
) -> tuple[GraphEntity | None, list[ScoredEntity]]:
    async with opened(file) as db:
        from memdb.layers.traversal import Traversal
        from memdb.retrieval.subgraph import reached
        from memdb.scope import Scope

        owner = await owner_of(db, file, user)
        if owner is None:
            return None, []
        followed = None if types is None else tuple(types)
        how = Traversal(depth, direction.value, relation_types=followed, limit=limit, paths=paths)
        return await db.read(reached, Scope(owner), entity, how)


@commands.command()
def tags(
    file: File,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="Only those that begin so.")] = "",
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 1_000,
    format: Annotated[ListFormat, typer.Option("--format", help="How to print them.")] = ListFormat.table,
    as_json: AsJson = False,
) -> None:
    """List the tags there are, alphabetically, with how many entities and pages have each.

    Entities and pages share one vocabulary: look here before you make a new word for an old thing.

    Example: memdb graph tags agent.db sqli
    """
    form = chosen(Format(format.value), as_json)
    found = run(_tags(file, prefix, user, limit))
    if form is Format.json:
        output.emit([one._asdict() for one in found])
    if not found:
        output.nothing(f"{file} holds no tags {f'that begin with {output.shortened(prefix)}' if prefix else 'yet'}")
    if form is Format.table:
        rows = [(one.tag, f"{one.entities:,}", f"{one.pages:,}") for one in found]
        output.table(("tag", "entities", "pages"), rows, numbers=("entities", "pages"))


async def _tags(file: str, prefix: str, user: str | None, limit: int) -> list[TagCount]:
    async with opened(file) as db:
        from memdb.retrieval.subgraph import tag_counts
        from memdb.scope import Scope

        owner = await owner_of(db, file, user)
        return [] if owner is None else await db.read(tag_counts, Scope(owner), prefix, limit)


def _draw(
    form: Format, known: Mapping[str, GraphEntity], relations: Iterable[GraphRelation], start: GraphEntity | None
) -> None:
    from memdb.cli import drawing

    drawn = drawing.dot if form is Format.dot else drawing.mermaid
    output.say(*drawn({id: one.name for id, one in known.items()}, relations, start.id if start else None))


def chosen(format: Format, as_json: bool) -> Format:
    """Return the form that is asked for.

    Raises:
        InvalidInput: two different ones are.
    """
    if as_json and format in (Format.dot, Format.mermaid):
        raise InvalidInput(f"--json is short for --format json; leave out --json, or --format {format}")
    return Format.json if as_json else format
