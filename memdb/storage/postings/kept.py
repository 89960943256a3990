"""Postings that a reading connection keeps, and how they stay those of the file."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memdb.storage.matrix import numpy
from memdb.storage.postings.fresh import FreshIndex
from memdb.storage.postings.reading import Read, Wanted, lengths, read, read_short
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import index_size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_FRESH = 1_000  # records that are indexed in memory; with more, postings are read anew
MAX_FRESH_TOKENS = 200_000
MOST_GAPS = 8  # numbers a record, since lengths are kept by number
AT_ONCE = 20_000  # rows whose lengths are read by one statement
MAX_ASKED = 20_000  # terms of which is known how often they were asked
SMALL = 100_000  # numbers that are never too many
# A file with greater numbers is searched by FTS5: at 420,000 a process that searched took 125 MB in place of 91.
MOST_ROWS = 300_000
# Of a term of which nothing is known so many postings are read at once, or this share of the rows: for most words that
# is all, and takes little longer than to ask how many there are.
SHORT, SHORT_SHARE = 1_000, 0.02

# The greatest record, the last change that ever was, the oldest that is still noted.
_STAND = """
SELECT coalesce((SELECT max(id) FROM record), 0), last, coalesce((SELECT min(number) FROM index_change), last + 1)
  FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_change'), 0) AS last)
