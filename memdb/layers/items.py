"""Key-value items: the MemoryStore of the agcore document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import StrictInt

from memdb.layers import eviction, reading, records
from memdb.layers.arguments import check_bulk, check_key, check_limit
from memdb.layers.evicting import EvictingLayer
from memdb.layers.layer import Mode, reads, reads_one, writes
from memdb.layers.models import Content, Id, Instant, Json, Model
from memdb.layers.record import Place, Record, row
from memdb.storage.transaction import Transaction

LAYER = "item"


class MemoryItem(Model):
    """One remembered thing under an id of your choice (agcore document, section 3.4).

    Args:
        id: exact text, 1 to 1,000 characters, unique for its user.
        content: the text that is remembered and searched, at most 16 MB in UTF-8.
        metadata: any JSON value, at most 1 MB, kept exactly.
        created_at: when it came to be, with a time zone; by default when it is first saved.
        expires_at: from when on it is gone; None for never.
    """

    id: Id
    content: Content
    metadata: Json = {}
    created_at: Instant = None
    expires_at: Instant = None


class MemoryFilter(Model):
    """What MemoryStore.list shall return (agcore document, section 3.4).

    Args:
        prefix: only ids that begin with exactly this; None or '' for all.
        since: only what was created then or later, with a time zone.
        limit: at most so many; None for all.
    """

    prefix: Content | None = None
    since: Instant = None
    limit: StrictInt | None = None


class ScoredMemory(NamedTuple):
    """An item that a search found.

    Args:
        item: the item.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
    """

    item: MemoryItem
    score: float


class MemoryStore(EvictingLayer[Mode]):
    """Items of one user: save, get, delete, list, search (agcore document, section 3.3)."""

    @cached_property
    def _place(self) -> Place:
        return Place.of(LAYER, self.scope)

    @writes
    def save(self, tx: Transaction, item: MemoryItem) -> None:
        """Store an item, or replace the one of the same id, whose created_at is kept.

        Raises:
            InvalidInput: a field is not what it must be.
        """
        records.purge_expired(tx, self._place)
        records.put(tx, self._row(tx, item))
        self._evict(tx)

    @save.together
    @staticmethod
    def _save_together(tx: Transaction, calls: Sequence[tuple[MemoryStore[Any], MemoryItem]]) -> list[None]:
        for place in {store._place for store, _ in calls}:
            records.purge_expired(tx, place)
        records.put_many(tx, [store._row(tx, item) for store, item in calls])
        bounds = Counter(store._bounds for store, _ in calls if store._bounds)
        for (place, config), written in bounds.items():
            eviction.evict(tx, place, config, written)
        return [None] * len(calls)

    @writes
    def save_many(self, tx: Transaction, items: Iterable[MemoryItem]) -> int:
        """Store many items at once, all or none; of two with one id the later stays.

        Args:
            items: at most 100,000.

        Returns:
            How many were given.

        Raises:
            InvalidInput: a field is not what it must be, or there are too many; nothing was stored.
        """
        rows = [self._row(tx, item) for item in check_bulk(items, "items")]
        records.purge_expired(tx, self._place)
        records.put_many(tx, rows)
        self._evict(tx, len(rows))
        return len(rows)

    @reads_one
    def get(self, tx: Transaction, id: str) -> MemoryItem | None:
        """Return the item with this id, or None when there is none or it has expired."""
        return reading.get(tx, self._place, check_key(id), _item)

    @writes
    def delete(self, tx: Transaction, id: str) -> bool:
        """Delete an item and all that belongs to it. Returns whether it was there."""
        return records.remove(tx, self._place, check_key(id))

    @reads
    def search(self, tx: Transaction, query: str, limit: int = 10) -> list[ScoredMemory]:
        """Return the items that match a query best.

        Args:
            query: any text in any language; words in double quotes are a phrase.
            limit: how many at most, 0 to 10,000.

        Returns:
            Best first, ties in the order of their first saving; empty when nothing matches.
        """
        return [ScoredMemory(*hit) for hit in reading.search(tx, self._place.within(), query, limit, _item)]

    @reads
    def list(self, tx: Transaction, filter: MemoryFilter | None = None) -> list[MemoryItem]:
        """Return items, oldest first by created_at, ties in the order of their first saving."""
        chosen = MemoryFilter.model_validate(MemoryFilter() if filter is None else filter)
        limit = None if chosen.limit is None else check_limit(chosen.limit)
        rows = reading.listed(tx, self._place, prefix=chosen.prefix, since=chosen.since, limit=limit)
        return [*reading.shaped(tx, rows, _item)]

    def _row(self, tx: Transaction, item: MemoryItem) -> dict[str, Any]:
        item = MemoryItem.model_validate(item)
        return row(
            self._place,
            item.id,
            tx.now,
            content=item.content,
            metadata=item.metadata,
            created_at=item.created_at,
            expires_at=item.expires_at,
        )


def _item(found: Record) -> MemoryItem:
    return MemoryItem.trusted(
        id=found.key,
        content=found.content,
        metadata=found.json("metadata"),
        created_at=found.created,
        expires_at=found.expires,
    )
