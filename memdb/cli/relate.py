"""graph add: an entity, or a relation between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import File, User, check_target, owner_of, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.layers.entity import GraphEntity, GraphRelation
    from memdb.layers.layer import Inside
    from memdb.memory import Memory
    from memdb.storage.transaction import Transaction

FORMS = "`memdb graph add FILE NAME` adds an entity, `memdb graph add FILE SOURCE RELATION TARGET` a relation"
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME | SOURCE RELATION TARGET",
        help="A name, or two entities by id or name with what relates them in between.",
        show_default=False,
    ),
]


def add(
    file: File,
    words: Words,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The entity's id; by default its name.")] = None,
    type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="What the entity is; by default a concept.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="A text about it.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="May be repeated; by default made of the name by rule."),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option("--weight", metavar="W", min=0, max=1, help="How strong the relation is; by default 1."),
    ] = None,
    user: User = None,
) -> None:
    """Add an entity (one name) or a relation (three words). Makes FILE when it is not there.

    An entity at an end of a relation that is not there yet is added, as a concept of that name. A relation that is
    there already gets the new weight. Names of several words are quoted from the shell.

    Example: memdb graph add agent.db Ana works_on "tide service" --weight 0.8
    """
    given = {"--id": id, "--type": type, "--description": description, "--tag": tag or None}
    if len(words) == 1:
        _refuse("an entity", {"--weight": weight})
        fields = {"id": id, "entity_type": type, "description": description, "tags": tag or None}
        run(_add_entity(file, user, words[0], {name: value for name, value in fields.items() if value is not None}))
    elif len(words) == 3:
        _refuse("a relation", given)
        run(_add_relation(file, user, words, 1.0 if weight is None else weight))
    else:
        raise InvalidInput(f"{FORMS}; quote names of several words, these are {len(words)}")


def _refuse(what: str, options: Mapping[str, object]) -> None:
    if wrong := [name for name, value in options.items() if value is not None]:
        raise InvalidInput(f"{what} has no {wrong[0]}: {FORMS}")


def entity_of(name: str, **fields: Any) -> GraphEntity:
    """Return an entity of this name; its id is the name and its tags are made of it, where nothing else is given."""
    from memdb.layers.entity import GraphEntity
    from memdb.text.extractor import tags_from_name

    return GraphEntity(**{"id": name, "name": name, "tags": tags_from_name(name), **fields})


async def _add_entity(file: str, user: str | None, name: str, fields: dict[str, Any]) -> None:
    import memdb

    entity = entity_of(name, **fields)
    check_target(file)
    async with memdb.open(file) as db:
        owner = user if user is not None else await owner_of(db, file, None) or "default"
        await db.memory(owner).graph.add_entity(entity)
    tags = f", tags {', '.join(entity.tags)}" if entity.tags else ""
    output.say(f"Added {output.one_line(entity.name)} ({output.one_line(entity.entity_type)}{tags}) to {file}.")


async def _add_relation(file: str, user: str | None, words: list[str], weight: float) -> None:
    import memdb

    for name in (words[0], words[2]):
        entity_of(name)  # refused before a file is made for it
    check_target(file)
    async with memdb.open(file) as db:
        owner = user if user is not None else await owner_of(db, file, None) or "default"
        relation, names, added, before = await db.write(_relate, owner, words, weight)
    for name in added:
        output.complain(f"{output.shortened(name)} was not there and was added as an entity of its own")
    source, target = (output.one_line(names[id]) for id in (relation.source_id, relation.target_id))
    told = f"{source} -{output.one_line(relation.relation_type)}-> {target}"
    if before is None:
        output.say(f"Added {told} with the weight {weight:g}.")
    else:
        output.say(f"{told} was there: its weight is {weight:g} now, before it was {before:g}.")


def _relate(
    tx: Transaction, user: str, words: list[str], weight: float
) -> tuple[GraphRelation, dict[str, str], list[str], float | None]:
    """Put a relation and, where they are missing, its ends: a unit.

    Returns:
        The relation, the names of its ends by id, those that were added, the weight that it had.
    """
    from memdb.layers.entity import GraphRelation
    from memdb.memory import Memory
    from memdb.retrieval import subgraph
    from memdb.scope import Scope

    scope = Scope(user)
    memory: Memory[Inside] = Memory(scope, tx)
    ends, added = [], []
    for text in (words[0], words[2]):
        found = subgraph.called(tx, scope, text)
        if len(found) > 1:
            named = subgraph.listed(found)
            raise InvalidInput(f"several entities have the name {output.shortened(text)}; say which by its id: {named}")
        if not found:
            found = [entity_of(text)]
            memory.graph.add_entity(found[0])
            added.append(text)
        ends.append(found[0])
    relation = GraphRelation(source_id=ends[0].id, target_id=ends[1].id, relation_type=words[1], weight=weight)
    before = subgraph.weight(tx, scope, relation.source_id, relation.relation_type, relation.target_id)
    memory.graph.add_relation(relation)
    return relation, {entity.id: entity.name for entity in ends}, added, before
