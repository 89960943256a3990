"""What a file of a folder was when it and the memory were last the same: the rows of `mirror`."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from memdb.layers.message import is_key
from memdb.storage.schema import mirror
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction


class Mirrored(NamedTuple):
    """A file as it was when it and the memory were last the same.

    Args:
        hash: SHA-256 of its bytes.
        size: how many bytes it had.
        modified_ns: its time of modification; -1 where that is not to be trusted.
        last_key: of the last entry in it; "" for none, and for the long-term text.
    """

    hash: str
    size: int
    modified_ns: int
    last_key: str = ""


_WHOSE = (mirror.c.user_id == param("user_id"), mirror.c.path == param("path"))
_GET = Statement(select(*(mirror.c[name] for name in Mirrored._fields)).where(*_WHOSE))
_VALUES = insert(mirror).values({column.name: param(column.name) for column in mirror.c})
_PUT = Statement(
    _VALUES.on_conflict_do_update(
        index_elements=["user_id", "path"],
        set_={name: _VALUES.excluded[name] for name in (*Mirrored._fields, "mirrored_at")},
    )
)


def get_mirrored(tx: Transaction, user_id: str, path: str) -> Mirrored | None:
    """Return what is known of a file; None when nothing is, or a hand has left something else there."""
    found = tx.one(_GET, user_id=user_id, path=path)
    if found is None or [type(value) for value in found] != [str, int, int, str]:
        return None
    known = Mirrored(*found)
    return known if not known.last_key or is_key(known.last_key) else None


def put_mirrored(tx: Transaction, user_id: str, path: str, mirrored: Mirrored) -> None:
    """Keep what a file is now that it and the memory are the same."""
    tx.run(_PUT, user_id=user_id, path=path, mirrored_at=tx.now, **mirrored._asdict())
