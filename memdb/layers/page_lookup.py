"""Pages by keyword, without ranking by text: title prefix, exact tag, word of the summary."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import select, text

from memdb.layers.models import MAX_TAG_CHARS, normal_tag
from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage.fulltext import matching
from memdb.storage.schema import record, record_tag
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.query import beginning, cleaned
from memdb.text.scripts import fold

MOST_A_FIELD = 500  # pages that one keyword may bring by one field
TITLE, TAG, SUMMARY = 3, 2, 1  # what a keyword scores by each

_BY_TAG = Statement(
    select(record_tag.c.record_id)
    .where(
        record_tag.c.user_id == param("user_id"),
        record_tag.c.tag == param("tag"),
        record_tag.c.layer == param("layer"),
    )
    .limit(MOST_A_FIELD)
)
_TITLE_NOCASE = record.c.title.collate("NOCASE")
_BY_TITLE = Statement(
    select(record.c.id)
    .where(here(), record.c.title != text("''"), param("title") <= _TITLE_NOCASE, param("beyond") > _TITLE_NOCASE)
    .limit(MOST_A_FIELD)
)


def find_pages(tx: Transaction, place: Place, keywords: list[str], limit: int) -> list[int]:
    """Return the record ids of the pages that keywords name, best first; see KnowledgeStore.find_by_keywords."""
    scores: Counter[int] = Counter()
    for keyword in dict.fromkeys(fold(cleaned(word)).strip() for word in keywords):
        if not keyword:
            continue
        scores.update(dict.fromkeys(_by_title(tx, place, keyword), TITLE))
        scores.update(dict.fromkeys(_by_tag(tx, place, keyword), TAG))
        scores.update(dict.fromkeys(_by_words(tx, place, keyword, "summary"), SUMMARY))
    return sorted(scores, key=lambda record_id: (-scores[record_id], record_id))[:limit]


def _by_title(tx: Transaction, place: Place, keyword: str) -> list[int]:
    """A title's beginning: by its index for ASCII, which SQLite folds itself; else by the words it begins with."""
    if not keyword.isascii():
        return _by_words(tx, place, keyword, "title", first=True)
    beyond = keyword[:-1] + chr(ord(keyword[-1]) + 1)
    return [found for (found,) in tx.all(_BY_TITLE, **place.values(title=keyword, beyond=beyond))]


def _by_tag(tx: Transaction, place: Place, keyword: str) -> list[int]:
    if len(keyword) > MAX_TAG_CHARS:
        return []
    return [found for (found,) in tx.all(_BY_TAG, **place.values(tag=normal_tag(keyword)))]


def _by_words(tx: Transaction, place: Place, keyword: str, column: str, *, first: bool = False) -> list[int]:
    term = beginning(keyword)
    if term is None:
        return []
    return matching(tx, term, place.within(), column=column, first=first, limit=MOST_A_FIELD)
