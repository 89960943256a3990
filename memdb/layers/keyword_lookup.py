"""Records by keyword, without ranking by text: by the beginning of a title, a whole tag, a type, a word of the summary.

All keywords go through a field in one statement: a retriever asks with a hundred at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Select, and_, column, func, select, text
from sqlalchemy.sql.selectable import TableValuedAlias

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_bulk, check_limit, check_query
from memdb.layers.entity import MAX_TYPE_CHARS
from memdb.layers.models import MAX_TAG_CHARS, normal_tag
from memdb.layers.reading import here, in_order
from memdb.layers.record import Place
from memdb.storage.fulltext import matching
from memdb.storage.schema import record, record_tag
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.query import Term, beginning, cleaned
from memdb.text.scripts import fold

MOST_TYPES = 1_000  # that are compared without regard to case; one beyond them is found as it is spelled
MAX_KEYWORDS = 1_000  # of one call
MOST_A_FIELD = 500  # records that one spelling of a keyword may bring by one field

_GIVEN: TableValuedAlias = func.json_each(param("words")).table_valued(column("key"), column("value"))


@dataclass(slots=True)
class _Keyword:
    """A keyword as it is compared, and as it was given: in one spelling or in several that are compared alike."""

    folded: str
    spellings: dict[str, None] = field(default_factory=dict)

    @property
    def forms(self) -> list[str]:
        """How it may stand in a column whose index tells apart the cases of all letters but A to Z."""
        given = [self.folded, *self.spellings]
        if all(map(str.isascii, given)):
            return [self.folded]
        return [*dict.fromkeys(made for form in given for made in (form, form.lower(), form.upper(), form.title()))]


Found = Iterator[tuple[int, int]]  # the keyword's place in the list, a record's number
Way = Callable[[Transaction, Place, list[_Keyword]], Found]


def named(
    tx: Transaction, place: Place, keywords: Iterable[str], fields: Iterable[tuple[Way, int]], limit: int
) -> list[Row]:
    """Return the rows that keywords name, the highest score first, ties in the order of adding.

    Args:
        keywords: any texts, compared without regard to case; at most MAX_KEYWORDS.
        fields: PAGE_FIELDS or ENTITY_FIELDS.
        limit: how many at most.

    Raises:
        InvalidInput: a keyword is no text, or there are too many; the limit is out of range.
    """
    return in_order(tx, place.user_id, numbers_named(tx, place, keywords, fields, check_limit(limit)))


def numbers_named(
    tx: Transaction, place: Place, keywords: Iterable[str], fields: Iterable[tuple[Way, int]], limit: int
) -> list[int]:
    """Return the numbers of the records that `named` returns, in its order."""
    scores = _scored(tx, place, keywords, fields)
    return sorted(scores, key=lambda found: (-scores[found], found))[:limit]


def _scored(tx: Transaction, place: Place, keywords: Iterable[str], fields: Iterable[tuple[Way, int]]) -> Counter[int]:
    """Return the numbers of the records that keywords name, with the sum of what each keyword scores by each field."""
    asked: dict[str, _Keyword] = {}
    given = check_bulk(keywords, "keywords")
    if len(given) > MAX_KEYWORDS:
        raise InvalidInput(f"keywords has {len(given):,} entries; at most {MAX_KEYWORDS:,} are looked up in one call")
    for word in given:
        if spelling := cleaned(check_query(word)).strip():
            folded = fold(spelling).strip() or spelling
            asked.setdefault(folded, _Keyword(folded)).spellings[spelling] = None
    scores: Counter[int] = Counter()
    if asked:
        for way, points in fields:
            for _, found in {*way(tx, place, list(asked.values()))}:  # once a keyword, by however many spellings
                scores[found] += points
    return scores


def _each(found: Select[tuple[int]]) -> Statement:
    """Ask a query once for each row of `words`; its answers are bounded, and come as a JSON array."""
    bounded = found.limit(MOST_A_FIELD).correlate(_GIVEN).subquery()
    numbers = select(func.json_group_array(bounded.c[0])).scalar_subquery()
    return Statement(select(_GIVEN.c.key, numbers).select_from(_GIVEN))


def _given(at: int) -> ColumnElement[str]:
    return func.json_extract(_GIVEN.c.value, text(f"'$[{at}]'"))


_HERE = and_(record.c.user_id == param("user_id"), record.c.layer == param("layer"))
_TITLE = record.c.title.collate("NOCASE")
_BY_TITLE = _each(
    select(record.c.id).where(here(), record.c.title != text("''"), _given(0) <= _TITLE, _given(1) > _TITLE)
)
_BY_TAG = _each(
    select(record_tag.c.record_id).where(
        record_tag.c.user_id == param("user_id"),
        record_tag.c.tag == _given(0),
        record_tag.c.layer == param("layer"),
    )
)
_BY_TYPE = _each(select(record.c.id).where(_HERE, record.c.category == _given(0)))


def _types() -> Statement:
    """The types there are, from each to the next one: the cost grows with them, not with the records."""
    least = select(func.min(record.c.category)).where(_HERE)
    found = select(least.where(record.c.category > text("''")).scalar_subquery().label("type")).cte("found", True)
    after = least.where(record.c.category > found.c.type).correlate(found).scalar_subquery()
    found = found.union_all(select(after).where(found.c.type.is_not(None)))
    return Statement(select(found.c.type).where(found.c.type.is_not(None)).limit(MOST_TYPES))


_TYPES = _types()


def _asked(tx: Transaction, place: Place, statement: Statement, words: list[tuple[int, list[str]]]) -> Found:
    """Yield what a statement finds for words, each with the place of its keyword."""
    if words:
        given = json.dumps([values for _, values in words], ensure_ascii=False)
        for at, numbers in tx.all(statement, **place.values(words=given)):
            for number in json.loads(numbers):
                yield words[at][0], number


def _by_title(tx: Transaction, place: Place, keywords: list[_Keyword]) -> Found:
    """A title's beginning: by its index, and beyond ASCII, which SQLite does not fold, by the words it begins with."""
    ranges = [
        (at, [form, beyond])
        for at, keyword in enumerate(keywords)
        for form in keyword.forms
        if (beyond := _beyond(form)) is not None
    ]
    yield from _asked(tx, place, _BY_TITLE, ranges)
    others = [(at, keyword) for at, keyword in enumerate(keywords) if len(keyword.forms) > 1]
    yield from _by_words(tx, place, others, "title", first=True)


