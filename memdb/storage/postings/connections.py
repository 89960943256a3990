"""Which connection keeps which postings, and how much all of a process keep."""

from __future__ import annotations

import os
from threading import Lock
from weakref import WeakSet

from memdb.storage.matrix import numpy
from memdb.storage.postings.kept import MOST_ROWS, KeptPostings
from memdb.storage.transaction import Transaction

# Of all connections of a process; the postings used longest ago go first. A connection that comes later has an equal
# share all the same: the others make room at their own next search.
MAX_BYTES = 8 * 1024 * 1024

# Whether all is there that keeps postings true, and the file is small enough for it.
_FIT = f"""
SELECT count(*) = 5 AND coalesce((SELECT max(id) FROM record), 0) <= {MOST_ROWS} FROM sqlite_master
 WHERE name IN ('index_change', 'index_change_ai', 'index_change_au', 'index_change_ad', 'record_instance')
"""

_lock = Lock()
_all: WeakSet[KeptPostings] = WeakSet()


def _renew() -> None:
    """Start anew in a forked child: another thread may have held the lock, and what is kept is the parent's."""
    global _lock, _all
    _lock, _all = Lock(), WeakSet()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def kept_by(tx: Transaction) -> KeptPostings | None:
    """Return what a transaction's connection keeps; None at its first search, without numpy, in a unit that writes,
    in a file of more than MOST_ROWS.

    A process that searches once need not load numpy, which takes longer than the search.
    """
    connection = tx.keeper
    if connection is None:
        return None
    first, connection.has_searched = not connection.has_searched, True
    if first or connection.postings is not None or not _fits(tx) or numpy() is None:
        return connection.postings
    connection.postings = KeptPostings()
    with _lock:
        _all.add(connection.postings)
    return connection.postings


def _fits(tx: Transaction) -> bool:
    """Return whether the file is one whose postings can be kept; looked at once for each state of the file."""
    known = tx.kept("postings")
    if "fit" not in known:
        known["fit"] = tx.rows(_FIT) == [(1,)]
    return bool(known["fit"])


def make_room(kept: KeptPostings) -> None:
    """Keep what all connections keep within MAX_BYTES, by what this one gives up."""
    with _lock:
        others = [other.bytes for other in _all if other is not kept]
    kept.shrink(max(MAX_BYTES - sum(others), MAX_BYTES // (len(others) + 1)))
