"""BM25 with a user's own counts: in a file of many, the scores that the user would have in a file of their own.

FTS5 weighs a word by how many rows of the whole file hold it, and a text by the mean length of all. Where others write
of other things that costs a user up to three points of nDCG@10, and scores tell of what strangers have written:

| nDCG@10, six sets as users of one file | all rows counted | own rows counted | a file each |
| --- | --- | --- | --- |
| cosqa (40 % of the rows) | 0.359 | 0.385 | 0.387 |
| madial_zh (1 %) | 0.357 | 0.370 | 0.370 |
| scifact (33 %) | 0.704 | 0.709 | 0.708 |
| cmrc2018_zh (5 %) | 0.990 | 0.990 | 0.990 |
| madial_en (1 %): longer texts of others happen to help short ones | 0.427 | 0.409 | 0.409 |
| locomo_half as pages (5 x 4 %): the same | 0.514 | 0.490 | 0.490 |
| locomo_half as messages, recall@10 | 0.757 | 0.765 | 0.765 |

Each term is asked by itself, together with the scope's token, and what bm25() says of a row is taken apart: of the same
term under weights w and 2 w it is idf * 2.2 / (1 + K / f) and idf * 2.2 / (1 + K / 2 f), so the ratio of both gives
K / f whatever the idf, and the row's length gives K. With the user's own rows, rows with the term and mean length the
score is put together again as FTS5 does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from memdb.storage.bm25 import K1_PLUS_1, LEAST_IDF, idf, norm, share
from memdb.storage.schema import WEIGHTS
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import IndexSize, tokens_in

# Up to this share of the rows, and so many of them, own counts are used: FTS5 walks a token's list twice for each term.
# 100,000 rows, times by those with all rows counted: a user with 0.1, 1 and 10 % of them 0.8, 1.6 and 2.6 for 5 words
# of middling frequency, 0.7, 0.8 and 1.6 for a question of 10 words; with 50 % 4.3 and 3.3. Over postings in memory
# (memdb.storage.postings.own) 1.0, 0.9 and 0.8, and 0.5, 0.4 and 0.6.
MOST_SHARE, MOST_ROWS = 0.5, 10_000
# The newest so many rows of a user say how long their texts are; of more, all would cost 10 ms for 10,000 rows.
SAMPLED_ROWS = 500
FEW_ROWS = 500  # of such a user all terms are asked at once: to look at them and to count them is one walk then
AT_ONCE = 3  # terms that are asked together at first, the rarest; then one by one, until the rest can change nothing
_FREQUENCY_DIGITS = 6  # a frequency is a sum of the columns' weights

# What is counted in `scope` and is no record.
NO_RECORDS = ("checkpoint", "payload", "state", "version", "working_memory")
_USER = f"""
SELECT (SELECT id FROM scope WHERE (user_id, layer, session_id) = (:user_id, '', '')),
       sum(records)
  FROM scope
 WHERE user_id = :user_id AND session_id = '' AND layer NOT IN {NO_RECORDS}
"""
_LENGTHS = f"""
SELECT size.sz
  FROM record_search CROSS JOIN record_search_docsize AS size ON size.id = record_search.rowid
 WHERE record_search MATCH ?
 ORDER BY record_search.rowid DESC
 LIMIT {SAMPLED_ROWS}
"""
_COUNTED = """
SELECT wanted.key, (SELECT count(*) FROM record_search WHERE record_search MATCH wanted.value)
  FROM json_each(?) AS wanted
"""


def _bm25(weights: Iterable[float]) -> str:
    return f"bm25(record_search, {', '.join(str(weight) for weight in weights)})"


_SCORED = f"""
SELECT wanted.key, record_search.rowid,
       {_bm25(WEIGHTS.values())}, {_bm25(2 * weight for weight in WEIGHTS.values())}, size.sz
  FROM json_each(:matches) AS wanted CROSS JOIN record_search
       CROSS JOIN record_search_docsize AS size ON size.id = record_search.rowid
 WHERE record_search MATCH wanted.value
"""
_SCORED_AMONG = f"{_SCORED} AND +record_search.rowid IN (SELECT value FROM json_each(:ids))"


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """What FTS5 would count with in a file of this user alone.

    Args:
        token: the user's token.
        rows: how many rows the user has in the index.
    """

    token: int
    rows: int


def own_index(tx: Transaction, user_id: str, size: IndexSize) -> OwnIndex | None:
    """Return a user's own counts, or None for one who has more than MOST_SHARE or MOST_ROWS of the rows."""
    token, rows = tx.rows(_USER, {"user_id": user_id})[0]
    if token is None or not 0 < (rows or 0) <= min(MOST_ROWS, MOST_SHARE * size.rows):
        return None
    return OwnIndex(token, rows)