def _by_tag(tx: Transaction, place: Place, keywords: list[_Keyword]) -> Found:
    tags = {
        (at, normal_tag(form))
        for at, keyword in enumerate(keywords)
        for form in (keyword.folded, *keyword.spellings)
        if len(form) <= MAX_TAG_CHARS
    }
    yield from _asked(tx, place, _BY_TAG, [(at, [tag]) for at, tag in tags])


def _by_type(tx: Transaction, place: Place, keywords: list[_Keyword]) -> Found:
    """A type in any case: those there are, which are few, are compared as keywords are."""
    spelled: dict[str, list[str]] = {}
    for (kind,) in tx.all(_TYPES, **place.values()):
        if isinstance(kind, str):  # a hand may have left bytes
            spelled.setdefault(fold(kind), []).append(kind)
    kinds = {
        (at, kind)
        for at, keyword in enumerate(keywords)
        for kind in (*keyword.forms, *keyword.spellings, *spelled.get(keyword.folded, ()))
        if len(kind) <= MAX_TYPE_CHARS
    }
    yield from _asked(tx, place, _BY_TYPE, [(at, [kind]) for at, kind in kinds])


def _by_summary(tx: Transaction, place: Place, keywords: list[_Keyword]) -> Found:
    yield from _by_words(tx, place, list(enumerate(keywords)), "summary")


def _by_words(
    tx: Transaction, place: Place, keywords: list[tuple[int, _Keyword]], column: str, *, first: bool = False
) -> Found:
    known: dict[Term, list[int]] = {}  # many keywords may come to one term: "tea" and "tea!"
    for at, keyword in keywords:
        if (term := beginning(keyword.folded)) is not None:
            if term not in known:
                known[term] = matching(tx, term, place.within(), column=column, first=first, limit=MOST_A_FIELD)
            for found in known[term]:
                yield at, found


def _beyond(prefix: str) -> str | None:
    """Return the least text above all that begin with `prefix`, as NOCASE compares; None where there is none."""
    after = ord(prefix[-1]) + 1
    if after > 0x10FFFF:
        return None
    if chr(after) == "A":  # compared as "a", which is above "[" to "`"
        after = ord("[")
    return prefix[:-1] + chr(0xE000 if 0xD800 <= after < 0xE000 else after)


# What a keyword scores by each field (agcore document, section 3.3, "matching").
PAGE_FIELDS: tuple[tuple[Way, int], ...] = ((_by_title, 3), (_by_tag, 2), (_by_summary, 1))
ENTITY_FIELDS: tuple[tuple[Way, int], ...] = ((_by_title, 3), (_by_tag, 2), (_by_type, 1))
