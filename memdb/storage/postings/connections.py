"""Which connection keeps which postings, and how much all of a process keep."""

from __future__ import annotations

import sqlite3
from threading import Lock
from weakref import WeakKeyDictionary

from memdb.storage.matrix import numpy
from memdb.storage.postings.kept import MOST_ROWS, KeptPostings
from memdb.storage.transaction import Transaction

MAX_BYTES = 8 * 1024 * 1024  # of all connections of a process; the postings used longest ago go first

# Whether all is there that keeps postings true, and the file is small enough for it.
_FIT = f"""
SELECT count(*) = 5 AND coalesce((SELECT max(id) FROM record), 0) <= {MOST_ROWS} FROM sqlite_master
 WHERE name IN ('index_change', 'index_change_ai', 'index_change_au', 'index_change_ad', 'record_instance')
"""

_lock = Lock()
_by_connection: WeakKeyDictionary[sqlite3.Connection, KeptPostings | None] = WeakKeyDictionary()


def kept_by(tx: Transaction) -> KeptPostings | None:
    """Return what a transaction's connection keeps; None at its first search, without numpy, in a unit that writes,
    in a file of more than MOST_ROWS.

    A process that searches once need not load numpy, which takes longer than the search.
    """
    connection = tx.keeper
    if connection is None:
        return None
    with _lock:
        first = connection not in _by_connection
        kept = _by_connection.setdefault(connection, None)
    if first or kept is not None or not _fits(tx) or numpy() is None:
        return kept
    kept = KeptPostings()
    with _lock:
        _by_connection[connection] = kept
    return kept


def _fits(tx: Transaction) -> bool:
    """Return whether the file is one whose postings can be kept; looked at once for each state of the file."""
    known = tx.kept("postings")
    if "fit" not in known:
        known["fit"] = tx.rows(_FIT) == [(1,)]
    return bool(known["fit"])


def make_room(kept: KeptPostings) -> None:
    """Keep what all connections keep within MAX_BYTES, by what this one gives up."""
    with _lock:
        others = sum(other.bytes for other in _by_connection.values() if other is not None and other is not kept)
    kept.shrink(MAX_BYTES - others)