"""
_CHANGED = "SELECT DISTINCT record_id FROM index_change WHERE number > ?"
_NEW = "SELECT id FROM record WHERE id > ? LIMIT ?"


@dataclass(slots=True)
class Postings:
    """The rows that hold a term, ascending, and how often, in tenths, by the weights of the columns.

    Args:
        stale: how many rows had changed when those were last taken out.
    """

    rows: NDArray[np.uint32]
    frequencies: NDArray[Any]
    stale: int

    @property
    def bytes(self) -> int:
        """What they take in memory."""
        return int(self.rows.nbytes + self.frequencies.nbytes)


class KeptPostings:
    """The postings that one connection has read. Its transactions follow one another, so none sees less than another.

    Rows up to `_base` are in the postings that were read of the file, but for those that have changed since (`_stale`).
    These and all later ones are in the fresh index.
    """

    def __init__(self) -> None:
        np = numpy()
        self._kept: OrderedDict[Wanted, Postings] = OrderedDict()  # the last is the one used last
        self._bytes = 0  # of these
        self._asked: Counter[Wanted] = Counter()  # what was not among them
        self._long: set[str] = set()  # tokens that were found to have more
        self._fresh, self._of_fresh = FreshIndex(), dict[Wanted, Postings]()
        self._base = -1  # the greatest row when postings were first read
        self._newest = self._change = -1  # the greatest row now, the last change
        self._stale, self._stales = np.zeros(0, dtype=bool), 0
        self.lengths = np.zeros(0, dtype=np.uint32)  # by row; 0 where it was not read yet
        self._nothing = Postings(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.uint16), 0)

    @property
    def bytes(self) -> int:
        """What is kept, in memory."""
        return int(self.lengths.nbytes + self._stale.nbytes) + self._bytes

    def catch_up(self, tx: Transaction) -> bool:
        """Learn what was written since the last time; False where the rows' numbers lie too far apart."""
        newest, change, oldest = tx.rows(_STAND)[0]
        if (newest, change) == (self._newest, self._change):
            return True
        if newest > MOST_ROWS or (newest >= len(self.lengths) and newest > SMALL + MOST_GAPS * index_size(tx).rows):
            return False
        known = self._base >= 0 and oldest - 1 <= self._change <= change
        changed = [number for (number,) in tx.rows(_CHANGED, (self._change,))] if known else []
        known = known and 0 not in changed  # 0: the whole index was made anew
        new = [number for (number,) in tx.rows(_NEW, (self._newest, MAX_FRESH + 1))] if known else []
        self._make_room(newest, changed, keep=known)
        if not known or not self._taken(tx, sorted({*changed, *new})):
            self._kept.clear()
            self._bytes = 0
            self._fresh.clear()
            self._base, self._stale, self._stales = newest, numpy().zeros(newest + 1, dtype=bool), 0
        self._of_fresh.clear()
        self._newest, self._change = newest, change
        return True

    def _make_room(self, newest: int, changed: list[int], *, keep: bool) -> None:
        """Make room for the lengths of rows up to `newest`, and some more for those to come."""
        if not keep or newest >= len(self.lengths):
            room = numpy().zeros(newest + newest // 8 + MAX_FRESH, dtype="uint32")
            if keep:
                room[: len(self.lengths)] = self.lengths
            self.lengths = room
        self.lengths[[number for number in changed if number < len(self.lengths)]] = 0

    def _taken(self, tx: Transaction, ids: list[int]) -> bool:
        """Take rows into the fresh index; False where they are too many or too long."""
        if len(ids) + len(self._fresh) > MAX_FRESH:
            return False
        rows, sizes = lengths(tx, numpy().array(ids, dtype="int64"))
        if sizes.sum() > MAX_FRESH_TOKENS:
            return False
        self.lengths[rows] = sizes
        self._stale[[number for number in ids if number <= self._base]] = True
        self._stales = int(self._stale.sum())
        self._fresh.take(tx, ids)
        return True

    def of(self, tx: Transaction, wanted: Wanted) -> tuple[Postings, Postings]:
        """Return a term's postings: those of old rows, those of fresh ones."""
        found = self._kept.get(wanted)
        if found is None:
            found = self._old(read(tx, wanted))
            self._keep(wanted, found)
        if found.stale != self._stales:
            good = ~self._stale[found.rows]
            self._bytes -= found.bytes
            found = Postings(found.rows[good], found.frequencies[good], self._stales)
            self._keep(wanted, found)
        self._kept.move_to_end(wanted)
        if not len(self._fresh):
            return found, self._nothing
        fresh = self._of_fresh.get(wanted)
        if fresh is None:
            fresh = self._of_fresh[wanted] = Postings(*read(self._fresh, wanted), 0)
        return found, fresh

    def _keep(self, wanted: Wanted, found: Postings) -> None:
        self._kept[wanted] = found
        self._bytes += found.bytes

    def _old(self, found: Read) -> Postings:
        rows, frequencies = found
        if len(rows) and rows[-1] > self._base:
            old = rows <= self._base
            rows, frequencies = rows[old], frequencies[old]
        return Postings(rows, frequencies, -1)

    def learn_lengths(self, tx: Transaction, rows: NDArray[np.int64]) -> None:
        """Read the lengths of rows, ascending."""
        for at in range(0, len(rows), AT_ONCE):
            known, sizes = lengths(tx, rows[at : at + AT_ONCE])
            self.lengths[known] = sizes

    def has(self, wanted: Wanted) -> bool:
        """Whether a term's postings are kept."""
        return wanted in self._kept

    def asked(self, wanted: Wanted) -> int:
        """Return how often a term was asked, this time included."""
        if len(self._asked) > MAX_ASKED:
            self._asked.clear()
        self._asked[wanted] += 1
        return self._asked[wanted]

    def rows_with(self, tx: Transaction, tokens: Iterable[str], rows: int) -> dict[str, int]:
        """Return how many rows hold each token of which postings are kept, or few enough to be read for this.

        Args:
            tokens: the tokens.
            rows: how many rows the index has.
        """
        asked = dict.fromkeys(tokens)
        most = max(SHORT, int(SHORT_SHARE * rows))
        self._read_short(tx, [token for token in asked if not self.has(Wanted("token", token))], most)
        known = [token for token in asked if self.has(Wanted("token", token))]
        return {token: sum(len(part.rows) for part in self.of(tx, Wanted("token", token))) for token in known}

    def _read_short(self, tx: Transaction, tokens: Iterable[str], most: int) -> None:
        missing = [token for token in tokens if token not in self._long]
        if not missing:
            return
        for token, found in zip(missing, read_short(tx, missing, most), strict=True):
            if found is not None:
                self._keep(Wanted("token", token), self._old(found))
            else:
                self._long.add(token)
        if len(self._long) > MAX_ASKED:
            self._long.clear()

    def shrink(self, most: int) -> None:
        """Forget what was used longest ago until no more than `most` bytes are kept."""
        while self.bytes > most and self._kept:
            wanted, postings = self._kept.popitem(last=False)
            self._bytes -= postings.bytes
            self._asked.pop(wanted, None)  # not to be read again at once, which costs more than FTS5 would take
