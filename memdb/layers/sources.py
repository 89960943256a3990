"""Where synced pages came from: the rows of `source`, by folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import delete, select

from memdb.layers.record import Place
from memdb.storage.schema import record, source
from memdb.storage.statement import Statement, each, insert, json_field, param
from memdb.storage.transaction import Transaction


class Source(NamedTuple):
    """A file that a page came from, and what is known of both.

    Args:
        record_id: the page's record.
        page_id: the page's id.
        title: the page's title.
        path: the file in its folder, with / between its parts.
        hash: SHA-256 of its bytes when it was read.
        category: what the sync was told then.
        size, modified_ns, changed_ns: what the file system said then; -1 where that is not to be trusted.
        links: what the note refers to, as it is written there: pairs of kind and target.
    """

    record_id: int
    page_id: str
    title: str
    path: str
    hash: str
    category: str
    size: int
    modified_ns: int
    changed_ns: int
    links: list[list[str]]


_OF_FOLDER = Statement(
    select(
        source.c.record_id,
        record.c.key,
        record.c.title,
        *(source.c[name] for name in ("path", "hash", "category", "size", "modified_ns", "changed_ns", "links")),
    )
    .join(record, record.c.id == source.c.record_id)
    .where(source.c.user_id == param("user_id"), source.c.folder == param("folder"))
    .order_by(source.c.path)
)
_KEPT = ("hash", "category", "size", "modified_ns", "changed_ns", "links")
_ROW = each("rows").c.value
_PUT = insert(source).from_select(
    ["record_id", "user_id", "folder", "path", *_KEPT, "synced_at"],
    select(
        record.c.id,
        record.c.user_id,
        param("folder"),
        json_field(_ROW, "path"),
        *(json_field(_ROW, name) for name in _KEPT),
        param("now"),
    )
    # All of the key comes from the list: otherwise SQLite may walk the list once for each of the user's pages.
    .where(*(record.c[name] == json_field(_ROW, name) for name in ("user_id", "layer", "session_id", "key"))),
)
_PUT_EACH = Statement(
    _PUT.on_conflict_do_update(
        index_elements=["record_id"],
        set_={name: _PUT.excluded[name] for name in ("folder", "path", *_KEPT, "synced_at")},
    )
)
_FREE = Statement(
    delete(source).where(
        source.c.user_id == param("user_id"),
        source.c.folder == param("folder"),
        source.c.path.in_(select(each("paths").c.value)),
    )
)


def of_folder(tx: Transaction, user_id: str, folder: str) -> dict[str, Source]:
    """Return what is known of a folder's files, by path."""
    rows = tx.all(_OF_FOLDER, user_id=user_id, folder=folder)
    return {row[3]: Source._make((*row[:-1], _pairs(row[-1]))) for row in rows}


def _pairs(links: str) -> list[list[str]]:
    """Return a source's links; none where a hand has left something else there."""
    try:
        pairs = json.loads(links)
        return [[str(kind), str(target)] for kind, target in pairs]
    except (ValueError, TypeError, RecursionError):
        return []


def put_sources(tx: Transaction, place: Place, folder: str, rows: list[dict[str, Any]]) -> None:
    """Keep what files pages came from.

    Args:
        rows: key (the page's id), path, hash, category, size, modified_ns, changed_ns, links (as JSON text) of each.
    """
    if rows:
        text = json.dumps([place.values(**row) for row in rows])
        tx.run(_PUT_EACH, rows=text, folder=folder, now=tx.now)


def free_paths(tx: Transaction, place: Place, folder: str, paths: Iterable[str]) -> None:
    """Forget what files pages came from, before other pages take their paths."""
    tx.run(_FREE, user_id=place.user_id, folder=folder, paths=json.dumps(list(paths)))
