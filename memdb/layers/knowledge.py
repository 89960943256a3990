"""Knowledge pages: the KnowledgeStore of the agcore document, with the categories and keywords of local-ai."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, literal_column, select

from memdb.errors import NotFound
from memdb.layers import reading, records, references
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_query
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.models import Content, Id, Instant, Keywords, Model, References, Tags, Title
from memdb.layers.page_lookup import find_pages
from memdb.layers.reading import here
from memdb.layers.record import Place, Record, row
from memdb.storage.schema import record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.keywords import extract_keywords

LAYER = "page"
DEFAULT_CATEGORY = "knowledge"


class KnowledgePage(Model):
    """A page of knowledge (agcore document, section 3.4).

    Args:
        id: exact text, 1 to 1,000 characters, unique for its user.
        title: at most 10,000 characters; weighs most in a search.
        summary: a few sentences.
        content: the text, at most 16 MB in UTF-8.
        tags: atomic words, best first; stored lower-cased, white space inside as a hyphen, repetitions dropped.
        references: ids of other pages, in order; they need not exist yet.
        category: a shelf of your choice.
        keywords: words that say most about the page, best first; by rule from the texts when left empty.
        created_at: with a time zone; by default when it is added.
        updated_at: when it was last stored; set by memdb.
    """

    id: Id
    title: Title
    summary: Content = ""
    content: Content = ""
    tags: Tags = []
    references: References = []
    category: Id = DEFAULT_CATEGORY
    keywords: Keywords = []
    created_at: Instant = None
    updated_at: Instant = None


class PageIndexEntry(NamedTuple):
    """A page's line in the index: all but its content."""

    id: str
    title: str
    summary: str
    tags: list[str]
    category: str
    keywords: list[str]
    updated_at: datetime


class ScoredPage(NamedTuple):
    """A page that a search found.

    Args:
        page: the page.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
    """

    page: KnowledgePage
    score: float


_CATEGORIES = Statement(
    select(record.c.category, func.count())
    .where(here(), record.c.category.is_not(None))
    .group_by(record.c.category)
    .order_by(record.c.category)
)


def _index(*conditions: ColumnElement[bool]) -> Statement:
    """Select whole records but for their content, which the index does not show."""
    columns = [record.c[name] if name != "content" else literal_column("''") for name in Record._fields]
    return Statement(select(*columns).where(here(), *conditions).order_by(record.c.id))


_INDEX = _index()
_INDEX_OF_CATEGORY = _index(record.c.category == param("category"))


