"""Tags of records that are there: one vocabulary of all that a user keeps, other tags for an entity, those of pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, select

from memdb.errors import NotFound
from memdb.layers import reading, records
from memdb.layers.arguments import check_bulk, check_limit
from memdb.layers.entity import entity_tags, numbered_entity
from memdb.layers.models import normal_tag
from memdb.layers.record import Place, Record, row
from memdb.storage.schema import record_tag
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction

MOST_PAGES = 100  # that an entity remembers to have a tag of
NAMED = 5  # missing entities that are named
_FROM = "tags_from"  # in an entity's metadata: tag -> the pages that it has it of; all its other tags are its own

_MINE = record_tag.c.user_id == param("user_id")
_NEXT = select(func.min(record_tag.c.tag)).where(_MINE)


def _begins(tag: Any) -> Any:
    return func.substr(tag, 1, func.length(param("prefix"))) == param("prefix")


def _vocabulary() -> Statement:
    """From each tag to the next one: the cost grows with the tags of the answer, not with the records that have any."""
    found = select(_NEXT.where(record_tag.c.tag >= param("prefix")).scalar_subquery().label("tag")).cte("found", True)
    beyond = _NEXT.where(record_tag.c.tag > found.c.tag).correlate(found).scalar_subquery()
    found = found.union_all(select(beyond).where(_begins(found.c.tag)))
    return Statement(select(found.c.tag).where(_begins(found.c.tag)).limit(param("limit")))


_VOCABULARY = _vocabulary()
_COUNT = Statement(
    select(func.count()).where(_MINE, record_tag.c.tag == param("tag"), record_tag.c.layer == param("layer"))
)


def vocabulary(tx: Transaction, user_id: str, prefix: str, limit: int) -> list[str]:
    """Return the tags of a user's records that begin with a prefix, alphabetically, each once."""
    asked = normal_tag(prefix, "prefix")
    return [tag for (tag,) in tx.all(_VOCABULARY, user_id=user_id, prefix=asked, limit=check_limit(limit))]


def count_tag(tx: Transaction, place: Place, tag: str) -> int:
    """Return how many records of a place have a tag."""
    return int(tx.value(_COUNT, **place.values(tag=normal_tag(tag, "tag"))))


def set_own_tags(tx: Transaction, place: Place, key: str, tags: Iterable[str]) -> None:
    """Give an entity the tags of its own, and no others.

    Raises:
        NotFound: there is no such entity.
        InvalidInput: a tag is not what it must be.
    """
    kept = entity_tags(check_bulk(tags, "tags"))
    found = reading.get(tx, place, key, _readable)
    if found is None:
        raise NotFound(f"there is no entity {key!r} to give tags to")
    records.put(tx, _retagged(place, found, kept, {}, tx.now))


def inherit(tx: Transaction, place: Place, keys: list[str], page_id: str, tags: list[str]) -> int:
    """Hand the tags of a page on to entities; see KnowledgeStore.sync_tags.

    Returns:
        How many entities have other tags now.

    Raises:
        NotFound: an entity is not there.
    """
    changed: list[dict[str, Any]] = []
    retagged = 0
    for found in _entities(tx, place, keys):
        old, given = found.words("tags"), _inherited(found)
        kept, sources = _handed_on(old, given, page_id, tags)
        if (kept, sources) != (old, given):
            # That another page names a tag, too, is nothing new about the entity.
            changed.append(_retagged(place, found, kept, sources, found.updated_at if kept == old else tx.now))
            retagged += kept != old
    records.put_many(tx, changed)
    return retagged


Sources = dict[str, list[str]]  # tag -> the pages that the entity has it of


def _handed_on(old: list[str], given: Sources, page_id: str, tags: list[str]) -> tuple[list[str], Sources]:
    """Return an entity's tags, and which of them are of which pages, once a page has handed on its tags."""
    own = [tag for tag in old if tag not in given]
    pages_of = {tag: [page for page in pages if page != page_id or tag in tags] for tag, pages in given.items()}
    for tag in tags:
        pages = pages_of.setdefault(tag, [])
        if page_id not in pages:
            pages_of[tag] = [*pages, page_id][-MOST_PAGES:]
    kept = entity_tags([*own, *(tag for tag, pages in pages_of.items() if pages)])
    return kept, {tag: pages_of[tag] for tag in kept if tag not in own}


def _entities(tx: Transaction, place: Place, keys: list[str]) -> list[Record]:
    numbers = reading.numbers(tx, place, dict.fromkeys(keys))
    found = list(reading.shaped(tx, reading.by_ids(tx, place.user_id, numbers.values()), _readable))
    there = {entity.key for entity in found}
    if missing := [key for key in dict.fromkeys(keys) if key not in there]:
        raise NotFound(f"there is no entity {first_of(missing)} to hand tags on to; nothing was changed")
    return found


def first_of(keys: list[str]) -> str:
    """Return the first of many ids, as a sentence names them."""
    more = f" and {len(keys) - NAMED:,} more" if len(keys) > NAMED else ""
    return f"{', '.join(map(repr, keys[:NAMED]))}{more}"


def _readable(found: Record) -> Record:
    """Return the record of an entity as it is, if an entity can be made of it."""
    numbered_entity(found)
    found.json("metadata"), found.words("keywords")
    return found


def _inherited(found: Record) -> Sources:
    metadata = found.json("metadata")
    sources = metadata.get(_FROM) if isinstance(metadata, dict) else None
    if not isinstance(sources, dict):
        return {}
    return {
        tag: pages
        for tag in found.words("tags")
        if isinstance(pages := sources.get(tag), list) and all(isinstance(page, str) for page in pages)
    }


def _retagged(place: Place, found: Record, tags: list[str], sources: Sources, now: str) -> dict[str, Any]:
    """Return the columns of an entity with other tags; what the index is given follows."""
    metadata = found.json("metadata")
    kept = {name: value for name, value in metadata.items() if name != _FROM} if isinstance(metadata, dict) else {}
    return row(
        place,
        found.key,
        now,
        title=found.title,
        summary=found.summary,
        content=found.content,
        tags=tags,
        keywords=found.words("keywords"),
        metadata={**kept, _FROM: sources} if sources else kept,
        category=found.category,
        created_at=found.created,
        expires_at=found.expires,
    )
