"""Faults of a KnowledgeStore, each seen by the case that is named."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Callable
from typing import Any

from tests.naive_parts import Pages, now
from tests.testing.mutant import mutant


async def _add_over(self: Pages, page: Any) -> None:
    self.put(page, page.created_at or now())


async def _add_slowly(self: Pages, page: Any) -> None:
    taken = page.id in self.pages
    await asyncio.sleep(0)
    await (self.update_page(page) if page.id in self.pages and not taken else Pages.add_page(self, page))


async def _add_lost(self: Pages, page: Any) -> None:
    index = dict(self.index)
    await asyncio.sleep(0)
    self.index = index
    await Pages.add_page(self, page)


async def _known(self: Pages, id: str) -> Any:
    return self.pages[id].model_copy(deep=True)


async def _the_same_object(self: Pages, id: str) -> Any:
    return self.pages.get(id)


async def _search_words_alone(self: Pages, query: str, limit: int = 10) -> list[Any]:
    if '"' in query:
        raise ValueError("unterminated string")
    return await Pages.search(self, query, limit)


async def _delete_but_for_its_time(self: Pages, id: str) -> None:
    self.times = getattr(self, "times", {}) | {id: self.pages[id].created_at} if id in self.pages else {}
    await Pages.delete_page(self, id)


async def _add_at_its_time(self: Pages, page: Any) -> None:
    created = getattr(self, "times", {}).get(page.id, page.created_at)
    await Pages.add_page(self, page.model_copy(update={"created_at": created}))


def _put_with_tags_sorted(self: Pages, page: Any, created: Any) -> None:
    Pages.put(self, page.model_copy(update={"tags": sorted(page.tags)}), created)


def _put_without_zone(self: Pages, page: Any, created: Any) -> None:
    Pages.put(self, page, created)
    self.pages[page.id].updated_at = self.pages[page.id].updated_at.replace(tzinfo=None)


def _enter_without_tags(self: Pages, page: Any) -> None:
    Pages.enter(self, page.model_copy(update={"tags": []}))


def _best_or_any(self: Pages, scores: dict[str, int], limit: int) -> list[Any]:
    return Pages.best(self, scores, limit) or Pages.best(self, dict.fromkeys(scores, 1), limit)


def _best_without_references(self: Pages, scores: dict[str, int], limit: int) -> list[Any]:
    return [page.model_copy(update={"references": []}) for page in Pages.best(self, scores, limit)]


async def _recall_of_known_ids(self: Pages, id: str, score: float) -> None:
    self.recalled.append((self.pages[id].id, score))


async def _delete_from_pages_alone(self: Pages, id: str) -> None:
    index = dict(self.index)
    await Pages.delete_page(self, id)
    self.index = index


async def _delete_silently(self: Pages, id: str) -> None:
    if id in self.pages:
        await Pages.delete_page(self, id)


async def _update_created(self: Pages, page: Any) -> None:
    await self.delete_page(page.id)
    await self.add_page(page)


async def _references_once(self: Pages, id: str) -> list[str]:
    self.known = getattr(self, "known", {})
    return list(self.known.setdefault(id, await Pages.referenced_by(self, id)))


def _naming(title: Callable[..., Any], tag: Callable[..., Any], summary: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, page, words: (
        points for word in words for points in (3 * title(page, word), 2 * tag(page, word), 1 * summary(page, word))
    )


def _title(page: Any, word: str) -> bool:
    return bool(page.title.casefold().startswith(word))


def _tag(page: Any, word: str) -> bool:
    return word in page.tags


def _summary(page: Any, word: str) -> bool:
    return word in page.summary.casefold()


PAGES = (
    mutant("a_recall_changes_no_page", Pages, "RecallRaises", record_recall=_recall_of_known_ids),
    mutant("an_added_page_comes_back_as_it_was", Pages, "TagsSorted", put=_put_with_tags_sorted),
    mutant("an_unknown_id_gives_none", Pages, "UnknownRaises", get_page=_known),
    mutant("updated_at_is_the_time_of_storing", Pages, "NoZone", put=_put_without_zone),
    mutant(
        "a_deleted_id_can_be_added_anew",
        Pages,
        "DeletedComesBack",
        delete_page=_delete_but_for_its_time,
        add_page=_add_at_its_time,
    ),
    mutant("the_index_has_a_line_for_each_page", Pages, "NoTagsInIndex", enter=_enter_without_tags),
    mutant("many_pages_at_once_all_land", Pages, "PagesLost", add_page=_add_lost),
    mutant("what_the_caller_changes_later_is_not_stored", Pages, "SharedObjects", get_page=_the_same_object),
    mutant("search_finds_nothing_where_nothing_matches", Pages, "FindsAnything", best=_best_or_any),
    mutant("search_takes_any_text", Pages, "SignsRefused", search=_search_words_alone),
    mutant("found_pages_are_whole", Pages, "NoReferences", best=_best_without_references),
    mutant("adding_again_is_refused", Pages, "AddsOver", add_page=_add_over),
    mutant("of_many_with_one_id_one_lands", Pages, "AddsTwice", add_page=_add_slowly),
    mutant("an_update_of_an_unknown_page_is_refused", Pages, "UpdateAdds", update_page=_add_over),
    mutant("an_update_replaces_the_page", Pages, "UpdateLosesCreatedAt", update_page=_update_created),
    mutant("the_index_keeps_step", Pages, "DeleteLeavesIndex", delete_page=_delete_from_pages_alone),
    mutant("the_index_keeps_step", Pages, "IndexOfFirst", enter=lambda s, p: p.id in s.index or Pages.enter(s, p)),
    mutant("deleting_an_unknown_page_is_refused", Pages, "DeletesSilently", delete_page=_delete_silently),
    mutant("referenced_by_follows_the_pages", Pages, "ReferencesRemembered", referenced_by=_references_once),
    mutant(
        "search_finds_words_of_each_text",
        Pages,
        "ContentNotSearched",
        text=lambda s, p: " ".join((p.title, p.summary, *p.tags)).casefold(),
    ),
    mutant(
        "search_finds_words_of_each_text",
        Pages,
        "CaseCounts",
        text=lambda s, p: " ".join((p.title, p.summary, p.content)),
    ),
    mutant(
        "search_finds_words_in_scripts_without_spaces",
        Pages,
        "WholeWords",
        text=lambda s, p: set(Pages.text(s, p).replace(".", " ").replace(",", " ").split()),
    ),
    mutant(
        "search_puts_what_holds_all_words_first",
        Pages,
        "WorstFirst",
        best=lambda s, scores, limit: Pages.best(s, {id: 1 / score for id, score in scores.items() if score}, limit),
    ),
    mutant(
        "search_returns_at_most_limit", Pages, "NoLimit", best=lambda s, scores, limit: Pages.best(s, scores, 1_000)
    ),
    mutant(
        "a_keyword_names_a_titles_beginning",
        Pages,
        "TitleContains",
        named=_naming(lambda p, w: w in p.title.casefold(), _tag, _summary),
    ),
    mutant(
        "a_keyword_names_a_whole_tag",
        Pages,
        "TagPrefix",
        named=_naming(_title, lambda p, w: any(t.startswith(w) for t in p.tags), _summary),
    ),
    mutant(
        "a_keyword_names_what_a_summary_contains", Pages, "NoSummary", named=_naming(_title, _tag, lambda p, w: False)
    ),
    mutant(
        "a_keyword_names_what_a_summary_contains",
        Pages,
        "ContentByKeyword",
        named=_naming(_title, _tag, lambda p, w: w in (p.summary + p.content).casefold()),
    ),
    mutant(
        "keywords_are_no_patterns",
        Pages,
        "KeywordsAsPatterns",
        named=_naming(lambda p, w: fnmatch.fnmatchcase(p.title.casefold(), f"{w}*"), _tag, _summary),
    ),
    mutant(
        "each_keyword_counts",
        Pages,
        "AllKeywords",
        named=lambda s, p, words: [all(any(Pages.named(s, p, {word})) for word in words)],
    ),
)
