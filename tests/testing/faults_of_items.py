"""Faults of a MemoryStore, each seen by the case that is named."""

from __future__ import annotations

import asyncio
import fnmatch
from typing import Any

from memdb import Capacity, EvictionConfig, MemoryFilter, RecallStats
from tests.naive_parts import Items, now
from tests.testing.mutant import mutant


async def _list_limited_first(self: Items, filter: MemoryFilter | None = None) -> list[Any]:
    asked = filter or MemoryFilter()
    return [item for item in self.oldest_first()[: asked.limit] if self.listed(item, asked)]


async def _save_in_two_steps(self: Items, item: Any) -> None:
    await Items.save(self, item)
    for _ in range(3 if item.content.endswith("8") else 1):
        await asyncio.sleep(0)
    self.items[item.id].metadata = item.metadata


async def _save_lost(self: Items, item: Any) -> None:
    kept = dict(self.items)
    await asyncio.sleep(0)
    self.items = kept
    await Items.save(self, item)


async def _save_stripped(self: Items, item: Any) -> None:
    await Items.save(self, item.model_copy(update={"content": item.content.strip()}))


async def _save_once(self: Items, item: Any) -> None:
    if item.id not in self.items:
        await Items.save(self, item)


async def _save_one_letter_case(self: Items, item: Any) -> None:
    await Items.save(self, item.model_copy(update={"id": item.id.lower()}))


async def _save_whole_numbers(self: Items, item: Any) -> None:
    whole = int(item.metadata) if isinstance(item.metadata, bool | float) else item.metadata
    await Items.save(self, item.model_copy(update={"metadata": whole}))


async def _the_same_object(self: Items, id: str) -> Any:
    return self.items.get(id)


async def _known(self: Items, id: str) -> Any:
    return self.items[id].model_copy(deep=True)


async def _recall_of_known_ids(self: Items, id: str, score: float) -> None:
    self.items[id]
    await Items.record_recall(self, id, score)


async def _recall_for_later(self: Items, id: str, score: float) -> None:
    self.stats[id] = RecallStats(1, score, now())


async def _delete_item_alone(self: Items, id: str) -> bool:
    return self.items.pop(id, None) is not None


async def _delete_known_ids(self: Items, id: str) -> None:
    del self.items[id]


def _sum_of_scores(self: Items, item: Any, weights: Any) -> float:
    stats = self.stats.get(item.id)
    return stats.total_score * weights.score_weight if stats else Items.value(self, item, weights)


def _never_recalled_is_new(self: Items, item: Any, weights: Any) -> float:
    return float(Items.value(self, item, weights) if item.id in self.stats else weights.recency_weight)


def _eviction_always_checked(self: Items, config: EvictionConfig) -> Items:
    return type(self)(config.model_copy(update={"check_interval": 1}))


def _evicts_anyway(self: Items, config: EvictionConfig) -> Items:
    return type(self)(EvictionConfig(policy=Capacity(max_items=10)))


def _never_evicts(self: Items, config: EvictionConfig) -> Items:
    return type(self)()


ITEMS = (
    mutant("an_unknown_id_gives_none", Items, "UnknownRaises", get=_known),
    mutant("content_of_any_text_comes_back", Items, "Stripped", save=_save_stripped),
    mutant("saving_again_replaces", Items, "FirstStays", save=_save_once),
    mutant("no_eviction_keeps_everything", Items, "EvictsAnyway", with_eviction=_evicts_anyway),
    mutant("list_by_prefix", Items, "PrefixIgnored", listed=lambda s, i, a: a.since is None or i.created_at >= a.since),
    mutant(
        "list_by_prefix",
        Items,
        "PrefixAnyCase",
        listed=lambda s, i, a: Items.listed(s, i.model_copy(update={"id": i.id.lower()}), a),
    ),
    mutant(
        "a_prefix_is_no_pattern",
        Items,
        "PrefixAsPattern",
        listed=lambda s, i, a: fnmatch.fnmatchcase(i.id, f"{a.prefix or ''}*"),
    ),
    mutant(
        "list_since_a_time",
        Items,
        "SinceExclusive",
        listed=lambda s, i, a: Items.listed(s, i, a) and i.created_at != a.since,
    ),
    mutant("list_by_all_at_once", Items, "LimitFirst", list=_list_limited_first),
    mutant("list_is_oldest_first", Items, "NewestFirst", oldest_first=lambda s: Items.oldest_first(s)[::-1]),
    mutant("list_is_oldest_first", Items, "InOrderOfSaving", oldest_first=lambda s: list(s.items.values())),
    mutant("saving_again_keeps_created_at", Items, "CreatedAtLost", created=lambda s, i, known: i.created_at or now()),
    mutant("created_at_is_the_time_of_saving_unless_given", Items, "CreatedNow", created=lambda s, i, known: now()),
    mutant(
        "created_at_is_the_time_of_saving_unless_given",
        Items,
        "NoZone",
        created=lambda s, i, known: Items.created(s, i, known).replace(tzinfo=None),
    ),
    mutant("many_saves_at_once_all_land", Items, "SavesLost", save=_save_lost),
    mutant("many_saves_of_one_id_leave_one_of_them_whole", Items, "TornSaves", save=_save_in_two_steps),
    mutant("ids_that_look_alike_are_kept_apart", Items, "IdsOfOneCase", save=_save_one_letter_case),
    mutant("metadata_comes_back_equal", Items, "WholeNumbers", save=_save_whole_numbers),
    mutant("what_the_caller_changes_later_is_not_stored", Items, "SharedObjects", get=_the_same_object),
    mutant("a_recall_of_an_unknown_id_does_nothing", Items, "RecallRaises", record_recall=_recall_of_known_ids),
    mutant("recall_statistics_go_with_their_item", Items, "RecallOfUnknownKept", record_recall=_recall_for_later),
    mutant("recall_statistics_go_with_their_item", Items, "StatisticsStay", delete=_delete_item_alone),
    mutant("deleting_an_unknown_id_does_nothing", Items, "DeleteRaises", delete=_delete_known_ids),
    mutant("capacity_evicts_the_oldest", Items, "NewestEvicted", surplus=lambda s, ranked, most: ranked[most:]),
    mutant("capacity_evicts_the_oldest", Items, "NeverEvicts", with_eviction=_never_evicts),
    mutant(
        "recall_based_evicts_the_lowest_value", Items, "HighestEvicted", value=lambda s, i, w: -Items.value(s, i, w)
    ),
    mutant("recall_based_weighs_how_well", Items, "SumOfScores", value=_sum_of_scores),
    mutant(
        "recall_based_counts_from_creation_what_was_never_recalled",
        Items,
        "NeverIsNew",
        value=_never_recalled_is_new,
    ),
    mutant("eviction_is_checked_every_so_many_writes", Items, "AlwaysChecked", with_eviction=_eviction_always_checked),
    mutant(
        "recall_statistics_go_with_what_is_evicted",
        Items,
        "EvictedStatisticsStay",
        drop=lambda s, items: [s.items.pop(item.id) for item in list(items)],
    ),
)
