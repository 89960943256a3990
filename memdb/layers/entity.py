"""What a knowledge graph consists of: entities, relations between them, and what a traversal says of an entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, model_validator

from memdb.errors import InvalidInput
from memdb.layers.models import Content, Id, Instant, Model, Title, normal_tag, number
from memdb.layers.record import Place, Record, row
from memdb.text.check import as_finite, check_text

LAYER = "entity"
MAX_TAGS_PER_ENTITY = 8
MAX_TYPE_CHARS = 200


@dataclass(frozen=True, slots=True)
class TagConstraints:
    """What holds for the tags of an entity (agcore document, section 3.3, "tag capacity").

    Args:
        max_tags_per_entity: how many an entity keeps; of more, the first.
    """

    max_tags_per_entity: int = MAX_TAGS_PER_ENTITY


def entity_tags(tags: list[str]) -> list[str]:
    """Return an entity's tags as they are kept: in their one form, each once, the first MAX_TAGS_PER_ENTITY."""
    kept = dict.fromkeys(tag for raw in tags if (tag := normal_tag(raw)))
    return list(kept)[:MAX_TAGS_PER_ENTITY]


def check_type(value: object, name: str = "the type") -> str:
    """Return the type of an entity or a relation without white space around it.

    Raises:
        InvalidInput: it is empty, no text, or too long.
    """
    text = check_text(value, name, max_chars=MAX_TYPE_CHARS).strip()
    if not text:
        raise InvalidInput(f"{name} must not be empty")
    return text


def _name(value: object) -> str:
    text = check_text(value, "the name", max_chars=1_000)
    if not text.strip():
        raise InvalidInput("the name must not be empty")
    return text


Type = Annotated[str, BeforeValidator(check_type)]


class GraphEntity(Model):
    """A node of the graph (agcore document, section 3.4).

    Args:
        id: exact text, 1 to 1,000 characters, unique for its user.
        name: what it is called, at most 1,000 characters; a search by keyword finds it by its beginning.
        entity_type: what it is ("person", "concept", "project", ...), at most 200 characters.
        description: a text, at most 16 MB in UTF-8.
        tags: none by default (`tags_from_name(name)` makes some); atomic words, best first, stored lower-cased, white
            space inside as a hyphen, repetitions dropped, of more than 8 the first 8. One vocabulary with the tags of
            pages.
        created_at: with a time zone; by default when it is added.
        updated_at: when it was last stored; set by memdb.
    """

    id: Id
    name: Annotated[str, BeforeValidator(_name)]
    entity_type: Type = "concept"
    description: Content = ""
    tags: Annotated[list[Title], BeforeValidator(as_finite), AfterValidator(entity_tags)] = []
    created_at: Instant = None
    updated_at: Instant = None


class GraphRelation(Model):
    """An edge of the graph, from one entity to another (agcore document, section 3.4).

    Args:
        source_id: the id of the entity that it leaves.
        target_id: the id of the entity that it leads to; another one.
        relation_type: what it says ("works_on", "part_of", "related_to", ...), at most 200 characters.
        weight: how strong it is, from 0 to 1.
    """

    source_id: Id
    target_id: Id
    relation_type: Type
    weight: Annotated[float, number("the weight", 1)] = 1.0

    @model_validator(mode="after")
    def _between_two(self) -> GraphRelation:
        if self.source_id == self.target_id:
            raise InvalidInput(f"a relation joins two entities, but both ends are {self.source_id!r}")
        return self


class ScoredEntity(NamedTuple):
    """An entity that a traversal reached.

    Args:
        entity: the entity.
        distance: how many relations lie between, 1 for a neighbour.
        score: 1 / (1 + distance) (agcore document, "GraphDistance").
        weight: the greatest product of weights along any path within the depth that was asked for, from 0 to 1.
        relations: how that path arrives: its last relation, or, where paths were asked for, all of it from the start.
    """

    entity: GraphEntity
    distance: int
    score: float
    weight: float
    relations: list[GraphRelation]


def entity_row(place: Place, entity: GraphEntity, now: str) -> dict[str, Any]:
    """Return the columns of an entity's record.

    Args:
        entity: a valid one.
    """
    return row(
        place,
        entity.id,
        now,
        title=entity.name,
        content=entity.description,
        tags=entity.tags,
        category=entity.entity_type,
        created_at=entity.created_at,
    )


def entity_of(found: Record) -> GraphEntity:
    """Return an entity of what was read: the shape of its record."""
    return GraphEntity.trusted(
        id=found.key,
        name=found.title,
        entity_type=found.category or "",
        description=found.content,
        tags=found.words("tags"),
        created_at=found.created,
        updated_at=found.updated,
    )


def numbered_entity(found: Record) -> tuple[int, GraphEntity]:
    """Return an entity with its record's number."""
    return found.id, entity_of(found)