def mean_length(tx: Transaction, mine: OwnIndex) -> float:
    """Return how many tokens a row of a user has, by the newest SAMPLED_ROWS; 1.0 where these are empty."""
    lengths, match = tx.kept("mean lengths"), f'scope : "{mine.token}"'
    if match not in lengths:
        sizes = [tokens_in(block) for (block,) in tx.rows(_LENGTHS, (match,))]
        lengths[match] = sum(sizes) / max(len(sizes), 1) or 1.0
    return float(lengths[match])


def own_scores(
    tx: Transaction, mine: OwnIndex, size: IndexSize, terms: Mapping[str, int], scope: int, limit: int
) -> list[tuple[int, float]]:
    """Return the rows of a scope that match best.

    Pruned as in memdb.storage.plan: once no row can be among the best by the terms that are left, these are only looked
    at in the rows that could. A term in over half of the user's rows weighs nothing and is left out beside others.

    Args:
        mine: the user's own counts.
        size: those of the whole index.
        terms: in FTS5 syntax, with how often each was asked.
        scope: the scope's token.
        limit: how many of the best are wanted.

    Returns:
        (record id, BM25 score > 0), best first, ties by id: the best are certain, what follows is not all.
    """
    if mine.rows <= FEW_ROWS:
        return _best_first(_scores_of_few(_Reader(tx, mine, size, mine.token), mine, terms))
    counts = _counted(tx, mine, terms)
    rows = max(mine.rows, *counts)  # a shell may have set the scope's counter too low
    weights = {
        term: times * idf(rows, count) for (term, times), count in zip(terms.items(), counts, strict=True) if count
    }
    left = sorted(weights, key=lambda term: -weights[term] / terms[term])
    reader = _Reader(tx, mine, size, scope)
    scores: dict[int, float] = {}
    ids: list[int] | None = None
    while left:
        part, left = (left[:AT_ONCE], left[AT_ONCE:]) if not scores else (left[:1], left[1:])
        for at, row, its_share in reader.shares(part, ids):
            scores[row] = scores.get(row, 0.0) + weights[part[at]] * its_share
        missing = sum(weights[term] * K1_PLUS_1 for term in left)
        least = nlargest(limit, scores.values())[-1] if len(scores) >= limit else 0.0
        if missing < least:
            if all(weights[term] == LEAST_IDF * terms[term] for term in left):
                break
            scores = {row: score for row, score in scores.items() if score + missing >= least}
            ids = list(scores)
    return _best_first(scores)


def _scores_of_few(reader: _Reader, mine: OwnIndex, terms: Mapping[str, int]) -> dict[int, float]:
    """Return the scores of all rows of a user that match, of whatever layer."""
    found = [*reader.shares([*terms], None)]
    counts = Counter(at for at, _, _ in found)
    rows = max(mine.rows, *counts.values(), 0)
    weights = [times * idf(rows, counts[at]) for at, times in enumerate(terms.values())]
    scores: dict[int, float] = {}
    for at, row, its_share in found:
        scores[row] = scores.get(row, 0.0) + weights[at] * its_share
    return scores


def _best_first(scores: Mapping[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


class _Reader:
    """Takes apart what bm25() says of rows."""

    def __init__(self, tx: Transaction, mine: OwnIndex, size: IndexSize, scope: int) -> None:
        self._tx, self._scope = tx, scope
        self._mean = mean_length(tx, mine)
        self._shared_mean = size.tokens / max(size.rows, 1)
        self._norms: dict[int, tuple[float, float]] = {}

    def shares(self, terms: Sequence[str], ids: Sequence[int] | None) -> Iterator[tuple[int, int, float]]:
        """Yield (place of the term, record id, the score by the term's weight) of all rows, or of those with `ids`."""
        matches = json.dumps([f'scope : "{self._scope}" AND {term}' for term in terms])
        if ids is None:
            rows = self._tx.rows(_SCORED, {"matches": matches})
        else:
            rows = self._tx.rows(_SCORED_AMONG, {"matches": matches, "ids": json.dumps(ids)})
        norms = self._norms
        for at, row, once, twice, block in rows:
            if row not in norms:
                length = tokens_in(block)
                norms[row] = norm(length, self._shared_mean), norm(length, self._mean)
            shared_norm, own_norm = norms[row]
            frequency = round(shared_norm / _norm_by_frequency(once, twice), _FREQUENCY_DIGITS)
            yield at, row, share(frequency, own_norm)


def _norm_by_frequency(once: float, twice: float) -> float:
    """Return K / f from idf * 2.2 / (1 + K / f) and idf * 2.2 / (1 + K / 2 f)."""
    return 2.0 * (twice - once) / (2.0 * once - twice)


def _counted(tx: Transaction, mine: OwnIndex, terms: Iterable[str]) -> list[int]:
    """Return how many of the user's rows, of all layers, hold each term."""
    asked = [f'scope : "{mine.token}" AND {term}' for term in terms]
    known = tx.kept("own frequencies")
    missing = [match for match in asked if match not in known]
    if missing:
        known.update((missing[at], count) for at, count in tx.rows(_COUNTED, (json.dumps(missing),)))
    return [known[match] for match in asked]
