"""A user's rows over postings in memory, scored by the user's own counts (see memdb.storage.own_counts)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memdb.storage.bm25 import idf, norm, share
from memdb.storage.matrix import numpy
from memdb.storage.own_counts import SAMPLED_ROWS, OwnIndex
from memdb.storage.postings.connections import make_room
from memdb.storage.postings.kept import KeptPostings, Postings
from memdb.storage.postings.reading import Wanted
from memdb.storage.postings.scoring import best
from memdb.storage.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray


class OwnScored:
    """The rows of a user that match a query, scored as in a file of the user's own.

    Args:
        tx: the transaction.
        kept: the postings of its connection, as they are now.
        mine: the user.
        terms: what to read for each term, and how often it was asked.
        scope: whose rows are wanted, of those of the user; None for all.
    """

    def __init__(
        self, tx: Transaction, kept: KeptPostings, mine: OwnIndex, terms: Mapping[Wanted, int], scope: int | None
    ) -> None:
        np = numpy()
        self._rows = rows = _rows_of(tx, kept, mine.token)
        kept.learn_lengths(tx, rows[kept.lengths[rows] == 0])
        found = [[self._held(part) for part in kept.of(tx, wanted) if len(part.rows)] for wanted in terms]
        held = [sum(len(places) for places, _ in parts) for parts in found]
        weights = [times * idf(len(rows), count) for times, count in zip(terms.values(), held, strict=True)]
        self._scores = np.zeros(len(rows))
        if any(held):
            places = np.concatenate([places for parts in found for places, _ in parts])
            tenths = np.concatenate([tenths for parts in found for _, tenths in parts])
            lengths = kept.lengths[rows]
            added = norm(lengths, float(lengths[-SAMPLED_ROWS:].mean()) or 1.0)
            self._scores = np.bincount(places, np.repeat(weights, held) * share(tenths / 10, added[places]), len(rows))
        if scope is not None:
            self._scores[~np.isin(rows, _rows_of(tx, kept, scope))] = 0.0
        make_room(kept)

    def _held(self, term: Postings) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the places of the user's rows that hold a term, and how often, in tenths."""
        if len(term.rows) < len(self._rows):
            places, mine = _found_in(self._rows, term.rows)
            return places[mine], term.frequencies[mine]
        at, holding = _found_in(term.rows, self._rows)
        return holding.nonzero()[0], term.frequencies[at[holding]]

    def best(self, count: int) -> list[tuple[int, float]]:
        """Return the best `count` rows with their scores, best first, ties by number."""
        places = best(self._scores, (), count)
        return list(zip(self._rows[places].tolist(), self._scores[places].tolist(), strict=True))


def _rows_of(tx: Transaction, kept: KeptPostings, token: int) -> NDArray[Any]:
    """Return the rows of a scope, ascending."""
    old, fresh = kept.of(tx, Wanted("scope", str(token)))
    return numpy().sort(numpy().concatenate([old.rows, fresh.rows])) if len(fresh.rows) else old.rows


def _found_in(rows: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where each of `wanted` lies in `rows`, which are no fewer, and whether it does. Both are ascending."""
    places = numpy().searchsorted(rows[:-1], wanted)
    return places, rows[places] == wanted