class KnowledgeStore(Layer[Mode]):
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
        records.add(tx, self._row(tx, page), "page")
        references.set_references(tx, self._place, {page.id: page.references}, fresh=True)

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
        given = [KnowledgePage.model_validate(page) for page in check_bulk(pages, "pages")]
        rows = [self._row(tx, page) for page in given]
        if replace:
            records.put_many(tx, rows)
        else:
            records.add_many(tx, self._place, rows, "page")
        references.set_references(tx, self._place, {page.id: page.references for page in given}, fresh=not replace)
        return len(given)

    @reads
    def get_page(self, tx: Transaction, id: str) -> KnowledgePage | None:
        """Return the page with this id, or None."""
        page = reading.get(tx, self._place, check_key(id), _numbered_page)
        return None if page is None else self._with_references(tx, [page])[0]

    @writes
    def update_page(self, tx: Transaction, page: KnowledgePage) -> None:
        """Replace a page. created_at is kept; keywords made by rule are made anew, keywords that were given stay.

        Raises:
            NotFound: there is no page with this id; add it.
            InvalidInput: a field is not what it must be.
        """
        page = KnowledgePage.model_validate(page)
        old = reading.get(tx, self._place, page.id, _readable)
        if old is None:
            raise NotFound(f"there is no page {page.id!r} to update; add it with add_page")
        if page.keywords == old.json("keywords") == extract_keywords(old.title, old.summary, old.content):
            page = page.model_copy(update={"keywords": []})
        records.put(tx, self._row(tx, page))
        references.set_references(tx, self._place, {page.id: page.references}, fresh=False)

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
    def find_by_keywords(self, tx: Transaction, keywords: list[str], limit: int = 100) -> list[KnowledgePage]:
        """Return the pages that keywords name: a title's beginning, a whole tag, or a word in the summary.

        Letter case does not count. A keyword scores 3 for the title, 2 for a tag, 1 for the summary; a summary matches
        by whole words or their beginnings, and by any string in scripts without spaces.

        Returns:
            Highest sum first, ties in the order of adding (agcore document, section 3.3, "matching").
        """
        words = [check_query(word) for word in check_bulk(keywords, "keywords")]
        ranked = find_pages(tx, self._place, words, check_limit(limit))
        place = {record_id: at for at, record_id in enumerate(ranked)}
        rows = sorted(reading.by_ids(tx, self._place.user_id, ranked), key=lambda row: place[row[0]])
        return self._with_references(tx, reading.shaped(tx, rows, _numbered_page))

    @reads
    def get_index(self, tx: Transaction, *, category: str | None = None) -> list[PageIndexEntry]:
        """Return every page's line in the index, in the order of adding."""
        statement = _INDEX if category is None else _INDEX_OF_CATEGORY
        return [*reading.shaped(tx, tx.all(statement, **self._place.values(category=category)), _entry)]

    @reads
    def categories(self, tx: Transaction) -> dict[str, int]:
        """Return how many pages each category holds, by name."""
        return dict(tx.all(_CATEGORIES, **self._place.values()))

    @reads
    def referenced_by(self, tx: Transaction, id: str) -> list[str]:
        """Return the ids of the pages that refer to a page, in the order of adding."""
        return references.referrers(tx, self._place, check_key(id))

    def _search(self, tx: Transaction, query: str, limit: int, category: str | None) -> list[ScoredPage]:
        within = self._place.within(category=None if category is None else check_key(category, "category"))
        hits = reading.search(tx, within, query, limit, _numbered_page)
        pages = self._with_references(tx, [page for page, _ in hits])
        return [ScoredPage(page, score) for page, (_, score) in zip(pages, hits, strict=True)]

    def _with_references(self, tx: Transaction, numbered: Iterable[tuple[int, KnowledgePage]]) -> list[KnowledgePage]:
        pages = dict(numbered)
        found = references.references(tx, self._place.user_id, pages)
        for record_id, keys in found.items():
            pages[record_id].references = keys
        return list(pages.values())

    def _row(self, tx: Transaction, page: KnowledgePage) -> dict[str, Any]:
        return row(
            self._place,
            page.id,
            tx.now,
            title=page.title,
            summary=page.summary,
            content=page.content,
            tags=page.tags,
            keywords=page.keywords or extract_keywords(page.title, page.summary, page.content),
            keywords_by_rule=None if page.keywords else True,
            category=page.category,
            created_at=page.created_at,
        )


def _readable(found: Record) -> Record:
    _numbered_page(found)
    return found


def _numbered_page(found: Record) -> tuple[int, KnowledgePage]:
    page = KnowledgePage.trusted(
        id=found.key,
        title=found.title,
        summary=found.summary,
        content=found.content,
        tags=found.words("tags"),
        references=[],
        category=found.category or DEFAULT_CATEGORY,
        keywords=found.words("keywords"),
        created_at=found.created,
        updated_at=found.updated,
    )
    return found.id, page


def _entry(found: Record) -> PageIndexEntry:
    return PageIndexEntry(
        id=found.key,
        title=found.title,
        summary=found.summary,
        tags=found.words("tags"),
        category=found.category or DEFAULT_CATEGORY,
        keywords=found.words("keywords"),
        updated_at=found.updated,
    )
