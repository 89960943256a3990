"""How much of a query a record holds: a score from 0 to 1 that can be compared between queries, for thresholds.

BM25 orders the answers of one query well and says nothing of how good they are: its scores grow with the query and with
the rarity of its words. Here a term weighs by its rarity, those that no record holds included, and a record's share is
the weight of what it holds; a query of more than LONG_QUERY terms need not be held so far (memdb.text.overlap has the
same bend). By how often and in how short a text it holds them, from LEAST of the share is left to all of it.

Over sixteen archives of six retrieval sets, whole and cut to 30 and to 6 documents, beside queries of other sets:

| score | MRR of the first 10 | right against unrelated, area under the curve | the same, all sets under one threshold |
| --- | --- | --- | --- |
| BM25 | 0.667 | 0.89 | 0.72 |
| BM25 by its greatest possible value | 0.667 | 0.89 | 0.82 |
| share, terms by their rarity | 0.659 | 0.90 | 0.84 |
| the same, bent for long queries | 0.659 | 0.94 | 0.86 |
| **the same, by how often and how short** | 0.667 | 0.95 | 0.87 |
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from memdb.storage.bm25 import K1_PLUS_1, idf
from memdb.storage.expressions import term_expression
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER, frequencies, index_size
from memdb.text.query import MAX_TERMS, Term, limited
from memdb.text.scripts import RUN

LONG_QUERY = 8  # terms; of a longer query a record need not hold the same share
LEAST = 0.3  # of the share, for what holds its terms once in a text without end; 0.5 and more order worse than BM25
PAIR = 0.5  # of a term: what a pair of characters counts in the length of a query
# As if there were so many records more, without any of the terms: of a file of three, a word that all hold says much.
MORE_RECORDS = 100

# Of a term that few records hold all of these are walked (0.06 us a row), else each record is looked up (10 to 25 us).
_WALKED_ROWS = 200  # a record that is looked for
_WALKED = """
SELECT wanted.key, record_search.rowid
  FROM json_each(:matches) AS wanted
       CROSS JOIN record_search
 WHERE record_search MATCH wanted.value AND +record_search.rowid IN (SELECT value FROM json_each(:ids))
"""
_LOOKED_UP = """
SELECT wanted.key, hit.value
  FROM json_each(:matches) AS wanted
       CROSS JOIN json_each(:ids) AS hit
       CROSS JOIN record_search
 WHERE record_search MATCH wanted.value AND record_search.rowid = hit.value
"""


def coverage(tx: Transaction, terms: Counter[Term], found: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the records of a search in the order of how much of the query they hold.

    Args:
        terms: the query, from memdb.text.query.parse.
        found: (record id, BM25 score), from memdb.storage.fulltext.search. Each costs a look-up a term.

    Returns:
        (record id, score above 0 and at most 1), best first, ties by id.
    """
    if not found:
        return []
    size = index_size(tx).rows
    times, rows = limited(terms), _rows_with(tx, terms, size)
    weights = {term: times[term] * _weight(rows[term], size) for term in terms}
    bounds = {term: times[term] * idf(size, rows[term]) * K1_PLUS_1 for term in terms}
    whole, bend = sum(weights.values()), max(1.0, _length(terms) / LONG_QUERY)
    scored = []
    for (number, bm25), held in zip(found, _held(tx, rows, [number for number, _ in found]), strict=True):
        share = min(1.0, sum(weights[term] for term in held) / whole)
        most = sum(bounds[term] for term in held)
        dense = min(1.0, bm25 / most) if most else 0.0
        scored.append((number, (1.0 - (1.0 - share) ** bend) * (LEAST + (1.0 - LEAST) * dense)))
    return sorted(scored, key=lambda hit: (-hit[1], hit[0]))


def _rows_with(tx: Transaction, terms: Iterable[Term], size: int) -> dict[Term, int]:
    """Return how many records hold each term, at most: of several words the rarest one counts."""
    tokens = STEMMER.tokens(word for term in terms for word in term.text.split())
    known = frequencies(tx, [token for found in tokens.values() for token in found])
    rows = {}
    for term in terms:
        cut = [token for word in term.text.split() for token in tokens[word]]
        whole = cut[:-1] if term.prefix else cut
        rows[term] = min((known.get(token, 0) for token in whole), default=size if cut else 0)
    return rows


def _held(tx: Transaction, rows: Mapping[Term, int], ids: Sequence[int]) -> list[list[Term]]:
    """Return which terms each record holds, in the order of the records.

    Args:
        rows: how many records hold each term; the rarest MAX_TERMS of those that any holds are looked for.
    """
    asked = sorted((term for term in rows if rows[term]), key=lambda term: rows[term])[:MAX_TERMS]
    few = _WALKED_ROWS * len(ids)
    held: dict[int, list[Term]] = {number: [] for number in ids}
    for sql, terms in (
        (_WALKED, [term for term in asked if rows[term] <= few]),
        (_LOOKED_UP, [term for term in asked if rows[term] > few]),
    ):
        if terms:
            matches = json.dumps([term_expression(term) for term in terms])
            for at, number in tx.rows(sql, {"matches": matches, "ids": json.dumps(ids)}):
                held[number].append(terms[at])
    return list(held.values())


def _weight(rows: int, size: int) -> float:
    """Return what a term weighs by its rarity: never 0, and more the fewer hold it, from none on."""
    return math.log(1.0 + (size + MORE_RECORDS - rows + 0.5) / (rows + 1.5))


def _length(terms: Iterable[Term]) -> float:
    """Return how long a query is, in words; a name's phrase repeats its words."""
    return sum(PAIR if RUN.search(term.text) else 1.0 for term in terms if not term.phrase)
