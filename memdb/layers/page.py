"""What a knowledge page is, what the index and a search say of it, and how it lies in its record."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from memdb.layers.models import Content, Id, Instant, Keywords, Model, References, Tags, Title
from memdb.layers.record import Place, Record, row
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


def page_row(place: Place, page: KnowledgePage, now: str) -> dict[str, Any]:
    """Return the columns of a page's record.

    Args:
        page: a valid one.
    """
    return row(
        place,
        page.id,
        now,
        title=page.title,
        summary=page.summary,
        content=page.content,
        tags=page.tags,
        keywords=page.keywords or extract_keywords(page.title, page.summary, page.content),
        keywords_by_rule=None if page.keywords else True,
        category=page.category,
        created_at=page.created_at,
    )


def numbered_page(found: Record) -> tuple[int, KnowledgePage]:
    """Return a page with its record's number; its references are read beside it."""
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


def readable(found: Record) -> Record:
    """Return the record of a page as it is, if a page can be made of it."""
    numbered_page(found)
    return found


def index_entry(found: Record) -> PageIndexEntry:
    """Return a page's line in the index."""
    return PageIndexEntry(
        id=found.key,
        title=found.title,
        summary=found.summary,
        tags=found.words("tags"),
        category=found.category or DEFAULT_CATEGORY,
        keywords=found.words("keywords"),
        updated_at=found.updated,
    )
