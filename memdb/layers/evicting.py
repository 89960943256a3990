"""What the layers of lasting memory share: what goes when there are too many."""

from __future__ import annotations

from copy import copy
from typing import Self

from memdb.layers import eviction
from memdb.layers.layer import Mode
from memdb.layers.policies import NEVER, EvictionConfig, EvictionPolicy
from memdb.layers.recalled import RecalledLayer
from memdb.layers.record import Place
from memdb.storage.transaction import Transaction


class EvictingLayer(RecalledLayer[Mode]):
    """A layer whose records are recalled, and whose store may have bounds (agcore document, section 4)."""

    _eviction = NEVER

    def with_eviction(self, config: EvictionConfig | EvictionPolicy) -> Self:
        """Return the same store with an eviction policy: the writes of what is returned keep it within bounds.

        What is stored is one and the same. The store this is called on, one of another handle, and one inside an atomic
        unit have no policy: call it there, too. Nothing goes before the next write. Entities that go take their
        relations along.

        Args:
            config: the policy and how often it is checked (agcore document, section 4.2); a policy alone is checked
                with every write.

        Raises:
            InvalidInput: the configuration is not what it must be.
        """
        store = copy(self)
        store._eviction = (
            EvictionConfig(policy=config)
            if isinstance(config, EvictionPolicy)
            else EvictionConfig.model_validate(config)
        )
        return store

    @property
    def _bounds(self) -> tuple[Place, EvictionConfig] | None:
        """What a write of this store is kept within; None when it evicts nothing."""
        return None if self._eviction is NEVER else (self._place, self._eviction)

    def _evict(self, tx: Transaction, written: int = 1) -> None:
        """Keep the store within its bounds after so many records were written."""
        if self._eviction is not NEVER:
            eviction.evict(tx, self._place, self._eviction, written)
