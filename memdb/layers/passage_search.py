"""How passages are found: by their words, or by what a search by words and meaning brings; over a transaction.

What thresholds keep, as shares: of the right passages among the first 10, in the mean and in the worst archive, and of
queries of other retrieval sets, which nothing should answer. Archives of six sets, whole and cut to 30 and to 6
documents; by meaning of four English ones, whole and cut to 30, with all-MiniLM-L6-v2.

| by words, threshold | right, questions | right, turns of dialogues | strangers get nothing, whole, 30, 6 |
| --- | --- | --- | --- |
| **0.06** | 1.00, 0.98 | 0.85, 0.72 | 0.26, 0.42, 0.68 |
| 0.1 | 0.99, 0.94 | 0.62, 0.45 | 0.39, 0.64, 0.83 |
| 0.15 | 0.95, 0.85 | 0.36, 0.18 | 0.60, 0.84, 0.95 |

| by meaning, threshold | right, questions | right, turns of dialogues | strangers get nothing, whole, 30 |
| --- | --- | --- | --- |
| **0.25** | 1.00, 1.00 | 0.86, 0.76 | 0.54, 0.75 |
| 0.3 | 1.00, 0.98 | 0.79, 0.69 | 0.65, 0.81 |
| 0.4 | 0.98, 0.97 | 0.58, 0.53 | 0.87, 0.93 |
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, func, select, tuple_

from memdb.errors import InvalidInput, NotFound
from memdb.layers import reading
from memdb.layers.arguments import MAX_LIMIT, check_bulk, check_key, check_limit, check_query
from memdb.layers.models import normal_tag, normal_tags
from memdb.layers.passage import PASSAGE, Passage, check_source, passage_of
from memdb.layers.reading import alive, here
from memdb.layers.record import Place
from memdb.storage import fulltext
from memdb.storage.coverage import coverage
from memdb.storage.schema import passage as passage_table
from memdb.storage.schema import record, record_tag
from memdb.storage.statement import Statement, each, param
from memdb.storage.transaction import Transaction
from memdb.text.query import Term, parse
from memdb.text.shown import shown
from memdb.text.stopwords import STOP_WORDS

WORDS_THRESHOLD = 0.06  # the least score of a search by words, where none is given
MEANING_THRESHOLD = 0.25  # the least score of a search by words and meaning
NARROW_POOL = 1_000  # passages of a search by meaning among which those with a tag or of a source are looked for
SOME_MORE = 10  # passages that are scored beyond those wanted: how much of the query one holds may move it up

Ranking = Sequence[tuple[int, float]]  # (record id, score), best first

_AMONG = each("ids").c.value
_WITH_TAGS = Statement(
    select(record_tag.c.record_id)
    .where(
        record_tag.c.user_id == param("user_id"),
        record_tag.c.tag.in_(select(each("tags").c.value)),
        record_tag.c.layer == param("layer"),
        record_tag.c.record_id.in_(select(_AMONG)),
    )
    .group_by(record_tag.c.record_id)
    .having(func.count() == func.json_array_length(param("tags")))
)
_FROM_SOURCE = Statement(
    select(passage_table.c.record_id).where(
        passage_table.c.record_id.in_(select(_AMONG)),
        passage_table.c.user_id.concat("") == param("user_id"),
        passage_table.c.source.concat("") == param("source"),
    )
)


# concat: or SQLite would walk the user's whole archive, the newest first, instead of what has the tag or the source.
_MINE = record.c.user_id.concat("") == param("user_id")
_TAGGED = record.c.id.in_(
    select(record_tag.c.record_id).where(
        record_tag.c.user_id == param("user_id"),
        record_tag.c.tag == param("tag"),
        record_tag.c.layer == param("layer"),
    )
)
_SOURCED = record.c.id.in_(
    select(passage_table.c.record_id).where(
        passage_table.c.user_id == param("user_id"), passage_table.c.source == param("source")
    )
)
_BEFORE = tuple_(record.c.created_at, record.c.id) < tuple_(param("created_at"), bindparam("number"))
_STANDS = Statement(select(record.c.created_at, record.c.id).where(here(), record.c.key == param("before")))


def _newest(*conditions: ColumnElement[bool]) -> Statement:
    """Numbers alone, since what has a tag is sorted by time: the texts of those wanted are read afterwards."""
    order = [record.c.created_at.desc(), record.c.id.desc()]
    return Statement(select(record.c.id).where(*conditions, alive()).order_by(*order).limit(param("limit")))


# (asked by tag, by source, before another) -> the statement: each has its own plan.
_LISTS = {
    chosen: _newest(
        _MINE if chosen[0] or chosen[1] else here(),
        *(what for is_asked, what in zip(chosen, (_TAGGED, _SOURCED, _BEFORE), strict=True) if is_asked),
    )
    for chosen in product((False, True), repeat=3)
}


class ScoredPassage(NamedTuple):
    """A passage that a search found.

    Args:
        passage: the passage.
        score: from 0 to 1, comparable between queries. Of a search by words how much of the query the passage holds
            (memdb.storage.coverage); of one by words and meaning 1 - (1 - that) * (1 - cosine).
    """

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the archive.

    Args:
        query: the query.
        k: how many passages at most.
        threshold: the least score; None for what fits the scorer.
        tags: each of them; none for any.
        source: where passages come from; None for anywhere.
    """

    query: str
    k: int
    threshold: float | None
    tags: tuple[str, ...]
    source: str | None

    @property
    def narrow(self) -> bool:
        """Whether only some passages are wanted."""
        return bool(self.tags) or self.source is not None


