"""Faults of a KnowledgeGraph, each seen by the case that is named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from memdb import GraphError, ScoredEntity
from tests.naive_parts import Graph
from tests.testing.mutant import mutant


async def _add_over(self: Graph, entity: Any) -> None:
    self.entities[entity.id] = entity.model_copy(deep=True)


async def _add_lower_type(self: Graph, entity: Any) -> None:
    await Graph.add_entity(self, entity.model_copy(update={"entity_type": entity.entity_type.lower()}))


async def _add_lower_id(self: Graph, entity: Any) -> None:
    await Graph.add_entity(self, entity.model_copy(update={"id": entity.id.lower()}))


async def _relate_lost(self: Graph, relation: Any) -> None:
    edges = dict(self.edges)
    await asyncio.sleep(0)
    self.edges = edges
    await Graph.add_relation(self, relation)


async def _known(self: Graph, id: str) -> Any:
    return self.entities[id].model_copy(deep=True)


async def _the_same_object(self: Graph, id: str) -> Any:
    return self.entities.get(id)


async def _remove_silently(self: Graph, id: str) -> None:
    if id in self.entities:
        await Graph.remove_entity(self, id)


async def _all_keywords(self: Graph, keywords: list[str], limit: int = 100) -> list[Any]:
    return [one for one in self.entities.values() if all(self.names(word.casefold(), one) for word in keywords)]


async def _recall_of_known_ids(self: Graph, id: str, score: float) -> None:
    self.recalled.append((self.entities[id].id, score))


async def _remove_entity_alone(self: Graph, id: str) -> None:
    edges = dict(self.edges)
    await Graph.remove_entity(self, id)
    self.edges = {key: edge for key, edge in edges.items() if {*key[:2]} & self.entities.keys()}


async def _relate_anything(self: Graph, relation: Any) -> None:
    self.edges[relation.source_id, relation.target_id, relation.relation_type] = relation


async def _relate_anonymously(self: Graph, relation: Any) -> None:
    try:
        await Graph.add_relation(self, relation)
    except GraphError:
        raise GraphError("an entity is not there") from None


async def _relate_again(self: Graph, relation: Any) -> None:
    await Graph.add_relation(self, relation.model_copy(update={"weight": 1.0}))


async def _remove_any_type(self: Graph, source_id: str, target_id: str, relation_type: str) -> None:
    await Graph.remove_relation(self, source_id, target_id, relation_type)
    self.edges = {key: edge for key, edge in self.edges.items() if key[:2] != (source_id, target_id)}


def _related(change: Callable[[list[ScoredEntity]], list[ScoredEntity]], deeper: int = 0) -> Callable[..., Any]:
    async def get_related(self: Graph, entity_id: str, depth: int = 2) -> list[ScoredEntity]:
        return change(await Graph.get_related(self, entity_id, depth + deeper))

    return get_related


async def _tags_containing(self: Graph, prefix: str) -> list[str]:
    return [tag for tag in await Graph.find_tags(self, "") if prefix.lower() in tag]


async def _add_with_tags(self: Graph, entity: Any) -> None:
    await Graph.add_entity(self, entity)
    self.ever = [*getattr(self, "ever", []), *entity.tags]


async def _tags_ever(self: Graph, prefix: str) -> list[str]:
    return sorted({tag for tag in getattr(self, "ever", []) if tag.startswith(prefix.lower())})


async def _add_tags(self: Graph, entity_id: str, tags: list[str]) -> None:
    old = self.entities[entity_id].tags if entity_id in self.entities else []
    await Graph.set_entity_tags(self, entity_id, [*tags, *old])


async def _tag_anybody(self: Graph, entity_id: str, tags: list[str]) -> None:
    if entity_id in self.entities:
        await Graph.set_entity_tags(self, entity_id, tags)


async def _count_as_given(self: Graph, tag: str) -> int:
    return sum(tag in entity.tags for entity in self.entities.values())


GRAPH = (
    mutant("a_recall_changes_no_entity", Graph, "RecallRaises", record_recall=_recall_of_known_ids),
    mutant("an_added_entity_comes_back_as_it_was", Graph, "TypesLowered", add_entity=_add_lower_type),
    mutant("an_unknown_id_gives_none", Graph, "UnknownRaises", get_entity=_known),
    mutant("adding_again_is_refused", Graph, "AddsOver", add_entity=_add_over),
    mutant("removing_an_unknown_entity_is_refused", Graph, "RemovesSilently", remove_entity=_remove_silently),
    mutant("ids_that_look_alike_are_kept_apart", Graph, "IdsOfOneCase", add_entity=_add_lower_id),
    mutant("many_entities_and_relations_at_once_all_land", Graph, "RelationsLost", add_relation=_relate_lost),
    mutant("each_keyword_counts", Graph, "AllKeywords", find_by_keywords=_all_keywords),
    mutant("what_the_caller_changes_later_is_not_stored", Graph, "SharedObjects", get_entity=_the_same_object),
    mutant("get_related_ends_in_a_cycle", Graph, "CyclesLost", see=lambda s, seen, id: None),
    mutant("get_related_goes_as_deep_as_it_is_told", Graph, "TooDeep", get_related=_related(lambda found: found, 1)),
    mutant("get_related_scores_by_distance", Graph, "ScoreByDistanceAlone", score=lambda s, distance: 1 / distance),
    mutant("get_related_scores_by_distance", Graph, "FarthestFirst", get_related=_related(lambda found: found[::-1])),
    mutant(
        "get_related_follows_either_direction",
        Graph,
        "OneDirection",
        steps=lambda s, id: ((edge.target_id, edge) for edge in s.edges.values() if edge.source_id == id),
    ),
    mutant(
        "get_related_says_by_which_relation",
        Graph,
        "NoRelations",
        get_related=_related(lambda found: [hit._replace(relations=[]) for hit in found]),
    ),
    mutant("relations_go_with_their_entity", Graph, "RelationsStay", remove_entity=_remove_entity_alone),
    mutant("a_relation_needs_both_ends", Graph, "AnyRelation", add_relation=_relate_anything),
    mutant("a_relation_needs_both_ends", Graph, "NamelessError", add_relation=_relate_anonymously),
    mutant("a_relation_is_stored_once", Graph, "WeightLost", add_relation=_relate_again),
    mutant("a_removed_relation_is_gone", Graph, "TypeIgnored", remove_relation=_remove_any_type),
    mutant(
        "a_keyword_names_a_names_beginning",
        Graph,
        "NameContains",
        names=lambda s, word, e: word in e.name.casefold() or Graph.names(s, word, e),
    ),
    mutant(
        "a_keyword_names_a_whole_tag",
        Graph,
        "TagPrefix",
        names=lambda s, word, e: any(tag.startswith(word) for tag in e.tags) or Graph.names(s, word, e),
    ),
    mutant(
        "a_keyword_names_a_whole_type",
        Graph,
        "TypePrefix",
        names=lambda s, word, e: e.entity_type.casefold().startswith(word) or Graph.names(s, word, e),
    ),
    mutant(
        "a_description_is_not_looked_at",
        Graph,
        "DescriptionSearched",
        names=lambda s, word, e: word in e.description.casefold() or Graph.names(s, word, e),
    ),
    mutant("find_tags_goes_by_the_beginning", Graph, "TagsContain", find_tags=_tags_containing),
    mutant("a_removed_entity_is_gone", Graph, "TagsStay", add_entity=_add_with_tags, find_tags=_tags_ever),
    mutant("entities_are_counted_by_tag", Graph, "CountAsGiven", entity_count_by_tag=_count_as_given),
    mutant("set_entity_tags_keeps_the_first", Graph, "LastTagsKept", cut=lambda s, tags: tags[-8:]),
    mutant("set_entity_tags_keeps_the_first", Graph, "NoTagsCut", cut=lambda s, tags: tags),
    mutant("set_entity_tags_keeps_the_first", Graph, "TagsSorted", cut=lambda s, tags: sorted(tags)[:8]),
    mutant("set_entity_tags_replaces_all_of_them", Graph, "TagsAdded", set_entity_tags=_add_tags),
    mutant("tags_of_an_unknown_entity_are_refused", Graph, "AnybodyTagged", set_entity_tags=_tag_anybody),
    mutant("tags_have_one_form", Graph, "TagsAsGiven", form=lambda s, tag: tag),
    mutant("tags_have_one_form", Graph, "TagsWithSpaces", form=lambda s, tag: tag.lower().strip()),
)
