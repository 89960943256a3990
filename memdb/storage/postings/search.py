"""A search over postings in memory: every row is scored, which takes 0.005 us a posting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memdb.storage.bm25 import idf
from memdb.storage.matrix import numpy
from memdb.storage.plan import Query
from memdb.storage.postings.connections import MAX_BYTES, make_room
from memdb.storage.postings.kept import KeptPostings
from memdb.storage.postings.reading import Wanted
from memdb.storage.postings.scoring import Weighed, best, scores, scores_among, scores_of_few
from memdb.storage.transaction import Transaction
from memdb.text.query import Term

LARGEST = MAX_BYTES // 8 // 2  # postings of one search: more would drive out all others
SETTLED = 50  # rows, beside four times as many as are wanted, whose lengths are read before the bound is known
AT_ONCE = 200  # rows whose lengths are read without a bound
FEW = 8  # a search that has fewer postings than an eighth of all rows has no array of all rows


def fits(query: Query, terms: Iterable[Term]) -> bool:
    """Whether the postings of terms are few enough to be kept."""
    return sum(query.rows_with[term] for term in terms) <= LARGEST


class Scored:
    """The rows that match a query, scored.

    The length of a row takes five times as long to read as one of its postings, so it is read of few: while it is not
    known it counts as 0, which makes the score too high, and rows whose score is too low even so are never looked at.

    Args:
        tx: the transaction.
        kept: the postings of its connection, as they are now.
        query: the query.
        wanted: what to read for each term that counts.
        scope: whether rows of other scopes are left out at once.
    """

    def __init__(
        self, tx: Transaction, kept: KeptPostings, query: Query, wanted: Mapping[Term, Wanted], *, scope: bool
    ) -> None:
        size, self.left_out = query.size, len(wanted) < len(query.terms)
        self._tx, self._kept, self._average = tx, kept, size.tokens / max(size.rows, 1)
        self._terms: list[Weighed] = []
        for term, asked in wanted.items():
            old, fresh = kept.of(tx, asked)
            weight = query.terms[term] * idf(size.rows, len(old.rows) + len(fresh.rows))
            self._terms += [Weighed(part.rows, part.frequencies, weight) for part in (old, fresh) if len(part.rows)]
        self._numbers: Any = None  # the rows that are scored; None for all
        self._rows: list[Any] = []
        if sum(len(term.rows) for term in self._terms) * FEW < len(kept.lengths):
            self._score_few()
        else:
            self._scores = scores(self._terms, kept.lengths, self._average)
            self._rows = sorted((term.rows for term in self._terms), key=len)
        if scope:
            self._leave_out_others(query.token)
        make_room(kept)

    def _score_few(self) -> None:
        np, kept = numpy(), self._kept
        if not self._terms:
            self._numbers, self._scores = np.zeros(0, dtype=np.int64), np.zeros(0)
            return
        held = np.sort(np.concatenate([term.rows for term in self._terms]))  # np.unique takes ten times as long
        self._numbers = held[np.concatenate(([True], held[1:] != held[:-1]))]
        unknown = self._numbers[kept.lengths[self._numbers] == 0]
        if len(unknown) <= AT_ONCE:
            kept.learn_lengths(self._tx, unknown)
        self._scores = scores_of_few(self._terms, self._numbers, kept.lengths, self._average)

    def _leave_out_others(self, token: int) -> None:
        np = numpy()
        mine = np.concatenate([part.rows for part in self._kept.of(self._tx, Wanted("scope", str(token)))])
        if self._numbers is None:
            seen, self._scores = self._scores, np.zeros(len(self._scores))
            self._scores[mine] = seen[mine]
        else:
            self._scores[~np.isin(self._numbers, mine)] = 0.0
        self._rows = []

    def best(self, count: int) -> list[tuple[int, float]]:
        """Return the best `count` rows with their scores, best first, ties by number."""
        places, numbers = self._best(count)
        if not self._kept.lengths[numbers].all():
            self._settle(count)
            places, numbers = self._best(count)
        return list(zip(numbers.tolist(), self._scores[places].tolist(), strict=True))

    def _best(self, count: int) -> tuple[Any, Any]:
        """Return the places of the best in `_scores`, and the rows' numbers."""
        places = best(self._scores, self._rows, count)
        return places, places if self._numbers is None else self._numbers[places]

    def _settle(self, count: int) -> None:
        """Read the lengths of all rows that may be among the best `count`, and score these anew."""
        np = numpy()
        first, _ = self._best(4 * count + SETTLED)
        self._score(first)
        least = np.sort(self._scores[first])[-count] if len(first) >= count else np.nextafter(0, 1)
        self._score(np.flatnonzero(self._scores >= least))

    def _score(self, places: Any) -> None:
        numbers = places if self._numbers is None else self._numbers[places]
        unknown = self._kept.lengths[numbers] == 0
        places, numbers = places[unknown], numbers[unknown]
        if len(places):
            order = numpy().argsort(numbers)
            places, numbers = places[order], numbers[order]
            self._kept.learn_lengths(self._tx, numbers)
            self._scores[places] = scores_among(self._terms, numbers, self._kept.lengths, self._average)