def asked(query: str, k: int, threshold: float | None, tags: Iterable[str] | str | None, source: str | None) -> Asked:
    """Return what is asked, checked.

    Raises:
        InvalidInput: an argument is not what it must be.
    """
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1
    ):
        raise InvalidInput(f"threshold must be a number from 0 to 1, or None for the default, not {shown(threshold)}")
    given = [tags] if isinstance(tags, str) else check_bulk(() if tags is None else tags, "tags")
    return Asked(
        check_query(query),
        check_limit(k, "k"),
        None if threshold is None else float(threshold),
        tuple(normal_tags(given)),
        None if source is None else check_source(source),
    )


def by_words(tx: Transaction, place: Place, wanted: Asked) -> list[ScoredPassage]:
    """Return the passages that hold most of a query; of narrow ones those among the MAX_LIMIT best."""
    if not wanted.k:
        return []
    terms, most = parse(wanted.query), wanted.k + SOME_MORE
    # A search costs by what it matches, hardly by what it returns: of narrow ones all are asked for at once.
    found = fulltext.search(tx, terms, place.within(), MAX_LIMIT if wanted.narrow else most, own=False)
    seen = among(tx, place, [number for number, _ in found], wanted)
    kept = [hit for hit in found if hit[0] in seen][:most]
    return read(tx, place, _held(tx, terms, kept), wanted, WORDS_THRESHOLD)


def by_meaning(
    tx: Transaction, place: Place, wanted: Asked, fused: Ranking, words: Ranking, meant: Ranking
) -> list[ScoredPassage]:
    """Return the passages that a search by words and meaning brings.

    Args:
        fused: of both, the best; of narrow ones those among the first NARROW_POOL.
        words: with their BM25 scores.
        meant: with their cosines; none where words alone were searched.
    """
    seen = among(tx, place, [number for number, _ in fused], wanted)
    most = wanted.k if meant else wanted.k + SOME_MORE  # without meaning it is a search by words like any other
    best = [number for number, _ in fused if number in seen][:most]
    bm25, cosines = dict(words), dict(meant)
    held = dict(_held(tx, parse(wanted.query), [(number, bm25[number]) for number in best if number in bm25]))
    scored = [(number, _together(held.get(number, 0.0), cosines.get(number, 0.0))) for number in best]
    return read(tx, place, scored, wanted, MEANING_THRESHOLD if meant else WORDS_THRESHOLD)


def _held(tx: Transaction, terms: Counter[Term], hits: Ranking) -> Ranking:
    """Return how much of a query each record holds: of one of stop words alone nothing, whatever matches."""
    if STOP_WORDS.issuperset(term.text for term in terms):
        return [(number, 0.0) for number, _ in hits]
    return coverage(tx, terms, hits)


def _together(held: float, cosine: float) -> float:
    """Return the score of what words and meaning say: as of two witnesses, either of whom may convince alone."""
    return 1.0 - (1.0 - held) * (1.0 - min(max(cosine, 0.0), 1.0))


def read(
    tx: Transaction, place: Place, scored: Sequence[tuple[int, float]], wanted: Asked, least: float
) -> list[ScoredPassage]:
    """Return passages by their records' numbers, best first, those that reach the threshold.

    Args:
        scored: (record id, score).
        least: the threshold where none was given.
    """
    threshold = least if wanted.threshold is None else wanted.threshold
    scores = {number: score for number, score in scored if score >= threshold}
    found = reading.ranked(tx, place.user_id, scores, passage_of, PASSAGE)
    return [ScoredPassage(passage, score) for passage, score in found[: wanted.k]]


def among(tx: Transaction, place: Place, ids: Sequence[int], wanted: Asked) -> set[int]:
    """Return those of some records that have the tags and come from where passages are wanted from."""
    kept = set(ids)
    values = {"user_id": place.user_id, "ids": json.dumps(ids)}
    if wanted.tags:
        tags = json.dumps(wanted.tags)
        kept &= {number for (number,) in tx.all(_WITH_TAGS, **values, layer=place.layer, tags=tags)}
    if wanted.source is not None:
        kept &= {number for (number,) in tx.all(_FROM_SOURCE, **values, source=wanted.source)}
    return kept


def newest(
    tx: Transaction, place: Place, limit: int, *, source: str | None, tag: str | None, before: str | None
) -> list[Passage]:
    """Return passages, newest first; see ArchivalMemory.list."""
    values: dict[str, Any] = {"limit": limit, "now": tx.now}
    if source is not None:
        values["source"] = check_source(source)
    if tag is not None:
        values["tag"] = normal_tag(tag, "tag")
    if before is not None:
        stands = tx.one(_STANDS, **place.values(before=check_key(before, "before")))
        if stands is None:
            raise NotFound(f"there is no passage {before!r} to list the archive from; begin without `before`")
        values |= {"created_at": stands[0], "number": stands[1]}
    chosen = _LISTS[tag is not None, source is not None, before is not None]
    order = {number: at for at, (number,) in enumerate(tx.all(chosen, **place.values(**values)))}
    rows = sorted(reading.by_ids(tx, place.user_id, order, PASSAGE), key=lambda row: order[row[0]])
    return [*reading.shaped(tx, rows, passage_of, PASSAGE)]
