"""Knowledge pages: the KnowledgeStore of the agcore document, with the categories and keywords of local-ai."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, func, literal_column, select

from memdb.errors import NotFound
from memdb.layers import entity, reading, records, references, tags
from memdb.layers.arguments import check_bulk, check_key
from memdb.layers.evicting import EvictingLayer
from memdb.layers.keyword_lookup import PAGE_FIELDS, named
from memdb.layers.layer import Mode, reads, writes
from memdb.layers.page import (
    DEFAULT_CATEGORY,
    LAYER,
    KnowledgePage,
    PageIndexEntry,
    ScoredPage,
    index_entry,
    numbered_page,
    page_row,
    readable,
)
from memdb.layers.reading import here
from memdb.layers.record import Place, Record
from memdb.storage.schema import record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag
from memdb.text.keywords import extract_keywords

__all__ = ["DEFAULT_CATEGORY", "LAYER", "KnowledgePage", "KnowledgeStore", "PageIndexEntry", "ScoredPage"]

_CATEGORIES = Statement(
    select(record.c.category, func.count())
    .where(here(), record.c.category.is_not(None))
    .group_by(record.c.category)
    .order_by(record.c.category)
)


def _index(*conditions: ColumnElement[bool]) -> Statement:
    """Select whole records but for their content, which the index does not show."""
    columns = [record.c[name] if name != "content" else literal_column("''") for name in Record._fields]
    # "+ 0": under statistics of a sample SQLite walks the records of all users by their id to spare the sort.
    by_number = record.c.id.op("+")(literal_column("0"))
    return Statement(select(*columns).where(here(), *conditions).order_by(by_number))


_INDEX = _index()
_INDEX_OF_CATEGORY = _index(record.c.category == param("category"))


class KnowledgeStore(EvictingLayer[Mode]):
    """Pages of one user (agcore document, section 3.3)."""

    @property
    def _place(self) -> Place:
        return Place.of(LAYER, self.scope)

    @writes
    def add_page(self, tx: Transaction, page: KnowledgePage) -> None:
        """Store a new page.

        Raises:
            AlreadyExists: there is a page with this id.
            InvalidInput: a field is not what it must be.
        """
        page = KnowledgePage.model_validate(page)
        records.add(tx, page_row(self._place, page, tx.now), "page")
        references.set_references(tx, self._place, {page.id: page.references}, fresh=True)
        self._evict(tx)

    @writes
    def add_pages(self, tx: Transaction, pages: Iterable[KnowledgePage], *, replace: bool = False) -> int:
        """Store many pages at once, all or none.

        Args:
            pages: at most 100,000.
            replace: whether a page takes the place of one with the same id instead of being refused.

        Returns:
            How many were given.

        Raises:
            AlreadyExists: an id is taken or given twice, and `replace` is False; nothing was stored.
            InvalidInput: a field is not what it must be, or there are too many; nothing was stored.
        """
        check_flag(replace, "replace")
        given = [KnowledgePage.model_validate(page) for page in check_bulk(pages, "pages")]
        rows = [page_row(self._place, page, tx.now) for page in given]
        if replace:
            records.put_many(tx, rows)
        else:
            records.add_many(tx, self._place, rows, "page")
        references.set_references(tx, self._place, {page.id: page.references for page in given}, fresh=not replace)
        self._evict(tx, len(rows))
        return len(given)

    @reads
    def get_page(self, tx: Transaction, id: str) -> KnowledgePage | None:
        """Return the page with this id, or None."""
        page = reading.get(tx, self._place, check_key(id), numbered_page)
        return None if page is None else self._with_references(tx, [page])[0]

    @writes
    def update_page(self, tx: Transaction, page: KnowledgePage) -> None:
        """Replace a page. created_at is kept; keywords made by rule are made anew, keywords that were given stay.

        Raises:
            NotFound: there is no page with this id; add it.
            InvalidInput: a field is not what it must be.
        """
        page = KnowledgePage.model_validate(page)
        old = reading.get(tx, self._place, page.id, readable)
        if old is None:
            raise NotFound(f"there is no page {page.id!r} to update; add it with add_page")
        if page.keywords == old.json("keywords") == extract_keywords(old.title, old.summary, old.content):
            page = page.model_copy(update={"keywords": []})
        records.put(tx, page_row(self._place, page, tx.now))
        references.set_references(tx, self._place, {page.id: page.references}, fresh=False)
        self._evict(tx)

    @writes
    def delete_page(self, tx: Transaction, id: str) -> None:
        """Delete a page and all that belongs to it. References of other pages to it stay as they are.

        Raises:
            NotFound: there is no page with this id.
        """
        if not records.remove(tx, self._place, check_key(id)):
            raise NotFound(f"there is no page {id!r} to delete")

    @reads
    def search(
        self, tx: Transaction, query: str, limit: int = 10, *, category: str | None = None
    ) -> list[KnowledgePage]:
        """Return the pages that match a query best.

        Args:
            query: any text in any language; words in double quotes are a phrase.
            limit: how many at most, 0 to 10,000.
            category: only pages of this category.

        Returns:
            Best first by BM25 over title, tags, summary, keywords and content, ties in the order of adding.
        """
        return [hit.page for hit in self._search(tx, query, limit, category)]

    @reads
    def search_scored(
        self, tx: Transaction, query: str, limit: int = 10, *, category: str | None = None
    ) -> list[ScoredPage]:
        """Return what `search` returns, with the scores."""
        return self._search(tx, query, limit, category)

    @reads
    def find_by_keywords(self, tx: Transaction, keywords: Iterable[str], limit: int = 100) -> list[KnowledgePage]:
        """Return the pages that keywords name: a title's beginning, a whole tag, or a word in the summary.

        Letter case does not count. A keyword scores 3 for the title, 2 for a tag, 1 for the summary; a summary matches
        by whole words or their beginnings, and by any string in scripts without spaces.

        Returns:
            Highest sum first, ties in the order of adding (agcore document, section 3.3, "matching").
        """
        rows = named(tx, self._place, keywords, PAGE_FIELDS, limit)
        return self._with_references(tx, reading.shaped(tx, rows, numbered_page))

    @reads
    def get_index(self, tx: Transaction, *, category: str | None = None) -> list[PageIndexEntry]:
        """Return every page's line in the index, in the order of adding."""
        statement = _INDEX if category is None else _INDEX_OF_CATEGORY
        return [*reading.shaped(tx, tx.all(statement, **self._place.values(category=category)), index_entry)]

    @reads
    def categories(self, tx: Transaction) -> dict[str, int]:
        """Return how many pages each category holds, by name."""
        return dict(tx.all(_CATEGORIES, **self._place.values()))

    @reads
    def referenced_by(self, tx: Transaction, id: str) -> list[str]:
        """Return the ids of the pages that refer to a page, in the order of adding."""
        return references.referrers(tx, self._place, check_key(id))

    @writes
    def sync_tags(self, tx: Transaction, page_id: str, entity_ids: Iterable[str]) -> int:
        """Hand the tags of a page on to the entities that it is about (agcore document, "label inheritance").

        An entity keeps its own tags first, then those of the page that it lacks, at most 8 in all. Call it again when
        the page's tags have changed: what an entity once had of this page, and neither this page nor another that was
        handed on names any more, goes. Tags given by update_entity or set_entity_tags are the entity's own.

        Args:
            page_id: the page.
            entity_ids: the entities, at most 100,000; others that it was handed on to before stay as they are.

        Returns:
            How many entities have other tags now.

        Raises:
            NotFound: there is no such page, or not all of these entities; nothing was changed.
        """
        given = reading.get(tx, self._place, check_key(page_id, "page_id"), lambda found: found.words("tags"))
        if given is None:
            raise NotFound(f"there is no page {page_id!r} whose tags could be handed on")
        keys = [check_key(key, "entity_ids") for key in check_bulk(entity_ids, "entity_ids")]
        return tags.inherit(tx, Place.of(entity.LAYER, self.scope), keys, page_id, given)

    def _search(self, tx: Transaction, query: str, limit: int, category: str | None) -> list[ScoredPage]:
        within = self._place.within(category=None if category is None else check_key(category, "category"))
        hits = reading.search(tx, within, query, limit, numbered_page)
        pages = self._with_references(tx, [page for page, _ in hits])
        return [ScoredPage(page, score) for page, (_, score) in zip(pages, hits, strict=True)]

    def _with_references(self, tx: Transaction, numbered: Iterable[tuple[int, KnowledgePage]]) -> list[KnowledgePage]:
        pages = dict(numbered)
        found = references.references(tx, self._place.user_id, pages)
        for record_id, keys in found.items():
            pages[record_id].references = keys
        return list(pages.values())
