"""The knowledge graph: the KnowledgeGraph of the agcore document."""

from __future__ import annotations

from collections.abc import Iterable

from memdb.errors import NotFound
from memdb.layers import reading, records
from memdb.layers.arguments import check_bulk, check_key, check_limit
from memdb.layers.entity import (
    LAYER,
    GraphEntity,
    GraphRelation,
    ScoredEntity,
    TagConstraints,
    check_type,
    entity_of,
    entity_row,
)
from memdb.layers.evicting import EvictingLayer
from memdb.layers.keyword_lookup import ENTITY_FIELDS, named
from memdb.layers.layer import Mode, reads, writes
from memdb.layers.record import Place
from memdb.layers.relations import listed_relations, put_relations, remove_relation
from memdb.layers.tags import count_tag, set_own_tags, vocabulary
from memdb.layers.traversal import DEFAULT_FAN_OUT, Traversal, related
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag


class KnowledgeGraph(EvictingLayer[Mode]):
    """Entities of one user and the relations between them (agcore document, section 3.3).

    Tags join the graph to the pages: both share one vocabulary, and a keyword that is a tag finds what is about it in
    either. The rules that keep it small, for whoever gives the tags:

    - Reuse before new: ask `find_tags` with the beginning of a word that you mean to give, and take what is there; only
      where nothing fits, the word becomes a new tag. One notion then has one tag.
    - Lower case and atomic: one word, or several joined by hyphens: "state-graph", not "State Graph framework".
    - Singular where there is a choice: "agent", not "agents".
    - 3 to 8 an entity, the most telling first: of more than 8 the first 8 are kept.

    memdb itself lower-cases, joins by hyphens, drops repetitions and cuts; what a word means is for its caller to know.
    """

    @property
    def _place(self) -> Place:
        return Place.of(LAYER, self.scope)

    # -- entities -----------------------------------------------------------------------------------------------------

    @writes
    def add_entity(self, tx: Transaction, entity: GraphEntity) -> None:
        """Store a new entity.

        Raises:
            AlreadyExists: there is an entity with this id.
            InvalidInput: a field is not what it must be.
        """
        entity = GraphEntity.model_validate(entity)
        records.add(tx, entity_row(self._place, entity, tx.now), "entity")
        self._evict(tx)

    @writes
    def add_entities(self, tx: Transaction, entities: Iterable[GraphEntity], *, replace: bool = False) -> int:
        """Store many entities at once, all or none.

        Args:
            entities: at most 100,000.
            replace: whether an entity takes the place of one with the same id, whose relations stay, instead of being
                refused; of two given with one id the later stays then.

        Returns:
            How many were given.

        Raises:
            AlreadyExists: an id is taken or given twice, and `replace` is False; nothing was stored.
            InvalidInput: a field is not what it must be, or there are too many; nothing was stored.
        """
        check_flag(replace, "replace")
        given = [GraphEntity.model_validate(entity) for entity in check_bulk(entities, "entities")]
        rows = [entity_row(self._place, entity, tx.now) for entity in given]
        if replace:
            records.put_many(tx, rows)
        else:
            records.add_many(tx, self._place, rows, "entity")
        self._evict(tx, len(rows))
        return len(given)

    @writes
    def update_entity(self, tx: Transaction, entity: GraphEntity) -> None:
        """Replace an entity. created_at is kept, its relations stay, and all its tags are its own from now on.

        What is left out gets its default: begin from `get_entity` and change a copy.

        Raises:
            NotFound: there is no entity with this id; add it.
            InvalidInput: a field is not what it must be.
        """
        entity = GraphEntity.model_validate(entity)
        if reading.get(tx, self._place, entity.id, entity_of) is None:
            raise NotFound(f"there is no entity {entity.id!r} to update; add it with add_entity")
        records.put(tx, entity_row(self._place, entity, tx.now))
        self._evict(tx)

    @reads
    def get_entity(self, tx: Transaction, id: str) -> GraphEntity | None:
        """Return the entity with this id, or None."""
        return reading.get(tx, self._place, check_key(id), entity_of)

    @writes
    def remove_entity(self, tx: Transaction, id: str) -> None:
        """Delete an entity, its tags and all relations from it and to it.

        Raises:
            NotFound: there is no entity with this id.
        """
        if not records.remove(tx, self._place, check_key(id)):
            raise NotFound(f"there is no entity {id!r} to remove")

    # -- relations ----------------------------------------------------------------------------------------------------

    @writes
    def add_relation(self, tx: Transaction, relation: GraphRelation) -> None:
        """Store a relation; one of the same source, target and type gets the new weight.

        Raises:
            GraphError: one of the two entities is not there; the message names it.
            InvalidInput: a field is not what it must be.
        """
        put_relations(tx, self._place, [GraphRelation.model_validate(relation)])

    @writes
    def add_relations(self, tx: Transaction, relations: Iterable[GraphRelation]) -> int:
        """Store many relations at once, all or none; of two with one source, target and type the later stays.

        Args:
            relations: at most 100,000.

        Returns:
            How many were given.

        Raises:
            GraphError: an entity is not there; the message names the first of those missing. Nothing was stored.
            InvalidInput: a field is not what it must be, or there are too many; nothing was stored.
        """
        checked = [GraphRelation.model_validate(relation) for relation in check_bulk(relations, "relations")]
        put_relations(tx, self._place, checked)
        return len(checked)

    @writes
    def remove_relation(self, tx: Transaction, source_id: str, target_id: str, relation_type: str) -> None:
        """Delete a relation.

        Raises:
            NotFound: there is none of this type from the one entity to the other.
        """
        source, target = check_key(source_id, "source_id"), check_key(target_id, "target_id")
        kind = check_type(relation_type, "relation_type")
        if not remove_relation(tx, self._place, source, target, kind):
            raise NotFound(f"there is no relation {kind!r} from {source!r} to {target!r} to remove")

    @reads
    def relations(
        self, tx: Transaction, entity_id: str, *, direction: str = "both", limit: int = 1_000
    ) -> list[GraphRelation]:
        """Return the relations of an entity.

        Args:
            entity_id: the entity.
            direction: "out" for those that leave it, "in" for those that lead to it, "both" for either.
            limit: how many at most, 0 to 10,000.

        Returns:
            The strongest first, ties in the order of adding; empty when there is no such entity.

        Raises:
            InvalidInput: the direction is none of the three, or the limit is out of range.
        """
        entity_id = check_key(entity_id, "entity_id")
        return listed_relations(tx, self._place, entity_id, direction, check_limit(limit))

    @reads
    def get_related(
        self,
        tx: Transaction,
        entity_id: str,
        depth: int = 2,
        *,
        direction: str = "both",
        relation_types: Iterable[str] | None = None,
        limit: int = 200,
        fan_out: int | None = DEFAULT_FAN_OUT,
        timeout: float | None = 5.0,
        paths: bool = False,
    ) -> list[ScoredEntity]:
        """Return the entities that an entity is related to, over one relation or several.

        Args:
            entity_id: where to start.
            depth: how many relations away at most, 1 to 6.
            direction: "out" follows relations from source to target, "in" from target to source, "both" either way.
            relation_types: follow only relations of these types, matched exactly; None for all.
            limit: how many entities at most, 0 to 10,000.
            fan_out: of each entity follow only its strongest relations, at most so many, 1 to 10,000; None for all.
            timeout: how long it may take, in seconds; None for as long as it takes.
            paths: whether each entity comes with all relations of its best path, or with the last of them only.

        Returns:
            The nearest first, then by the greatest product of weights along a path, then in the order of adding; each
            entity once, without the one to start from. Empty when there is no such entity.

        Raises:
            GraphError: it took longer than `timeout`.
            InvalidInput: an argument is not what it must be.
        """
        types = None if relation_types is None else tuple(check_bulk(relation_types, "relation_types"))
        how = Traversal(depth, direction, types, fan_out, limit, timeout, paths)
        start = reading.numbers(tx, self._place, [check_key(entity_id, "entity_id")])
        return related(tx, self._place, list(start.values()), how)

    # -- keywords and tags --------------------------------------------------------------------------------------------

    @reads
    def find_by_keywords(self, tx: Transaction, keywords: Iterable[str], limit: int = 100) -> list[GraphEntity]:
        """Return the entities that keywords name: a name's beginning, a whole tag, or a type.

        Letter case does not count. A keyword scores 3 for the name, 2 for a tag, 1 for the type; by each it finds 500
        entities at most. A name in letters beyond A to Z also matches without its accents and by the stem of a word.

        Args:
            keywords: any texts, at most 1,000.
            limit: how many at most, 0 to 10,000.

        Returns:
            Highest sum first, ties in the order of adding (agcore document, section 3.3, "matching").
        """
        return [*reading.shaped(tx, named(tx, self._place, keywords, ENTITY_FIELDS, limit), entity_of)]

    @reads
    def find_tags(self, tx: Transaction, prefix: str = "", limit: int = 100) -> list[str]:
        """Return the tags there are, to choose from before a new one is made: those of pages and entities alike.

        Args:
            prefix: what they begin with, in the form of a tag ("State Gr" asks for "state-gr"); "" for all.
            limit: how many at most, 0 to 10,000.

        Returns:
            Alphabetically, by code point, each once.

        Raises:
            InvalidInput: the prefix is longer than a tag can be, or no text.
        """
        return vocabulary(tx, self.scope.user_id, prefix, limit)

    @reads
    def entity_count_by_tag(self, tx: Transaction, tag: str) -> int:
        """Return how many entities have a tag; pages do not count.

        Raises:
            InvalidInput: the tag is longer than a tag can be, or no text.
        """
        return count_tag(tx, self._place, tag)

    @writes
    def set_entity_tags(self, tx: Transaction, entity_id: str, tags: Iterable[str]) -> None:
        """Replace all tags of an entity; they are its own from now on, whichever page it had one of.

        Args:
            entity_id: the entity.
            tags: best first; brought into their one form, repetitions dropped, of more than 8 the first 8 kept.

        Raises:
            NotFound: there is no entity with this id.
            InvalidInput: a tag is longer than 200 characters, or no text.
        """
        set_own_tags(tx, self._place, check_key(entity_id, "entity_id"), tags)

    def tag_constraints(self) -> TagConstraints:
        """Return what holds for the tags of an entity: how many it keeps. No I/O: a plain call in either mode."""
        return TagConstraints()
